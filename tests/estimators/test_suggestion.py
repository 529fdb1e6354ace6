"""Suggestions, answers taken in, and the promise that is withdrawn and given anew."""

import numpy as np
import pytest

import surefill as sf
from surefill.estimators.observing import joined
from surefill.guarantee import CalibrationSplit


@pytest.fixture(scope="module")
def sim():
    return sf.datasets.make_low_rank((60, 40), rank=2, n_draws=900, noise=0.2, random_state=0)


@pytest.fixture(scope="module")
def completer(sim):
    return sf.PartialCompleter(tolerance=0.15, confidence="game").fit(sim.observations)


@pytest.fixture
def fresh(completer, tmp_path):
    completer.save(tmp_path / "model.surefill")
    return sf.load(tmp_path / "model.surefill")


def as_set(cells):
    return set(zip(cells[0].tolist(), cells[1].tolist(), strict=True))


@pytest.mark.parametrize("strategy", ["coverage", "variance", "risk", "random"])
def test_suggestions_are_new_different_and_the_same_each_time(completer, strategy):
    before = completer.result_
    rows, cols, utilities = completer.suggest(50, strategy=strategy, return_utilities=True)
    assert len(as_set((rows, cols))) == 50
    assert (completer.observations_.find(rows, cols) < 0).all()
    assert np.isfinite(utilities).all()
    assert as_set(completer.suggest(50, strategy=strategy)) == as_set((rows, cols))
    assert completer.result_ is before


@pytest.mark.parametrize("strategy", ["coverage", "variance"])
def test_later_suggestions_are_worth_less(completer, strategy):
    *_, utilities = completer.suggest(100, strategy=strategy, return_utilities=True)
    assert (np.diff(utilities) <= 1e-9 * utilities[0]).all()


def test_suggestions_do_not_depend_on_calibration_values(sim, completer):
    seen = sim.observations
    held_out = CalibrationSplit.of(seen, "unobserved", None, 0).calibration
    values = np.array(seen.values)
    values[seen.find(held_out.rows, held_out.cols)] = seen.bounds[0]
    repeats = {"counts": seen.counts, "scatter": seen.scatter}
    changed = sf.Observations(seen.rows, seen.cols, values, seen.shape, seen.bounds, **repeats)
    other = sf.PartialCompleter(tolerance=0.15, confidence="game").fit(changed)
    assert other.result_.selection.threshold != completer.result_.selection.threshold
    for strategy in ("coverage", "variance", "risk"):
        assert as_set(other.suggest(30, strategy=strategy)) == as_set(completer.suggest(30, strategy=strategy))


def test_only_candidates_are_suggested_and_those_observed_are_left_out(completer):
    seen = completer.observations_
    rows, cols = np.r_[seen.rows[:5], 0:40], np.r_[seen.cols[:5], np.full(40, 7)]
    found = as_set(completer.suggest(20, candidates=(rows, cols)))
    assert found <= as_set((rows, cols))
    with pytest.raises(sf.InputError, match="41 cells to ask were wanted"):
        completer.suggest(41, candidates=(rows, cols))


def test_each_of_the_given_rows_is_asked_as_often(completer):
    rows, cols = completer.suggest(4, strategy="variance", rows=[9, 3])
    assert np.bincount(rows)[[3, 9]].tolist() == [4, 4]
    assert len(as_set((rows, cols))) == 8
    with pytest.raises(sf.InputError, match=r"row \d has"):
        completer.suggest(40, rows=[9, 3])


def test_suggestions_are_asked_for_given_back_and_answered_by_label():
    sim = sf.datasets.make_low_rank((30, 20), rank=1, n_draws=300, noise=0.1, random_state=0)
    seen = sim.observations
    labels = {"row_labels": [f"u{i}" for i in range(30)], "col_labels": 19 - np.arange(20)}
    named = sf.Observations(seen.rows, seen.cols, seen.values, seen.shape, seen.bounds, **labels)
    completer = sf.PartialCompleter(0.1, confidence="posterior").fit(named)
    rows, cols = completer.suggest(2, rows=["u4"])
    assert rows.tolist() == ["u4", "u4"]
    assert (named.find([4, 4], 19 - cols) < 0).all()
    free = named.col_names(np.flatnonzero(named.find(np.full(20, 4), np.arange(20)) < 0))[:1]
    rows, cols = completer.suggest(1, candidates=(["u4"], free))
    assert (rows.tolist(), cols.tolist()) == (["u4"], free.tolist())
    completer.observe(rows, cols, [0.1])
    assert completer.observations_.find([4], 19 - cols)[0] == len(named)
    with pytest.raises(sf.InputError, match=rf"cell \('u4', {cols[0]}\) was observed already"):
        completer.observe(rows, cols, [0.1])
    with pytest.raises(sf.InputError, match="row 'u4' has"):
        completer.suggest(20, rows=["u4"])


def test_variance_suggestions_leave_less_posterior_variance_than_random_ones(sim, fresh):
    everything = np.indices(sim.truth.shape).reshape(2, -1)

    def left(strategy):
        rows, cols = fresh.suggest(120, strategy=strategy)
        train = CalibrationSplit.of(fresh.observations_, "unobserved", None, 0, fresh.asked_).train
        both, new = joined(train, rows, cols, sim.truth_at(rows, cols))
        return fresh.result_.completion.update(both, new).variance(*everything).sum()

    assert left("variance") < left("random")


def test_after_an_answer_nothing_is_promised_until_refitted(sim, fresh):
    assert fresh.result_.guarantee.promised
    rows, cols = fresh.suggest(150)
    before = fresh.result_
    fresh.observe(rows, cols, sim.truth_at(rows, cols))
    result = fresh.result_
    assert not result.guarantee.promised
    assert "150 cells were observed after" in result.guarantee.sentence
    assert not result.at_tolerance(0.3).guarantee.promised
    assert result.n_added == 150
    truth = sim.truth_at(rows, cols)
    assert np.mean((result.values_at(rows, cols) - truth) ** 2) < np.mean((before.values_at(rows, cols) - truth) ** 2)
    assert result.risk_at(rows, cols).mean() < before.risk_at(rows, cols).mean()
    fresh.refit()
    assert fresh.result_.guarantee.promised
    assert fresh.result_.n_added == 0


def test_a_refit_calibrates_on_the_cells_of_the_first_fit_alone(sim, fresh):
    before = len(fresh.result_.calibration)
    held_out = CalibrationSplit.of(sim.observations, "unobserved", None, 0).calibration
    rows, cols = fresh.suggest(60)
    fresh.observe(rows[:30], cols[:30], sim.truth_at(rows[:30], cols[:30]))
    fresh.observe(rows[30:], cols[30:], sim.truth_at(rows[30:], cols[30:])).refit()
    assert len(fresh.result_.calibration) == before
    train = CalibrationSplit.of(fresh.observations_, "unobserved", None, 0, fresh.asked_).train
    assert len(train) == len(sim.observations) + 60 - before
    assert (train.find(held_out.rows, held_out.cols) < 0).all()
    expected = held_out.squared_errors(fresh.predict(held_out.rows, held_out.cols))
    np.testing.assert_allclose(np.sort(fresh.result_.calibration.loss), np.sort(expected))


def test_a_model_with_answers_is_saved_with_what_is_not_promised(sim, fresh, tmp_path):
    rows, cols = fresh.suggest(10)
    fresh.observe(rows, cols, sim.truth_at(rows, cols)).save(tmp_path / "asked.surefill")
    again = sf.load(tmp_path / "asked.surefill")
    assert not again.result_.guarantee.promised
    assert again.asked_.sum() == 10
    assert as_set(again.suggest(10)) == as_set(fresh.suggest(10))


@pytest.mark.parametrize("confidence", ["game", "posterior"])
def test_a_row_never_seen_gains_confidence_by_answers(confidence):
    sim = sf.datasets.make_low_rank((60, 40), rank=1, n_draws=900, noise=0.1, random_state=1)
    seen = sim.observations.select(sim.observations.rows != 5)
    completer = sf.PartialCompleter(tolerance=0.1, confidence=confidence).fit(seen)
    before = completer.predict_confidence(np.full(40, 5), np.arange(40)).mean()
    rows, cols = completer.suggest(10, strategy="variance", rows=[5])
    completer.observe(rows, cols, sim.truth_at(rows, cols))
    assert completer.predict_confidence(np.full(40, 5), np.arange(40)).mean() > before + 0.1


@pytest.mark.parametrize("loss", ["absolute", "beyond:0.3"])
def test_other_losses_are_looked_ahead_as_well(sim, loss):
    completer = sf.PartialCompleter(tolerance=0.3, confidence="game", loss=loss).fit(sim.observations)
    *_, utilities = completer.suggest(40, return_utilities=True)
    assert (utilities > 0).all()
    # Sums of variances need not fall by less with each answer: one may make another a little more worth asking.
    assert (np.diff(utilities) <= 1e-3 * utilities[0]).all()
    rows, cols = completer.suggest(40)
    assert not completer.observe(rows, cols, sim.truth_at(rows, cols)).result_.guarantee.promised


def test_bad_input_is_refused_and_changes_nothing(sim, fresh):
    seen, result = fresh.observations_, fresh.result_
    with pytest.raises(sf.InputError, match="was observed already"):
        fresh.observe(seen.rows[:1], seen.cols[:1], [0.0])
    free = fresh.suggest(1, strategy="random")
    with pytest.raises(sf.InputError, match="bounds"):
        fresh.observe(*free, [99.0])
    with pytest.raises(sf.InputError, match="strategy"):
        fresh.suggest(3, strategy="best")
    with pytest.raises(sf.InputError, match="'n'"):
        fresh.suggest(0)
    assert fresh.result_ is result
    assert fresh.observations_ is seen


def test_a_completion_without_a_posterior_leaves_random_only(sim):
    completer = sf.PartialCompleter(0.1, completion="soft-impute", confidence="game").fit(sim.observations)
    with pytest.raises(sf.InputError, match="only strategy='random' is left"):
        completer.suggest(5)
    rows, cols = completer.suggest(5, strategy="random")
    with pytest.raises(sf.InputError, match="cannot take in observations"):
        completer.observe(rows, cols, np.zeros(5))


def test_a_row_is_asked_for_the_cells_that_rows_usually_have(sim):
    # columns 0 to 9 were seen four times as often; with aim="all" they count like any other
    seen = sim.observations
    often = seen.select((seen.cols < 10) | (np.arange(len(seen)) % 4 == 0))
    cells = np.full(40, 7), np.arange(40)
    utilities = []
    for aim in ("observed", "all"):
        completer = sf.PartialCompleter(tolerance=0.15, confidence="game", aim=aim).fit(often)
        free = completer.observations_.find(*cells) < 0
        _, cols, worth = completer.suggest(int(free.sum()), None, "variance", True, rows=[7])
        utilities.append(worth.sum())
        assert set(cols.tolist()) == set(np.flatnonzero(free).tolist())
    assert utilities[0] != pytest.approx(utilities[1], rel=0.01)
