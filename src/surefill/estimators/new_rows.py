"""Rows that were not there when fitting: their columns matched with those of the fit, their values with its bounds."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from surefill.data import BoundsSource, Observations
from surefill.data.labels import LabelIndex
from surefill.errors import InputError, few
from surefill.losses import ClippedLoss


def matched(observations: Observations, n: int, col_labels: NDArray[Any] | None, loss: ClippedLoss) -> Observations:
    """New rows in the n columns of the fit, with its bounds.

    Columns are matched by label where both have labels, else by position, and then there must be n. Values outside
    bounds that were given, or outside a scale that the fit lay on, are refused; where the fit knew no more than the
    range it saw, new rows may reach beyond it.
    """
    placed = _in_columns_of_fit(observations, n, col_labels)
    low, high = loss.bounds
    outside = np.flatnonzero((placed.values < low) | (placed.values > high))
    if not outside.size:
        return placed.with_bounds((low, high))
    if loss.bounds_from is not BoundsSource.SEEN:
        first = outside[0]
        row, col = placed.row_names(placed.rows[first]).item(), placed.col_names(placed.cols[first]).item()
        raise InputError(
            f"values of new rows must lie in [{low:g}, {high:g}], {loss.bounds_from.value}; row {row!r} has "
            f"{placed.values[first]:g} in column {col!r}."
        )
    least, most = placed.bounds
    return placed.with_bounds((min(low, least), max(high, most)))


def _in_columns_of_fit(observations: Observations, n: int, col_labels: NDArray[Any] | None) -> Observations:
    if col_labels is None or observations.col_labels is None:
        if observations.shape[1] != n:
            raise InputError(f"new rows must have {n} columns; got {observations.shape[1]}.")
        return observations
    place = LabelIndex("column", col_labels, n).locate(observations.col_labels)
    if (place < 0).any():
        unknown = observations.col_labels[place < 0].tolist()
        raise InputError(f"new rows have columns that were not there when fitting: {few(unknown)}; leave them out.")
    return Observations(
        observations.rows,
        place[observations.cols],
        observations.values,
        (observations.shape[0], n),
        observations.bounds if observations.bounds_from is BoundsSource.GIVEN else None,
        counts=observations.counts,
        scatter=observations.scatter,
        row_labels=observations.row_labels,
        col_labels=col_labels,
        names=observations.names,
    )
