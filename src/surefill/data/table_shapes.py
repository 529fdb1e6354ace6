"""Long tables taken for wide ones, and wide ones taken for long: noticed where it is clear, and asked about.

A long table has a line for each observation: row, column, value. A wide one has a line for each row.
"""

from __future__ import annotations

from collections.abc import Sequence
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

INDEX_NAMES = ("", "index", "Unnamed: 0")
"""What an index is called once it was written to a file and read again as a column."""


def refuse_long(X: Any) -> None:
    """Refuse a long table where a matrix is expected, and a matrix whose first column holds the labels of its rows.

    A table is long if its columns have the usual names of row, column and value, if two of them hold text, or if there
    are three, of which the first two hold ids: whole numbers that repeat, no pair of them twice, and no holes.
    """
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

    It is where the first column names each line once and the others hold numbers, where one of the first two holds
    numbers that are no ids, or where lines have text for labels, in an index of pandas, and there are more of
    them than pairs of ids.
    """
    columns = _columns(table)
    if len(columns[0]) < 2 or not all(column.dtype.is_numeric() for column in columns[1:]):
        return False
    if columns[0].n_unique() == len(columns[0]) or any(column.dtype.is_float() for column in columns[:2]):
        return True
    labelled = dependencies.is_pandas_dataframe(table) and isinstance(table.index[0], str)
    return labelled and len(columns[0]) > columns[0].n_unique() * columns[1].n_unique()
