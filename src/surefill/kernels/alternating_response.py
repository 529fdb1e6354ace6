"""Best responses of one side of factored adversaries to a fixed confidence, the other side's factors held.

With V given, row i of the adversary M = U V' that maximises <C, M> - sigma sum_S w_x M_x^2 plays

    u_i = argmax over |u|^2 <= K of  g_i . u - sigma sum_{j seen in row i} w_ij (u . v_j)^2,   g_i = sum_j C_ij v_j

a concave problem with as many variables as the rank (the mixing method of Wang, Chang and Kolter, with the ball added).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from surefill.arrays import Floats, Indices, IntArray
from surefill.kernels.best_response import RIDGE, solve_in_ball
from surefill.kernels.compile import compiled_sums


@compiled_sums
def respond_rows(
    first: int,
    last: int,
    G: Floats,
    V: Floats,
    starts: Indices,
    others: IntArray,
    weights: Floats,
    sigma: Floats,
    K: float,
    out: Floats,
    squares: Floats,
) -> None:
    """out[i] = the best responses of rows ``first`` to ``last`` for T adversaries, squares[i, t] their sums on S.

    ``G`` (m, T r) holds g_i of every adversary side by side, ``V`` (n, T r) the columns' factors; row i was seen at
    others[starts[i]:starts[i + 1]] with ``weights``, and squares[i, t] = sum_j w_ij (u_i . v_j)^2.
    """
    T = len(sigma)
    r = G.shape[1] // T
    longest = 0
    for i in range(first, last):
        longest = max(longest, starts[i + 1] - starts[i])
    X, A, L = np.empty((r, longest), np.float32), np.zeros((r, r)), np.zeros((r, r))
    gram, y, u, g = np.zeros((r, r), np.float32), np.empty(r), np.empty(r), np.empty(r)
    for i in range(first, last):
        begin, count = starts[i], starts[i + 1] - starts[i]
        for t in range(T):
            for x in range(count):  # gathered by factor, so that the Gram matrix is products of contiguous lines
                j, root = others[begin + x], np.float32(math.sqrt(weights[begin + x]))
                for a in range(r):
                    X[a, x] = root * V[j, t * r + a]
            for a in range(r):
                for b in range(a + 1):
                    s = np.float32(0)
                    for x in range(count):
                        s += X[a, x] * X[b, x]
                    gram[a, b] = s
            length = 0.0
            for a in range(r):
                g[a] = G[i, t * r + a]
                length += g[a] * g[a]
            squares[i, t] = 0.0
            if length == 0.0:  # nothing pulls: the smallest member, 0, costs least
                out[i, t * r : (t + 1) * r] = 0
                continue
            # g is scaled to length 1, so that RIDGE means the same for every row
            scale = 1.0 / math.sqrt(length)
            for a in range(r):
                g[a] *= scale
                for b in range(a + 1):
                    A[a, b] = 2.0 * sigma[t] * scale * gram[a, b]
                A[a, a] += RIDGE
            solve_in_ball(A, g, K, L, y, u)
            total = 0.0
            for a in range(r):
                out[i, t * r + a] = u[a]
                for b in range(a):
                    total += 2.0 * u[a] * u[b] * gram[a, b]
                total += u[a] * u[a] * gram[a, a]
            squares[i, t] = total


def respond_rows_reference(
    first: int,
    last: int,
    G: Any,
    V: Any,
    starts: Any,
    others: Any,
    weights: Any,
    sigma: Any,
    K: float,
    out: Any,
    squares: Any,
) -> None:
    """Readable twin of `respond_rows`."""
    r = G.shape[1] // len(sigma)
    for i in range(first, last):
        seen = slice(starts[i], starts[i + 1])
        for t in range(len(sigma)):
            part = slice(t * r, (t + 1) * r)
            X, g = V[others[seen], part].astype(float), G[i, part].astype(float)
            gram = X.T @ (weights[seen, None] * X)
            size = float(np.linalg.norm(g))
            if size == 0:
                out[i, part], squares[i, t] = 0, 0
                continue
            values, Q = np.linalg.eigh(2 * sigma[t] * gram / size + RIDGE * np.eye(r))
            pull = Q.T @ g / size
            low, high = 0.0, 1 / np.sqrt(K)
            for _ in range(200):  # bisection on the multiplier of |u|^2 <= K: |u| falls as it rises
                middle = (low + high) / 2
                inside = np.sum((pull / (values + middle)) ** 2) <= K
                low, high = (low, middle) if inside else (middle, high)
            free = pull / values
            u = Q @ (free if free @ free <= K else pull / (values + high))
            out[i, part], squares[i, t] = u, u @ gram @ u
