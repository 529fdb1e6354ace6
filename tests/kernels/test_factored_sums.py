"""The compiled sums over factored matrices against their formulas."""

import numpy as np
import pytest

from surefill.kernels.factored_sums import add_box, add_sparse_products, products_at, smooth_hinge


def test_the_smoothed_hinge():
    rng = np.random.default_rng(0)
    M, C = rng.normal(size=(6, 5)), np.empty((6, 5))
    value, slope, curvature = smooth_hinge(M, 1.7, 0.3, 0.4, C)
    s = 1 + 1.7 * (0.3 - M)
    np.testing.assert_allclose(C, np.clip(s / 0.4, 0, 1))
    assert value == pytest.approx(np.sum(C * s - 0.2 * C**2))
    assert slope == pytest.approx(np.sum(C * (0.3 - M)))
    assert curvature == pytest.approx(np.sum(((0.3 - M) ** 2)[(s > 0) & (s < 0.4)]) / 0.4)


def test_the_box_penalty():
    rng = np.random.default_rng(1)
    M = rng.normal(size=(6, 5))
    multipliers, G = rng.uniform(size=(6, 5)), np.ones((6, 5))
    value = add_box(M, multipliers, 2.0, G)
    updated = np.maximum(0, multipliers + 2 * (np.abs(M) - 1))
    np.testing.assert_allclose(G, 1 + np.sign(M) * updated)
    assert value == pytest.approx(np.sum(updated**2 - multipliers**2) / 4)


def test_products_of_factors_at_cells_and_their_gradients():
    rng = np.random.default_rng(2)
    U, V = rng.normal(size=(6, 4)), rng.normal(size=(5, 4))
    rows, cols = np.array([0, 3, 5]), np.array([4, 1, 1])
    out = np.empty((3, 2))
    products_at(U, V, rows, cols, out)
    np.testing.assert_allclose(out[:, 1], (U[:, 2:] @ V[:, 2:].T)[rows, cols])
    weights, dU, dV = rng.normal(size=(3, 2)), np.zeros_like(U), np.zeros_like(V)
    add_sparse_products(U, V, rows, cols, weights, dU, dV)
    G = np.zeros((6, 5))
    G[rows, cols] = weights[:, 0]
    np.testing.assert_allclose(dU[:, :2], G @ V[:, :2])
    np.testing.assert_allclose(dV[:, :2], G.T @ U[:, :2])
