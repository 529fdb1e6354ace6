"""The sample: which entries of a matrix were seen, how often, and with what values."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefill.data.groups import Groups, IntArray
from surefill.data.units import UnitMap
from surefill.errors import InputError

MAX_CELLS = np.iinfo(np.int64).max


@dataclass(frozen=True, eq=False, repr=False, init=False)
class Observations:
    """S_XY of the paper: the seen cells x = (i, j) of an m x n matrix, their values and how often each was drawn.

    A cell drawn more than once is stored once, with the mean of its values and its count; for the squared loss
    nothing is lost by that, since sum_t (M_x - y_t)^2 = count (M_x - mean)^2 + constant. Cells keep the order in
    which they first appeared. A stored zero is an observation like any other. Memory grows with the number of
    entries, never with the shape.

    Parameters
    ----------
    rows, cols : 0-based indices, one per draw.
    values : finite numbers in the user's own units, one per draw.
    shape : (m, n); the smallest that holds every index when not given.
    bounds : (low, high), the range values may take; the range seen when not given.
    counts : how often each given draw was seen, once each when not given.
    row_labels, col_labels : names of the m rows and n columns, kept for reading and writing.

    Attributes
    ----------
    counts : draws per cell; they add up to ``n_draws``, the paper's N.
    disagreements : cells whose repeated draws had different values. That is noise, and allowed.

    Examples
    --------
    >>> seen = Observations([0, 1, 1, 0], [0, 0, 2, 0], [4.0, 3.0, 5.0, 2.0], bounds=(1, 5))
    >>> seen
    Observations(2 x 3, 3 cells in 4 draws, values in [1, 5], 1 cell with differing repeats)
    >>> seen.values
    array([3., 3., 5.])
    >>> seen.counts
    array([2, 1, 1])
    """

    rows: IntArray
    cols: IntArray
    values: NDArray[np.float64]
    counts: NDArray[np.int64]
    shape: tuple[int, int]
    bounds: tuple[float, float]
    row_labels: NDArray[Any] | None
    col_labels: NDArray[Any] | None
    disagreements: int = field(init=False)

    def __init__(
        self,
        rows: ArrayLike,
        cols: ArrayLike,
        values: ArrayLike,
        shape: tuple[int, int] | None = None,
        bounds: tuple[float, float] | None = None,
        *,
        counts: ArrayLike | None = None,
        row_labels: ArrayLike | None = None,
        col_labels: ArrayLike | None = None,
    ) -> None:
        i, j = _as_indices("rows", rows), _as_indices("cols", cols)
        y = _as_values(values)
        if not len(i) == len(j) == len(y):
            raise InputError(
                f"rows, cols and values must have one item per observation; got {len(i)}, {len(j)} and {len(y)}."
            )
        repeats = _as_counts(counts, len(y))
        labels = _as_labels("row_labels", row_labels), _as_labels("col_labels", col_labels)
        m, n = _resolve_shape(shape, i, j, labels)
        index_type = np.int32 if max(m, n) <= np.iinfo(np.int32).max else np.int64
        low_high = _resolve_bounds(bounds, y)
        i, j, y, repeats, disagreements = _merge_repeats(i, j, y, repeats, n)
        fields: dict[str, Any] = {
            "rows": i.astype(index_type),
            "cols": j.astype(index_type),
            "values": y,
            "counts": repeats,
            "shape": (m, n),
            "bounds": low_high,
            "row_labels": labels[0],
            "col_labels": labels[1],
            "disagreements": disagreements,
        }
        for name, value in fields.items():
            if isinstance(value, np.ndarray):
                value = value.view()
                value.flags.writeable = False
            object.__setattr__(self, name, value)

    def __len__(self) -> int:
        """Number of distinct cells seen."""
        return len(self.values)

    def __repr__(self) -> str:
        (m, n), (low, high) = self.shape, self.bounds
        text = f"Observations({m} x {n}, {len(self)} cells in {self.n_draws} draws, values in [{low:g}, {high:g}]"
        if self.disagreements:
            cells = "cell" if self.disagreements == 1 else "cells"
            text += f", {self.disagreements} {cells} with differing repeats"
        return text + ")"

    @property
    def n_draws(self) -> int:
        """N of the paper: how many draws were made, repeats included."""
        return int(self.counts.sum())

    @property
    def weights(self) -> NDArray[np.float64]:
        """w_x = counts_x / N, the empirical distribution over the seen cells."""
        return np.asarray(self.counts / self.counts.sum())

    @property
    def unit(self) -> UnitMap:
        """The map between the user's units and the paper's [-1, 1]."""
        low, high = self.bounds
        if not low < high:
            raise InputError(
                f"all {len(self)} observed values equal {low:g}, so their range is unknown: "
                "give bounds=(low, high), the range values may take."
            )
        return UnitMap(low, high)

    @cached_property
    def by_row(self) -> Groups:
        """Entries grouped by row, rows without entries left out."""
        return Groups.of(self.rows)

    @cached_property
    def by_col(self) -> Groups:
        """Entries grouped by column, columns without entries left out."""
        return Groups.of(self.cols)

    @cached_property
    def _cells(self) -> Groups:
        return Groups.of(self._keys(self.rows, self.cols))

    def _keys(self, rows: ArrayLike, cols: ArrayLike) -> NDArray[np.int64]:
        return np.asarray(rows, dtype=np.int64) * self.shape[1] + np.asarray(cols, dtype=np.int64)

    def find(self, rows: ArrayLike, cols: ArrayLike) -> NDArray[np.int64]:
        """Position of each cell among the observations, or -1 where it was not seen."""
        position = self._cells.locate(self._keys(rows, cols))
        return np.where(position >= 0, self._cells.order[position] if len(self) else -1, -1)

    def select(self, which: ArrayLike) -> Self:
        """The observations at ``which`` (a mask or positions), in the same matrix with the same labels and bounds."""
        index = np.asarray(which)
        return type(self)(
            self.rows[index],
            self.cols[index],
            self.values[index],
            self.shape,
            self.bounds,
            counts=self.counts[index],
            row_labels=self.row_labels,
            col_labels=self.col_labels,
        )

    def row_index(self, labels: ArrayLike) -> NDArray[np.int64]:
        """0-based row indices of ``labels``."""
        return _index_of("row", self.row_labels, self.shape[0], labels)

    def col_index(self, labels: ArrayLike) -> NDArray[np.int64]:
        """0-based column indices of ``labels``."""
        return _index_of("column", self.col_labels, self.shape[1], labels)

    def dense(self) -> NDArray[np.float64]:
        """The m x n matrix with NaN where nothing was seen; only for matrices small enough to hold."""
        matrix = np.full(self.shape, np.nan)
        matrix[self.rows, self.cols] = self.values
        return matrix

    @classmethod
    def from_matrix(cls, matrix: Any, bounds: tuple[float, float] | None = None) -> Observations:
        """From an array with NaN holes, or a scipy sparse matrix or array whose stored entries are the seen ones."""
        from surefill.data.matrices import from_matrix

        return from_matrix(matrix, bounds)

    @classmethod
    def from_table(
        cls, table: Any, *, row: str, col: str, value: str, bounds: tuple[float, float] | None = None
    ) -> Observations:
        """From a pandas, polars or pyarrow table with one observation per line."""
        from surefill.data.tables import from_table

        return from_table(table, row=row, col=col, value=value, bounds=bounds)


def _as_indices(name: str, given: ArrayLike) -> NDArray[np.int64]:
    array = np.asarray(given)
    if array.ndim != 1:
        raise InputError(f"{name} must be one-dimensional; got {array.ndim} dimensions.")
    if array.size and array.dtype.kind not in "iu":
        raise InputError(f"{name} must be 0-based integer indices; got {array.dtype}. Labels go in {name[:-1]}_labels.")
    if array.size and array.min() < 0:
        raise InputError(f"{name} must be 0 or more; item {int(np.argmin(array))} is {int(array.min())}.")
    return array.astype(np.int64, copy=False)


def _as_values(given: ArrayLike) -> NDArray[np.float64]:
    try:
        array = np.array(given, dtype=np.float64, ndmin=1)
    except (TypeError, ValueError) as error:
        raise InputError(f"values must be numbers: {error}.") from None
    if array.ndim != 1:
        raise InputError(f"values must be one-dimensional; got {array.ndim} dimensions.")
    if array.size == 0:
        raise InputError("there are no observations: at least one (row, column, value) is needed.")
    bad = np.flatnonzero(~np.isfinite(array))
    if bad.size:
        raise InputError(f"values must be finite; item {int(bad[0])} is {array[bad[0]]}. Leave unseen entries out.")
    return array


def _as_counts(given: ArrayLike | None, length: int) -> NDArray[np.int64]:
    if given is None:
        return np.ones(length, dtype=np.int64)
    array = np.asarray(given)
    if array.shape != (length,) or array.dtype.kind not in "iu" or array.min() < 1:
        raise InputError("counts must hold one integer of at least 1 per observation.")
    return array.astype(np.int64)


def _as_labels(name: str, given: ArrayLike | None) -> NDArray[Any] | None:
    if given is None:
        return None
    array = np.array(given)
    array = array.astype(str) if array.dtype == object else array
    if array.ndim != 1:
        raise InputError(f"{name} must be one-dimensional; got {array.ndim} dimensions.")
    if len(np.unique(array)) != len(array):
        raise InputError(f"{name} must be distinct; {len(array) - len(np.unique(array))} are repeated.")
    return array


def _resolve_shape(
    shape: tuple[int, int] | None,
    i: NDArray[np.int64],
    j: NDArray[np.int64],
    labels: tuple[NDArray[Any] | None, NDArray[Any] | None],
) -> tuple[int, int]:
    sizes = []
    for axis, (name, index, names) in enumerate([("rows", i, labels[0]), ("cols", j, labels[1])]):
        needed = int(index.max()) + 1
        size = int(shape[axis]) if shape is not None else len(names) if names is not None else needed
        if needed > size:
            raise InputError(
                f"{name} must be below {size} to fit the shape; item {int(np.argmax(index))} is {needed - 1}."
            )
        if names is not None and len(names) != size:
            raise InputError(f"{name[:-1]}_labels must name all {size} {name}; got {len(names)}.")
        sizes.append(size)
    if sizes[0] > MAX_CELLS // sizes[1]:
        raise InputError(f"shape {sizes[0]} x {sizes[1]} has more than 2^63 cells, too many to number.")
    return sizes[0], sizes[1]


def _resolve_bounds(bounds: tuple[float, float] | None, y: NDArray[np.float64]) -> tuple[float, float]:
    seen = float(y.min()), float(y.max())
    if bounds is None:
        return seen
    low, high = float(bounds[0]), float(bounds[1])
    if bounds != seen:
        UnitMap(low, high)
    outside = np.flatnonzero((y < low) | (y > high))
    if outside.size:
        first = int(outside[0])
        raise InputError(f"values must lie within bounds ({low:g}, {high:g}); item {first} is {y[first]:g}.")
    return low, high


def _merge_repeats(
    i: NDArray[np.int64], j: NDArray[np.int64], y: NDArray[np.float64], counts: NDArray[np.int64], n: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64], NDArray[np.int64], int]:
    """One entry per cell, in order of first appearance; draws without repeats pass through untouched."""
    keys = i * n + j
    in_order = np.sort(keys)
    if not (in_order[1:] == in_order[:-1]).any():
        return i, j, y, counts, 0
    cells = Groups.of(keys)
    starts, order = cells.starts[:-1], cells.order
    sorted_y, sorted_counts = y[order], counts[order]
    total = np.add.reduceat(sorted_counts, starts)
    highest, lowest = np.maximum.reduceat(sorted_y, starts), np.minimum.reduceat(sorted_y, starts)
    mean = np.add.reduceat(sorted_y * sorted_counts, starts) / total
    mean = np.clip(mean, lowest, highest)
    first = order[starts]
    rank = np.argsort(first)
    kept = first[rank]
    return i[kept], j[kept], mean[rank], total[rank], int((highest > lowest).sum())


def _index_of(kind: str, names: NDArray[Any] | None, size: int, labels: ArrayLike) -> NDArray[np.int64]:
    if names is None:
        raise InputError(f"these observations have no {kind} labels; use indices from 0 to {size - 1}.")
    try:
        wanted = np.atleast_1d(np.asarray(labels)).astype(names.dtype.kind if names.dtype.kind == "U" else names.dtype)
    except ValueError:
        raise InputError(f"{kind} labels are {names.dtype} here, such as {names[0]}; got {labels!r}.") from None
    order = np.argsort(names)
    index = order[np.minimum(np.searchsorted(names, wanted, sorter=order), len(names) - 1)]
    unknown = np.flatnonzero(names[index] != wanted)
    if unknown.size:
        raise InputError(f"there is no {kind} labelled {wanted[unknown[0]].item()!r}.")
    return index.astype(np.int64)
