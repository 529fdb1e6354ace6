"""What blocks report that does not simply add up: histograms, minima, components. ``a + b`` is that of both blocks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from surefill.arrays import Indices, IntArray
from surefill.kernels.components import component_labels


@dataclass(frozen=True, eq=False)
class Histogram:
    """Distinct values, rising, and how often each occurs; ``most`` values at most, None where there are more.

    >>> both = Histogram.of(np.array([3, 1, 3])) + Histogram.of(np.array([2, 3]))
    >>> both.values.tolist(), both.counts.tolist()
    ([1, 2, 3], [1, 1, 3])
    >>> (Histogram.of(np.arange(3), most=4) + Histogram.of(np.arange(9), most=4)).is_whole
    False
    """

    values: NDArray[Any]
    counts: Indices
    most: int | None = None
    is_whole: bool = True

    @classmethod
    def of(cls, values: NDArray[Any], most: int | None = None) -> Histogram:
        """Of the values themselves."""
        return cls(*np.unique(values, return_counts=True), most)._within()

    def __add__(self, other: Self) -> Histogram:
        values, place = np.unique(np.append(self.values, other.values), return_inverse=True)
        counts = np.bincount(place, np.append(self.counts, other.counts), len(values)).astype(np.int64)
        return Histogram(values, counts, self.most, self.is_whole and other.is_whole)._within()

    def _within(self) -> Histogram:
        fits = self.is_whole and (self.most is None or len(self.values) <= self.most)
        return self if fits else Histogram(self.values[:0], self.counts[:0], self.most, False)


@dataclass(frozen=True, eq=False)
class Least:
    """The least number of each place.

    >>> (Least(np.array([1.0, 5.0])) + Least(np.array([2.0, 3.0]))).numbers
    array([1., 3.])
    """

    numbers: NDArray[Any]

    def __add__(self, other: Self) -> Least:
        return Least(np.minimum(self.numbers, other.numbers))


@dataclass(frozen=True, eq=False)
class ColumnComponents:
    """For each column a column of the same component of the graph of cells, the first of it; itself where alone.

    >>> both = ColumnComponents(np.array([0, 0, 2, 3])) + ColumnComponents(np.array([0, 1, 1, 3]))
    >>> both.first.tolist()
    [0, 0, 0, 3]
    """

    first: IntArray

    @classmethod
    def of(cls, rows: IntArray, cols: IntArray, n_rows: int, n_cols: int) -> Self:
        """Those of the cells (rows[t], cols[t])."""
        return cls(_first(component_labels(rows, cols, n_rows, n_cols)[n_rows:]))

    def __add__(self, other: Self) -> ColumnComponents:
        n = len(self.first)
        every = np.arange(n)
        rows, cols = np.concatenate([self.first, n + other.first]), np.concatenate([every, every])
        return ColumnComponents.of(rows.astype(np.int64), cols, 2 * n, n)


def _first(labels: IntArray) -> IntArray:
    """The first place of each label, at every place that has it."""
    _, place, inverse = np.unique(labels, return_index=True, return_inverse=True)
    return place[inverse]
