"""The sample: which entries of a matrix were seen, how often, and with what values."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefill.arrays import Floats, IntArray, read_only
from surefill.data.bounds import BoundsSource, describe_bounds, resolve_bounds
from surefill.data.cell_lookup import CellLookup
from surefill.data.checks import as_counts, as_indices, as_labels, as_scatter, as_times, as_values, resolve_shape
from surefill.data.compact import is_constant, mean_by_counts, taken
from surefill.data.dominance import Dominance, find_dominance
from surefill.data.entries import Entries
from surefill.data.features import Features
from surefill.data.groups import index_type_for
from surefill.data.labelled_axes import LabelledAxes
from surefill.data.repeats import merge_repeats
from surefill.data.units import UnitMap
from surefill.errors import InputError
from surefill.registry import storable

SHARED = (
    "shape", "bounds", "bounds_from", "row_labels", "col_labels", "names", "skipped", "_row_label_index",
    "_col_label_index", "row_features", "col_features",
)  # fmt: skip
"""Attributes that a selected part shares with the whole."""


@storable
@dataclass(frozen=True, eq=False, repr=False, init=False)
class Observations(CellLookup, LabelledAxes):
    """The observed cells x = (i, j) of an m x n matrix, their values and how often each was drawn: S_XY of the paper.

    A cell drawn more than once is stored once, with the mean of its values, its count and the scatter of its values
    around their mean. For the squared loss nothing is lost by that: sum_t (M_x - y_t)^2 = count (M_x - mean)^2 +
    scatter. Cells keep the order in which they first appeared. A stored zero is an observation like any other.
    Memory grows with the number of cells, never with the shape: from half a million cells on it is 12 bytes a cell,
    where each was drawn once and float32 holds all values exactly.

    Parameters
    ----------
    rows, cols : 0-based indices, one per draw.
    values : finite numbers in the user's own units, one per draw.
    shape : (m, n); the smallest that holds every index when not given.
    bounds : (low, high), the range values may take. When not given it is the observed range, and a guarantee relies on
        it only where the values lie on a scale such as 1 to 5.
    counts : how often each given draw was seen, once each when not given.
    scatter : sum of squared deviations within each given draw that stands for several, 0 when not given.
    row_labels, col_labels : labels of the m rows and n columns, integers or text, which methods then take and return.
    names : what rows, columns and values are called in the user's table.
    skipped : number of lines without a value that a reader left out.

    Attributes
    ----------
    counts : draws per cell; they add up to ``n_draws``, the paper's N.
    scatter : sum over a cell's draws of (y_t - mean)^2.
    bounds_from : where the bounds come from: given, the scale that values lie on, or only the observed range.
    disagreements : number of cells whose repeated draws had different values, which counts as noise.
    times : when each cell was drawn, in seconds or any numbers that grow with time, set by :meth:`with_times`; None
        where not known.
    row_features, col_features : side tables of rows and columns, set by :meth:`with_features`, or None.

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
    values: Floats
    counts: NDArray[np.int64]
    scatter: NDArray[np.float64]
    shape: tuple[int, int]
    bounds: tuple[float, float]
    row_labels: NDArray[Any] | None
    col_labels: NDArray[Any] | None
    names: tuple[str, str, str]
    bounds_from: BoundsSource = field(init=False)
    disagreements: int = field(init=False)
    skipped: int = field(init=False, default=0)
    times: NDArray[np.float64] | None = field(init=False, default=None)
    row_features: Features | None = field(init=False, default=None)
    col_features: Features | None = field(init=False, default=None)

    def __init__(
        self,
        rows: ArrayLike,
        cols: ArrayLike,
        values: ArrayLike,
        shape: tuple[int, int] | None = None,
        bounds: tuple[float, float] | None = None,
        *,
        counts: ArrayLike | None = None,
        scatter: ArrayLike | None = None,
        row_labels: ArrayLike | None = None,
        col_labels: ArrayLike | None = None,
        names: tuple[str, str, str] = ("row", "column", "value"),
        skipped: int = 0,
    ) -> None:
        i, j = as_indices("rows", rows), as_indices("cols", cols)
        y = as_values(values)
        if not len(i) == len(j) == len(y):
            raise InputError(
                f"rows, cols and values must have one item per observation; got {len(i)}, {len(j)} and {len(y)}."
            )
        repeats, within = as_counts(counts, len(y)), as_scatter(scatter, len(y))
        labels = as_labels("row_labels", row_labels), as_labels("col_labels", col_labels)
        m, n = resolve_shape(shape, i, j, labels)
        index_type = index_type_for(max(m, n))
        low_high, source = resolve_bounds(bounds, y, within)
        cells = merge_repeats(i.astype(index_type), j.astype(index_type), y, repeats, within, n)
        self._set_cells(*cells)
        row_names, col_names = (None if each is None else read_only(each) for each in labels)
        shared = {"shape": (m, n), "bounds": low_high, "bounds_from": source, "names": names, "skipped": skipped}
        for name, value in (shared | {"row_labels": row_names, "col_labels": col_names}).items():
            object.__setattr__(self, name, value)

    def _set_cells(
        self,
        rows: NDArray[Any],
        cols: NDArray[Any],
        values: Floats,
        counts: NDArray[np.int64],
        scatter: NDArray[np.float64],
    ) -> None:
        """Set the arrays with one item per cell."""
        cells = {"rows": rows, "cols": cols, "values": values, "counts": counts, "scatter": scatter}
        for name, array in cells.items():
            object.__setattr__(self, name, read_only(array))
        object.__setattr__(self, "disagreements", 0 if is_constant(scatter) else int((scatter > 0).sum()))

    def __len__(self) -> int:
        """Number of distinct cells seen."""
        return len(self.values)

    def __getitem__(self, which: object) -> Self:
        """Not supported: scikit-learn would take an index for a row of the matrix."""
        raise InputError(
            "observations are not indexed: select(which) takes a part of the cells, and scikit-learn's "
            "cross-validation splits observations.entries."
        )

    def __repr__(self) -> str:
        (m, n), (low, high) = self.shape, self.bounds
        text = f"Observations({m} x {n}, {len(self)} cells in {self.n_draws} draws, values in [{low:g}, {high:g}]"
        if self.disagreements:
            cells = "cell" if self.disagreements == 1 else "cells"
            text += f", {self.disagreements} {cells} with differing repeats"
        return text + ")"

    def _repr_html_(self) -> str:
        from surefill.data.observations_table import as_html

        return as_html(self)

    @property
    def entries(self) -> Entries:
        """The cells as samples that scikit-learn can split: ``cross_val_score(completer, observations.entries)``."""
        return Entries(self)

    @property
    def n_draws(self) -> int:
        """N of the paper: how many draws were made, repeats included."""
        return len(self) if is_constant(self.counts) else int(self.counts.sum())

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
                f"all {len(self)} values to learn from equal {low:g}, so their range is unknown: "
                "give bounds=(low, high), the range values may take (--bounds LOW HIGH on the command line)."
            )
        return UnitMap(low, high)

    @property
    def variance(self) -> float:
        """Variance of all draws, repeats included."""
        return mean_by_counts(self.squared_errors(mean_by_counts(self.values, self.counts)), self.counts)

    def squared_errors(self, predicted: ArrayLike) -> NDArray[np.float64]:
        """Mean over each cell's draws of (predicted_x - y_t)^2 = (predicted_x - mean_x)^2 + scatter_x / count_x."""
        errors = np.subtract(np.asarray(predicted, dtype=np.float64), self.values)
        np.square(errors, out=errors)
        return errors if is_constant(self.scatter) else errors + self.scatter / self.counts

    def select(self, which: ArrayLike) -> Self:
        """The observations at ``which`` (a mask or positions), in the same matrix with the same labels and bounds.

        Nothing is checked again, and labels and their index are shared.
        """
        index = np.asarray(which)
        i, j, y = self.rows[index], self.cols[index], self.values[index]
        cells = i, j, y, taken(self.counts, index, len(i)), taken(self.scatter, index, len(i))
        if cells[0].ndim != 1 or cells[0].size == 0 or self._repeats_cells(index):
            rows, cols, values, counts, scatter = cells
            merged = Observations(rows, cols, values, self.shape, self.bounds, counts=counts, scatter=scatter)
            cells = merged.rows, merged.cols, merged.values, merged.counts, merged.scatter
        part = object.__new__(type(self))
        for name in SHARED:
            object.__setattr__(part, name, getattr(self, name))
        part._set_cells(*cells)
        if self.times is not None:
            as_given = len(part) == len(i)
            times = self.times[index if as_given else self.find(part.rows, part.cols)]
            object.__setattr__(part, "times", read_only(times))
        return part

    def with_times(self, times: ArrayLike | None) -> Self:
        """The same observations, each cell with the time it was drawn at: one number per cell, or None for no times.

        >>> seen = Observations([0, 1], [0, 1], [4.0, 3.0]).with_times([881250949, 881250950])
        >>> seen.select([1]).times
        array([8.8125095e+08])
        """
        if times is None and self.times is None:
            return self
        same = copy.copy(self)
        object.__setattr__(same, "times", None if times is None else read_only(as_times(times, len(self))))
        return same

    def with_features(self, rows: Any = None, cols: Any = None) -> Self:
        """The same observations with a side table of rows, of columns, or both.

        A side table is a pandas, polars or pyarrow table with a line for each row (or column) and its label in the
        column with the name that rows have in ``names``, or else in its first column. Numbers are used as they are,
        text is one-hot encoded. Rows that only the side table has are added, without observations.

        >>> import pandas as pd
        >>> seen = Observations([0, 1], [0, 1], [4.0, 3.0], row_labels=[196, 22])
        >>> seen.with_features(rows=pd.DataFrame({"id": [22, 7], "age": [30, 40]})).row_features.table.ravel()
        array([nan, 30., 40.])
        """
        from surefill.data.side_tables import with_side_table

        same = self if rows is None else with_side_table(self, 0, rows)
        return same if cols is None else with_side_table(same, 1, cols)

    def with_mean_times(self, rows: ArrayLike, cols: ArrayLike, times: ArrayLike) -> Self:
        """The same observations, each cell with the mean time of its draws: one row, column and time per draw.

        >>> Observations([0, 1, 0], [0, 1, 0], [4.0, 3.0, 2.0]).with_mean_times([0, 1, 0], [0, 1, 0], [1, 5, 2]).times
        array([1.5, 5. ])
        """
        cell, when = self.find(rows, cols), np.asarray(times, dtype=np.float64)
        first = when.min()  # sums of seconds since 1970 would lose digits
        total = np.bincount(cell, when - first, len(self))
        return self.with_times(first + total / np.bincount(cell, minlength=len(self)))

    def in_shape(
        self,
        shape: tuple[int, int],
        row_labels: NDArray[Any] | None = None,
        col_labels: NDArray[Any] | None = None,
    ) -> Self:
        """The cells inside the first ``shape`` rows and columns, as a table of that size with these labels.

        >>> Observations([0, 1, 1], [0, 0, 2], [4.0, 3.0, 9.0]).in_shape((2, 2)).cols.tolist()
        [0, 0]
        """
        if shape == self.shape:
            return self
        part = self.select((self.rows < shape[0]) & (self.cols < shape[1]))
        for name, value in (("shape", shape), ("row_labels", row_labels), ("col_labels", col_labels)):
            object.__setattr__(part, name, value)
        for name in ("_row_label_index", "_col_label_index"):
            part.__dict__.pop(name, None)
        for name, size in (("row_features", shape[0]), ("col_features", shape[1])):
            features = getattr(self, name)
            object.__setattr__(part, name, None if features is None else features.in_size(size))
        return part

    def enlarged(self, rows: ArrayLike, cols: ArrayLike) -> tuple[Self, NDArray[np.int64], NDArray[np.int64]]:
        """The same cells in a table that also has the labelled ``rows`` and ``cols``, and the positions of these.

        >>> seen = Observations([0, 1], [0, 1], [4.0, 3.0], row_labels=[196, 22])
        >>> larger, i, j = seen.enlarged([22, 7], [2, 0])
        >>> larger.shape, larger.row_labels, i, j
        ((3, 3), array([196,  22,   7]), array([1, 2]), array([2, 0]))
        """
        of_rows, of_cols = self._row_label_index.grown(rows), self._col_label_index.grown(cols)
        if len(of_rows.positions) != len(of_cols.positions):
            raise InputError(
                "rows and cols must be of one length, a pair per entry; got "
                f"{len(of_rows.positions)} and {len(of_cols.positions)}."
            )
        larger = self.in_shape((of_rows.size, of_cols.size), of_rows.labels, of_cols.labels)
        return larger, of_rows.positions, of_cols.positions

    def with_bounds(self, bounds: tuple[float, float] | None) -> Self:
        """The same observations with other bounds; None takes those of the values that are here.

        >>> whole = Observations([0, 1, 1], [0, 0, 2], [4.0, 3.0, 9.0])
        >>> whole.select([0, 1]).bounds, whole.select([0, 1]).with_bounds(None).bounds
        ((3.0, 9.0), (3.0, 4.0))
        """
        resolved, source = resolve_bounds(bounds, self.values, self.scatter)
        (low, high), (least, most) = resolved, self.bounds
        if bounds is not None and self.disagreements and not low <= least <= most <= high:
            # The mean of draws that differ may lie inside where a draw does not.
            raise InputError(
                f"values must lie within bounds ({low:g}, {high:g}); values from {least:g} to {most:g} were seen."
            )
        same = copy.copy(self)
        object.__setattr__(same, "bounds", resolved)
        object.__setattr__(same, "bounds_from", source)
        return same

    @property
    def about_bounds(self) -> str:
        """One sentence on the range of values and how it is known."""
        return describe_bounds(self.bounds, self.bounds_from, self.values[self.scatter == 0])

    @property
    def dominance(self) -> Dominance | None:
        """The few cells that dominate a mean squared error, if there are any.

        None where bounds were given or a scale was recognised: a value within them is no outlier.

        >>> Observations([0, 1], [0, 1], [4.0, 3.0]).dominance is None
        True
        """
        return find_dominance(self.values) if self.bounds_from is BoundsSource.SEEN else None

    def _repeats_cells(self, index: NDArray[Any]) -> bool:
        """Whether positions repeat; a mask's cannot."""
        if index.dtype == np.bool_:
            return False
        named = np.zeros(len(self), dtype=bool)
        named[index] = True
        return int(named.sum()) < len(index)

    def dense(self) -> NDArray[np.float64]:
        """The m x n matrix with NaN where nothing was seen; only for matrices small enough to hold."""
        matrix = np.full(self.shape, np.nan)
        matrix[self.rows, self.cols] = self.values
        return matrix

    @classmethod
    def from_matrix(
        cls, matrix: Any, bounds: tuple[float, float] | None = None, *, row: str | None = None
    ) -> Observations:
        """From an array with NaN holes, a scipy sparse matrix whose stored entries are the seen ones, or a wide table.

        Labels are the index and column names of a pandas table, the column names of a polars or pyarrow table; ``row``
        is the column that holds the labels of the rows, for tables without an index.

        >>> import polars as pl
        >>> wide = pl.DataFrame({"name": ["ann", "bob"], "Alien": [5.0, 4.0], "Brazil": [None, 2.0]})
        >>> seen = Observations.from_matrix(wide, row="name", bounds=(1, 5))
        >>> seen.row_labels.tolist(), seen.col_labels.tolist(), len(seen)
        (['ann', 'bob'], ['Alien', 'Brazil'], 3)
        """
        from surefill.data.containers import from_matrix

        return from_matrix(matrix, bounds, row=row)

    @classmethod
    def from_table(
        cls,
        table: Any,
        *,
        row: str | None = None,
        col: str | None = None,
        value: str | None = None,
        bounds: tuple[float, float] | None = None,
        skip_missing: bool = False,
        time: str | None = None,
    ) -> Observations:
        """From a pandas, polars or pyarrow table with one observation per line.

        ``row``, ``col`` and ``value`` are the names of its columns; what is not given is guessed as for files, by usual
        names (user, item, rating and the like), or, of three columns, by their order.
        Lines whose value is null or NaN are refused, or with ``skip_missing`` left out and counted in ``skipped``.
        ``time`` is a column of numbers or dates, which become :attr:`times`, dates as seconds since 1970.
        """
        from surefill.data.containers import from_table

        return from_table(table, row=row, col=col, value=value, bounds=bounds, skip_missing=skip_missing, time=time)
