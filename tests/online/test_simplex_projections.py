from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from surefill.errors import InputError
from surefill.online.projections import project_euclidean, project_relative_entropy

SEEDS = st.integers(0, 10_000)


def some_weights(seed: int, spread: float = 4.0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.exp(spread * rng.normal(size=(rng.integers(1, 7), rng.integers(2, 7))))


@given(SEEDS, st.floats(0.0, 1.0))
def test_relative_entropy_projection_meets_its_optimality_conditions(seed: int, share: float) -> None:
    W = some_weights(seed)
    floor = share / W.size
    C = project_relative_entropy(W, floor)
    assert C.sum() == pytest.approx(1.0, abs=1e-12)
    assert C.min() >= floor
    ratio = C / W
    free = floor * (1 + 1e-12) < C
    if free.any():
        scale = ratio[free].mean()
        np.testing.assert_allclose(ratio[free], scale, rtol=1e-9)
        assert (ratio[~free] >= scale * (1 - 1e-9)).all()  # multipliers of the floor are not negative


@given(SEEDS)
def test_euclidean_projection_meets_its_optimality_conditions(seed: int) -> None:
    W = np.random.default_rng(seed).normal(size=(4, 5)) * 10.0 ** np.random.default_rng(seed).integers(-3, 3)
    C = project_euclidean(W)
    assert C.sum() == pytest.approx(1.0, abs=1e-9)
    assert C.min() >= 0
    shift = (W - C)[C > 0]
    np.testing.assert_allclose(shift, shift.mean(), atol=1e-9)
    assert (W[C == 0] <= shift.mean() + 1e-9).all()


@pytest.mark.parametrize("seed", range(3))
def test_projections_agree_with_a_conic_solver(seed: int) -> None:
    W = some_weights(seed, 1.5)
    floor = 0.5 / W.size
    variable = cp.Variable(W.shape)
    within = [cp.sum(variable) == 1, variable >= floor]
    cp.Problem(cp.Minimize(cp.sum(cp.kl_div(variable, W))), within).solve(
        solver=cp.CLARABEL, tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11
    )
    np.testing.assert_allclose(project_relative_entropy(W, floor), variable.value, atol=1e-6)
    on_simplex = [cp.sum(variable) == 1, variable >= 0]
    cp.Problem(cp.Minimize(cp.sum_squares(variable - W)), on_simplex).solve(solver=cp.CLARABEL)
    np.testing.assert_allclose(project_euclidean(W), variable.value, atol=1e-6)


def test_the_simplex_is_left_alone_and_a_floor_too_high_is_refused() -> None:
    C = np.array([[0.2, 0.3], [0.1, 0.4]])
    np.testing.assert_allclose(project_relative_entropy(C, 0.05), C, atol=1e-15)
    np.testing.assert_allclose(project_euclidean(C), C, atol=1e-15)
    np.testing.assert_array_equal(project_relative_entropy(C, 0.25), np.full((2, 2), 0.25))
    with pytest.raises(InputError, match="add up to more than 1"):
        project_relative_entropy(C, 0.3)
