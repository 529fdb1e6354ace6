"""Compiled parts of a stochastic step on a block of rows and columns of T factored matrices.

Factors of the block lie side by side: A (rows x T r), B (columns x T r); all variables are unit vectors of r + 1
coordinates, X (m x T x (r + 1)), whose last coordinate is spare (:mod:`surefill.spaces.spheres`).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from surefill.arrays import Floats, Indices
from surefill.kernels.compile import compiled_sums


@compiled_sums
def add_ball(
    A: Floats,
    B: Floats,
    rows: Indices,
    cols: Indices,
    weights: Floats,
    sigma: Floats,
    dA: Floats,
    dB: Floats,
    squares: Floats,
) -> None:
    """Add the gradient of sum_t sigma_t sum_x w_x (M^t_x)^2 to dA, dB, and sum_x w_x (M^t_x)^2 to squares[t]."""
    T = len(sigma)
    r = A.shape[1] // T
    for x in range(len(rows)):
        i, j, w = rows[x], cols[x], weights[x]
        for t in range(T):
            entry = np.float32(0)
            for k in range(t * r, (t + 1) * r):
                entry += A[i, k] * B[j, k]
            squares[t] += w * entry * entry
            slope = np.float32(2.0 * w * sigma[t] * entry)
            for k in range(t * r, (t + 1) * r):
                dA[i, k] += slope * B[j, k]
                dB[j, k] += slope * A[i, k]


@compiled_sums
def normalized_steps(
    X: Floats, lines: Indices, G: Floats, momentum: Floats, square: Floats, step: Any, decay: Any, square_decay: Any
) -> None:
    """One step of Adam on spheres for some ``lines`` of X, the second moment kept per line and matrix.

    g = the part of G along the sphere; momentum = d momentum + (1 - d) g; square = d' square + (1 - d') |g|^2;
    X moves by -step momentum / sqrt(square) and back to length 1.
    """
    T, r = X.shape[1], X.shape[2] - 1
    one, tiny = np.float32(1), np.float32(1e-30)
    for a in range(len(lines)):
        i = lines[a]
        for t in range(T):
            radial = np.float32(0)
            for k in range(r):
                radial += G[a, t * r + k] * X[i, t, k]
            total = np.float32(0)
            for k in range(r + 1):
                g = (G[a, t * r + k] if k < r else np.float32(0)) - radial * X[i, t, k]
                total += g * g
                momentum[i, t, k] = decay * momentum[i, t, k] + (one - decay) * g
            seen_before = square[i, t] > 0
            square[i, t] = square_decay * square[i, t] + (one - square_decay) * total if seen_before else total
            size, length = step / np.sqrt(square[i, t] + tiny), np.float32(0)
            for k in range(r + 1):
                X[i, t, k] -= size * momentum[i, t, k]
                length += X[i, t, k] * X[i, t, k]
            length = one / np.sqrt(length)
            for k in range(r + 1):
                X[i, t, k] *= length
