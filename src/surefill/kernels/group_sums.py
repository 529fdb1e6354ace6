"""Sums over the entries of each group (row or column): of features, and of expected squared errors."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from surefill.arrays import Array
from surefill.kernels.compile import compiled, compiled_sums


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


@compiled_sums
def sum_errors(
    first: int,
    last: int,
    starts: NDArray[np.int64],
    other: NDArray[np.int64],
    weight: Array,
    target: Array,
    mean: Array,
    variance: Array,
    other_mean: Array,
    other_variance: Array,
    total: Array,
) -> None:
    """Write sum_t c_t E (y_t - x_0 - z_0 - sum_{a >= 1} x_a z_a)^2 over the entries t of each group into ``total``.

    x is the group's vector and z that of the entry's other group, all their entries independent with the given means
    and variances: E (.)^2 = (y - m)^2 + v_0 + w_0 + sum_a (x_a^2 w_a + v_a (z_a^2 + w_a)). 4 nnz k multiply-adds.
    """
    k = mean.shape[1]
    for g in range(first, last):
        x, v = mean[g], variance[g]
        sum_of_group = 0.0
        for t in range(starts[g], starts[g + 1]):
            z, w = other_mean[other[t]], other_variance[other[t]]
            away, spread = target[t] - x[0] - z[0], v[0] + w[0]
            for a in range(1, k):
                away -= x[a] * z[a]
                spread += x[a] * x[a] * w[a] + v[a] * (z[a] * z[a] + w[a])
            sum_of_group += weight[t] * (away * away + spread)
        total[g] = sum_of_group


def sum_errors_reference(
    first: int,
    last: int,
    starts: NDArray[np.int64],
    other: NDArray[np.int64],
    weight: Array,
    target: Array,
    mean: Array,
    variance: Array,
    other_mean: Array,
    other_variance: Array,
    total: Array,
) -> None:
    """The readable twin of :func:`sum_errors`."""
    for g in range(first, last):
        entries = slice(starts[g], starts[g + 1])
        x, v, z, w = mean[g], variance[g], other_mean[other[entries]], other_variance[other[entries]]
        away = target[entries] - x[0] - z[:, 0] - z[:, 1:] @ x[1:]
        spread = v[0] + w[:, 0] + w[:, 1:] @ x[1:] ** 2 + (z[:, 1:] ** 2 + w[:, 1:]) @ v[1:]
        total[g] = weight[entries] @ (away**2 + spread)
