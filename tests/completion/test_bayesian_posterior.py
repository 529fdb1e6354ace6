"""Posterior variances and covariances of the Bayesian factor model."""

import copy
import gc
import pickle
import weakref

import numpy as np
import pytest

from surefill.completion import BayesianFactorModel
from surefill.completion.bayes.variational import VariationalRegression
from surefill.confidence import PosteriorVariance
from surefill.data import Observations
from surefill.errors import InputError


def test_variances_are_calibrated_on_data_from_the_model():
    rng = np.random.default_rng(0)
    truth = (rng.normal(0, 0.3, (200, 3)) @ rng.normal(0, 0.6, (3, 150))) + rng.normal(0, 0.3, (200, 1))
    chance = rng.choice([0.1, 0.2, 0.5], (200, 1))
    i, j = np.nonzero(rng.random(truth.shape) < chance)
    values = truth + rng.normal(0, 0.2, truth.shape)
    completion = BayesianFactorModel(rank=5).fit(Observations(i, j, values[i, j], truth.shape, (-4, 4)))
    i, j = np.nonzero(np.ones_like(truth))
    variance, square = completion.variance(i, j).reshape(truth.shape), (completion.dense() - truth) ** 2
    noise = completion.unit.squared_error_from_unit(completion.noise)
    fresh = np.mean((completion.dense() - truth - rng.normal(0, 0.2, truth.shape)) ** 2 / variance)
    assert fresh == pytest.approx(1, rel=0.1)
    for share in (0.1, 0.2, 0.5):
        group = chance[:, 0] == share
        assert square[group].mean() == pytest.approx(variance[group].mean() - noise, rel=0.3)


def test_unseen_rows_have_the_priors_variance_and_more_than_seen_ones(sim, fitted):
    seen = np.delete(np.arange(60), 7)
    fewer = sim.observations.select(sim.observations.rows != 7)
    completion = BayesianFactorModel(rank=3).fit(fewer)
    cols = np.arange(50)
    np.testing.assert_allclose(completion.row_covariances.matrices[-1], np.linalg.inv(completion.rows.precision))
    unseen = completion.variance(np.full(50, 7), cols).mean()
    assert unseen > 3 * max(completion.variance(np.full(50, row), cols).mean() for row in seen)
    assert completion.at([7], [3]) == pytest.approx(completion.at([10**9], [3]))


def test_posterior_covariances_are_inverses_of_the_regressions(sim, fitted):
    seen, (rows, cols) = sim.observations, (fitted.rows, fitted.cols)
    for covariances, own, other, of in (
        (fitted.row_posterior(seen), rows, cols, (seen.rows, seen.cols)),
        (fitted.col_posterior(seen), cols, rows, (seen.cols, seen.rows)),
    ):
        np.testing.assert_allclose(covariances[-1], np.linalg.inv(own.precision), rtol=1e-8)
        entries = of[0] == 4
        f = other.mean[of[1][entries]].copy()
        f[:, 0] = 1
        c, spread = (
            seen.counts[entries] * other.noise_precision.mean[of[1][entries]],
            other.variance[of[1][entries]].copy(),
        )
        spread[:, 0] = 0
        precision = ((f.T * c) @ f + np.diag(c @ spread)) / fitted.noise + own.precision
        precision *= own.noise_precision.mean[4]
        np.testing.assert_allclose(covariances[4], np.linalg.inv(precision), rtol=1e-7, atol=1e-12)
    best_diagonal = 1 / np.diag(np.linalg.inv(fitted.row_covariances.matrices[4]))
    np.testing.assert_allclose(rows.variance[4], best_diagonal, rtol=1e-7)
    np.testing.assert_array_equal(fitted.row_posterior(seen), fitted.row_covariances.matrices)
    np.testing.assert_array_equal(fitted.col_posterior(seen), fitted.col_covariances.matrices)


def test_the_variance_by_hand(fitted):
    (x, S), (y, T) = (
        (fitted.rows.mean[7].copy(), fitted.row_covariances.matrices[7]),
        (fitted.cols.mean[3].copy(), fitted.col_covariances.matrices[3]),
    )
    x[0] = y[0] = 1
    by_hand = (fitted.noise + y @ S @ y + x @ T @ x) * fitted.unit.half_width**2
    assert fitted.variance([7], [3])[0] == pytest.approx(by_hand, rel=1e-12)


@pytest.fixture
def passes(monkeypatch):
    """One item for every pass over the observations that computes covariances."""
    counted, covariances = [], VariationalRegression.covariances

    def counting(self, *arguments):
        counted.append(len(self.groups))
        return covariances(self, *arguments)

    monkeypatch.setattr(VariationalRegression, "covariances", counting)
    return counted


def test_covariances_are_computed_when_asked_for_and_once(sim, passes):
    seen = sim.observations
    completion = BayesianFactorModel(rank=3).fit(seen)
    completion.at([0], [0]), completion.block([0, 1], [2]), completion.dense()
    folded = completion.fold_in(seen.select(seen.rows < 9))
    folded.dense()
    assert passes == []
    completion.variance([0], [0]), completion.variance([1], [1])
    assert passes == [60, 50]
    completion.row_posterior(seen), completion.col_posterior(seen)
    assert passes == [60, 50]
    folded.variance([0], [0])
    assert passes == [60, 50, 9]


def test_observations_are_not_kept_once_covariances_are_computed(sim):
    cells = sim.observations.select(np.arange(len(sim.observations)))
    completion, kept = BayesianFactorModel(rank=3).fit(cells), weakref.ref(cells)
    expected = completion.variance([0, 3], [2, 4])
    del cells
    gc.collect()
    assert kept() is None
    for again in (pickle.loads(pickle.dumps(completion)), copy.deepcopy(completion)):
        np.testing.assert_array_equal(again.variance([0, 3], [2, 4]), expected)


def test_values_alone_need_no_covariances(sim, fitted, passes):
    alone = BayesianFactorModel(rank=3).fit(sim.observations).values_only()
    np.testing.assert_array_equal(alone.dense(), fitted.dense())
    updated = alone.update(sim.observations, sim.observations.select([0]))
    np.testing.assert_array_equal(alone.fold_in(sim.observations).dense(), fitted.fold_in(sim.observations).dense())
    assert passes == []
    for completion in (alone, updated):
        with pytest.raises(InputError, match="kept for its values only"):
            completion.variance([0], [0])


def test_posterior_confidence_of_restarts_takes_two_passes(sim, passes):
    completion = BayesianFactorModel(rank=3).fit(sim.observations)
    confidence, _ = PosteriorVariance(n_restarts=2).fit(sim.observations, completion)
    confidence.at([0], [0]), completion.variance([0], [0])
    assert passes == [60, 50]


def test_a_fit_can_be_pickled_before_its_covariances_are_computed(sim, fitted):
    again = pickle.loads(pickle.dumps(BayesianFactorModel(rank=3).fit(sim.observations)))
    np.testing.assert_array_equal(again.variance([0, 3], [2, 4]), fitted.variance([0, 3], [2, 4]))
