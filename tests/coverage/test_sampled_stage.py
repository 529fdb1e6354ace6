"""Sampled stages of the factored dual: blocks that cover the table, unbiased gradients, answers like whole sweeps'."""

import numpy as np
import pytest

from surefill import MaxNorm, Observations, VersionSpace, solve_coverage
from surefill.coverage.linear import mixture, sampled_stage
from surefill.coverage.linear.sampled_stage import epoch_blocks
from surefill.kernels.sampled_steps import add_ball, normalized_steps
from surefill.spaces.augmented_lagrangian import AugmentedLagrangian
from surefill.spaces.separation_oracle import ResponseSolver, run


@pytest.fixture(scope="module")
def table():
    """Two groups of rows and columns that meet in few cells."""
    rng = np.random.default_rng(0)
    likely = np.where((np.arange(160)[:, None] < 90) == (np.arange(120)[None, :] < 60), 0.15, 0.02)
    rows, cols = np.nonzero(rng.uniform(size=likely.shape) < likely)
    return Observations(rows, cols, np.zeros(len(rows)), likely.shape)


def test_an_epoch_visits_every_cell_and_every_observation_once(table, monkeypatch):
    monkeypatch.setattr(sampled_stage, "BLOCK_SIDE", 32)
    lagrangian = AugmentedLagrangian(VersionSpace(table, 0.045, MaxNorm(1.0, 3)))
    cells, seen = np.zeros(table.shape, int), np.zeros(table.shape)
    for block in epoch_blocks(lagrangian, np.random.default_rng(1)):
        cells[np.ix_(block.rows, block.cols)] += 1
        seen[block.rows[block.seen_rows], block.cols[block.seen_cols]] += block.weights
    assert (cells == 1).all()
    dense = np.zeros(table.shape)
    dense[table.rows, table.cols] = table.weights
    np.testing.assert_allclose(seen, dense)


def test_the_ball_is_its_formula():
    rng = np.random.default_rng(2)
    A, B = (rng.normal(size=(size, 6)).astype(np.float32) for size in (5, 4))
    rows, cols, weights, sigma = (
        np.array([0, 2, 4]),
        np.array([1, 1, 3]),
        np.array([0.2, 0.3, 0.5]),
        np.array([2.0, 3.0]),
    )
    dA, dB, squares = np.zeros_like(A), np.zeros_like(B), np.zeros(2)
    add_ball(A, B, rows, cols, weights, sigma, dA, dB, squares)
    for t, part in enumerate((slice(0, 3), slice(3, 6))):
        M = (A[:, part] @ B[:, part].T)[rows, cols]
        G = np.zeros((5, 4))
        G[rows, cols] = 2 * sigma[t] * weights * M
        np.testing.assert_allclose(squares[t], weights @ M**2, rtol=1e-5)
        np.testing.assert_allclose(dA[:, part], G @ B[:, part], rtol=1e-4, atol=1e-6)
        np.testing.assert_allclose(dB[:, part], G.T @ A[:, part], rtol=1e-4, atol=1e-6)


def test_a_normalised_step_stays_on_the_sphere_and_turns_by_its_angle():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(6, 2, 4)).astype(np.float32)
    X /= np.linalg.norm(X, axis=2, keepdims=True)
    before, lines = X.copy(), np.array([1, 4])
    G = 100 * rng.normal(size=(2, 6)).astype(np.float32)
    momentum, square = np.zeros_like(X), np.zeros((6, 2), np.float32)
    normalized_steps(X, lines, G, momentum, square, np.float32(0.1), np.float32(0.0), np.float32(0.9))
    np.testing.assert_allclose(np.linalg.norm(X, axis=2), 1, rtol=1e-5)
    np.testing.assert_array_equal(np.delete(X, lines, axis=0), np.delete(before, lines, axis=0))
    angles = np.arccos(np.einsum("itk,itk->it", X[lines], before[lines]))
    np.testing.assert_allclose(np.tan(angles), 0.1, rtol=1e-2)
    # downhill: the factors move against the gradient
    assert (np.einsum("itk,itk->it", (X - before)[lines][:, :, :3], G.reshape(2, 2, 3)) < 0).all()


def test_a_sampled_answer_is_as_large_and_as_safe_as_one_by_whole_sweeps(table, monkeypatch):
    whole = solve_coverage(table, gamma=0.3, beta=0.045, rank=3, gap=0.03)
    monkeypatch.setattr(mixture, "SAMPLED_CELLS", 0)
    monkeypatch.setattr(sampled_stage, "BLOCK_SIDE", 40)
    found = solve_coverage(table, gamma=0.3, beta=0.045, rank=3, gap=0.03)
    assert found.standing == "searched"
    assert found.status.name == "NO_VIOLATION_FOUND"
    # Each C obeys gamma to 3% by search, worth lambda gamma 3%, about 6% of the coverage; the bounds hold for both.
    assert found.coverage == pytest.approx(whole.coverage, rel=0.08)
    assert found.coverage <= found.upper_bound
    space = VersionSpace(table, 0.045, MaxNorm(1.0, 3))
    for one in found.adversaries:
        lengths = [np.linalg.norm(factor.astype(float), axis=1).max() for factor in (one.left, one.right)]
        assert one.left.shape[1] <= 3
        assert lengths[0] * lengths[1] <= 1 + 1e-6  # at least the max-norm
        assert space.mean_square(one.matrix) <= 0.045
    # An independent search, by L-BFGS from other starts.
    search = ResponseSolver(space, found.confidence, 4, np.random.default_rng(77), 1e-3)
    assert run(search, max_steps=100).state.responses[0].mean <= 0.3 * 1.035
