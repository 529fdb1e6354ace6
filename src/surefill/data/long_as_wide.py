"""Long tables taken for wide ones: noticed where it is clear, and asked about.

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
from scipy import sparse

from surefill.data.column_roles import usual_position, usual_roles
from surefill.data.frames import column_at, column_names, columns_of, is_frame
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
    if isinstance(X, str | os.PathLike):
        raise InputError(f"a matrix is expected, not the name of a file: fit on read_observations({os.fspath(X)!r}).")
    if dependencies.is_polars_lazyframe(X):
        raise InputError("a table in memory is expected, and this one is lazy: fit on df.collect().")
    if isinstance(X, Mapping) and not sparse.issparse(X):  # a sparse matrix by keys is a dictionary, too
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
    names = [str(name) for name in column_names(table)]
    _require_one_kind_of_name(table)
    odd = _without_numbers(table)
    text = {names[place]: column for place, column in odd.items() if _holds_text(column)}
    roles = usual_roles(names)
    if None not in roles and len(set(roles)) == 3:
        raise _long([names[place] for place in roles if place is not None], "")
    if text:
        raise _about_text(table, names, text)
    for place, column in odd.items():
        if isinstance(column.dtype, nw.Datetime | nw.Date | nw.Duration | nw.Time | nw.List | nw.Struct):
            raise InputError(f"column {names[place]!r} holds {column.dtype}, and a matrix holds numbers: leave it out.")
    if len(names) == 3 and are_triples(_as_floats(table)):
        raise _long(names, "row={!r}, col={!r}, value={!r}".format(*names))
    if _holds_row_labels(table, names):
        raise InputError(
            f"the first column, {names[0]!r}, looks like labels of the rows: {_with_labels(table, names[0])}; if its "
            "numbers are values like the others, fit on Observations.from_matrix(df)."
        )


def _about_text(table: Any, names: Sequence[str], text: dict[str, nw.Series[Any]]) -> InputError:
    """Columns of text: ids of a long table, labels of the rows, or holes that are written in words."""
    name, column = next(iter(text.items()))
    if len(text) >= 2 and column.n_unique() < len(column):
        value = next((each for each in names if each not in text), "...")
        row, col = list(text)[:2]
        return _long([row, col, value], f"row={row!r}, col={col!r}, value={value!r}")
    if name == names[0]:
        labels = _with_labels(table, name)
        return InputError(
            f"column {name!r} holds text, and a matrix holds numbers: if it has the labels of the rows, {labels}."
        )
    word = next((item for item in column.drop_nulls().to_list() if not _is_number(item)), "")
    return InputError(
        f"column {name!r} holds text such as {word!r}, and a matrix holds numbers: leave it out, or, if text stands "
        "for holes, read the table with these as missing (na_values in pandas)."
    )


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


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
    text = {isinstance(name, str) for name in column_names(table)}
    if len(text) > 1:
        raise InputError(
            "some names of columns are text and some are not, so that scikit-learn compares none: give all as text, "
            "df.columns = df.columns.astype(str)."
        )


def _without_numbers(table: Any) -> dict[int, nw.Series[Any]]:
    """The columns that are of no numeric type, by position."""
    if dependencies.is_pandas_dataframe(table):
        places = [place for place, dtype in enumerate(table.dtypes) if dtype.kind not in "biufc"]
    else:
        dtypes = nw.from_native(table, eager_only=True).schema.dtypes()
        places = [place for place, dtype in enumerate(dtypes) if not (dtype.is_numeric() or dtype == nw.Boolean)]
    return {place: column_at(table, place) for place in places}


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
        return np.stack([np.asarray(column.cast(nw.Float64).to_numpy(), float) for column in columns_of(table)], axis=1)
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
    column = column_at(table, 0)
    return bool(column.dtype.is_integer() and not column.is_null().any() and column.n_unique() == len(column))
