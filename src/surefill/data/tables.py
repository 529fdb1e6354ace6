"""Observations from a table in memory: pandas, polars or pyarrow."""

from __future__ import annotations

from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from surefill.data.labels import Axis, index_integers, index_names
from surefill.data.observations import Observations
from surefill.errors import InputError


def from_table(
    table: Any, *, row: str, col: str, value: str, bounds: tuple[float, float] | None = None
) -> Observations:
    """Observations from a pandas, polars or pyarrow table with one observation per line.

    Parameters
    ----------
    row, col : columns of ids: integers, strings or categories.
    value : column of numbers.
    bounds : (low, high), the range values may take; the range seen when not given.
    """
    return observations_from_columns(table, (row, col, value), bounds, "the table")


def observations_from_columns(
    table: Any, columns: tuple[str, str, str], bounds: tuple[float, float] | None, source: str
) -> Observations:
    """Observations from the (row, col, value) ``columns`` of a table; ``source`` is what errors call it."""
    frame = _as_frame(table, source)
    for name in columns:
        if name not in frame.columns:
            there = ", ".join(repr(column) for column in frame.columns)
            raise InputError(f"{source} has no column {name!r}; its columns are {there}.")
    if len(frame) == 0:
        raise InputError(f"{source} holds no observations: at least one line is needed.")
    series = [_without_nulls(frame.get_column(name), source) for name in columns]
    rows, cols = _ids(series[0], source), _ids(series[1], source)
    values = _numbers(series[2], source)
    return Observations(
        rows.codes, cols.codes, values, bounds=bounds, row_labels=rows.labels, col_labels=cols.labels, names=columns
    )


def _as_frame(table: Any, source: str) -> nw.DataFrame[Any]:
    try:
        return nw.from_native(table, eager_only=True)
    except TypeError:
        kind = f"{type(table).__module__}.{type(table).__qualname__}"
        raise InputError(f"{source} must be a pandas, polars or pyarrow table in memory; got a {kind}.") from None
    except nw.exceptions.DuplicateError:
        raise InputError(f"{source} must have columns of different names; some names occur twice.") from None


def _without_nulls(series: nw.Series[Any], source: str) -> nw.Series[Any]:
    missing = series.is_null()
    if missing.any():
        first, count = int(np.argmax(missing.to_numpy())), int(missing.sum())
        raise InputError(
            f"{source} lacks {count} of the entries of column {series.name!r}, the first in line {first} "
            "counted from 0; leave unseen entries out."
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
            f"{values[bad[0]]}: leave unseen entries out."
        )
    return values


def _ids(series: nw.Series[Any], source: str) -> Axis:
    if series.dtype.is_integer():
        return index_integers(series.to_numpy())
    items = series.to_list()
    if all(isinstance(item, str) for item in items):
        number = {name: code for code, name in enumerate(dict.fromkeys(items))}
        return index_names(list(number), np.fromiter(map(number.__getitem__, items), dtype=np.int64, count=len(items)))
    if all(isinstance(item, int) and not isinstance(item, bool) for item in items):
        return index_integers(np.array(items, dtype=np.int64))
    raise InputError(
        f"{source} must hold integers or strings as ids in column {series.name!r}; they are {series.dtype}."
    )
