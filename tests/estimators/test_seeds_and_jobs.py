import numpy as np
import pytest

from surefill import PartialCompleter, load, parallel
from surefill.data import split_folds
from surefill.datasets import make_low_rank
from surefill.errors import InputError


@pytest.fixture(scope="module")
def seen():
    return make_low_rank((40, 30), rank=2, n_draws=1000, noise=0.2, random_state=0).observations


def fitted(seen, **parameters):
    return PartialCompleter(0.2, confidence="posterior", **parameters).fit(seen)


def test_no_seed_takes_a_fresh_one_and_says_which(seen, tmp_path):
    one, other = fitted(seen, random_state=None), fitted(seen, random_state=None)
    assert one.random_state_ != other.random_state_
    assert one.random_state is None
    again = fitted(seen, random_state=one.random_state_)
    every = np.indices(seen.shape).reshape(2, -1)
    np.testing.assert_array_equal(again.predict(*every), one.predict(*every))
    assert (other.predict(*every) != one.predict(*every)).any()
    one.save(tmp_path / "model.surefill")
    assert load(tmp_path / "model.surefill").random_state_ == one.random_state_
    assert one.refit().result_.calibration_cells[0].tolist() == again.result_.calibration_cells[0].tolist()


@pytest.mark.parametrize("make", [np.random.RandomState, np.random.default_rng])
def test_a_generator_gives_its_next_seed(seen, make, tmp_path):
    generator = make(7)
    seeds = [fitted(seen, random_state=generator).random_state_ for _ in range(2)]
    same = make(7)
    assert seeds[0] != seeds[1]
    completer = fitted(seen, random_state=same)
    assert completer.random_state_ == seeds[0]
    completer.save(tmp_path / "model.surefill")
    assert load(tmp_path / "model.surefill").random_state == seeds[0]


@pytest.mark.parametrize("wrong", [-1, 1.5, "7", True])
def test_other_seeds_are_refused(seen, wrong):
    with pytest.raises(InputError, match="'random_state' parameter"):
        fitted(seen, random_state=wrong)


def test_the_result_does_not_depend_on_the_cores_that_are_used(seen, monkeypatch):
    monkeypatch.setattr(parallel, "n_cores", lambda: 4)
    every, used = np.indices(seen.shape).reshape(2, -1), []
    map_pieces = parallel.ThreadMap.map
    monkeypatch.setattr(
        parallel.ThreadMap, "map", lambda self, *given: used.append(parallel.n_workers()) or map_pieces(self, *given)
    )
    answers = {}
    for n_jobs in (None, 1, 2, -1):
        used.clear()
        completer = fitted(seen, n_jobs=n_jobs)
        assert set(used) == {{None: 4, -1: 4}.get(n_jobs, n_jobs)}
        answers[n_jobs] = completer.predict_risk(*every)
        assert parallel.n_workers() == 4
    for answer in answers.values():
        np.testing.assert_array_equal(answer, answers[None])
    with pytest.raises(InputError, match="'n_jobs' parameter of PartialCompleter"):
        fitted(seen, n_jobs=0)


def test_an_interrupted_fit_leaves_the_completer_as_it_was(seen):
    train, _ = next(split_folds(seen, 5))
    completer = fitted(train)
    before = dict(vars(completer))

    def interrupt(_):
        raise KeyboardInterrupt

    wider = make_low_rank((20, 35), rank=1, n_draws=500, random_state=0).observations.dense()
    completer.set_params(progress=interrupt, random_state=None)
    for call in (lambda: completer.fit(wider), completer.refit):
        with pytest.raises(KeyboardInterrupt):
            call()
        assert vars(completer) == before | {"progress": interrupt, "random_state": None}
    new = PartialCompleter(0.2, confidence="posterior", progress=interrupt)
    with pytest.raises(KeyboardInterrupt):
        new.fit(train)
    assert not [name for name in vars(new) if name.endswith("_")]
    completer.set_params(progress=None)
    with pytest.raises(InputError):
        completer.observe(train.rows[:1], train.cols[:1], [0.0])
    assert completer.observations_ is before["observations_"]
