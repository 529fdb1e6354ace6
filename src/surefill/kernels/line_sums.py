"""Sums over the entries of each row (or column)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from surefill.arrays import Array, Floats, IntArray
from surefill.kernels.compile import compiled
from surefill.kernels.gram import CHUNK
from surefill.kernels.registers import LANES, add, load, store, zeros


@compiled
def weighted_sums(line: IntArray, other: IntArray, weight: Array, factor: Array, n_lines: int) -> Array:
    """sum_t w_t f_j over the entries t of each line, j = other_t, entries in any order."""
    total = np.zeros(n_lines)
    for t in range(len(line)):
        total[line[t]] += weight[t] * factor[other[t]]
    return total


def weighted_sums_reference(line: IntArray, other: IntArray, weight: Array, factor: Array, n_lines: int) -> Array:
    """The readable twin of :func:`weighted_sums`."""
    return np.bincount(line, weight * factor[other], n_lines).astype(np.float64)


@compiled
def add_lines(lines: Floats, begin: int, stride: int, size: int, room: Floats, total: Array) -> None:
    """Add the sum of ``size`` lines, which start ``stride`` numbers apart, to ``total``."""
    for a in range(0, len(total), LANES):
        s = zeros(lines)
        for t in range(size):
            s = add(s, load(lines, begin + t * stride + a))
        store(room, 0, s)
        for d in range(min(LANES, len(total) - a)):
            total[a + d] += room[d]


@compiled
def sum_lines(first: int, last: int, starts: NDArray[np.int64], other: IntArray, table: Floats, total: Floats) -> None:
    """Write sum_t table[other_t] over the entries t of each group first <= g < last into ``total``.

    Rows of ``table`` are padded to whole lanes, those of ``total`` are not. nnz k additions.
    """
    stride, k = table.shape[1], total.shape[1]
    lines, gathered = table.reshape(-1), np.empty(CHUNK * stride, table.dtype)
    room, of_group = np.empty(LANES, table.dtype), np.empty(k)
    for g in range(first, last):
        of_group[:] = 0.0
        for begin in range(starts[g], starts[g + 1], CHUNK):
            size = min(CHUNK, starts[g + 1] - begin)
            for t in range(size):
                line = other[begin + t] * stride
                if line < 0:
                    line += len(lines)
                for a in range(0, stride, LANES):
                    store(gathered, t * stride + a, load(lines, line + a))
            add_lines(gathered, 0, stride, size, room, of_group)
        total[g] = of_group


def sum_lines_reference(
    first: int, last: int, starts: NDArray[np.int64], other: IntArray, table: Floats, total: Floats
) -> None:
    """The readable twin of :func:`sum_lines`."""
    for g in range(first, last):
        total[g] = table[other[starts[g] : starts[g + 1]], : total.shape[1]].sum(axis=0, dtype=np.float64)
