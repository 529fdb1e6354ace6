"""Entries grouped by row (or column), holding only the rows that have entries."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefill.arrays import IntArray, read_only
from surefill.data.compact import PIECE
from surefill.kernels.counting_sort import count_keys, gather, place_keys, place_values

LONGEST_TABLE = 4
"""Counting needs a table over the range of the indices; where that is more than this many times as long as the indices,
sorting is cheaper."""


@dataclass(frozen=True, eq=False)
class Groups:
    """Entries of the g-th present row are ``order[starts[g]:starts[g + 1]]``; its id is ``ids[g]``.

    Compressed sparse rows over present rows only: memory grows with the entries, never with the shape. The order is
    built from ``keys``, the row of each entry, only on demand, for it takes as much memory as they do; without keys it
    is ``sorted_order``, and without either entries are stored row by row already, ``in_order``.

    Examples
    --------
    >>> import numpy as np
    >>> groups = Groups.of(np.array([3, 1, 3]))
    >>> groups.ids, groups.sizes
    (array([1, 3]), array([1, 2]))
    >>> groups.take(np.array([0.5, 1.5, 2.5]))
    array([1.5, 0.5, 2.5])
    """

    ids: IntArray
    starts: NDArray[np.int64]
    sorted_order: IntArray | None = field(repr=False)
    keys: IntArray | None = field(default=None, repr=False)

    @classmethod
    def of(cls, indices: IntArray, entries: IntArray | None = None) -> Self:
        """Group entries by ``indices``; entries of one group keep their order, or have that of ``entries``."""
        if not len(indices):
            return cls(indices, np.zeros(1, dtype=np.int64), None)
        lowest, highest = int(indices.min()), int(indices.max())
        if highest - lowest > LONGEST_TABLE * len(indices) + 1024:
            return cls._by_sorting(indices, entries)
        keys = read_only(np.ascontiguousarray(indices))
        starts = np.zeros(highest - lowest + 2, dtype=np.int64)
        in_order = count_keys(keys, lowest, starts)
        present = np.flatnonzero(starts[1:])
        ends = np.cumsum(starts)
        ids: NDArray[Any] = (present + lowest).astype(indices.dtype)
        bounds = np.append(ends[present], len(indices))
        if entries is None:
            return cls(ids, bounds, None, None if in_order else keys)
        order: NDArray[Any] = np.empty(len(indices), dtype=index_type_for(len(indices)))
        place_keys(keys, lowest, ends, read_only(entries), order)
        return cls(ids, bounds, order)

    @classmethod
    def _by_sorting(cls, indices: IntArray, entries: IntArray | None) -> Self:
        keys = indices if entries is None else indices[entries]
        order: NDArray[Any] = np.argsort(keys, kind="stable")
        sorted_keys = keys[order]
        first = np.flatnonzero(np.r_[True, sorted_keys[1:] != sorted_keys[:-1]])
        order = (order if entries is None else entries[order]).astype(index_type_for(len(indices)))
        return cls(sorted_keys[first], np.append(first, len(indices)), order)

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def in_order(self) -> bool:
        """Whether entries are stored group by group already."""
        return self.sorted_order is None and self.keys is None

    @cached_property
    def order(self) -> IntArray:
        """The entries, group by group."""
        n_entries = int(self.starts[-1])
        if self.sorted_order is not None:
            return self.sorted_order
        index_type = index_type_for(n_entries)
        if self.keys is None:
            in_order: NDArray[Any] = np.arange(n_entries, dtype=index_type)
            return in_order
        order: NDArray[Any] = np.empty(n_entries, dtype=index_type)
        place_keys(self.keys, int(self.ids[0]), self._places(), read_only(np.empty(0, dtype=index_type)), order)
        return order

    def _places(self) -> NDArray[np.int64]:
        """Where entries of each key from the first id to the last begin."""
        first = int(self.ids[0])
        places = np.zeros(int(self.ids[-1]) - first + 1, dtype=np.int64)
        places[self.ids - first] = self.starts[:-1]
        return places

    @property
    def sizes(self) -> NDArray[np.int64]:
        """How many entries each present row has."""
        return np.diff(self.starts)

    def take(self, values: NDArray[Any]) -> NDArray[Any]:
        """``values[order]``; ``values`` themselves where the entries are in order or all values are one constant.

        Values are put in their places without an order, unless there is one already.
        """
        if self.in_order or (values.ndim == 1 and values.strides == (0,)):
            return values
        if values.ndim > 1:
            return np.asarray(values[self.order])
        if self.keys is None or "order" in vars(self):
            return gathered(values, self.order)
        taken = np.empty(len(values), dtype=values.dtype)
        place_values(self.keys, int(self.ids[0]), self._places(), read_only(values), taken)
        return taken

    def locate(self, indices: ArrayLike) -> NDArray[np.int64]:
        """Position of each index among ``ids``, or -1 where it has no entries."""
        return locate(self.ids, np.asarray(indices))


def gathered(values: NDArray[Any], positions: IntArray) -> NDArray[Any]:
    """``values[positions]``, without the 64-bit copy that NumPy makes of 32-bit positions.

    >>> gathered(np.array([True, False]), np.array([1, 0, 0], np.int32))
    array([False,  True,  True])
    """
    taken = np.empty(len(positions), dtype=values.dtype)
    gather(read_only(values), read_only(positions), taken)
    return taken


def positions_where(mask: NDArray[np.bool_]) -> IntArray:
    """``np.flatnonzero(mask)`` in the smallest integer type that holds all positions.

    >>> positions_where(np.array([False, True, True]))
    array([1, 2], dtype=int32)
    """
    found: NDArray[Any] = np.empty(int(np.count_nonzero(mask)), dtype=index_type_for(len(mask)))
    n_found = 0
    for first in range(0, len(mask), PIECE):
        here = np.flatnonzero(mask[first : first + PIECE])
        found[n_found : n_found + len(here)] = here + first
        n_found += len(here)
    return found


def index_type_for(size: int) -> type[Any]:
    """int32 if it counts up to ``size``, else int64."""
    return np.int32 if size <= np.iinfo(np.int32).max else np.int64


def compact_positions(ids: IntArray, indices: IntArray) -> IntArray:
    """:func:`locate` in the integer type of ``indices``; without a copy where ``ids`` are 0, 1, 2, ..."""
    if len(ids) and ids[0] == 0 and ids[-1] == len(ids) - 1 and indices.min() >= 0 and indices.max() < len(ids):
        return indices
    position: NDArray[Any] = np.empty(len(indices), dtype=indices.dtype)
    for first in range(0, len(indices), PIECE):
        position[first : first + PIECE] = locate(ids, indices[first : first + PIECE])
    return position


def locate(ids: IntArray, indices: IntArray) -> NDArray[np.int64]:
    """Position of each index among the sorted, distinct ``ids``, or -1 where it is not there."""
    if len(ids) and ids[0] == 0 and ids[-1] == len(ids) - 1:
        return np.where((indices >= 0) & (indices < len(ids)), indices, -1).astype(np.int64, copy=False)
    if not len(ids):
        return np.full(np.shape(indices), -1)
    first, last = int(ids[0]), int(ids[-1])
    if np.size(indices) > last - first:  # a table of all positions costs less than so many searches
        table = np.full(last - first + 2, -1)
        table[ids - first] = np.arange(len(ids))
        return np.asarray(table[np.where((indices >= first) & (indices <= last), indices - first, -1)])
    position = np.minimum(np.searchsorted(ids, indices), len(ids) - 1)
    return np.where(ids[position] == indices, position, -1).astype(np.int64, copy=False)
