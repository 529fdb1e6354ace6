"""Long tables of pairs or of observations: which columns hold row, column and value, and the cells they name."""

from __future__ import annotations

from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from surefill.arrays import Array
from surefill.data import Observations
from surefill.data.column_roles import Choice, positions_of, usual_position, usual_roles
from surefill.data.containers import as_frame, without_nulls
from surefill.data.frames import is_frame
from surefill.data.labels import plain
from surefill.errors import InputError

SOURCE = "the table"
"""What errors call a table in memory."""


def is_long_table(given: Any, seen: Observations | None = None) -> bool:
    """Whether ``given`` is a table with columns called as those ``seen``, or user, item, rating and the like."""
    if not is_frame(given):
        return False
    names = [str(name) for name in as_frame(given, SOURCE).columns]
    return (seen is not None and set(seen.names) <= set(names)) or None not in usual_roles(names)


def observations_of(table: Any, seen: Observations | None = None) -> Observations:
    """The observations in a long table; its columns are called as those ``seen``, or as usual."""
    frame = as_frame(table, SOURCE)
    if seen is not None and set(seen.names) <= set(frame.columns):
        row, col, value = seen.names
    else:
        choice: Choice = {"row": None, "col": None, "value": None}
        row, col, value = (frame.columns[k] for k in positions_of(SOURCE, frame.columns, True, choice))
    return Observations.from_table(table, row=row, col=col, value=value)


def cells_of(new: Observations, seen: Observations) -> tuple[NDArray[Any], NDArray[Any], Array, NDArray[Any], Array]:
    """Labels of rows and columns, values, counts and scatter of ``new``, to be added to ``seen``."""
    for kind, own, known in (
        ("rows", new.row_labels, seen.row_labels),
        ("columns", new.col_labels, seen.col_labels),
    ):
        if own is None and known is not None:
            raise InputError(
                f"the model's {kind} have labels, such as {plain(known[0])!r}, and those of the new observations have "
                "none: positions of one table say nothing about another."
            )
    return new.row_names(new.rows), new.col_names(new.cols), new.values, new.counts, new.scatter


def cells_of_new_rows(
    new: Observations, seen: Observations
) -> tuple[NDArray[Any], NDArray[Any], Array, NDArray[Any], Array]:
    """The same for the rows of a matrix, which follow those ``seen``."""
    if seen.row_labels is not None:
        raise InputError("the model's rows have labels, and those of a matrix have none: give new rows in long form.")
    return seen.shape[0] + new.rows, seen.col_names(new.cols), new.values, new.counts, new.scatter


def id_columns(names: list[str], fitted: tuple[str, str, str], source: str = SOURCE) -> tuple[str, str]:
    """Which columns hold row and column ids: called as at the fit, else with usual names, else the first two."""
    row, col, _ = fitted
    if row in names and col in names:
        return row, col
    places = [usual_position(names, axis) for axis in ("row", "col")]
    if places[0] is None and places[1] is None and len(names) == 2:
        return names[0], names[1]
    if places[0] is None or places[1] is None or places[0] == places[1]:
        there = ", ".join(map(repr, names))
        raise InputError(f"{source} needs the columns {row!r} and {col!r}, as at the fit; its columns are {there}.")
    return names[places[0]], names[places[1]]


def ids_in(frame: nw.DataFrame[Any], name: str, source: str = SOURCE) -> NDArray[Any]:
    """A column of labels as an array."""
    series = without_nulls(frame.get_column(name), source)
    return series.to_numpy() if series.dtype.is_integer() else np.array(series.to_list())
