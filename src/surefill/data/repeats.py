"""Merging repeated draws of a cell into one entry with their mean, count and scatter."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from surefill.arrays import Floats, IntArray, read_only
from surefill.data.compact import constant_if_all, exact_floats
from surefill.data.groups import LONGEST_TABLE, Groups, gathered
from surefill.kernels.counting_sort import has_repeated_cells, is_sorted_within


class MergedCells(NamedTuple):
    """Rows, columns, values, counts and scatter, one item per distinct cell."""

    rows: IntArray
    cols: IntArray
    values: Floats
    counts: NDArray[np.int64]
    scatter: NDArray[np.float64]


def merge_repeats(
    i: IntArray, j: IntArray, y: Floats, counts: NDArray[np.int64], scatter: NDArray[np.float64], n: int
) -> MergedCells:
    """One entry per cell, in order of first appearance; draws without repeats pass through untouched.

    Repeats are detected row by row with a table over the columns; cells are sorted only where there are any.
    """
    by_row = Groups.of(i)
    if not _any_repeats(by_row, i, j, n):
        return MergedCells(i, j, y, counts, scatter)
    order = _sorted_cells(by_row, i, j)
    new = np.r_[True, (np.diff(i[order]) != 0) | (np.diff(j[order]) != 0)]
    starts = np.flatnonzero(new)
    sorted_y, sorted_counts = y[order].astype(np.float64), counts[order]
    total = np.add.reduceat(sorted_counts, starts)
    highest, lowest = np.maximum.reduceat(sorted_y, starts), np.minimum.reduceat(sorted_y, starts)
    mean = np.clip(np.add.reduceat(sorted_y * sorted_counts, starts) / total, lowest, highest)
    sizes = np.diff(np.append(starts, len(order)))
    around = sorted_counts * (sorted_y - np.repeat(mean, sizes)) ** 2
    within = np.add.reduceat(scatter[order] + around, starts)
    first = order[starts]
    rank = np.argsort(first)
    kept = first[rank]
    return MergedCells(i[kept], j[kept], exact_floats(mean[rank]), total[rank], constant_if_all(within[rank], 0.0))


def sorted_cell_order(by_row: Groups, i: IntArray, j: IntArray) -> IntArray:
    """The order that sorts cells by row, then by column; empty if they are sorted already."""
    if by_row.in_order and is_sorted_within(by_row.starts, read_only(j)):
        return np.empty(0, dtype=np.int32)
    return _sorted_cells(by_row, i, j)


def others_by_line(by_line: Groups, lines: IntArray, others: IntArray) -> IntArray:
    """The other indices of the cells, sorted by line, then by themselves; as they are where they are sorted already.

    >>> others_by_line(Groups.of(np.array([7, 3, 7])), np.array([7, 3, 7]), np.array([5, 9, 4]))
    array([9, 4, 5])
    """
    if by_line.in_order and is_sorted_within(by_line.starts, read_only(others)):
        return others
    by_other = Groups.of(others)
    if by_other.in_order:  # then grouping by line leaves them sorted in each
        return by_line.take(others)
    return gathered(others, Groups.of(lines, by_other.order).order)


def _sorted_cells(by_row: Groups, i: IntArray, j: IntArray) -> IntArray:
    """The order that sorts cells by row, then by column, stable: a counting sort by column and one by row."""
    by_col = Groups.of(j)
    return by_row.order if by_col.in_order else Groups.of(i, by_col.order).order


def _any_repeats(by_row: Groups, i: IntArray, j: IntArray, n: int) -> bool:
    if by_row.in_order and is_sorted_within(by_row.starts, read_only(j)):  # as the cells of a wide table are
        return False
    if n > LONGEST_TABLE * len(j) + 1024:
        order = _sorted_cells(by_row, i, j)
        return bool(((np.diff(i[order]) == 0) & (np.diff(j[order]) == 0)).any())
    return has_repeated_cells(by_row.starts, read_only(by_row.take(j)), np.full(n, -1))
