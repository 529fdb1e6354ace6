"""Entries grouped by row (or column), holding only the rows that have entries."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefill.arrays import IntArray


@dataclass(frozen=True, eq=False)
class Groups:
    """Entries of the g-th present row are ``order[starts[g]:starts[g + 1]]``; its id is ``ids[g]``.

    Compressed sparse rows over present rows alone: memory grows with the entries, never with the shape.

    Examples
    --------
    >>> import numpy as np
    >>> groups = Groups.of(np.array([3, 1, 3]))
    >>> groups.ids, groups.sizes
    (array([1, 3]), array([1, 2]))
    """

    ids: IntArray
    starts: NDArray[np.int64]
    order: NDArray[np.int64]

    @classmethod
    def of(cls, indices: IntArray) -> Groups:
        """Group entries by ``indices``; within a group the order of entries is kept."""
        order = np.argsort(indices, kind="stable").astype(np.int64, copy=False)
        sorted_indices = indices[order]
        first = np.flatnonzero(np.r_[True, sorted_indices[1:] != sorted_indices[:-1]][: len(indices)])
        return cls(sorted_indices[first], np.r_[first, len(indices)].astype(np.int64), order)

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def sizes(self) -> NDArray[np.int64]:
        """How many entries each present row has."""
        return np.diff(self.starts)

    def locate(self, indices: ArrayLike) -> NDArray[np.int64]:
        """Position of each index among ``ids``, or -1 where it has no entries."""
        return locate(self.ids, np.asarray(indices))


def locate(ids: IntArray, indices: IntArray) -> NDArray[np.int64]:
    """Position of each index among the sorted, distinct ``ids``, or -1 where it is not there."""
    if len(ids) and ids[0] == 0 and ids[-1] == len(ids) - 1:
        return np.where((indices >= 0) & (indices < len(ids)), indices, -1).astype(np.int64, copy=False)
    position = np.minimum(np.searchsorted(ids, indices), len(ids) - 1)
    return np.where(ids[position] == indices, position, -1).astype(np.int64, copy=False)
