from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from surefill.online.projections import project_euclidean

SEEDS = st.integers(0, 10_000)


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
def test_the_projection_agrees_with_a_conic_solver(seed: int) -> None:
    rng = np.random.default_rng(seed)
    W = np.exp(1.5 * rng.normal(size=(rng.integers(1, 7), rng.integers(2, 7))))
    variable = cp.Variable(W.shape)
    on_simplex = [cp.sum(variable) == 1, variable >= 0]
    cp.Problem(cp.Minimize(cp.sum_squares(variable - W)), on_simplex).solve(solver=cp.CLARABEL)
    np.testing.assert_allclose(project_euclidean(W), variable.value, atol=1e-6)


def test_the_simplex_is_left_alone() -> None:
    C = np.array([[0.2, 0.3], [0.1, 0.4]])
    np.testing.assert_allclose(project_euclidean(C), C, atol=1e-15)
