import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from surefill.loop import run
from surefill.risk.backfitting import Backfitting
from surefill.risk.noise_factors import NoiseSide
from surefill.risk.smooth_curve import hats, knots_for, roughness

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


@pytest.mark.parametrize("k", [2.0, 8.0, 32.0])
def test_credibility_is_the_priors_where_variances_follow_it(k):
    rng = np.random.default_rng(0)
    a, group = (k / 2) / rng.gamma(k / 2 + 1, 1, 20_000), np.repeat(np.arange(20_000), 6)
    ratio = a[group] * rng.normal(0, 1, len(group)) ** 2
    assert NoiseSide.of(group, np.ones(len(group), dtype=np.int64)).credibility(ratio) == k


def test_shrunk_means_are_the_formula_and_leave_the_own_entry_out():
    _, group, ratio = uneven_ratios(30, per_group=10)
    counts = np.random.default_rng(1).integers(1, 4, len(group))
    ratio /= np.average(ratio, weights=counts)
    side = NoiseSide.of(7 * group, counts)
    k = side.credibility(ratio)
    assert k < 100
    factors, left_out = side.shrunk(5 * ratio)

    def mean_of(which):
        return (k + np.sum((counts * ratio)[which])) / (k + np.sum(counts[which]))

    np.testing.assert_allclose(factors, [mean_of(group == g) for g in range(30)] + [1.0])
    others = [(group == group[t]) & (np.arange(len(group)) != t) for t in range(len(group))]
    np.testing.assert_allclose(left_out, [mean_of(which) for which in others])


def test_an_entrys_own_residual_says_nothing_of_its_left_out_factor():
    a, group, ratio = uneven_ratios(2000, per_group=4)
    _, left_out = NoiseSide.of(group, np.ones(len(group), dtype=np.int64)).shrunk(ratio)
    own = ratio / a[group]
    assert abs(np.corrcoef(own, left_out)[0, 1]) < 0.03
    assert np.corrcoef(a[group], left_out)[0, 1] > 0.5


def test_groups_that_do_not_differ_have_no_factors():
    rng = np.random.default_rng(0)
    group, ratio = np.repeat(np.arange(50), 20), rng.normal(0, 1, 1000) ** 2
    assert NoiseSide.of(group, np.ones(1000, dtype=np.int64)).credibility(ratio) > 100
    once = NoiseSide.of(np.arange(9), np.ones(9, dtype=np.int64))
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
        features, 1, noise * rng.normal(0, 1, 1200) ** 2, (NoiseSide.of(i, counts), NoiseSide.of(j, counts)), 0.0
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
    in_sample = state.row_factors[solver.sides[0].group] * state.col_factors[solver.sides[1].group]
    assert np.abs(solver.gradient(state.coefficients, in_sample)).max() > 1.0
