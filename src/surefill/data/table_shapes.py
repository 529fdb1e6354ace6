"""Long tables taken for wide ones, and wide ones taken for long: noticed where it is clear, and asked about.

A long table has a line for each observation: row, column, value. A wide one has a line for each row.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import narwhals as nw
import numpy as np
from narwhals import dependencies
from numpy.typing import NDArray

from surefill.data.column_roles import usual_position, usual_roles
from surefill.data.frames import is_frame
from surefill.errors import InputError

FEWEST_TRIPLES = 20
"""Lines from which columns without telling names are looked at: of fewer, chance alone makes ids."""

MOST_ANSWERS = 20
"""Answers on the longest scale in use, from 0 to 10 in halves."""

INDEX_NAMES = ("", "index", "Unnamed: 0")
"""What an index is called once it was written to a file and read again as a column."""


def refuse_long(X: Any) -> None:
    """Refuse a long table where a matrix is expected, and a matrix whose first column holds the labels of its rows.

    A table is long if its columns have the usual names of row, column and value, if two of them hold text, or if there
    are three, of which the first two hold ids: whole numbers that repeat, no pair of them twice, and no holes.
    """
    if isinstance(X, str | os.PathLike):
        raise InputError(f"a matrix is expected, not the name of a file: fit on read_observations({os.fspath(X)!r}).")
    if dependencies.is_polars_lazyframe(X):
        raise InputError("a table in memory is expected, and this one is lazy: fit on df.collect().")
    if isinstance(X, Mapping):
        raise InputError("a matrix is expected, not a dictionary: fit on pd.DataFrame(X), or on pl.DataFrame(X).")
    if is_frame(X):
        _refuse_long_frame(X)
    elif isinstance(X, np.ndarray) and X.ndim == 2 and X.shape[1] == 3 and X.dtype.kind in "iuf" and are_triples(X):
        raise InputError(
            "these look like triples, a row id, a column id and a value in each line: fit on "
            "Observations.from_table(pd.DataFrame(X, columns=['row', 'col', 'value'])), or, if it is a matrix all the "
            "same, on Observations.from_matrix(X)."
        )


def _refuse_long_frame(table: Any) -> None:
    names = [str(name) for name in _column_names(table)]
    _require_one_kind_of_name(table)
    text = [name for name, column in zip(names, _columns(table), strict=True) if _holds_text(column)]
    roles = usual_roles(names)
    if None not in roles and len(set(roles)) == 3:
        raise _long([names[place] for place in roles if place is not None], "")
    if len(text) >= 2:
        value = next((name for name in names if name not in text), "...")
        raise _long([*text[:2], value], f"row={text[0]!r}, col={text[1]!r}, value={value!r}")
    if len(text) == 1:
        raise InputError(
            f"column {text[0]!r} holds text, and a matrix holds numbers: if it has the labels of the rows, "
            f"{_with_labels(table, text[0])}."
        )
    for name, column in zip(names, _columns(table), strict=True):
        if isinstance(column.dtype, nw.Datetime | nw.Date | nw.Duration | nw.Time | nw.List | nw.Struct):
            raise InputError(f"column {name!r} holds {column.dtype}, and a matrix holds numbers: leave it out.")
    if len(names) == 3 and are_triples(_as_floats(table)):
        raise _long(names, "row={!r}, col={!r}, value={!r}".format(*names))
    if _holds_row_labels(table, names):
        raise InputError(
            f"the first column, {names[0]!r}, looks like labels of the rows: {_with_labels(table, names[0])}; if its "
            "numbers are values like the others, fit on Observations.from_matrix(df)."
        )


def _long(columns: Sequence[str], arguments: str) -> InputError:
    row, col, value = map(repr, columns)
    return InputError(
        f"this looks like a long table, an observation in each line, in columns {row}, {col} and {value}: fit on "
        f"Observations.from_table(df{', ' * bool(arguments)}{arguments}), or, if it is a matrix all the same, on "
        "Observations.from_matrix(df)."
    )


def _with_labels(table: Any, name: str) -> str:
    pandas = dependencies.is_pandas_dataframe(table)
    return f"fit on df.set_index({name!r})" if pandas else f"fit on Observations.from_matrix(df, row={name!r})"


def _require_one_kind_of_name(table: Any) -> None:
    text = {isinstance(name, str) for name in _column_names(table)}
    if len(text) > 1:
        raise InputError(
            "some names of columns are text and some are not, so that scikit-learn compares none: give all as text, "
            "df.columns = df.columns.astype(str)."
        )


def _column_names(table: Any) -> Sequence[Any]:
    return table.column_names if dependencies.is_pyarrow_table(table) else list(table.columns)


def _columns(table: Any) -> list[nw.Series[Any]]:
    """The columns, whatever their names are."""
    if dependencies.is_pandas_dataframe(table):
        return [nw.from_native(table.iloc[:, place], series_only=True) for place in range(table.shape[1])]
    frame = nw.from_native(table, eager_only=True)
    return [frame.get_column(name) for name in frame.columns]


def _holds_text(column: nw.Series[Any]) -> bool:
    if column.dtype in (nw.String, nw.Categorical, nw.Enum):
        return not _is_numeric_category(column)
    if column.dtype != nw.Object:
        return False
    there = column.drop_nulls().to_list()
    return bool(there) and all(isinstance(item, str) for item in there)


def _is_numeric_category(column: nw.Series[Any]) -> bool:
    return column.dtype != nw.String and not any(
        isinstance(item, str) for item in column.drop_nulls().head(1).to_list()
    )


def _as_floats(table: Any) -> NDArray[np.float64]:
    """A narrow numeric table as an array, NaN for what is missing; all NaN where it does not hold numbers."""
    try:
        return np.stack([np.asarray(column.cast(nw.Float64).to_numpy(), float) for column in _columns(table)], axis=1)
    except (TypeError, ValueError, nw.exceptions.NarwhalsError):
        return np.full((1, 3), np.nan)


def are_triples(lines: NDArray[Any]) -> bool:
    """Whether lines are (row id, column id, value): ids are whole and at least two lines share each on average.

    No two lines have both ids in common, so that lines of few different numbers, such as three ratings by each of many
    people, are not taken for triples.
    """
    if len(lines) < FEWEST_TRIPLES or not np.isfinite(lines).all():
        return False
    ids = lines[:, :2]
    if (ids != np.round(ids)).any() or (ids < 0).any():
        return False
    repeated = all(2 * len(np.unique(ids[:, axis])) <= len(ids) for axis in (0, 1))
    return repeated and len(np.unique(ids, axis=0)) == len(ids)


def _holds_row_labels(table: Any, names: Sequence[str]) -> bool:
    """Whether the first column is called as row labels are, and holds different whole numbers."""
    telling = names[0] in INDEX_NAMES or usual_position(names[:1], "row") == 0
    if not telling or len(names) < 2 or len(table) < 2:
        return False
    if dependencies.is_pandas_dataframe(table) and not np.array_equal(table.index, np.arange(len(table))):
        return False
    column = _columns(table)[0]
    return bool(column.dtype.is_integer() and not column.is_null().any() and column.n_unique() == len(column))


def looks_wide(table: Any) -> bool:
    """Whether a table of three columns without telling names is a wide one.

    It is where the first column names each line once and the others hold numbers, where the first two hold numbers that
    are no ids, or where lines have text for labels, in an index of pandas, and there are more of
    them than pairs of ids.
    """
    columns = _columns(table)
    if len(columns[0]) < 2 or not all(column.dtype.is_numeric() for column in columns[1:]):
        return False
    if columns[0].n_unique() == len(columns[0]) or any(column.dtype.is_float() for column in columns[:2]):
        return True
    values = np.asarray(columns[2].cast(nw.Float64).to_numpy(), float)
    if are_values(columns[0].unique().to_numpy(), columns[1].unique().to_numpy(), values):
        return True
    labelled = dependencies.is_pandas_dataframe(table) and isinstance(table.index[0], str)
    return labelled and len(columns[0]) > columns[0].n_unique() * columns[1].n_unique()


def are_values(row_labels: NDArray[Any], col_labels: NDArray[Any], values: NDArray[Any]) -> bool:
    """Whether what was taken for ids of rows and columns are values of a matrix of three columns.

    They are where all are numbers and some of the rows are not whole, such as 4.5; or where all three are whole, few
    and of one range, give or take 1, and every pair comes twice or more on average, as with people who answered three
    questions on one scale.

    >>> are_values(np.array(["2.5", "4.5"]), np.array(["1", "3.5"]), np.ones(3))
    True
    >>> are_values(np.arange(1, 6), np.arange(1, 6), np.repeat([1, 2, 3, 4, 5], 10))
    True
    >>> are_values(np.arange(196), np.arange(242), np.repeat([1, 2, 3, 4, 5], 10))
    False
    """
    rows, cols = _numbers(row_labels), _numbers(col_labels)
    if rows is None or cols is None:
        return False
    if (rows != np.round(rows)).any():
        return True
    few = max(len(rows), len(cols)) <= MOST_ANSWERS and len(values) >= 2 * len(rows) * len(cols)
    answers = np.unique(values)
    alike = all(np.abs(ids[[0, -1]] - answers[[0, -1]]).max() <= 1 for ids in (np.sort(rows), np.sort(cols)))
    return few and alike and len(answers) <= MOST_ANSWERS and bool(np.equal(answers, np.round(answers)).all())


def _numbers(labels: NDArray[Any]) -> NDArray[np.float64] | None:
    """Labels as finite numbers; None where one is not."""
    try:
        numbers = labels.astype(np.float64)
    except ValueError:
        return None
    return numbers if np.isfinite(numbers).all() else None
