"""What is promised where bounds are given, recognised, or not known at all."""

import numpy as np
import pytest

from surefill import Observations, PartialCompleter
from surefill.completion import FactorModel
from surefill.data import BoundsSource
from surefill.errors import InputError
from surefill.estimators import load
from surefill.guarantee import CalibrationSplit

SHOCK, SHOCKED, NOISE = 40.0, 0.0002, 0.1
"""One value in 5000 is 40 where the others are nearly in [-1, 1]: that adds 0.32 to the mean squared error."""


def world(seed):
    """What is expected of cells without a shock, rank 1, and what was seen of half of them."""
    rng = np.random.default_rng(seed)
    mean = np.outer(rng.uniform(-1, 1, 60), rng.uniform(-1, 1, 50))
    values = mean + rng.normal(0, NOISE, mean.shape)
    values[rng.random(values.shape) < SHOCKED] = SHOCK
    rows, cols = np.nonzero(rng.random(values.shape) < 0.5)
    return mean, Observations(rows, cols, values[rows, cols], values.shape)


def completed(observations, confidence, **options):
    return PartialCompleter(0.1, 0.1, FactorModel(rank=1, penalty=2.0), confidence, **options).fit(observations)


def expected_loss(completer, mean, most):
    """Mean over the kept cells outside training of E min((value - prediction)^2, most^2)."""
    result = completer.result_
    train = CalibrationSplit.of(completer.observations_, "unobserved", None, 0).train
    kept = result.keeps_dense()
    kept[train.rows, train.cols] = False
    rows, cols = np.nonzero(kept)
    predicted = result.values_at(rows, cols)
    usual, shock = (predicted - mean[kept]) ** 2 + NOISE**2, np.minimum(SHOCK - predicted, most) ** 2
    return float(np.mean((1 - SHOCKED) * usual + SHOCKED * shock))


def test_without_bounds_the_promise_is_about_clipped_errors_and_true(everywhere):
    """A promise about the plain mean would be false, each of them."""
    promised = 0
    for seed in range(16):
        mean, seen = world(seed)
        completer = completed(seen, everywhere)
        result = completer.result_
        if not result.guarantee.promised or result.bounds[1] == SHOCK:
            continue
        promised += 1
        most = result.loss.largest_error
        assert f"Errors beyond {most:.4g} count as {most:.4g}: bounds were not given." in result.guarantee.sentence
        assert "values lie in" not in result.guarantee.holds_over
        assert expected_loss(completer, mean, most) <= 0.1 < expected_loss(completer, mean, np.inf)
        assert result.calibration.loss.max() <= result.plan.largest_loss
    assert promised >= 10


def test_with_bounds_given_shocks_within_them_leave_no_false_promise(everywhere):
    for seed in range(16):
        completer = completed(world(seed)[1], everywhere, bounds=(-2, SHOCK))
        guarantee = completer.result_.guarantee
        assert not guarantee.promised
        assert completer.result_.loss.condition == "values lie in [-2, 40]"


@pytest.fixture(scope="module")
def stars():
    rng = np.random.default_rng(0)
    mean = 3 + 2 * np.outer(rng.uniform(-1, 1, 60), rng.uniform(-1, 1, 50))
    values = np.clip(np.round(mean + rng.normal(0, 0.4, mean.shape)), 1, 5)
    rows, cols = np.nonzero(rng.random(mean.shape) < 0.5)
    return Observations(rows, cols, values[rows, cols], mean.shape)


def test_a_scale_that_values_lie_on_is_taken_as_their_range_and_said(stars):
    result = PartialCompleter(tolerance=0.8, confidence="posterior").fit(stars).result_
    assert result.guarantee.promised
    assert "and values lie in [1, 5] (the scale they were seen on)." in result.guarantee.holds_over
    assert "count as" not in result.guarantee.sentence


def test_a_calibration_value_off_the_scale_leaves_the_clipped_promise(stars):
    values = stars.values.copy()
    held_out = CalibrationSplit.of(stars, "unobserved", None, 0).calibration
    values[stars.find(held_out.rows, held_out.cols)[0]] = 30.0
    other = Observations(stars.rows, stars.cols, values, stars.shape)
    result = PartialCompleter(tolerance=0.8, confidence="posterior").fit(other).result_
    assert result.bounds == (1, 5)
    assert result.loss.bounds_from is BoundsSource.SEEN
    assert "bounds were not given" in result.guarantee.sentence


def test_calibration_values_beyond_the_range_change_nothing_that_was_learnt(everywhere):
    _, seen = world(1)
    held_out = CalibrationSplit.of(seen, "unobserved", None, 0).calibration
    values = seen.values.copy()
    values[seen.find(held_out.rows, held_out.cols)[:3]] = 1000.0
    first, second = (
        completed(seen, everywhere),
        completed(Observations(seen.rows, seen.cols, values, seen.shape), everywhere),
    )
    every = np.indices(seen.shape).reshape(2, -1)
    np.testing.assert_array_equal(first.predict(*every), second.predict(*every))
    np.testing.assert_array_equal(first.predict_risk(*every), second.predict_risk(*every))
    assert first.result_.plan.largest_loss == second.result_.plan.largest_loss


def test_intervals_reach_beyond_a_range_that_was_only_seen(everywhere):
    completer = completed(world(0)[1], everywhere)
    low, high = completer.predict_interval([0], [0], 0.9999)
    assert (low[0], high[0]) == (-np.inf, np.inf)


def test_bounds_given_to_the_completer_replace_the_observations_own_and_are_stored(stars, tmp_path):
    completer = PartialCompleter(tolerance=0.8, confidence="posterior", bounds=(0, 10)).fit(stars)
    assert completer.observations_.bounds == completer.result_.bounds == (0, 10)
    assert "and values lie in [0, 10]." in completer.result_.guarantee.holds_over
    completer.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert again.bounds == (0, 10)
    assert again.result_.loss == completer.result_.loss
    assert again.observations_.bounds_from is BoundsSource.GIVEN
    low, high = again.predict_interval([0], [0], 0.9)
    assert (low, high) == completer.predict_interval([0], [0], 0.9)


@pytest.mark.parametrize("bounds", [(5, 1), (1,), "ab", (0, np.inf), (1, None)])
def test_bounds_that_are_none_are_refused(bounds, stars):
    with pytest.raises(InputError, match=r"The 'bounds' parameter of PartialCompleter must be two numbers, low < high"):
        PartialCompleter(bounds=bounds).fit(stars)


def test_a_value_outside_given_bounds_is_refused(stars):
    with pytest.raises(InputError, match=r"values must lie within bounds \(1, 4\); item"):
        PartialCompleter(bounds=(1, 4)).fit(stars)
    with pytest.raises(InputError, match=r"values must lie within bounds \(1, 4\); item"):
        PartialCompleter(bounds=(1, 4)).fit(stars.dense())
