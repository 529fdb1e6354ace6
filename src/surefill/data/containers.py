"""Observations from what is in memory: arrays and sparse matrices, and pandas, polars or pyarrow tables."""

from __future__ import annotations

from typing import Any, NamedTuple

import narwhals as nw
import numpy as np
from narwhals import dependencies
from numpy.typing import NDArray
from scipy import sparse

from surefill.data.column_roles import Choice, positions_of
from surefill.data.frames import AxisLabels, axis_labels, is_frame, split_labels
from surefill.data.labels import LARGEST_EXACT, EncodedIds, encode_integers, encode_names
from surefill.data.observations import Observations
from surefill.data.wide_as_long import looks_wide
from surefill.errors import InputError, few
from surefill.inputs import check_ids

MatrixEntries = tuple[NDArray[Any], NDArray[Any], NDArray[np.float64], tuple[int, int]]
"""Rows, columns and values of the entries seen, and the shape."""


def from_matrix(
    matrix: Any, bounds: tuple[float, float] | None = None, *, row: str | None = None, labels: AxisLabels | None = None
) -> Observations:
    """Observations from a two-dimensional array with NaN (or masked) holes, a sparse matrix, or a wide table.

    Every stored entry of a sparse matrix was seen, zeros included, except stored NaN; entries stored twice
    are two draws of one cell. The index and column names of a table become labels, unless ``labels`` are given.

    Parameters
    ----------
    row : the column of a table that holds the labels of its rows, for tables without an index.
    """
    if row is not None:
        if not is_frame(matrix):
            raise InputError(f"row={row!r} names a column of a pandas, polars or pyarrow table; got no such table.")
        matrix, labels = split_labels(matrix, row)
    labels = axis_labels(matrix) if labels is None else labels
    read = _stored_entries if sparse.issparse(matrix) else _array_entries
    rows, cols, values, (m, n) = read(matrix)
    infinite = np.flatnonzero(np.isinf(values))
    if infinite.size:
        first = infinite[0]
        where = f"({rows[first]}, {cols[first]})"
        raise InputError(f"the matrix must hold finite numbers; entry {where} is {values[first]}.")
    seen = ~np.isnan(values)
    if not seen.any():
        raise InputError(f"the {m} x {n} matrix holds no observations: at least one entry must be seen.")
    cells = rows[seen], cols[seen], values[seen]
    return Observations(*cells, (m, n), bounds, row_labels=labels.rows, col_labels=labels.cols, names=labels.names)


def from_table(
    table: Any,
    *,
    row: str | None = None,
    col: str | None = None,
    value: str | None = None,
    bounds: tuple[float, float] | None = None,
    skip_missing: bool = False,
    time: str | None = None,
) -> Observations:
    """Observations from a pandas, polars or pyarrow table with one observation per line.

    Parameters
    ----------
    row, col : columns of ids: integers, strings or categories.
    value : column of numbers. What is not given is guessed as for files: by usual names such as user, item and rating,
        or, of a table of three columns, by their order.
    bounds : (low, high), the range values may take; the range seen when not given.
    skip_missing : leave out lines whose value is null or NaN, and count them, instead of refusing them.
    time : column of numbers or dates that says when each observation was made.
    """
    if row is None or col is None or value is None:
        row, col, value = _guessed_columns(table, {"row": row, "col": col, "value": value})
    return observations_from_columns(table, (row, col, value), bounds, "the table", skip_missing, time)


def _guessed_columns(table: Any, choice: Choice) -> tuple[str, str, str]:
    frame = as_frame(table, "the table")
    if_wide = "give it to PartialCompleter.fit or Observations.from_matrix"
    places = positions_of("the table", frame.columns, True, choice, lambda: looks_wide(table), if_wide)
    row, col, value = (frame.columns[place] for place in places)
    return row, col, value


def _check_dimensions(count: int) -> None:
    if count != 2:
        raise InputError(f"a matrix must have two dimensions; got {count}.")


def _as_floats(values: NDArray[Any]) -> NDArray[np.float64]:
    if values.dtype.kind not in "biufO":
        raise InputError(f"a matrix must hold real numbers; got {values.dtype}.")
    try:
        return values.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"a matrix must hold real numbers: {error}.") from None


def _array_entries(matrix: Any) -> MatrixEntries:
    array = np.ma.asarray(_as_array(matrix))
    _check_dimensions(array.ndim)
    values = _as_floats(array.data)
    rows, cols = np.nonzero(~np.isnan(values) & ~np.ma.getmaskarray(array))
    return rows, cols, values[rows, cols], (array.shape[0], array.shape[1])


def _as_array(matrix: Any) -> Any:
    """A table as an array, its nulls as NaN; anything else as it is."""
    if not is_frame(matrix):
        return matrix
    if dependencies.is_pandas_dataframe(matrix):
        return _pandas_numbers(matrix)
    return nw.from_native(matrix, eager_only=True).to_numpy()


def _pandas_numbers(table: Any) -> NDArray[np.float64]:
    try:
        numbers: NDArray[np.float64] = table.to_numpy(dtype=np.float64, na_value=np.nan)
    except (TypeError, ValueError) as error:
        raise InputError(f"a matrix must hold real numbers: {error}.") from None
    return numbers


def sound_matrix(matrix: Any) -> Any:
    """A matrix that may be handed on: masked entries as NaN, no dates, and indices of a sparse one inside of it.

    Compiled code of others reads and writes where the indices of a sparse matrix say, without a look at its size.
    """
    if sparse.issparse(matrix):
        try:
            getattr(matrix, "check_format", bool)(True)  # what has no such method has no indices of its own
        except ValueError as error:
            raise InputError(f"a sparse matrix must be sound, and this one is not: {error}.") from None
    elif isinstance(matrix, np.ma.MaskedArray):
        return np.where(np.ma.getmaskarray(matrix), np.nan, _as_floats(matrix.data))
    elif isinstance(matrix, np.ndarray) and matrix.dtype.kind in "mM":
        raise InputError(f"a matrix must hold real numbers; got {matrix.dtype}.")
    return matrix


def _stored_entries(matrix: Any) -> MatrixEntries:
    _check_dimensions(matrix.ndim)
    sound_matrix(matrix)
    if matrix.format == "dia":
        return _stored_diagonals(matrix)
    entries = matrix.tocoo()
    return entries.row, entries.col, _as_floats(entries.data), matrix.shape


def _stored_diagonals(matrix: Any) -> MatrixEntries:
    """All entries of the stored diagonals; scipy's own conversion drops their zeros."""
    m, n = matrix.shape
    cols = np.broadcast_to(np.arange(matrix.data.shape[1]), matrix.data.shape)
    rows = cols - matrix.offsets[:, None]
    inside = (rows >= 0) & (rows < m) & (cols < n)
    return rows[inside], cols[inside], _as_floats(matrix.data[inside]), (m, n)


def observations_from_columns(
    table: Any,
    columns: tuple[str, str, str],
    bounds: tuple[float, float] | None,
    source: str,
    skip_missing: bool = False,
    time: str | None = None,
) -> Observations:
    """Observations from the (row, col, value) ``columns`` of a table; ``source`` is what errors call it."""
    found = encoded_columns(table, columns, source, skip_missing)
    observations = Observations(
        found.rows.codes,
        found.cols.codes,
        found.values,
        bounds=bounds,
        row_labels=found.rows.labels,
        col_labels=found.cols.labels,
        names=columns,
        skipped=found.skipped,
    )
    if time is None:
        return observations
    return observations.with_mean_times(found.rows.codes, found.cols.codes, _times(found.frame, time, source))


def _times(frame: nw.DataFrame[Any], name: str, source: str) -> NDArray[np.float64]:
    """A column of numbers unchanged, or of dates as seconds since 1970."""
    if name not in frame.columns:
        raise InputError(
            f"{source} has no column {name!r} for time; its columns are {few([repr(each) for each in frame.columns])}."
        )
    series = without_nulls(frame.get_column(name), source)
    if series.dtype.is_numeric():
        return np.asarray(series.cast(nw.Float64).to_numpy())
    if isinstance(series.dtype, nw.Datetime | nw.Date):
        return np.asarray(series.cast(nw.Datetime("us")).dt.timestamp("us").to_numpy(), dtype=np.float64) / 1e6
    raise InputError(f"{source} must hold numbers or dates in column {name!r}; they are {series.dtype}.")


class EncodedColumns(NamedTuple):
    """The lines of a table that have a value: encoded ids, values, the lines themselves, and how many were skipped."""

    rows: EncodedIds
    cols: EncodedIds
    values: NDArray[np.float64]
    frame: nw.DataFrame[Any]
    skipped: int

    def column(self, name: str) -> list[Any]:
        """Another column of these lines."""
        return self.frame.get_column(name).to_list()


def encoded_columns(table: Any, columns: tuple[str, str, str], source: str, skip_missing: bool) -> EncodedColumns:
    """The (row, col, value) ``columns`` of a table, ids encoded and values checked."""
    frame = as_frame(table, source)
    for name in columns:
        if name not in frame.columns:
            raise InputError(
                f"{source} has no column {name!r}; its columns are {few([repr(each) for each in frame.columns])}."
            )
    if len(frame) == 0:
        raise InputError(f"{source} holds no observations: at least one line is needed.")
    skipped = 0
    if skip_missing:
        missing = _missing(frame.get_column(columns[2]))
        skipped = int(missing.sum())
        if skipped == len(frame):
            raise InputError(f"{source} holds no values: all of its {skipped:,} lines lack one.")
        frame = frame.filter((~missing).tolist()) if skipped else frame
    series = [without_nulls(frame.get_column(name), source) for name in columns]
    rows, cols = _ids(series[0], source), _ids(series[1], source)
    return EncodedColumns(rows, cols, _numbers(series[2], source), frame, skipped)


def _missing(values: nw.Series[Any]) -> NDArray[np.bool_]:
    """Which values are null or NaN."""
    missing = np.array(values.is_null().to_numpy(), dtype=bool)
    if values.dtype.is_float():
        missing |= np.isnan(values.cast(nw.Float64).to_numpy())
    return missing


def as_frame(table: Any, source: str) -> nw.DataFrame[Any]:
    """A pandas, polars or pyarrow table in memory; ``source`` is what errors call it."""
    try:
        return nw.from_native(table, eager_only=True)
    except TypeError:
        kind = f"{type(table).__module__}.{type(table).__qualname__}"
        raise InputError(f"{source} must be a pandas, polars or pyarrow table in memory; got a {kind}.") from None
    except nw.exceptions.DuplicateError:
        raise InputError(f"{source} must have columns of different names; some names occur twice.") from None


def without_nulls(series: nw.Series[Any], source: str) -> nw.Series[Any]:
    """The column as it is, if nothing in it is missing."""
    missing = series.is_null()
    if missing.any():
        first, count = int(np.argmax(missing.to_numpy())), int(missing.sum())
        raise InputError(
            f"{source} lacks {count} of the entries of column {series.name!r}, the first in line {first} "
            "counted from 0; leave such lines out, or have those without a value skipped by skip_missing=True."
        )
    return series


def _numbers(series: nw.Series[Any], source: str) -> NDArray[np.float64]:
    if not (series.dtype.is_numeric() or series.dtype == nw.Boolean):
        raise InputError(f"{source} must hold numbers in column {series.name!r}; they are {series.dtype}.")
    values: NDArray[np.float64] = series.cast(nw.Float64).to_numpy()
    bad = np.flatnonzero(~np.isfinite(values))
    if bad.size:
        raise InputError(
            f"{source} must hold finite numbers in column {series.name!r}; line {bad[0]} counted from 0 is "
            f"{values[bad[0]]}: leave such lines out, or have NaN skipped by skip_missing=True."
        )
    return values


def _ids(series: nw.Series[Any], source: str) -> EncodedIds:
    if series.dtype.is_integer():
        return encode_integers(series.to_numpy())
    if series.dtype.is_float() and ((series == series.round()) & (series.abs() <= LARGEST_EXACT)).all():
        return encode_integers(series.to_numpy().astype(np.int64))  # in pandas, floats where one was missing
    where = f"{source}, column {series.name!r}"
    if dependencies.is_pyarrow_chunked_array(native := series.to_native()) and _is_arrow_text(native.type):
        names, codes = _arrow_texts(native, where)
        check_ids(where, names)
        return encode_names(names, codes)
    items = series.to_list()
    if all(isinstance(item, str) for item in items):
        number = {name: code for code, name in enumerate(dict.fromkeys(items))}
        check_ids(where, number)
        return encode_names(list(number), np.fromiter(map(number.__getitem__, items), dtype=np.int64, count=len(items)))
    if all(isinstance(item, int) and not isinstance(item, bool) for item in items):
        return encode_integers(np.array(items, dtype=np.int64))
    dates = isinstance(series.dtype, nw.Datetime | nw.Date)
    advice = f": turn dates into text, in pandas by df[{series.name!r}].astype(str)" if dates else ""
    raise InputError(
        f"{source} must hold integers or strings as ids in column {series.name!r}; they are {series.dtype}{advice}."
    )


def _is_arrow_text(kind: Any) -> bool:
    from pyarrow import types

    values = kind.value_type if types.is_dictionary(kind) else kind
    return bool(types.is_string(values) or types.is_large_string(values))


def _arrow_texts(column: Any, where: str) -> tuple[list[str], NDArray[np.int64]]:
    """The distinct texts of a pyarrow column, and the number of each line's; no text is held twice."""
    coded = column.dictionary_encode().unify_dictionaries().combine_chunks()
    used, codes = np.unique(coded.indices.to_numpy(), return_inverse=True)
    try:
        return coded.dictionary.take(used).to_pylist(), codes.astype(np.int64)
    except UnicodeDecodeError:
        raise InputError(f"{where} holds text that is not UTF-8, which parquet and arrow ask for.") from None
