import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from surefill.loop import run
from surefill.risk.backfitting import Backfitting, hats, knots_for, roughness
from surefill.risk.noise_factors import CREDIBILITIES, NoiseSide

numbers = st.lists(st.floats(-5, 5), min_size=3, max_size=30)


def uneven_ratios(n_groups=400, per_group=8, seed=0):
    """Squared normals times a factor per group, of mean 1 and variance 1/2, and the factors."""
    rng = np.random.default_rng(seed)
    a, group = rng.gamma(2, 0.5, n_groups), np.repeat(np.arange(n_groups), per_group)
    return a, group, a[group] * rng.normal(0, 1, len(group)) ** 2


@given(numbers, st.integers(2, 8))
def test_hats_interpolate_and_are_flat_beyond_the_knots(x, n_knots):
    x = np.array(x)
    knots = knots_for(x, n_knots)
    heights = np.sin(np.arange(len(knots)))
    asked = np.r_[x, -10.0, 10.0]
    basis = hats(asked, knots)
    np.testing.assert_allclose(basis.sum(axis=1), 1.0)
    np.testing.assert_allclose(basis @ heights, np.interp(asked, knots, heights), atol=1e-9)


def test_roughness_is_zero_for_constants_and_counts_steps_and_bends():
    h = np.array([1.0, 3.0, 2.0, 2.0])
    R = roughness(4, 2.0, 5.0)
    assert h @ R @ h == pytest.approx(2 * (4 + 1 + 0) + 5 * (9 + 1))
    np.testing.assert_allclose(R @ np.ones(4), 0.0, atol=1e-12)


def side_of(group, counts=None, predicted=None):
    """All predictions alike, each entry drawn once, unless said otherwise."""
    counts = np.ones(len(group), dtype=np.int64) if counts is None else counts
    return NoiseSide.of(group, counts, np.zeros(len(group)) if predicted is None else predicted)


def tilted_ratios(n_groups, per_group, tilt=0.5, seed=0):
    """Groups whose noise rises, or falls, by ``tilt`` per unit of the prediction; (group, predicted, sign, ratio)."""
    rng = np.random.default_rng(seed)
    group = np.repeat(np.arange(n_groups), per_group)
    predicted, sign = rng.normal(3, 1, len(group)), rng.choice([-1, 1], n_groups)
    return group, predicted, sign, np.exp(sign[group] * tilt * (predicted - 3)) * rng.normal(0, 1, len(group)) ** 2


def test_slopes_are_the_formula_and_leave_the_own_entry_out():
    group, predicted, _, ratio = tilted_ratios(20, 12)
    counts = np.random.default_rng(1).integers(1, 4, len(group))
    ratio /= np.average(ratio, weights=counts)
    side = side_of(group, counts, predicted)
    factors, left_out = side.shrunk(ratio)
    k, w, M = side.credibility(ratio), counts, predicted
    s = np.minimum(ratio, 5 * factors.factors[group])
    within = sum(
        w[group == g] @ (M[group == g] - np.average(M[group == g], weights=w[group == g])) ** 2 for g in range(20)
    )

    def of(which, k_of_slope):
        centre, level = np.average(M[which], weights=w[which]), (k + w[which] @ s[which]) / (k + w[which].sum())
        off = M[which] - centre
        prior = k_of_slope * within / w.sum()
        return (w * s)[which] @ off / (level * (prior + w[which] @ off**2)), centre

    found = [c for c in CREDIBILITIES if np.isclose(of(group == 3, c)[0], factors.slopes[3], rtol=1e-9)]
    assert len(found) == 1
    for g in range(20):
        assert (factors.slopes[g], factors.centres[g]) == pytest.approx(of(group == g, found[0]))
    levels = side_of(group, counts).shrunk(ratio)[1]
    for t in range(len(group)):
        slope, centre = of((group == group[t]) & (np.arange(len(group)) != t), found[0])
        assert left_out[t] / levels[t] == pytest.approx(np.exp(np.clip(slope * (M[t] - centre), -1, 1)))
    np.testing.assert_allclose(factors.log_at([3, 99], [4.0, 4.0])[1], 0.0)


def test_rows_whose_noise_depends_on_the_prediction_are_found_and_their_direction():
    group, predicted, sign, ratio = tilted_ratios(200, 60)
    factors, left_out = side_of(group, predicted=predicted).shrunk(ratio)
    assert (np.sign(factors.slopes[:-1]) == sign).mean() > 0.95
    assert np.abs(factors.slopes[:-1]).mean() == pytest.approx(0.4, abs=0.1)
    truth = sign[group] * 0.5 * (predicted - 3)
    assert np.corrcoef(np.log(left_out), truth)[0, 1] > 0.85


def test_where_noise_does_not_depend_on_the_prediction_there_are_hardly_slopes_and_none_by_an_entrys_own_residual():
    group, predicted, _, ratio = tilted_ratios(1000, 8, tilt=0.0)
    factors, left_out = side_of(group, predicted=predicted).shrunk(ratio)
    assert np.abs(factors.slopes).max() < 0.2
    assert abs(np.corrcoef(ratio, left_out)[0, 1]) < 0.04


@pytest.mark.parametrize("k", [2.0, 8.0, 32.0])
def test_credibility_is_the_priors_where_variances_follow_it(k):
    rng = np.random.default_rng(0)
    a, group = (k / 2) / rng.gamma(k / 2 + 1, 1, 20_000), np.repeat(np.arange(20_000), 6)
    ratio = a[group] * rng.normal(0, 1, len(group)) ** 2
    assert side_of(group).credibility(ratio) == k


def test_shrunk_means_are_the_formula_and_leave_the_own_entry_out():
    _, group, ratio = uneven_ratios(30, per_group=10)
    counts = np.random.default_rng(1).integers(1, 4, len(group))
    ratio /= np.average(ratio, weights=counts)
    side = side_of(7 * group, counts)
    k = side.credibility(ratio)
    assert k < 100
    factors, left_out = side.shrunk(5 * ratio)

    def mean_of(which):
        return (k + np.sum((counts * ratio)[which])) / (k + np.sum(counts[which]))

    np.testing.assert_allclose(factors.factors, [mean_of(group == g) for g in range(30)] + [1.0])
    assert not factors.slopes.any()
    others = [(group == group[t]) & (np.arange(len(group)) != t) for t in range(len(group))]
    np.testing.assert_allclose(left_out, [mean_of(which) for which in others])


def test_an_entrys_own_residual_says_nothing_of_its_left_out_factor():
    a, group, ratio = uneven_ratios(2000, per_group=4)
    _, left_out = side_of(group).shrunk(ratio)
    own = ratio / a[group]
    assert abs(np.corrcoef(own, left_out)[0, 1]) < 0.03
    assert np.corrcoef(a[group], left_out)[0, 1] > 0.5


def test_groups_that_do_not_differ_have_no_factors():
    rng = np.random.default_rng(0)
    group, ratio = np.repeat(np.arange(50), 20), rng.normal(0, 1, 1000) ** 2
    assert side_of(group).credibility(ratio) > 100
    once = side_of(np.arange(9))
    np.testing.assert_allclose(once.shrunk(ratio[:9])[1], 1.0)


@pytest.mark.parametrize("slope", [1.5, -1.0])
def test_the_fit_is_optimal_given_the_left_out_factors_as_an_independent_solver_finds(slope):
    rng = np.random.default_rng(0)
    i, j = np.indices((40, 30)).reshape(2, -1)
    x, p = rng.normal(0, 1, 1200), rng.normal(0, 1, 1200)
    noise = np.exp(slope * x - p**2 / 2) * rng.gamma(3, 1 / 3, 40)[i] * rng.gamma(3, 1 / 3, 30)[j]
    counts = rng.integers(1, 3, 1200)
    features = np.column_stack([x, hats(p, knots_for(p, 6))])
    solver = Backfitting(
        features, 1, noise * rng.normal(0, 1, 1200) ** 2, (side_of(i, counts), side_of(j, counts)), 0.0
    )
    state = run(solver, max_steps=300).state
    gradient = solver.gradient(state.coefficients, state.left_out)
    free = np.array([state.coefficients[0] > 0, *np.ones(6, dtype=bool)])
    np.testing.assert_allclose(gradient[free], 0.0, atol=1e-4)
    assert gradient[~free].size == 0 or gradient[~free].min() > 0
    assert free[0] == (slope > 0)
    found = minimize(
        solver.loss,
        np.zeros(7),
        args=(state.left_out,),
        jac=solver.gradient,
        bounds=[(0, None)] + [(None, None)] * 6,
        options={"ftol": 1e-14, "gtol": 1e-8},
    )
    np.testing.assert_allclose(state.coefficients, found.x, atol=1e-4)
    in_sample = state.rows.factors[solver.sides[0].group] * state.cols.factors[solver.sides[1].group]
    assert np.abs(solver.gradient(state.coefficients, in_sample)).max() > 1.0


def test_several_curves_are_optimal_together_and_only_the_first_has_a_level_of_its_own():
    rng = np.random.default_rng(1)
    i, j = np.indices((40, 30)).reshape(2, -1)
    p, q = rng.normal(0, 1, (2, 1200))
    features = np.column_stack([rng.normal(0, 1, 1200), hats(p, knots_for(p, 6)), hats(q, knots_for(q, 5))])
    losses = 7.0 * np.exp(np.abs(p) + q) * rng.normal(0, 1, 1200) ** 2
    solver = Backfitting(features, 1, losses, (side_of(i), side_of(j)), 0.0, curves=(6, 5))
    state = run(solver, max_steps=300).state
    gradient = solver.gradient(state.coefficients, state.left_out)
    np.testing.assert_allclose(gradient[1:], 0.0, atol=1e-4)
    assert state.coefficients[0] == 0 or abs(gradient[0]) < 1e-4
    # The sum of the further curve's heights is all that its penalty sees of its level.
    assert abs(state.coefficients[7:].sum()) < 0.1
    assert np.all(np.diff(state.coefficients[7:]) > 0)


def test_a_group_whose_predictions_do_not_differ_has_no_slope():
    """Of one prediction for each row, as where columns are hidden, the covariance is rounding alone."""
    rng = np.random.default_rng(0)
    group, of_group = rng.integers(0, 30, 900), rng.normal(3.0, 0.7, 30)
    factors, _ = side_of(group, predicted=of_group[group]).shrunk(rng.chisquare(1, 900))
    np.testing.assert_array_equal(factors.slopes, 0.0)
