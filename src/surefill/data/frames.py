"""Wide tables in memory: pandas, polars and pyarrow tables with a line for each row and a column for each column."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np
from narwhals import dependencies
from numpy.typing import NDArray

from surefill.data.labels import plain, text_array
from surefill.errors import InputError


class AxisLabels(NamedTuple):
    """Labels of the rows and columns of a matrix, None where there are only positions, and what they are called."""

    rows: NDArray[Any] | None = None
    cols: NDArray[Any] | None = None
    names: tuple[str, str, str] = ("row", "column", "value")


def library_of(given: Any) -> str | None:
    """The library of a table in memory, "pandas", "polars" or "pyarrow"; None for what is no such table."""
    kinds = {
        "pandas": dependencies.is_pandas_dataframe,
        "polars": dependencies.is_polars_dataframe,
        "pyarrow": dependencies.is_pyarrow_table,
    }
    return next((name for name, is_kind in kinds.items() if is_kind(given)), None)


def is_frame(given: Any) -> bool:
    """Whether something is a pandas, polars or pyarrow table in memory."""
    return library_of(given) is not None


def axis_labels(matrix: Any) -> AxisLabels:
    """The index and the column names of a table; none of what has none, and none for a plain 0, 1, 2, ... of pandas.

    >>> import pandas as pd
    >>> labels = axis_labels(pd.DataFrame([[4, 5]], index=["ann"], columns=["Alien", "Brazil"]))
    >>> labels.rows.tolist(), labels.cols.tolist()
    (['ann'], ['Alien', 'Brazil'])
    >>> axis_labels(pd.DataFrame([[4, 5]])).rows is None
    True
    """
    if not is_frame(matrix):
        return AxisLabels()
    if not dependencies.is_pandas_dataframe(matrix):
        names = list(matrix.columns) if dependencies.is_polars_dataframe(matrix) else matrix.column_names
        return AxisLabels(cols=label_array("column", names))
    called = (_name_of(matrix.index, "row"), _name_of(matrix.columns, "column"), "value")
    return AxisLabels(_of_index("row", matrix.index), _of_index("column", matrix.columns), called)


def _name_of(index: Any, otherwise: str) -> str:
    return otherwise if index.name is None else str(index.name)


def _of_index(kind: str, index: Any) -> NDArray[Any] | None:
    """The labels of a pandas index; dates are written as pandas writes them."""
    if np.array_equal(index, np.arange(len(index))):
        return None
    return label_array(kind, (index.astype(str) if hasattr(index, "strftime") else index).tolist())


def label_array(kind: str, labels: Sequence[Any]) -> NDArray[Any]:
    """Labels as integers where all are whole numbers, else as text; each must be there, and once."""
    missing = [position for position, label in enumerate(labels) if label is None or label != label or label == ""]
    if missing:
        raise InputError(
            f"{kind} {missing[0]} counted from 0 has no label; every {kind} of a wide table needs its own."
        )
    whole = all(isinstance(label, int | np.integer | float) and not isinstance(label, bool) for label in labels)
    if whole and all(float(label).is_integer() for label in labels):
        found = np.array([int(label) for label in labels], dtype=np.int64)
    else:
        found = text_array([str(label) for label in labels])
    _, first, counts = np.unique(found, return_index=True, return_counts=True)
    if (counts > 1).any():
        twice = plain(found[first[counts > 1].min()])
        raise InputError(
            f"{int(counts.max())} {kind}s are labelled {twice!r}; every {kind} of a wide table needs its own label "
            "(in pandas, reset_index(drop=True) leaves positions)."
        )
    return found


def split_labels(table: Any, row: str) -> tuple[Any, AxisLabels]:
    """A wide table without the column ``row``, and labels with that column as those of the rows."""
    frame = nw.from_native(table, eager_only=True)
    if row not in frame.columns:
        raise InputError(f"the table has no column {row!r} for row.")
    rest = frame.drop(row).to_native()
    labels = label_array("row", frame.get_column(row).to_list())
    return rest, axis_labels(rest)._replace(rows=labels, names=(row, "column", "value"))


def column_names(table: Any) -> Sequence[Any]:
    """The names of the columns."""
    return table.column_names if dependencies.is_pyarrow_table(table) else list(table.columns)


def column_at(table: Any, place: int) -> nw.Series[Any]:
    """A column, whatever its name is."""
    if dependencies.is_pandas_dataframe(table):
        column: nw.Series[Any] = nw.from_native(table.iloc[:, place], series_only=True)
        return column
    frame = nw.from_native(table, eager_only=True)
    found: nw.Series[Any] = frame.get_column(frame.columns[place])
    return found


def columns_of(table: Any) -> list[nw.Series[Any]]:
    """The columns, in order."""
    return [column_at(table, place) for place in range(len(column_names(table)))]
