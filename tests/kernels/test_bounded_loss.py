import numpy as np
import pytest

from surefill.kernels import bounded_loss as kernels

both = {
    name: pytest.mark.parametrize(name, [getattr(kernels, name), getattr(kernels, f"{name}_reference")])
    for name in ("set_row_terms", "set_weighted_sums")
}
SIZES, N_COLS, WIDTH = (3, 0, 4, 1), 5, 3


def problem(seed=0):
    rng = np.random.default_rng(seed)
    starts = np.concatenate([[0], np.cumsum(SIZES)])
    other = np.concatenate([rng.permutation(N_COLS)[:size] for size in SIZES])
    target, weight, multiplier = (
        rng.normal(size=8),
        rng.uniform(size=8),
        rng.uniform(size=8) * (rng.uniform(size=8) < 0.5),
    )
    return starts, other, target, weight, multiplier, rng.normal(size=(4, WIDTH)), rng.normal(size=(N_COLS, WIDTH))


def written_out(M, target, weight, multiplier, stiffness):
    over = np.maximum(0, multiplier + stiffness * (np.abs(M) - 1))
    box = (over**2 - multiplier**2) / (2 * stiffness) if stiffness else 0 * M
    return weight * (M - target) ** 2 + box


@both["set_row_terms"]
@pytest.mark.parametrize("stiffness", [0.0, 0.7])
def test_row_terms_are_the_documented_sums_and_their_derivatives(set_row_terms, stiffness):
    starts, other, target, weight, multiplier, U, V = problem()
    rows = np.repeat(np.arange(4), SIZES)
    entries, slopes, dU, value = np.empty(8), np.empty(8), np.empty_like(U), np.empty(4)
    set_row_terms(0, 4, starts, other, target, weight, multiplier, stiffness, 1.5, U, V, entries, slopes, dU, value)
    M = 1.5 * np.sum(U[rows] * V[other], axis=1)
    assert (np.abs(M) > 1).any()
    np.testing.assert_allclose(entries, M)
    terms = written_out(M, target, weight, multiplier, stiffness)
    np.testing.assert_allclose(value, np.bincount(rows, terms, minlength=4))
    step = 1e-6
    upper, lower = (written_out(M + d, target, weight, multiplier, stiffness) for d in (step, -step))
    np.testing.assert_allclose(slopes, (upper - lower) / (2 * step), atol=1e-6)
    np.testing.assert_allclose(dU, [slopes[rows == i] @ V[other[rows == i]] for i in range(4)], atol=1e-12)


@both["set_weighted_sums"]
def test_weighted_sums_by_columns(set_weighted_sums):
    _, other, target, _, _, U, _ = problem()
    rows = np.repeat(np.arange(4), SIZES)
    order = np.argsort(other, kind="stable")
    col_starts = np.searchsorted(other[order], np.arange(N_COLS + 1))
    dV = np.full((N_COLS, WIDTH), 7.0)
    set_weighted_sums(0, N_COLS - 1, col_starts, order, rows, target, U, dV)
    for j in range(N_COLS - 1):
        np.testing.assert_allclose(dV[j], target[other == j] @ U[rows[other == j]], atol=1e-12)
    assert (dV[-1] == 7).all()
