"""Passes over grids of cells: compiled loops against their readable twins, and those against the formulas."""

import numpy as np
import pytest

from surefill.kernels import candidates as candidate_kernel
from surefill.kernels import exponential, limits_grid, packing, risk_grid, support_grid, weight_grid
from surefill.kernels import listing as listing_kernel

ACCURACY = 1e-12
"""A few hundred roundings of double precision; sums of ramps and exponentials have some dozen."""

M, N = 7, 45


def test_exponential_is_exact_to_the_last_place_and_clipped():
    x = np.r_[np.random.default_rng(0).uniform(-50, 50, 1000), 0.0, -707.9, 708.9]
    ours = np.array([exponential.exponential(each) for each in x])
    np.testing.assert_allclose(ours, np.exp(x), rtol=4 * np.finfo(float).eps)
    assert 0 < exponential.exponential(-np.inf) < 1e-300


def risks(rng):
    knots = np.sort(rng.uniform(1, 5, 6))
    rows, cols = rng.normal(size=(3, M)), rng.normal(size=(3, N))
    cells = rng.normal(size=(M, N)), rng.uniform(0.5, 5.5, (M, N)), rng.random((M, N))
    curve, factors = risk_grid.Curve(knots, rng.normal(size=6)), risk_grid.LineFactors(rows, cols, 1.0)
    return [*cells, 1.3, curve, factors, risk_grid.Unsupported(np.log(3.0), 0.5)]


def weights(rng, share=0.5):
    knots = np.sort(rng.uniform(-8, 2, 5))
    lines = rng.uniform(0.5, 2, M), rng.uniform(0.5, 2, N)
    return [rng.uniform(-10, 6, (M, N)), 0.95, knots, 0.3 * rng.normal(size=5), *lines, share, 0.02, 0.5]


def log_odds(rng):
    scaling = 0.1, rng.normal(size=2), rng.normal(size=2), -3.0, 1.0
    return [rng.normal(size=(M, N)), rng.normal(size=M) - 2, rng.normal(size=N), *scaling]


def supports(rng):
    lines = rng.integers(2, size=M), rng.integers(3, size=N), rng.integers(-1, 2, M), rng.integers(-1, 2, N)
    floors = np.array([[0.0, 0.1, 0.3], [0.2, 0.5, 0.7]])
    return [rng.normal(size=(M, N)).astype(np.float32), 16, floors, *lines, np.full((M, N), np.nan)]


def forms(rng):
    roots, vectors = rng.normal(size=(5, 4, 4)), rng.normal(size=(M, 4))
    tables = np.full((M, 10), np.nan), np.full((M, 10), np.nan)
    return [roots @ roots.transpose(0, 2, 1), rng.integers(-1, 5, M), vectors, 2.5, *tables]


def listing(rng):
    wanted = rng.random((M, N)) < 0.3
    grids = (*rng.normal(size=(3, M, N)), *(rng.random((2, M, N)) < 0.5))
    count = np.count_nonzero(wanted)
    return [wanted, grids, np.zeros((2, count), np.int32), (*np.zeros((3, count)), *np.zeros((2, count), bool))]


def candidates(rng):
    _, predicted, _, _, curve, factors, _ = risks(rng)
    return [predicted, curve, factors, 0.5, np.zeros((M, N), bool)]


KERNELS = [
    (candidate_kernel, "candidates_on_grid", candidates),
    (risk_grid, "risks_on_grid", risks),
    (weight_grid, "weights_on_grid", weights),
    (weight_grid, "log_odds_on_grid", log_odds),
    (support_grid, "supports_on_grid", supports),
    (packing, "pack_forms", forms),
    (listing_kernel, "list_cells", listing),
]


def flat(arguments):
    return [each for one in arguments for each in (one if isinstance(one, tuple) else (one,))]


@pytest.mark.parametrize(("module", "name", "make"), KERNELS)
def test_loop_and_twin_agree(module, name, make):
    for seed in range(5):
        ours, twins = make(np.random.default_rng(seed)), make(np.random.default_rng(seed))
        getattr(module, name)(*ours)
        getattr(module, f"{name}_reference")(*twins)
        for one, other in zip(flat(ours), flat(twins), strict=True):
            np.testing.assert_allclose(one, other, rtol=ACCURACY, atol=1e-300)


def test_unraked_weights_without_shifts_are_one_over_the_chance_of_being_held_out():
    rng = np.random.default_rng(0)
    p = rng.uniform(0.001, 0.9, (M, N))
    given = np.log(p / (1 - p))
    weight_grid.weights_on_grid(given, 0.95, np.zeros(1), np.zeros(1), np.ones(M), np.ones(N), 0.0, 0.02, 0.5)
    q = np.minimum(0.02 / np.sqrt(p), 0.5)
    np.testing.assert_allclose(given, (1 - (1 - q) * p) / (q * p), rtol=ACCURACY)


def test_packed_lines_multiply_to_the_quadratic_forms():
    S, which, v, scale, upper, _ = forms(np.random.default_rng(1))
    squares = np.empty_like(upper)
    packing.pack_forms(S, which, v, scale, upper, np.empty_like(upper))
    packing.pack_forms(S, which, v, 1.0, np.empty_like(upper), squares)
    wanted = scale * np.einsum("ja,iab,jb->ij", v, S[which], v)
    np.testing.assert_allclose(upper @ squares.T, wanted, rtol=ACCURACY, atol=ACCURACY)


@pytest.mark.parametrize("keep_on_grid", [limits_grid.keep_on_grid, limits_grid.keep_on_grid_reference])
def test_kept_cells_are_within_all_limits_and_close_ones_near_one(keep_on_grid):
    risk = np.array([[0.5, 1.0, 1.0 + 1e-12, 1.5, 0.5, 0.5, 0.5]])
    confidence = np.array([[0.9, 0.9, 0.9, 0.9, 0.5 - 1e-6, 0.3, 0.9]])
    exposure = np.array([[1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 9.0]])
    keep, close = np.empty((2, 1, 7), dtype=bool)
    limits, margins = np.array([1.0, 0.5, 8.0]), np.array([1e-11, 4e-6, 1e-11])
    keep_on_grid(risk, confidence, exposure, np.full((1, 7), 1.25), 0.25, limits, margins, keep, close)
    assert keep.tolist() == [[True, True, False, False, False, False, False]]
    assert close.tolist() == [[False, True, True, False, True, False, False]]


def test_nothing_is_close_to_a_limit_that_is_infinite():
    keep, close = np.empty((2, 1, 1), dtype=bool)
    limits = np.array([-np.inf, 0.5, np.inf])
    limits_grid.keep_on_grid(*np.ones((4, 1, 1)), 0.0, limits, np.array([0.0, 4e-6, 0.0]), keep, close)
    assert not keep.any()
    assert not close.any()
