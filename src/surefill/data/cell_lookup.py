"""Where the observed cells of a row, a column or a list of entries are stored."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefill.arrays import IntArray, read_only
from surefill.data.groups import Groups
from surefill.data.repeats import sorted_cell_order
from surefill.kernels.counting_sort import find_in_groups


class CellLookup:
    """The methods of :class:`surefill.Observations` that find cells; the indices are built at their first use."""

    rows: IntArray
    cols: IntArray
    shape: tuple[int, int]

    @cached_property
    def by_row(self) -> Groups:
        """Entries grouped by row, rows without entries left out."""
        return Groups.of(self.rows)

    @cached_property
    def by_col(self) -> Groups:
        """Entries grouped by column, columns without entries left out."""
        return Groups.of(self.cols)

    @cached_property
    def cell_order(self) -> IntArray:
        """The order that sorts cells by row, then by column; empty if they are sorted already."""
        return sorted_cell_order(self.by_row, self.rows, self.cols)

    def find(self, rows: ArrayLike, cols: ArrayLike) -> NDArray[np.int64]:
        """Position of each cell among the observations, or -1 where it was not observed."""
        i, j = np.asarray(rows, dtype=np.int64), np.asarray(cols, dtype=np.int64)
        shape = np.broadcast_shapes(i.shape, j.shape)
        group, wanted = np.broadcast_to(self.by_row.locate(i), shape).ravel(), np.broadcast_to(j, shape).ravel()
        starts, found = self.by_row.starts, np.empty(len(group), dtype=np.int64)
        first, last = starts[group], np.where(group >= 0, starts[group + 1], 0)
        find_in_groups(first, last, self.cols, read_only(self.cell_order), wanted, found)
        return found.reshape(shape)

    def find_in_rows(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Position of every cell of these rows among the observations, len(rows) x n, -1 where it was not observed."""
        found = np.full((len(rows), self.shape[1]), -1)
        line, entries = self.in_rows(rows)
        found[line, self.cols[entries]] = entries
        return found

    def in_rows(self, rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The observations in these rows: for each, which of ``rows`` it is in and its position."""
        groups, at = self.by_row, self.by_row.locate(rows)
        known = np.flatnonzero(at >= 0)
        first, size = groups.starts[at[known]], groups.sizes[at[known]]
        within = np.arange(size.sum()) - np.repeat(np.cumsum(size) - size, size)
        entries = np.repeat(first, size) + within
        if not groups.in_order:
            entries = groups.order[entries].astype(np.int64)
        return np.repeat(known, size), entries
