"""Best responses of the rows of a low-rank adversary: each row a small concave problem in a ball, rows independent.

Given the columns' factors V, row i of the adversary M = U V' plays

    u_i = argmax over |u|^2 <= K of  g_i . u - w sum_{j seen in row i} (u . v_j)^2 - (p/2) |u - u_i|^2

where g_i is the mean of C_ij v_j over a block of columns, C_ij = exp(-alpha max(0, Mbar_ij)) and Mbar the mean of the
snapshots so far. Columns play the same with the roles exchanged. A row costs O(block snapshots rank) for C, O(cap
rank^2) for its observations and O(rank^3) for the solve, all in contiguous single precision but the last.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from surefill.arrays import Array, Floats, Indices, IntArray
from surefill.kernels.compile import compiled, compiled_sums
from surefill.kernels.counter_random import random_below, random_uniform

RIDGE = 1e-3
"""Added to the quadratic term, so that a row without observations has one best response too."""

NEWTON_STEPS = 12
"""Steps for the multiplier of the ball; 3 to 5 are usual."""

FLATTEST = 1e-12
"""Least pivot of the Cholesky factor, below the rounding of a matrix of size 1."""


@compiled
def random_start(factors: Floats, key: Any, offset: int) -> None:
    """Rows of length 1 near the first axis: the constant matrix 1, which fits no observation yet, and some noise.

    The first of them is the row number ``offset`` of its table.
    """
    n, rank = factors.shape
    for i in range(n):
        square = 0.0
        for a in range(rank):
            value = 0.5 * random_uniform(key, (offset + i) * rank + a) + (1.0 if a == 0 else 0.0)
            factors[i, a] = value
            square += value * value
        for a in range(rank):
            factors[i, a] /= math.sqrt(square)


@compiled_sums
def solve_in_ball(A: Any, g: Any, K: float, L: Any, y: Any, u: Any) -> None:
    """u = argmax g.u - u'Au/2 over |u|^2 <= K: Newton's method on the multiplier of the ball (More and Sorensen)."""
    r, multiplier, square = len(g), 0.0, 0.0
    for _ in range(NEWTON_STEPS):
        _cholesky(A, multiplier, L)
        for a in range(r):
            s = g[a]
            for c in range(a):
                s -= L[a, c] * y[c]
            y[a] = s / L[a, a]
        square = 0.0
        for b in range(r):
            a = r - 1 - b
            s = y[a]
            for c in range(a + 1, r):
                s -= L[c, a] * u[c]
            u[a] = s / L[a, a]
            square += u[a] * u[a]
        if square <= K * 1.0001 and (multiplier == 0.0 or square >= K * 0.999):
            break
        slope = 0.0
        for a in range(r):  # |L^-1 u|^2, minus half the derivative of |u|^2 in the multiplier
            s = u[a]
            for c in range(a):
                s -= L[a, c] * y[c]
            y[a] = s / L[a, a]
            slope += y[a] * y[a]
        multiplier = max(0.0, multiplier + square / slope * (math.sqrt(square / K) - 1.0))
    if square > K:
        for a in range(r):
            u[a] *= math.sqrt(K / square)


@compiled_sums
def _cholesky(A: Any, shift: float, L: Any) -> None:
    """The lower factor L of A + shift I, A given by its lower triangle."""
    for a in range(len(A)):
        for b in range(a + 1):
            s = A[a, b] + (shift if a == b else 0.0)
            for c in range(b):
                s -= L[a, c] * L[b, c]
            L[a, b] = math.sqrt(max(s, FLATTEST)) if a == b else s / L[b, b]


@compiled_sums
def _confidences(snapshots: Any, block_snapshots: Any, alpha: Any, C: Any) -> None:
    """C_b = exp(-alpha max(0, Mbar_b)) over a block, as (1 - x/32)^32: five products, no call, within 1.6% of exp."""
    for b in range(len(C)):
        C[b] = np.float32(0)
    for k in range(len(snapshots)):
        x = snapshots[k]
        for b in range(len(C)):
            C[b] += x * block_snapshots[k, b]
    for b in range(len(C)):
        z = np.float32(1) - min(max(alpha * C[b], np.float32(0)), np.float32(32)) * np.float32(1 / 32)
        z *= z
        z *= z
        z *= z
        z *= z
        z *= z
        C[b] = z


@compiled_sums
def _push(u: Any, snapshots: Any, block: Any, block_snapshots: Any, mean: Any, alpha: Any, prox: float, C: Any,
          g: Any) -> None:  # fmt: skip
    """g = the mean of C_b v_b over the block, or ``mean`` without snapshots, + prox u; C is room for the first."""
    r, B = block.shape
    if block_snapshots.shape[0] == 0:
        for a in range(r):
            g[a] = mean[a] + prox * u[a]
        return
    _confidences(snapshots, block_snapshots, alpha, C)
    for a in range(r):
        s = np.float32(0)
        for b in range(B):
            s += C[b] * block[a, b]
        g[a] = s / max(B, 1) + prox * u[a]


@compiled_sums
def best_responses(
    first: int,
    last: int,
    U: Floats,
    snapshots: Floats,
    starts: Indices,
    others: IntArray,
    V: Floats,
    block: Floats,
    block_snapshots: Floats,
    mean: Floats,
    alpha: Any,
    weight: float,
    prox: float,
    K: float,
    cap: int,
    key: Any,
    offset: int,
    out: Floats,
) -> None:
    """out[first:last] = the best responses of these rows, the first of which is number ``offset`` of its table.

    ``snapshots`` (m, q) are the rows' past factors side by side, ``block_snapshots`` (q, B) those of a block of
    columns, divided by their number, ``block`` (rank, B) its factors now; without snapshots C = 1, and ``mean``, the
    mean of V, is g. Row i was seen at the columns others[starts[i]:starts[i + 1]], of which at most ``cap`` are looked
    at, drawn at random by ``key`` and weighed to stand for all.
    """
    r, B = block.shape
    C, A, L = np.empty(B, np.float32), np.empty((r, r)), np.zeros((r, r))
    X, y, u, g = np.empty((r, cap), np.float32), np.empty(r), np.empty(r), np.empty(r)
    for i in range(first, last):
        _push(U[i], snapshots[i], block, block_snapshots, mean, alpha, prox, C, g)
        begin, count = starts[i], starts[i + 1] - starts[i]
        used = min(count, cap)
        for x in range(used):  # gathered by factor, so that the Gram matrix is products of contiguous lines
            j = others[begin + x] if count <= cap else others[begin + random_below(key, (offset + i) * cap + x, count)]
            for a in range(r):
                X[a, x] = V[j, a]
        w = 2.0 * weight * count / max(used, 1)
        for a in range(r):
            for b in range(a + 1):
                s = np.float32(0)
                for x in range(used):
                    s += X[a, x] * X[b, x]
                A[a, b] = w * s
            A[a, a] += prox + RIDGE
        solve_in_ball(A, g, K, L, y, u)
        for a in range(r):
            out[i, a] = u[a]


def best_responses_reference(
    first: int,
    last: int,
    U: Any,
    snapshots: Any,
    starts: Any,
    others: Any,
    V: Any,
    block: Any,
    block_snapshots: Any,
    mean: Any,
    alpha: Any,
    weight: float,
    prox: float,
    K: float,
    cap: int,
    key: Any,
    offset: int,
    out: Any,
) -> None:
    """Readable twin of `best_responses`."""
    for i in range(first, last):
        C = np.exp(-alpha * np.maximum(snapshots[i] @ block_snapshots, 0.0))
        g = (block @ C / len(C) if len(block_snapshots) else mean) + prox * U[i]
        seen = others[starts[i] : starts[i + 1]]
        places = [random_below(key, (offset + i) * cap + x, len(seen)) for x in range(cap)]
        drawn = seen[places] if len(seen) > cap else seen
        X = V[drawn].astype(float)
        A = 2 * weight * len(seen) / max(len(drawn), 1) * X.T @ X + (prox + RIDGE) * np.eye(len(g))
        out[i] = _best_in_ball(A, g, K)


def _best_in_ball(A: Any, g: Any, K: float) -> Any:
    """Readable twin of `solve_in_ball`."""
    values, Q = np.linalg.eigh(A)
    low, high = 0.0, np.linalg.norm(g) / np.sqrt(K)
    for _ in range(200):  # bisection on the multiplier: |u| falls as it rises
        middle = (low + high) / 2
        inside = np.sum((Q.T @ g / (values + middle)) ** 2) <= K
        low, high = (low, middle) if inside else (middle, high)
    free = Q @ (Q.T @ g / values)
    return free if free @ free <= K else Q @ (Q.T @ g / (values + high))


@compiled
def add_grams(
    rows: IntArray, cols: IntArray, U: Floats, rates: Array, key: Any, offset: int, n_cols: int, total: Array
) -> None:
    """Add the lower triangle of u_i u_i' and 1 to ``total[j]`` for each cell t = (i, j) that is drawn.

    A cell is drawn with probability ``rates[j]`` by a hash of ``key``, its row's number offset + i and its column.
    """
    r = U.shape[1]
    for t in range(len(rows)):
        i, j = np.int64(rows[t]), np.int64(cols[t])
        if rates[j] < 1 and (random_uniform(key, (offset + i) * n_cols + j) + 1) / 2 >= rates[j]:  # type: ignore[arg-type]
            continue
        at = 0
        for a in range(r):
            for b in range(a + 1):
                total[j, at] += np.float64(U[i, a]) * np.float64(U[i, b])
                at += 1
        total[j, at] += 1.0


def add_grams_reference(
    rows: IntArray, cols: IntArray, U: Floats, rates: Array, key: Any, offset: int, n_cols: int, total: Array
) -> None:
    """Readable twin of `add_grams`."""
    lower = np.tril_indices(U.shape[1])
    for i, j in zip(rows.tolist(), cols.tolist(), strict=True):
        if (random_uniform(key, (offset + i) * n_cols + j) + 1) / 2 < rates[j]:
            u = U[i].astype(np.float64)
            total[j] += np.append(np.outer(u, u)[lower], 1.0)


@compiled_sums
def best_responses_to_grams(
    first: int,
    last: int,
    U: Floats,
    snapshots: Floats,
    grams: Array,
    counts: Indices,
    block: Floats,
    block_snapshots: Floats,
    mean: Floats,
    alpha: Any,
    weight: float,
    prox: float,
    K: float,
    out: Floats,
) -> None:
    """As `best_responses`, where what lines see of the other side is summed already: ``grams`` by `add_grams`.

    Line i was seen ``counts[i]`` times, for which the cells drawn stand.
    """
    r, B = block.shape
    C, A, L = np.empty(B, np.float32), np.empty((r, r)), np.zeros((r, r))
    y, u, g = np.empty(r), np.empty(r), np.empty(r)
    for i in range(first, last):
        _push(U[i], snapshots[i], block, block_snapshots, mean, alpha, prox, C, g)
        w, at = 2.0 * weight * counts[i] / max(grams[i, -1], 1.0), 0
        for a in range(r):
            for b in range(a + 1):
                A[a, b] = w * grams[i, at]
                at += 1
            A[a, a] += prox + RIDGE
        solve_in_ball(A, g, K, L, y, u)
        for a in range(r):
            out[i, a] = u[a]


def best_responses_to_grams_reference(
    first: int,
    last: int,
    U: Any,
    snapshots: Any,
    grams: Any,
    counts: Any,
    block: Any,
    block_snapshots: Any,
    mean: Any,
    alpha: Any,
    weight: float,
    prox: float,
    K: float,
    out: Any,
) -> None:
    """Readable twin of `best_responses_to_grams`."""
    r = len(block)
    for i in range(first, last):
        C = np.exp(-alpha * np.maximum(snapshots[i] @ block_snapshots, 0.0))
        g = (block @ C / len(C) if len(block_snapshots) else mean) + prox * U[i]
        gram = np.zeros((r, r))
        gram[np.tril_indices(r)] = grams[i, :-1]
        gram = gram + np.tril(gram, -1).T
        A = 2 * weight * counts[i] / max(grams[i, -1], 1.0) * gram + (prox + RIDGE) * np.eye(r)
        out[i] = _best_in_ball(A, g, K)


@compiled_sums
def mean_products(first: int, last: int, i: Any, j: Any, left: Floats, right: Floats, count: int, out: Floats) -> None:
    """out[x] = left_i . right_j / count for the pairs x = (i, j) from ``first`` to ``last``."""
    for x in range(first, last):
        s = np.float32(0)
        for k in range(left.shape[1]):
            s += left[i[x], k] * right[j[x], k]
        out[x] = s / count
