"""What a fit hands to the test of its promise: the cells, weights, losses, bounds and the sensitivity asked for."""

from dataclasses import replace

import numpy as np
import pytest

import surefill as sf
from surefill.data import BoundsSource, Observations
from surefill.guarantee import (
    Calibration,
    CalibrationSplit,
    Population,
    SelectionPlan,
    TargetWeights,
    calibration_split,
    tested_sets,
)
from surefill.guarantee.plan import exposure
from surefill.guarantee.propensity import (
    CalibratedPropensity,
    GivenPropensity,
    MarginRaking,
    PropensityMisfit,
    fit_propensity,
)
from surefill.guarantee.target_weights import HeldOutRate
from surefill.losses import SQUARED, AbsoluteError, ClippedLoss, Misclassification, SquaredError


@pytest.fixture(scope="module")
def seen():
    return sf.datasets.make_low_rank((60, 50), rank=2, n_draws=2000, noise=0.1, random_state=0).observations


def test_calibration_cells_beyond_the_limit_on_exposure_win_nothing():
    n, n_common, n_rare = 4000, 60, 5
    weight = np.where(np.arange(n) < 40, 1e5, 5.0)
    cells = Population.of(np.full(n, 0.1), weight, np.ones(n), 1.0, np.ones(n, bool), float(n))
    plan = SelectionPlan(0.3, 0.1, 0.0, n_common + n_rare, n, cells, SQUARED)
    ones = np.ones(n_common + n_rare)
    held_out = Calibration(0.1 * ones, ones, 0 * ones, ones, np.repeat([5.0, 1e5], [n_common, n_rare]))
    assert plan.sets.most_exposure < 1e4
    assert tested_sets.TestedSets.of(plan, held_out).sizes.tolist() == [n_common]


@pytest.mark.parametrize("aim", ["unobserved", "all", "observed"])
def test_the_plan_and_the_calibration_cells_are_those_of_what_was_asked(seen, aim):
    G = 1.0 if aim == "observed" else 1.3
    result = sf.PartialCompleter(0.1, confidence="posterior", aim=aim, sensitivity=G, random_state=0).fit(seen).result_
    assert result.weights.leaves_out_calibration == result.plan.leaves_out_calibration == (aim == "unobserved")
    assert (result.plan.sensitivity, result.plan.n_asked) == (G, 0)
    assert (result.selection.n_filled is not None) == (aim == "unobserved")
    held_out = CalibrationSplit.of(seen, aim, None, 0).calibration
    np.testing.assert_allclose(result.calibration.weight, result.weights.at(held_out.rows, held_out.cols))
    assert (result.calibration.weight > 1).all() == (aim != "observed")
    predicted = result.values_at(held_out.rows, held_out.cols)
    np.testing.assert_allclose(result.calibration.loss, result.loss.at(held_out, predicted))


def test_predictions_are_clipped_to_what_they_are_on_the_training_cells(seen):
    result = sf.PartialCompleter(0.1, confidence="posterior", random_state=0).fit(seen).result_
    train = CalibrationSplit.of(seen, "unobserved", None, 0).train
    predicted = np.clip(result.completion.at(train.rows, train.cols), *result.loss.bounds)
    assert result.loss.predicted_range == (predicted.min(), predicted.max())
    every = result.completion.at(*np.indices(seen.shape).reshape(2, -1))
    assert every.min() < predicted.min() or every.max() > predicted.max()


def test_cells_beyond_the_limit_on_exposure_are_not_delivered_as_kept(seen):
    result = sf.PartialCompleter(0.1, confidence="posterior", random_state=0).fit(seen).result_
    i, j = np.indices(seen.shape).reshape(2, -1)
    answer = result.answer(i, j)
    exposed = exposure(result.weights.at(i, j), result.loss.largest_at(answer.value), 0.1)
    limit = float(np.median(exposed[answer.keep]))
    narrow = replace(result, selection=replace(result.selection, most_exposure=limit))
    expected = narrow.selection.keeps(answer.risk, answer.confidence, exposed)
    assert 0 < expected.sum() < answer.keep.sum()
    np.testing.assert_array_equal(narrow.answer(i, j).keep, expected)
    np.testing.assert_array_equal(narrow.answer_block(*map(np.arange, seen.shape)).keep.ravel(), expected)


def test_weights_have_corrected_chances_and_the_rate_that_modelled_ones_gave():
    one = np.ones(1)
    model, rate = GivenPropensity(np.array([[0.2, 0.6]])), HeldOutRate(0.1)
    corrected = CalibratedPropensity(model, np.zeros(1), np.log([0.5]), PropensityMisfit(one, one, one, one, one, 0.5))
    q, p = rate.at(np.array([0.2, 0.6])), corrected.at([0, 0], [0, 1])
    assert (p < [0.2, 0.6]).all()
    found = TargetWeights("unobserved", model, rate, corrected).at([0, 0], [0, 1])
    np.testing.assert_allclose(found, (1 - (1 - q) * p) / (q * p))


def test_given_chances_are_taken_as_they_are_and_modelled_ones_are_learnt_from_the_first_half():
    rng = np.random.default_rng(0)
    rows, cols = np.nonzero(rng.random((200, 100)) < 0.4)
    observations = Observations(rows, cols, rng.normal(size=len(rows)), (200, 100))
    split = CalibrationSplit.of(observations, "unobserved", np.full((200, 100), 0.2), 3)
    q = split.weights.rate.at(np.array(0.2))
    np.testing.assert_allclose(split.weights.at(rows, cols), (1 - (1 - q) * 0.2) / (q * 0.2))
    first, _ = calibration_split._halves(observations, (3, calibration_split.HALVES))
    own = fit_propensity(first, 0.5, 3).at(rows, cols)
    split = CalibrationSplit.of(observations, "unobserved", None, 3)
    np.testing.assert_array_equal(split.weights.propensity.at(rows, cols), own)


def test_halves_and_calibration_cells_have_coins_of_their_own(seen, monkeypatch):
    tossed, make = [], np.random.default_rng

    def remembering(seed=None):
        tossed.append(seed)
        return make(seed)

    monkeypatch.setattr(np.random, "default_rng", remembering)
    CalibrationSplit.of(seen, "unobserved", np.full(seen.shape, 0.4), 3)
    streams = [seed for seed in tossed if isinstance(seed, tuple)]
    assert len(streams) == len(set(streams)) == 2


def test_lines_are_raked_to_the_cells_that_the_first_half_left():
    """A row of which the first half holds all but one cell stands for that one, not for the whole row."""
    shape = (2, 40)
    first = Observations(np.zeros(39, int), np.arange(39), np.zeros(39), shape)
    second = Observations([0, 1, 1], [39, 0, 1], np.zeros(3), shape)
    raking = MarginRaking.of(np.full(3, 0.5), first, second, 0.5)
    assert raking.row_factor[0] < 0.5 * raking.row_factor[1]


@pytest.mark.parametrize("loss", [SquaredError(), AbsoluteError(), Misclassification(0.5)])
@pytest.mark.parametrize("source", list(BoundsSource))
def test_no_loss_within_the_bounds_exceeds_the_largest(loss, source):
    clipped = ClippedLoss(loss, (1.0, 5.0), source, (2.0, 4.5))
    predicted, cells = np.linspace(-3, 9, 25), np.arange(25)
    at_ends = [clipped.at(Observations(cells, cells, np.full(25, end)), predicted) for end in clipped.bounds]
    assert (clipped.largest_at(predicted) >= np.max(at_ends, axis=0) - 1e-12).all()
