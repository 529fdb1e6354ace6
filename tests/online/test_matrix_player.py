from __future__ import annotations

from types import ModuleType

import numpy as np
import pytest
from scipy.optimize import minimize

from surefill.online.players import CubePlayer, EntropyPlayer, MatrixMultiplicativeWeights, MatrixState
from surefill.online.projections import (
    BipartiteMatrix,
    DualPoint,
    divided_differences,
    project_matrix_entropy,
)

SHAPE = (6, 5)


def gram(state: MatrixState, k: int) -> np.ndarray:
    """P^k from its logarithm."""
    values, vectors = np.linalg.eigh(whole(state.log_diagonal[k], state.log_off_diagonal[k]))
    return (vectors * np.exp(values)) @ vectors.T


def whole(h: np.ndarray, B: np.ndarray) -> np.ndarray:
    m, n = B.shape
    return np.diag(h) + np.block([[np.zeros((m, m)), B], [B.T, np.zeros((n, n))]])


@pytest.mark.parametrize("observations", ["values", "zero"])
@pytest.mark.parametrize("setting", ["entropy", "cube"])
def test_blocks_agree_with_the_paper_to_the_letter_and_keep_every_limit(
    literal: ModuleType, setting: str, observations: str
) -> None:
    """50 steps in which diagonal and entries come to bind."""
    K, theta, eta = 1.4, 0.5, 1.0
    player = MatrixMultiplicativeWeights(SHAPE, K, theta, observations, tol=1e-10)
    oracle = literal.LiteralMatrixPlayer(SHAPE, K, theta)
    confidence = EntropyPlayer(SHAPE, 1.0) if setting == "entropy" else CubePlayer(SHAPE, 1.0)
    step = 0.05 if setting == "entropy" else confidence.cap / 2
    uneven = np.full(SHAPE, 2.0 if setting == "entropy" else 2.4)  # so that two rows and columns outgrow the others
    uneven[:2, :2] *= 6
    rng = np.random.default_rng(3)
    state, C = player.init(), confidence.init()
    bound = np.zeros(2, dtype=int)
    for _ in range(50):
        cell = int(rng.integers(3)), int(rng.integers(3))
        value = float(rng.choice([-1.0, 1.0])) if observations == "values" else 0.0
        oracle.update(uneven * C, cell, value, eta)
        before = player.decision(state)
        state = player.update(state, uneven * C, cell, value, eta)
        C = confidence.update(C, before[0] - before[1], step)
        for ours, theirs in zip(player.decision(state), oracle.decision(), strict=True):
            np.testing.assert_allclose(ours, theirs, atol=1e-8)
        bound += binding_limits(player, state)
    assert (bound > 0).all(), bound


def binding_limits(player: MatrixMultiplicativeWeights, state: MatrixState) -> np.ndarray:
    """How many bounds of each kind bind; none may be exceeded by 1e-8."""
    grams = [gram(state, k) for k in range(len(state.off_diagonal))]
    diagonal = np.concatenate([np.diag(P) for P in grams]) - player.K / 2
    entries = np.abs(2 * state.off_diagonal) - 1
    assert max(diagonal.max(), entries.max()) <= 1e-8
    for P, off_diagonal in zip(grams, state.off_diagonal, strict=True):
        np.testing.assert_allclose(P[: SHAPE[0], SHAPE[0] :], off_diagonal, atol=1e-9)
    return np.array([np.sum(np.atleast_1d(over) > -1e-8) for over in (diagonal, entries)])


@pytest.mark.parametrize("observations", ["values", "zero"])
def test_the_paper_keeps_the_symmetries_that_the_blocks_rest_on(literal: ModuleType, observations: str) -> None:
    """X = diag(P, N) stays block diagonal, N = D P D, and with zero observations M^2 = -M^1."""
    m, n = SHAPE
    oracle = literal.LiteralMatrixPlayer(SHAPE, 1.0, 0.5)
    rng, p = np.random.default_rng(0), 2 * (m + n)
    for _ in range(8):
        value = float(rng.uniform(-1, 1)) if observations == "values" else 0.0
        oracle.update(
            rng.dirichlet(np.ones(30)).reshape(SHAPE), (int(rng.integers(6)), int(rng.integers(5))), value, 1.0
        )
    P, N = oracle.X[:p, :p], oracle.X[p:, p:]
    rows = np.r_[np.ones(2 * m), -np.ones(2 * n)]
    np.testing.assert_allclose(oracle.X[:p, p:], 0, atol=1e-12)
    np.testing.assert_allclose(N, rows[:, None] * P * rows, atol=1e-10)
    first = np.r_[np.arange(m), 2 * m + np.arange(n)]
    second = np.setdiff1d(np.arange(p), first)
    np.testing.assert_allclose(P[np.ix_(first, second)], 0, atol=1e-12)
    if observations == "zero":
        np.testing.assert_allclose(oracle.decision()[1], -oracle.decision()[0], atol=1e-10)


BOUND = 0.9
"""On the diagonal in the problems below; above 1/2, so that entries bind too."""


def random_problem(seed: int, shape: tuple[int, int] = (3, 2), count: int = 2) -> BipartiteMatrix:
    rng, (m, n) = np.random.default_rng(seed), shape
    return BipartiteMatrix(rng.normal(size=(count, m + n)) * 0.5, rng.normal(size=(count, m, n)) * 0.8)


@pytest.mark.parametrize("seed", range(4))
def test_projection_meets_its_optimality_conditions_and_another_solver(seed: int) -> None:
    log = random_problem(seed)
    found = project_matrix_entropy(log, BOUND, log.zeros(), 1e-10)
    d, Z = found.multipliers
    assert d.min() >= 0
    at = DualPoint(log, found.multipliers, BOUND)
    assert (at.diagonal <= BOUND + 1e-9).all()
    np.testing.assert_allclose(np.sum(d * (BOUND - at.diagonal)), 0, atol=1e-8)
    np.testing.assert_allclose(np.abs(Z).sum(), np.sum(Z * 2 * at.off_diagonal), atol=1e-8)

    def dual(y: np.ndarray) -> float:
        """phi of the module docstring, both signs of Z apart, computed from whole matrices."""
        parts = np.split(y, [d.size, d.size + Z.size])
        moved = log.minus(BipartiteMatrix(parts[0].reshape(d.shape), (parts[1] - parts[2]).reshape(Z.shape)))
        traces = [np.exp(np.linalg.eigvalsh(whole(h, B))).sum() for h, B in zip(*moved, strict=True)]
        return sum(traces) + BOUND * parts[0].sum() + parts[1].sum() + parts[2].sum()

    size = d.size + 2 * Z.size
    other = minimize(dual, np.zeros(size), bounds=[(0, None)] * size, options={"ftol": 1e-15, "maxfun": 100_000})
    assert at.phi <= other.fun + 1e-9
    assert at.phi == pytest.approx(other.fun, abs=1e-6)


def test_the_hessian_is_the_change_of_the_gradient() -> None:
    log, rng = random_problem(3), np.random.default_rng(1)
    multipliers = BipartiteMatrix(rng.random(log.diagonal.shape), rng.normal(size=log.off_diagonal.shape))
    along = BipartiteMatrix(rng.normal(size=log.diagonal.shape), rng.normal(size=log.off_diagonal.shape))
    before, after = (DualPoint(log, multipliers.plus(along, step), BOUND) for step in (-1e-5, 1e-5))
    product = DualPoint(log, multipliers, BOUND).hessian_product(along)
    np.testing.assert_allclose(product.diagonal, (before.diagonal - after.diagonal) / 2e-5, atol=1e-8)
    np.testing.assert_allclose(product.off_diagonal, 2 * (before.off_diagonal - after.off_diagonal) / 2e-5, atol=1e-8)


def test_projection_is_nearer_than_every_other_member() -> None:
    """Delta(P, Y) of the answer against random feasible matrices, and P itself where it is already feasible."""
    log = random_problem(7, count=1)
    found = project_matrix_entropy(log, BOUND, log.zeros(), 1e-10)
    value = divergence(
        whole(found.log.diagonal[0], found.log.off_diagonal[0]), whole(log.diagonal[0], log.off_diagonal[0])
    )
    rng = np.random.default_rng(0)
    for _ in range(200):
        factor = rng.normal(size=(5, 5))
        P = factor @ factor.T
        P *= min(BOUND / np.diag(P).max(), 0.5 / np.abs(P[:3, 3:]).max())
        values, vectors = np.linalg.eigh(P)
        other = (vectors * np.log(values)) @ vectors.T
        assert divergence(other, whole(log.diagonal[0], log.off_diagonal[0])) >= value - 1e-9
    small = BipartiteMatrix(np.full((1, 5), -2.0), np.zeros((1, 3, 2)))
    assert project_matrix_entropy(small, BOUND, small.zeros(), 1e-10).evaluations == 1


def divergence(log_X: np.ndarray, log_Y: np.ndarray) -> float:
    def exponential(H: np.ndarray) -> np.ndarray:
        values, vectors = np.linalg.eigh(H)
        return (vectors * np.exp(values)) @ vectors.T

    X, Y = exponential(log_X), exponential(log_Y)
    return float(np.sum(X * (log_X - log_Y)) - np.trace(X) + np.trace(Y))


def test_divided_differences_are_the_derivative_of_the_exponential() -> None:
    values = np.array([-1.0, 0.5, 0.5, 2.0])
    F = divided_differences(values)
    assert F[0, 3] == pytest.approx((np.exp(2.0) - np.exp(-1.0)) / 3)
    assert F[1, 2] == pytest.approx(np.exp(0.5))
    np.testing.assert_allclose(F, F.T)
