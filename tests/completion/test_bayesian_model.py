import pickle
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.special import digamma, gammaln

from surefill.completion import BayesianFactorModel, Completion, CompletionAlgorithm
from surefill.completion.bayes.noise_precision import NoisePrecision
from surefill.completion.bayes.variational import LEAST_NOISE, VariationalRegression
from surefill.completion.bayes.variational_solver import VariationalSolver
from surefill.confidence import PosteriorVariance
from surefill.data import Observations, split_rows
from surefill.datasets import load_movielens, make_blocks, make_low_rank
from surefill.errors import InputError
from surefill.loop import Status, run


@pytest.fixture(scope="module")
def sim():
    return make_low_rank((60, 50), rank=3, n_draws=2500, noise=0.05, random_state=0)


@pytest.fixture(scope="module")
def fitted(sim):
    return BayesianFactorModel(rank=3).fit(sim.observations)


def transposed(observations):
    obs = observations
    return Observations(
        obs.cols, obs.rows, obs.values, obs.shape[::-1], obs.bounds, counts=obs.counts, scatter=obs.scatter
    )


def flipped(completion):
    c = completion
    return replace(
        c,
        shape=c.shape[::-1],
        rows=c.cols,
        cols=c.rows,
        row_covariances=c.col_covariances,
        col_covariances=c.row_covariances,
    )


def test_it_is_what_the_protocols_ask_for(fitted):
    assert isinstance(BayesianFactorModel(), CompletionAlgorithm)
    assert isinstance(fitted, Completion)


def test_a_truth_without_noise_is_recovered():
    sim = make_low_rank((60, 50), rank=3, n_draws=2500, noise=0.0, random_state=4)
    completion = BayesianFactorModel().fit(sim.observations)
    np.testing.assert_allclose(completion.dense(), sim.truth, atol=2e-3)


@pytest.mark.parametrize("seed", range(6))
def test_factors_do_not_vanish_where_little_was_seen(seed):
    sim = make_blocks((15, 15), n_draws=400 + 50 * seed, rank=2, noise=0.1, random_state=seed)
    completion = BayesianFactorModel().fit(Observations.from_matrix(sim.observations.dense()))
    assert np.mean((completion.dense() - sim.truth)[sim.support] ** 2) < 0.02 * np.var(sim.truth[sim.support])


@pytest.mark.parametrize("noise", [0.05, 0.3])
def test_the_noise_is_learnt_and_unneeded_factors_do_no_harm(noise):
    sim = make_low_rank((80, 70), rank=2, n_draws=4000, noise=noise, random_state=1)
    needed, spare = (BayesianFactorModel(rank=rank).fit(sim.observations) for rank in (2, 10))
    for completion in (needed, spare):
        usual = completion.noise / (
            completion.rows.noise_precision.mean.mean() * completion.cols.noise_precision.mean.mean()
        )
        assert completion.unit.squared_error_from_unit(usual) == pytest.approx(noise**2 / 3, rel=0.15)
    errors = [np.mean((completion.dense() - sim.truth) ** 2) for completion in (needed, spare)]
    assert errors[1] < 1.2 * errors[0] < 0.05 * np.var(sim.truth)


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


def test_folding_in_a_fitted_row_returns_that_row(sim, fitted):
    again = fitted.fold_in(sim.observations)
    np.testing.assert_allclose(again.rows.mean, fitted.rows.mean, atol=1e-5)
    np.testing.assert_allclose(again.rows.noise_precision.mean, fitted.rows.noise_precision.mean, rtol=0.01)
    np.testing.assert_allclose(again.row_covariances.matrices, fitted.row_covariances.matrices, rtol=0.01, atol=1e-5)
    one = sim.observations.select(sim.observations.rows == 7)
    alone = fitted.fold_in(one)
    np.testing.assert_allclose(alone.block([7], range(50)), again.block([7], range(50)), atol=1e-12)
    np.testing.assert_array_equal(alone.cols.implicit, fitted.cols.implicit[[7, -1]])


def test_a_new_row_is_predicted_nearly_as_well_as_a_fitted_one(sim):
    train, left_out = split_rows(sim.observations, 0.2, 0)
    folded = BayesianFactorModel(rank=3).fit(train).fold_in(left_out)
    rows = left_out.by_row.ids
    assert np.mean((folded.block(rows, np.arange(50)) - sim.truth[rows]) ** 2) < 0.001


def test_folding_in_columns_is_folding_in_rows_of_the_transpose(sim, fitted):
    some = sim.observations.select(sim.observations.cols < 9)
    columns = fitted.fold_in_columns(some)
    rows = flipped(fitted).fold_in(transposed(some))
    np.testing.assert_allclose(columns.dense(), rows.dense().T, atol=1e-12)
    assert columns.cols.ids.tolist() == list(range(9))
    np.testing.assert_allclose(columns.variance([0, 3], [2, 4]), rows.variance([2, 4], [0, 3]), rtol=1e-12)


def test_an_update_learns_new_entries_and_leaves_the_rest():
    sim = make_low_rank((60, 50), rank=3, n_draws=2500, noise=0.05, random_state=0)
    seen = sim.observations
    later = np.isin(seen.rows, [3, 59]) & (seen.cols % 2 == 0) | (seen.cols == 11)
    before, new = seen.select(~later & (seen.rows != 59)), seen.select(later)
    known = seen.select(later | (seen.rows != 59))
    first = BayesianFactorModel(rank=3).fit(before)
    then = first.update(known, new)
    assert (then.rows.ids.tolist(), then.cols.ids.tolist()) == (list(range(60)), list(range(50)))
    refitted = BayesianFactorModel(rank=3).fit(known)
    touched = np.ix_([3, 59], range(50))
    errors = [np.mean((c.dense()[touched] - sim.truth[touched]) ** 2) for c in (first, then, refitted)]
    assert errors[1] < 2 * errors[2] < 0.1 * errors[0]
    column = [np.mean((c.dense()[:, 11] - sim.truth[:, 11]) ** 2) for c in (first, then, refitted)]
    assert column[1] < 2 * column[2] < 0.1 * column[0]
    same = np.setdiff1d(first.rows.ids, new.rows)
    np.testing.assert_array_equal(
        then.rows.mean[np.searchsorted(then.rows.ids, same)], first.rows.mean[np.searchsorted(first.rows.ids, same)]
    )


def test_after_an_update_its_rows_are_optimal_given_the_columns(sim):
    train, left_out = split_rows(sim.observations, 0.1, 0)
    updated = BayesianFactorModel(rank=3).fit(train).update(sim.observations, left_out)
    folded = updated.fold_in(left_out)
    np.testing.assert_allclose(updated.rows.mean[folded.rows.ids], folded.rows.mean[:-1], atol=1e-12)
    np.testing.assert_allclose(
        updated.row_covariances.matrices[folded.rows.ids], folded.row_covariances.matrices[:-1], atol=1e-12
    )


def test_which_cells_were_seen_tells_of_a_row_before_any_value_does():
    rng = np.random.default_rng(0)
    kind = np.arange(300) % 2
    likes = np.outer(2 * kind - 1, np.where(np.arange(60) < 30, 1.0, -1.0))
    shown = rng.random(likes.shape) < np.where((kind[:, None] + np.arange(60)) % 2 == 0, 0.4, 0.05)
    i, j = np.nonzero(shown)
    values = np.clip(likes + rng.normal(0, 1.0, likes.shape), -5, 5)
    completion = BayesianFactorModel(rank=2).fit(Observations(i, j, values[i, j], likes.shape, (-5, 5)))
    blind = replace(completion, rows=replace(completion.rows, implicit=np.zeros_like(completion.rows.implicit)))
    for parity in (0, 1):
        cols = np.arange(parity, 60, 4)
        newcomer = Observations([0] * len(cols), cols, np.zeros(len(cols)), (1, 60), (-5, 5))
        expected, without_implicit = (c.fold_in(newcomer).dense()[0] for c in (completion, blind))
        assert np.corrcoef(expected, likes[parity])[0, 1] > 0.75
        assert np.corrcoef(without_implicit, likes[parity])[0, 1] < 0.5


def test_values_and_variances_are_in_the_users_units():
    sim = make_low_rank((30, 30), rank=1, n_draws=900, noise=0.1, random_state=3)
    seen = sim.observations
    stars = Observations(
        seen.rows, seen.cols, 3 + 2 * seen.values, (30, 30), (3 + 2 * seen.bounds[0], 3 + 2 * seen.bounds[1]),
        counts=seen.counts, scatter=4 * seen.scatter,
    )  # fmt: skip
    in_stars, in_units = BayesianFactorModel(rank=1).fit(stars), BayesianFactorModel(rank=1).fit(seen)
    np.testing.assert_allclose(in_stars.dense(), 3 + 2 * in_units.dense(), atol=1e-8)
    np.testing.assert_allclose(in_stars.variance([0, 5], [3, 9]), 4 * in_units.variance([0, 5], [3, 9]), rtol=1e-8)
    assert stars.bounds[0] <= in_stars.dense().min() <= in_stars.dense().max() <= stars.bounds[1]


def test_repeats_count_as_often_as_they_were_drawn_and_disagreement_is_noise():
    rows, cols, values = [0, 0, 1, 1, 2], [0, 1, 0, 1, 1], [1.0, 2.0, 3.0, 4.0, 2.0]
    once = Observations(rows * 3, cols * 3, values * 3, bounds=(1, 5))
    counted = Observations(rows, cols, values, bounds=(1, 5), counts=[3] * 5)
    model = BayesianFactorModel(rank=1)
    np.testing.assert_allclose(model.fit(once).dense(), model.fit(counted).dense(), atol=1e-9)
    differing = Observations(rows, cols, values, bounds=(1, 5), counts=[3] * 5, scatter=[6.0] * 5)
    assert model.fit(differing).noise > 2 / 4 > model.fit(counted).noise  # 6 / 3 in units of half-width 2


@given(st.permutations(range(8)))
def test_renaming_rows_renames_what_is_folded_in(names):
    seen = make_low_rank((8, 6), rank=1, n_draws=60, random_state=5).observations
    completion = BayesianFactorModel(rank=2).fit(seen)
    renamed = Observations(
        np.array(names)[seen.rows], seen.cols, seen.values, seen.shape, seen.bounds, counts=seen.counts
    )
    here, there = completion.fold_in(seen).dense(), completion.fold_in(renamed).dense()
    np.testing.assert_allclose(here, there[names], atol=1e-12)


@settings(max_examples=8)
@given(st.permutations(range(20)), st.permutations(range(15)))
def test_renaming_rows_and_columns_renames_a_converged_fit(row_names, col_names):
    seen = make_low_rank((20, 15), rank=1, n_draws=600, noise=0.1, random_state=5).observations
    renamed = Observations(
        np.array(row_names)[seen.rows], np.array(col_names)[seen.cols], seen.values, seen.shape, seen.bounds,
        counts=seen.counts, scatter=seen.scatter,
    )  # fmt: skip
    model = BayesianFactorModel(rank=1, tol=1e-6, max_sweeps=500)
    here, there = model.fit(seen).dense(), model.fit(renamed).dense()
    np.testing.assert_allclose(here, there[np.ix_(row_names, col_names)], atol=0.01)


def test_same_seed_same_result_and_predicting_changes_nothing(sim, fitted):
    same = BayesianFactorModel(rank=3).fit(sim.observations)
    before = fitted.rows.mean.copy()
    np.testing.assert_array_equal(fitted.dense(), same.dense())
    fitted.at([0], [0]), fitted.variance([0], [0]), fitted.fold_in(sim.observations)
    fitted.update(sim.observations, sim.observations.select([0]))
    np.testing.assert_array_equal(fitted.rows.mean, before)
    np.testing.assert_allclose(fitted.at([0, 3], [2, 4]), fitted.dense()[[0, 3], [2, 4]])


def test_unseen_rows_and_columns_fall_back_to_what_is_known():
    seen = Observations([0, 0, 1] * 9, [0, 1, 0] * 9, [1.0, 5.0, 2.0] * 9, shape=(10**9, 10**9), bounds=(1, 5))
    completion = BayesianFactorModel(rank=1).fit(seen)
    assert completion.at([5], [7])[0] == pytest.approx(completion.unit.from_unit(completion.mean))
    assert completion.at([5], [1])[0] > completion.at([5], [0])[0]


@pytest.mark.parametrize("values", [[2.0], [2.0, 2.0, 2.0], [1.0, 5.0, 3.0]])
def test_a_handful_of_cells_is_enough(values):
    completion = BayesianFactorModel().fit(Observations(range(len(values)), [0] * len(values), values, bounds=(1, 5)))
    assert np.isfinite(completion.dense()).all()
    assert (completion.variance([0], [0]) > 0).all()
    assert completion.at([0], [0])[0] == pytest.approx(values[0], abs=1.9)


def test_loop_states_are_reported(sim):
    seen = []
    assert BayesianFactorModel(rank=3, max_sweeps=2).fit(sim.observations, seen.append).status is Status.STEP_LIMIT
    assert len(seen) == 3
    outcome = run(VariationalSolver.of(sim.observations, 3, 0.0, 0), max_steps=2)
    assert (outcome.status, outcome.steps) == (Status.STEP_LIMIT, 2)
    assert BayesianFactorModel(rank=3).fit(sim.observations).status is Status.CONVERGED


@pytest.mark.parametrize(
    ("parameters", "name"),
    [
        ({"rank": 0}, "rank"),
        ({"max_sweeps": 1}, "max_sweeps"),
        ({"tol": -1}, "tol"),
        ({"random_state": -1}, "random_state"),
    ],
)
def test_bad_parameters(sim, parameters, name):
    with pytest.raises(InputError, match=f"The '{name}' parameter of BayesianFactorModel must be"):
        BayesianFactorModel(**parameters).fit(sim.observations)


def test_parts_that_do_not_fit_together_are_refused(fitted):
    with pytest.raises(InputError, match="must fit together"):
        replace(fitted, rows=fitted.cols)
    with pytest.raises(InputError, match="its noise be above 0"):
        replace(fitted, noise=0.0)
    with pytest.raises(InputError, match="sorted ids and finite tables"):
        replace(fitted.rows, ids=fitted.rows.ids[::-1])
    with pytest.raises(InputError, match="sorted ids and finite tables"):
        replace(fitted.rows, noise_precision=NoisePrecision.unknown(np.ones(3)))
    with pytest.raises(InputError, match="strength above 0"):
        replace(fitted.rows.noise_precision, strength=0.0)
    with pytest.raises(InputError, match="at least 0"):
        replace(fitted.rows.noise_precision, errors=-fitted.rows.noise_precision.errors)


def test_error_and_calibration_on_the_first_official_fold_of_movielens(data_folder):
    base, test = load_movielens("ml-100k", data_folder, fold=1)
    completion = BayesianFactorModel().fit(base)
    errors = (completion.at(test.rows, test.cols) - test.values) ** 2
    assert np.sqrt(np.mean(errors)) < 0.905
    assert np.mean(errors / completion.variance(test.rows, test.cols)) == pytest.approx(1, rel=0.1)


@pytest.fixture(scope="module")
def twenty_five_factors():
    return make_low_rank((150, 120), rank=25, n_draws=12_000, noise=0.02, random_state=3)


def error_of(completion, sim):
    return float(np.mean((completion.dense() - sim.truth) ** 2))


def test_rank_grows_where_more_factors_predict_better(twenty_five_factors):
    sim = twenty_five_factors
    chosen = BayesianFactorModel(rank="auto").fit(sim.observations)
    assert chosen.rank >= 20
    assert error_of(chosen, sim) < 0.5 * error_of(BayesianFactorModel(rank=10).fit(sim.observations), sim)
    assert BayesianFactorModel(rank="auto").chosen_for(sim.observations).rank == chosen.rank


def test_rank_of_many_cells_is_chosen_on_a_part_of_the_lines(twenty_five_factors, monkeypatch):
    monkeypatch.setattr("surefill.completion.bayes.bayesian_model.SAMPLED_CELLS", 6000)
    sizes, of = [], VariationalSolver.of
    monkeypatch.setattr(VariationalSolver, "of", lambda seen, *rest: sizes.append(len(seen)) or of(seen, *rest))
    assert BayesianFactorModel(rank="auto").chosen_for(twenty_five_factors.observations).rank >= 20
    assert max(sizes) < 6000


def test_rank_stays_where_they_do_not():
    sim = make_low_rank((150, 120), rank=2, n_draws=12_000, noise=0.3, random_state=3)
    assert BayesianFactorModel(rank="auto").chosen_for(sim.observations).rank == 10


def test_rank_is_not_chosen_by_a_few_hundred_cells():
    sim = make_low_rank((150, 120), rank=25, n_draws=3000, noise=0.02, random_state=3)
    assert BayesianFactorModel(rank="auto").chosen_for(sim.observations).rank == 10


def test_growth_goes_through_doublings_to_the_rank(twenty_five_factors):
    grown = list(BayesianFactorModel(rank=33).growth(twenty_five_factors.observations))
    assert [completion.rank for completion in grown] == [10, 20, 33]
    at_once = [error_of(completion, twenty_five_factors) for completion in grown]
    assert at_once[0] > at_once[1] > at_once[2]


def test_widened_posterior_keeps_what_was_learnt(twenty_five_factors):
    seen = twenty_five_factors.observations
    solver = VariationalSolver.of(seen, 3, 1e-3, 0)
    before = solver.init().rows
    after = before.widened(2, np.random.default_rng(0))
    np.testing.assert_array_equal(after.mean[:, :4], before.mean)
    np.testing.assert_array_equal(after.precision[:4, :4], before.precision)
    assert after.mean.shape == (before.mean.shape[0], 6)
    assert not after.mean[-1, 4:].any()  # a row never seen has no factors


def test_a_fit_that_goes_on_from_a_converged_one_stays_there(sim, fitted):
    steps = []
    again = BayesianFactorModel(rank=3).fit_from(fitted, sim.observations, steps.append)
    assert again.status is Status.CONVERGED
    assert len(steps) <= 2
    assert np.abs(again.dense() - fitted.dense()).max() < 0.01


def test_going_on_from_some_cells_is_as_good_as_fitting_all(sim):
    rng = np.random.default_rng(0)
    known = (rng.random(len(sim.observations)) < 0.6) & (sim.observations.rows < 55) & (sim.observations.cols > 3)
    first = BayesianFactorModel(rank=3).fit(sim.observations.select(known))
    then = BayesianFactorModel().fit_from(first, sim.observations)
    assert then.rows.ids.tolist() == list(range(60))
    errors = [error_of(c, sim) for c in (first, then, BayesianFactorModel(rank=3).fit(sim.observations))]
    assert errors[1] < 1.1 * errors[2] < 0.2 * errors[0]


def test_a_fit_goes_on_only_within_the_same_bounds(sim, fitted):
    seen = sim.observations
    wider = Observations(seen.rows, seen.cols, seen.values, seen.shape, (-9, 9), counts=seen.counts)
    with pytest.raises(InputError, match="same 'bounds'"):
        BayesianFactorModel().fit_from(fitted, wider)


@pytest.mark.parametrize("wide", [False, True])
def test_a_fit_that_starts_on_a_sample_of_lines_is_as_good(wide, monkeypatch):
    sim = make_low_rank((300, 40), rank=3, n_draws=6000, noise=0.05, random_state=0)
    seen = transposed(sim.observations) if wide else sim.observations
    truth = sim.truth.T if wide else sim.truth
    whole = BayesianFactorModel(rank=3).fit(seen)
    monkeypatch.setattr("surefill.completion.bayes.bayesian_model.SAMPLED_CELLS", 3000)
    sizes = []
    of = VariationalSolver.of
    monkeypatch.setattr(
        VariationalSolver, "of", lambda seen, *rest: sizes.append(seen.by_row.ids.size) or of(seen, *rest)
    )
    sampled = BayesianFactorModel(rank=3).fit(seen)
    assert sizes == ([40, 40] if wide else [300, 38])
    errors = [np.mean((completion.dense() - truth) ** 2) for completion in (whole, sampled)]
    assert errors[1] < 1.1 * errors[0]


def test_many_cells_are_fitted_in_single_precision_as_well_as_in_double(monkeypatch):
    sim = make_low_rank((300, 200), rank=3, n_draws=20_000, noise=0.1, random_state=0)
    double = BayesianFactorModel(rank=5).fit(sim.observations)
    monkeypatch.setattr("surefill.completion.bayes.variational.COMPACT_CELLS", 1)
    single = BayesianFactorModel(rank=5).fit(sim.observations)
    assert (single.rows.mean.dtype, double.rows.mean.dtype) == (np.float32, np.float64)
    np.testing.assert_allclose(single.dense(), double.dense(), atol=1e-3)
    pairs = np.arange(200), np.arange(200)
    np.testing.assert_allclose(single.variance(*pairs), double.variance(*pairs), rtol=1e-2)
    grid = np.ix_(range(9), range(200))
    np.testing.assert_allclose(single.variance(*grid), double.variance(*grid), rtol=1e-2)
    assert single.row_covariances.matrices.dtype == np.float32
    folded = single.fold_in(sim.observations.select(sim.observations.rows < 9))
    np.testing.assert_allclose(folded.block(range(9), range(200)), single.block(range(9), range(200)), atol=0.02)
