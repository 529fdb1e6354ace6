"""Promises, risks and intervals for other losses than the square."""

import numpy as np
import pytest
from scipy.stats import norm

from surefill import Observations, PartialCompleter
from surefill.completion import BayesianFactorModel, FactorModel
from surefill.errors import InputError
from surefill.estimators import load
from surefill.estimators.evaluation import evaluate_folds
from surefill.guarantee import CalibrationSplit
from surefill.losses import AbsoluteError, Misclassification
from surefill.metrics import calibration_by_decile

LOSSES = {"absolute": 0.3, Misclassification(0.5): 0.18}
"""Tolerances at which about half of the table below can be kept."""


def world(seed, shape=(80, 60), seen=0.4):
    """Means of rank 1, the noise of each cell, and what was seen; rows and columns are noisy to different degrees."""
    rng = np.random.default_rng(seed)
    mean = np.outer(rng.uniform(-1, 1, shape[0]), rng.uniform(-1, 1, shape[1]))
    noise = 0.3 * np.exp(0.5 * rng.normal(size=(shape[0], 1)) + 0.3 * rng.normal(size=(1, shape[1])))
    rows, cols = np.nonzero(rng.random(shape) < seen)
    values = mean[rows, cols] + noise[rows, cols] * rng.normal(size=len(rows))
    return mean, noise, Observations(rows, cols, values, shape)


def expected_loss(loss, off, noise):
    """E l(off + noise N(0, 1))."""
    if isinstance(loss, Misclassification):
        d = loss.distance
        return norm.cdf((-d - off) / noise) + norm.sf((d - off) / noise)
    return noise * np.sqrt(2 / np.pi) * np.exp(-((off / noise) ** 2) / 2) + off * (1 - 2 * norm.cdf(-off / noise))


@pytest.mark.parametrize("loss", LOSSES)
def test_promises_are_seldom_broken_and_keep_something(loss, everywhere):
    """At delta 0.2 more than 8 broken of 20 have a chance below 1%."""
    broken, kept_shares = 0, []
    for seed in range(20):
        mean, noise, seen = world(seed)
        completer = PartialCompleter(LOSSES[loss], 0.2, FactorModel(rank=1, penalty=3.0), everywhere, loss=loss).fit(
            seen
        )
        result = completer.result_
        kept = result.keeps_dense()
        train = CalibrationSplit.of(seen, "unobserved", None, 0).train
        kept[train.rows, train.cols] = False
        rows, cols = np.nonzero(kept)
        kept_shares.append(kept.mean() / (1 - len(train) / kept.size))
        if result.guarantee.promised:
            off = result.values_at(rows, cols) - mean[kept]
            broken += expected_loss(result.loss.loss, off, noise[kept]).mean() > LOSSES[loss]
    assert broken <= 8
    assert 0.25 < np.mean(kept_shares) < 0.95


@pytest.fixture(scope="module")
def fitted(everywhere):
    mean, noise, seen = world(0, (200, 120), 0.3)
    completers = {
        loss: PartialCompleter(tolerance, 0.1, BayesianFactorModel(rank=1), everywhere, loss=loss).fit(seen)
        for loss, tolerance in LOSSES.items()
    }
    return mean, noise, completers


@pytest.mark.parametrize("loss", LOSSES)
def test_risks_are_expected_losses(fitted, loss):
    mean, noise, completers = fitted
    result = completers[loss].result_
    rows, cols = np.indices(mean.shape).reshape(2, -1)
    answer = result.answer(rows, cols)
    truth = expected_loss(result.loss.loss, answer.value - mean.ravel(), noise.ravel())
    deciles = calibration_by_decile(truth, answer.risk, 10)
    np.testing.assert_allclose(deciles.predicted, deciles.seen, rtol=0.2, atol=0.02)
    assert np.corrcoef(truth, answer.risk)[0, 1] > 0.8
    assert answer.risk.min() > 0
    if isinstance(loss, Misclassification):
        assert answer.risk.max() < 1


@pytest.mark.parametrize("loss", LOSSES)
def test_sentences_speak_of_the_loss(fitted, loss):
    result = fitted[2][loss].result_
    name = result.loss.loss.mean_name
    assert f"the {name} over the" in result.guarantee.sentence
    assert f"is at most {LOSSES[loss]:g}." in result.guarantee.sentence
    assert f"their {name}" in result.selection.sentence
    assert "squared" not in result.guarantee.sentence + result.selection.sentence


def test_a_share_needs_no_bounds_and_a_mean_of_absolute_errors_says_that_it_is_clipped(fitted):
    absolute, share = (fitted[2][loss].result_ for loss in LOSSES)
    assert "count as" in absolute.guarantee.sentence
    assert "count as" not in share.guarantee.sentence
    assert "values lie" not in share.guarantee.holds_over
    assert share.plan.largest_loss == 1


@pytest.mark.parametrize("loss", LOSSES)
def test_intervals_hold_new_values_for_every_loss(fitted, loss):
    mean, noise, completers = fitted
    values = mean + noise * np.random.default_rng(1).normal(size=mean.shape)
    rows, cols = np.indices(mean.shape).reshape(2, -1)
    low, high = completers[loss].predict_interval(rows, cols, 0.8)
    assert np.mean((low <= values.ravel()) & (values.ravel() <= high)) == pytest.approx(0.8, abs=0.04)
    widths = high - low
    if isinstance(loss, Misclassification):  # all alike, but where the range of predictions ends: seen in 0.5%
        assert np.mean(np.abs(widths - np.median(widths)) > 1e-9) < 0.02
    else:
        assert widths.std() / widths.mean() > 0.2


def test_a_saved_model_keeps_its_loss(tmp_path):
    _, _, seen = world(3)
    completer = PartialCompleter(
        0.3, completion=FactorModel(rank=1, penalty=3.0), confidence="posterior", loss=Misclassification(0.5)
    ).fit(seen)
    completer.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert again.loss == Misclassification(0.5)
    assert again.result_.selection == completer.result_.selection
    np.testing.assert_array_equal(again.predict_risk([0, 1], [2, 3]), completer.predict_risk([0, 1], [2, 3]))


def test_evaluation_scores_by_the_loss(everywhere):
    _, _, seen = world(0, (30, 25), 0.5)
    found, squared = (
        evaluate_folds(seen, np.arange(len(seen)) % 3, only=[0], confidence=everywhere, loss=loss, bounds=(-9, 9))
        for loss in ("absolute", "squared")
    )
    assert found.tolerance == AbsoluteError().default_tolerance(seen)
    assert found.summary()["loss"] == "mean absolute error"
    np.testing.assert_allclose(found.losses**2, squared.losses)


def test_an_unknown_loss_is_refused():
    with pytest.raises(InputError, match="The 'loss' parameter of PartialCompleter must be"):
        PartialCompleter(loss="huber").fit(world(0)[2])
