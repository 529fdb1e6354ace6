"""Sums of features over the entries of each group: a sparse matrix times a thin one, spread over cores."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from surefill.kernels.compile import compiled

Array = NDArray[np.float64]


@compiled
def sum_groups(
    first: int,
    last: int,
    starts: NDArray[np.int64],
    other: NDArray[np.int64],
    weight: Array,
    features: Array,
    total: Array,
) -> None:
    """Write sum_t c_t f_t over the entries t of each group first <= g < last into ``total``; nnz k multiply-adds."""
    k = features.shape[1]
    for g in range(first, last):
        for a in range(k):
            total[g, a] = 0.0
        for t in range(starts[g], starts[g + 1]):
            f, c = features[other[t]], weight[t]
            for a in range(k):
                total[g, a] += c * f[a]


def sum_groups_reference(
    first: int,
    last: int,
    starts: NDArray[np.int64],
    other: NDArray[np.int64],
    weight: Array,
    features: Array,
    total: Array,
) -> None:
    """The readable twin of :func:`sum_groups`."""
    for g in range(first, last):
        entries = slice(starts[g], starts[g + 1])
        total[g] = weight[entries] @ features[other[entries]]


@compiled
def product_variances(
    left: Array,
    left_variance: Array,
    right: Array,
    right_variance: Array,
    i: NDArray[np.int64],
    j: NDArray[np.int64],
) -> Array:
    """Var(l_0 + r_0 + sum_{a >= 1} l_a r_a) for each pair (i, j), all of l and r independent.

    Each product adds E[l]^2 Var(r) + E[r]^2 Var(l) + Var(l) Var(r); negative positions count from the end.
    """
    result = np.empty(len(i))
    for t in range(len(i)):
        x, s, y, r = left[i[t]], left_variance[i[t]], right[j[t]], right_variance[j[t]]
        total = s[0] + r[0]
        for a in range(1, len(x)):
            total += x[a] ** 2 * r[a] + y[a] ** 2 * s[a] + s[a] * r[a]
        result[t] = total
    return result


def product_variances_reference(
    left: Array,
    left_variance: Array,
    right: Array,
    right_variance: Array,
    i: NDArray[np.int64],
    j: NDArray[np.int64],
) -> Array:
    """The readable twin of :func:`product_variances`."""
    x, s, y, r = left[i, 1:], left_variance[i, 1:], right[j, 1:], right_variance[j, 1:]
    biases = left_variance[i, 0] + right_variance[j, 0]
    return np.asarray(biases + (x**2 * r + y**2 * s + s * r).sum(axis=1))
