"""Compiled sums over the cells of factored matrices: smoothed hinge, box penalty, products at the observed cells."""

from __future__ import annotations

import numpy as np

from surefill.arrays import Floats
from surefill.kernels.compile import compiled, compiled_sums


@compiled_sums
def smooth_hinge(M: Floats, scale: float, gamma: float, mu: float, C: Floats) -> tuple[float, float, float]:
    """sum phi(s), its slope and curvature in lambda, for s = 1 + lambda (gamma - M); C becomes clip(s / mu, 0, 1).

    phi(s) = max over c in [0, 1] of c s - (mu / 2) c^2, so C holds the maximising c of every cell.
    """
    value, slope, curvature = 0.0, 0.0, 0.0
    inverse_mu = 1.0 / mu
    for i in range(M.shape[0]):
        for j in range(M.shape[1]):
            d = gamma - M[i, j]
            s = 1.0 + scale * d
            c = min(max(s * inverse_mu, 0.0), 1.0)
            C[i, j] = c
            value += c * (s - 0.5 * mu * c)
            slope += c * d
            curvature += d * d if 0.0 < c < 1.0 else 0.0
    return value, slope, curvature / mu


@compiled_sums
def add_box(M: Floats, multipliers: Floats, stiffness: float, G: Floats) -> float:
    """sum (s^2 - sigma^2) / (2 rho), s = max(0, sigma + rho (|M| - 1)); G += sign(M) s.

    The augmented Lagrangian of |M_x| <= 1 with multipliers sigma and stiffness rho.
    """
    value = 0.0
    for i in range(M.shape[0]):
        for j in range(M.shape[1]):
            entry, multiplier = M[i, j], multipliers[i, j]
            updated = max(multiplier + stiffness * (abs(entry) - 1.0), 0.0)
            value += updated * updated - multiplier * multiplier
            G[i, j] += updated if entry > 0.0 else -updated
    return value / (2.0 * stiffness)


@compiled_sums
def products_at(U: Floats, V: Floats, rows: Floats, cols: Floats, out: Floats) -> None:
    """out[x, t] = u_i^t . v_j^t at the cells x = (i, j), for factors of T matrices side by side."""
    n_matrices = out.shape[1]
    width = U.shape[1] // n_matrices
    for x in range(len(rows)):
        i, j = rows[x], cols[x]
        for t in range(n_matrices):
            total = np.float32(0.0) * U[i, 0]  # zero in the factors' own precision
            for k in range(t * width, (t + 1) * width):
                total += U[i, k] * V[j, k]
            out[x, t] = total


@compiled
def add_sparse_products(
    U: Floats, V: Floats, rows: Floats, cols: Floats, weights: Floats, dU: Floats, dV: Floats
) -> None:
    """dU^t += G^t V^t and dV^t += G^t' U^t for G^t with the entries weights[x, t] at the cells x."""
    n_matrices = weights.shape[1]
    width = U.shape[1] // n_matrices
    for x in range(len(rows)):
        i, j = rows[x], cols[x]
        for t in range(n_matrices):
            g = weights[x, t]
            for k in range(t * width, (t + 1) * width):
                dU[i, k] += g * V[j, k]
                dV[j, k] += g * U[i, k]
