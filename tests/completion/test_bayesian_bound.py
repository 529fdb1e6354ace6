"""The lower bound of the Bayesian factor model: as documented, never falling, and at its maximum when converged."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.special import digamma, gammaln

from surefill.completion import BayesianFactorModel
from surefill.completion.bayes.noise_precision import NoisePrecision
from surefill.completion.bayes.variational import LEAST_NOISE
from surefill.completion.bayes.variational_solver import VariationalSolver
from surefill.data import Observations
from surefill.loop import Status, run


def of_noise_precision(posterior, draws):
    """E log p(draws' noise | s) + E log p(s) - E log q(s), the parts with s alone, and the pseudo-row's."""
    k, shape, rate = posterior.strength, (posterior.strength + draws) / 2, (posterior.strength + posterior.errors) / 2
    q = stats.gamma(shape, scale=1 / rate[:-1])
    mean_log = digamma(shape) - np.log(rate[:-1])
    of_prior = (k / 2 - 1) * mean_log - k / 2 * q.mean() + k / 2 * np.log(k / 2) - gammaln(k / 2)
    pseudo = k / 2 * np.log(k / 2) - gammaln(k / 2) - k / 2 * (1 + np.log(8) - digamma(8))
    return np.sum(draws / 2 * mean_log + of_prior + q.entropy()) + pseudo


def bound(obs, mean, rows, cols, noise):
    """The lower bound of the docstring's model, written out cell by cell."""
    i, j = np.searchsorted(rows.ids, obs.rows), np.searchsorted(cols.ids, obs.cols)
    x, s, y, r = rows.mean[i], rows.variance[i], cols.mean[j], cols.variance[j]
    fitted = mean + x[:, 0] + y[:, 0] + (x[:, 1:] * y[:, 1:]).sum(axis=1)
    spread = s[:, 0] + r[:, 0]
    spread = spread + (x**2 * r + y**2 * s + s * r)[:, 1:].sum(axis=1)
    error = obs.counts * ((obs.unit.to_unit(obs.values) - fitted) ** 2 + spread + LEAST_NOISE[np.float64])
    error += obs.unit.squared_error_to_unit(obs.scatter)
    error *= rows.noise_precision.mean[i] * cols.noise_precision.mean[j]
    total = -(error.sum() / noise + obs.n_draws * np.log(noise)) / 2
    for q, own, across in ((rows, i, j), (cols, j, i)):
        s, L = q.noise_precision.mean[:-1], q.precision
        total += of_noise_precision(q.noise_precision, np.bincount(own, obs.counts) + len(L))
        seen = np.zeros((len(q.ids), len(q.implicit) - 1))
        seen[own, across] = 1.0
        away = q.mean[:-1] - q.intercept - seen / np.sqrt(seen.sum(axis=1, keepdims=True)) @ q.implicit[:-1]
        prior = np.vstack([q.implicit[:-1] - q.implicit[-1], q.implicit[-1], q.intercept])
        total += (len(q.ids) + 1) * np.linalg.slogdet(L)[1] / 2 - 0.1 * np.trace(L) / 2
        total -= np.einsum("g,ga,ab,gb->", s, away, L, away) / 2 + 3 * np.einsum("ha,ab,hb->", prior, L, prior) / 2
        total += np.sum(np.log(q.variance[:-1]) - s[:, None] * q.variance[:-1] * np.diag(L)) / 2
    return total


@pytest.fixture(scope="module")
def repeated():
    """Repeats that differ, a row and a column that were never seen."""
    rng = np.random.default_rng(2)
    rows, cols = rng.integers(0, 12, 150), rng.integers(1, 11, 150)
    return Observations(rows, cols, rng.normal(rows % 3 * (cols % 4 - 1.5), 1.0), (14, 12))


def test_the_bound_is_the_documented_one_and_never_falls(repeated):
    seen = []
    model = BayesianFactorModel(rank=2, tol=0, max_sweeps=40)
    completion = model.fit(repeated, seen.append)
    assert [p.step for p in seen] == [*range(1, 7), *range(1, 7), *range(1, 35)]
    starts = [p.measure for p in seen[:6]], [p.measure for p in seen[6:12]]
    values = np.array([*max(starts, key=max), *(p.measure for p in seen[12:])])
    assert len(values) == 40
    assert (np.diff(values) >= -1e-9 * abs(values[-1])).all()
    written = bound(repeated, completion.mean, completion.rows, completion.cols, completion.noise)
    assert written == pytest.approx(values[-1], rel=1e-10)


def slopes(function, point, n=12):
    """Directional derivatives along random directions, relative to those of the identity's size."""
    for seed in range(n):
        direction = np.random.default_rng(seed).normal(size=point.shape)
        step = 1e-5
        yield (function(point + step * direction) - function(point - step * direction)) / (2 * step)


def test_rows_and_their_variances_are_optimal_after_every_sweep(repeated):
    done = BayesianFactorModel(rank=2, tol=0, max_sweeps=3).fit(repeated)

    def of(mean=None, log_variance=None):
        rows = done.rows
        if mean is not None:
            rows = replace(rows, mean=np.vstack([mean, rows.mean[-1]]))
        if log_variance is not None:
            rows = replace(rows, variance=np.vstack([np.exp(log_variance), rows.variance[-1]]))
        return bound(repeated, done.mean, rows, done.cols, done.noise)

    here = of()
    assert max(map(abs, slopes(lambda x: of(mean=x), done.rows.mean[:-1]))) < 1e-5 * abs(here)
    assert max(map(abs, slopes(lambda v: of(log_variance=v), np.log(done.rows.variance[:-1])))) < 1e-5 * abs(here)
    assert of(mean=done.rows.mean[:-1] + 0.1) < here - 1
    assert of(log_variance=np.log(done.rows.variance[:-1]) + 0.5) < here - 1


def test_everything_is_optimal_when_converged(repeated):
    done = BayesianFactorModel(rank=2, tol=1e-13, max_sweeps=20_000).fit(repeated)
    assert done.status is Status.CONVERGED
    for name in ("rows", "cols"):
        own = getattr(done, name)

        def of(name=name, own=own, **changed):
            both = {"rows": done.rows, "cols": done.cols, name: replace(own, **changed)}
            return bound(repeated, done.mean, both["rows"], both["cols"], done.noise)

        last = np.zeros(own.mean.shape[1])
        for changed, point in (
            (lambda mean, of=of, last=last: of(mean=np.vstack([mean, last])), own.mean[:-1]),
            (lambda implicit, of=of: of(implicit=implicit), own.implicit),
            (lambda intercept, of=of: of(intercept=intercept), own.intercept),
        ):
            assert max(map(abs, slopes(changed, point))) < 1e-3
        symmetric = max(map(abs, slopes(lambda L, of=of: of(precision=(L + L.T) / 2), own.precision)))
        assert symmetric < 1e-3
    noises = [bound(repeated, done.mean, done.rows, done.cols, done.noise * factor) for factor in (0.9, 1.0, 1.1)]
    assert noises[1] == max(noises)


def test_prior_means_converge_to_their_ridge_regression(repeated):
    solver = VariationalSolver.of(repeated, 2, 1e-3, 0)
    rows, (row_regression, col_regression) = solver.init().rows, (solver.rows, solver.cols)
    B = np.zeros((len(rows.ids), len(rows.implicit) - 1))
    B[np.searchsorted(rows.ids, repeated.rows), np.searchsorted(repeated.by_col.ids, repeated.cols)] = 1
    root_sizes = np.sqrt(B.sum(axis=1, keepdims=True))
    B = np.hstack([B / root_sizes, root_sizes, np.ones_like(root_sizes)])
    *away, common, intercept = np.linalg.solve(B.T @ B + 3 * np.eye(B.shape[1]), B.T @ rows.mean[:-1])
    learnt, prior_means = rows, row_regression.prior_means(rows)
    for _ in range(300):
        learnt, prior_means = row_regression.with_learnt_prior(learnt, prior_means, col_regression)
    np.testing.assert_allclose(prior_means, row_regression.prior_means(learnt), atol=1e-9)
    np.testing.assert_allclose(learnt.implicit, [*(np.array(away) + common), common], atol=1e-9)
    np.testing.assert_allclose(learnt.intercept, intercept, atol=1e-9)


@pytest.fixture(scope="module")
def uneven():
    """Rows of which every second is four times as noisy; (observations, truth)."""
    rng = np.random.default_rng(3)
    truth = rng.normal(0, 0.5, (120, 2)) @ rng.normal(0, 0.7, (2, 80))
    spread = np.where(np.arange(120) % 2, 0.8, 0.2)[:, None]
    i, j = np.nonzero(rng.random(truth.shape) < 0.25)
    values = truth + spread * rng.normal(size=truth.shape)
    return Observations(i, j, values[i, j], truth.shape, (-6, 6)), truth


def test_noisy_rows_get_low_noise_precisions_and_equally_noisy_columns_stay_equal(uneven):
    seen, _ = uneven
    done = BayesianFactorModel(rank=2, tol=1e-5).fit(seen)
    noise_of_rows = np.sqrt(done.unit.squared_error_from_unit(done.noise) / done.rows.noise_precision.mean[:-1])
    assert noise_of_rows[0::2].mean() == pytest.approx(0.2, rel=0.15)
    assert noise_of_rows[1::2].mean() == pytest.approx(0.8, rel=0.15)
    assert done.cols.noise_precision.strength > 20 * done.rows.noise_precision.strength
    assert done.rows.noise_precision.mean[-1] == 1.0


def test_knowing_the_noise_of_rows_makes_better_factors(uneven):
    seen, truth = uneven
    solver = VariationalSolver.of(seen, 2, 1e-5, 0)
    errors = []
    for equal_noise in (True, False):
        state = run(replace(solver, equal_noise=equal_noise), max_steps=200).state
        fitted = state.rows.mean[:-1, 1:] @ state.cols.mean[:-1, 1:].T
        fitted += state.rows.mean[:-1, :1] + state.cols.mean[:-1, 0] + solver.mean
        errors.append(np.mean((seen.unit.from_unit(fitted) - truth) ** 2))
    assert errors[1] < 0.8 * errors[0]


@given(st.floats(1.0, 300.0), st.integers(0, 20))
def test_the_strength_is_the_one_the_bound_asks_for(k, seed):
    rng = np.random.default_rng(seed)
    draws = rng.integers(1, 60, 40).astype(float)
    errors = draws / rng.gamma(k / 2, 2 / k, 40)
    noise_precision = NoisePrecision.unknown(draws).updated(errors)
    for _ in range(300):
        noise_precision = noise_precision.with_best_strength()
    best = evidence_of_strength(noise_precision)
    for factor in (0.9, 1.1):
        assert evidence_of_strength(replace(noise_precision, strength=factor * noise_precision.strength)) <= best + 1e-4


def evidence_of_strength(noise_precision):
    """The bound with the errors' part, which q minimises."""
    return noise_precision.bound - noise_precision.mean[:-1] @ noise_precision.errors[:-1] / 2
