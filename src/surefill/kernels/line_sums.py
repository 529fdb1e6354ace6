"""Sums over the entries of each line (row or column), entries in any order."""

from __future__ import annotations

import numpy as np

from surefill.arrays import Array, IntArray
from surefill.kernels.compile import compiled


@compiled
def weighted_sums(line: IntArray, other: IntArray, weight: Array, factor: Array, n_lines: int) -> Array:
    """sum_t w_t f_(other t) over the entries t of each line, in the order of the entries."""
    total = np.zeros(n_lines)
    for t in range(len(line)):
        total[line[t]] += weight[t] * factor[other[t]]
    return total


def weighted_sums_reference(line: IntArray, other: IntArray, weight: Array, factor: Array, n_lines: int) -> Array:
    """The readable twin of :func:`weighted_sums`."""
    return np.bincount(line, weight * factor[other], n_lines).astype(np.float64)
