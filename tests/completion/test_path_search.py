import numpy as np
import pytest

from surefill.completion import FactorModel, MaxNormCompletion, SoftImpute
from surefill.completion.path_search import PathSearch, hold_out
from surefill.datasets import make_low_rank
from surefill.loop import Status, run


def search_of(errors, **options):
    """A search whose fits are the positions tried and whose errors are given; (search, [(candidate, last fit)])."""
    tried = []

    def fit(candidate, last):
        tried.append((candidate, last))
        return len(tried) - 1

    return PathSearch([10.0 * k for k in range(len(errors))], fit, errors.__getitem__, "choosing", **options), tried


def test_the_best_candidate_is_found_and_every_fit_starts_from_the_last():
    errors = [4.0, 2.0, 3.0, 1.0, 5.0, 6.0, 0.0]
    search, tried = search_of(errors)
    assert search.search() == (30.0, 3)
    assert tried == [(0.0, None), (10.0, 0), (20.0, 1), (30.0, 2), (40.0, 3), (50.0, 4)]
    assert run(search_of(errors)[0], max_steps=7).status is Status.NO_GAIN


def test_the_search_ends_with_the_path():
    search, tried = search_of([3.0, 2.0, 1.0])
    assert search.search() == (20.0, 2)
    assert len(tried) == 3


def test_a_gain_below_the_least_does_not_count():
    errors = [1.0, 0.9995, 0.9991, 0.5]
    assert search_of(errors, least_gain=1e-3)[0].search() == (0.0, 0)
    assert search_of(errors)[0].search() == (30.0, 3)


def test_no_time_is_time_for_one_candidate():
    search, tried = search_of([3.0, 2.0, 1.0])
    assert search.search(time_limit=0.0) == (0.0, 0)
    assert len(tried) == 1


def test_a_tenth_is_held_out_and_nothing_where_there_is_too_little():
    seen = make_low_rank((30, 20), rank=2, n_draws=400, random_state=0).observations
    train, held = hold_out(seen, 0)
    assert len(train) + len(held) == len(seen)
    assert len(held) == pytest.approx(len(seen) / 10, abs=1)
    assert hold_out(seen.select(np.arange(len(seen)) < 19), 0) is None


@pytest.mark.parametrize(
    ("model", "task"),
    [
        (FactorModel(), "choosing the penalty"),
        (SoftImpute(), "choosing the penalty"),
        (MaxNormCompletion(), "choosing K"),
    ],
)
def test_algorithms_report_their_search(model, task):
    seen = make_low_rank((30, 20), rank=2, n_draws=400, random_state=0).observations
    reports = []
    model.fit(seen, reports.append)
    assert reports[0].task == task
    assert {report.task for report in reports} > {task}
