"""Rows and columns by label, or by 0-based position where they have no labels."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefill.data.labels import LabelIndex


class LabelledAxes:
    """The methods of :class:`surefill.Observations` that translate between labels and positions."""

    shape: tuple[int, int]
    row_labels: NDArray[Any] | None
    col_labels: NDArray[Any] | None

    def row_index(self, labels: ArrayLike) -> NDArray[np.int64]:
        """0-based positions of the rows that have the ``labels``; where rows have none, the positions, checked.

        Labels are asked for as integers or as text, whichever they are stored as.

        >>> from surefill import Observations
        >>> seen = Observations([0, 1], [0, 1], [4.0, 3.0], row_labels=[196, 22])
        >>> seen.row_index([22]), seen.row_index(["196"]), seen.col_index([1])
        (array([1]), array([0]), array([1]))
        """
        return self._row_label_index.find(labels)

    def col_index(self, labels: ArrayLike) -> NDArray[np.int64]:
        """0-based positions of the columns that have the ``labels``, as :meth:`row_index` gives those of rows."""
        return self._col_label_index.find(labels)

    def row_names(self, positions: ArrayLike) -> NDArray[Any]:
        """Labels of the rows at 0-based ``positions``; where rows have none, the positions.

        >>> from surefill import Observations
        >>> seen = Observations([0, 1], [0, 1], [4.0, 3.0], row_labels=[196, 22])
        >>> seen.row_names([1, 0]), seen.col_names([1, 0])
        (array([ 22, 196]), array([1, 0]))
        """
        return _names_at(self.row_labels, positions)

    def col_names(self, positions: ArrayLike) -> NDArray[Any]:
        """Labels of the columns at 0-based ``positions``; where columns have none, the positions."""
        return _names_at(self.col_labels, positions)

    def locate(self, rows: ArrayLike, cols: ArrayLike) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Positions of labelled rows and columns, or of positions where there are no labels; -1 where unknown."""
        return self._row_label_index.locate(rows), self._col_label_index.locate(cols)

    @cached_property
    def _row_label_index(self) -> LabelIndex:
        return LabelIndex("row", self.row_labels, self.shape[0])

    @cached_property
    def _col_label_index(self) -> LabelIndex:
        return LabelIndex("column", self.col_labels, self.shape[1])


def _names_at(labels: NDArray[Any] | None, positions: ArrayLike) -> NDArray[Any]:
    index = np.asarray(positions)
    return index if labels is None else np.asarray(labels[index])
