"""Pairs of a row and a column to be scored, from a file: one per line, a value and other columns beside them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surefill.arrays import Array
from surefill.data.column_roles import USUAL_NAMES, column_position
from surefill.data.labels import as_text, text_array
from surefill.errors import InputError, few
from surefill.inputs import check_ids
from surefill.io.delimited import TextFile
from surefill.io.long_tables import UNNAMED, read_times
from surefill.io.parquet import parquet_names, read_parquet
from surefill.io.readers import ReadOptions, check_source, is_parquet, open_text
from surefill.io.times import parse_times


@dataclass(frozen=True, eq=False)
class Pairs:
    """The lines of a file: every column by name, which of them hold row and column, and values where there are any.

    ``values`` has NaN in lines without one, and is None where the file has no column of them; ``times`` likewise.
    """

    table: dict[str, NDArray[Any]]
    row: str
    col: str
    values: Array | None
    times: Array | None = None

    @property
    def rows(self) -> NDArray[Any]:
        """Labels of the rows."""
        return self.table[self.row]

    @property
    def cols(self) -> NDArray[Any]:
        """Labels of the columns."""
        return self.table[self.col]


def read_pairs(path: Path, options: ReadOptions, fitted: tuple[str, str, str]) -> Pairs:
    """The pairs in a text file, an Excel sheet or parquet.

    Columns are those given in ``options``, or called as at the fit (``fitted``), or have usual names; a file without
    header has row and column first.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "pairs.csv"
    ...     _ = file.write_text("why,item,user\\ntest,3,ann\\n,5,bob\\n")
    ...     pairs = read_pairs(file, ReadOptions(), ("user", "item", "rating"))
    >>> pairs.rows.tolist(), pairs.cols.tolist(), pairs.values, list(pairs.table)
    (['ann', 'bob'], [3, 5], None, ['why', 'item', 'user'])
    """
    check_source(path, options)
    if options.wide:
        raise InputError(f"{path}: pairs to score are read in long form, a row and a column in each line.")
    return _from_parquet(path, options, fitted) if is_parquet(path) else _from_text(path, options, fitted)


def first_fields(path: Path, options: ReadOptions) -> list[str]:
    """What the first line of a file says, or the names of the columns of parquet."""
    check_source(path, options)
    return parquet_names(path) if is_parquet(path) else list(open_text(path, options).fields)


def _from_text(path: Path, options: ReadOptions, fitted: tuple[str, str, str]) -> Pairs:
    file = open_text(path, options)
    header = _has_header(file, options, fitted)
    names = file.fields if header else _unnamed(len(file.fields), fitted)
    row, col, value = _places(path, names, header, options, fitted)
    columns = file.columns(range(len(names)), header)
    rows, cols = columns.ids(row, col)
    table = {name: text_array(columns.texts(place)) for place, name in enumerate(names) if place not in (row, col)}
    table |= {names[row]: rows.labels[rows.codes], names[col]: cols.labels[cols.codes]}
    values = None if value is None else columns.numbers(value, options.decimal)[0]
    table |= {} if value is None else {names[value]: values}  # type: ignore[dict-item]
    times = column_position(path, names, header, "time", options.time)
    when = None if times is None else read_times(columns, times, names[times])
    return Pairs({name: table[name] for name in names}, names[row], names[col], values, when)


def _from_parquet(path: Path, options: ReadOptions, fitted: tuple[str, str, str]) -> Pairs:
    read = read_parquet(path)
    names = [str(name) for name in read.column_names]
    row, col, value = _places(path, names, True, options, fitted)
    table = {name: np.asarray(column.to_numpy()) for name, column in zip(names, read.columns, strict=True)}
    for place in (row, col):
        if read.columns[place].null_count:
            raise InputError(f"{path} lacks ids in column {names[place]!r}; every row and column needs one.")
        if table[names[place]].dtype == object:
            table[names[place]] = as_text(table[names[place]])
            check_ids(f"{path}, column {names[place]!r}", set(table[names[place]].tolist()))
    if not len(read):
        raise InputError(f"{path} holds no pairs: at least one line is needed.")
    values = None if value is None else np.asarray(table[names[value]], dtype=np.float64)
    times = column_position(path, names, True, "time", options.time)
    when = None if times is None else _times(path, table[names[times]], names[times])
    return Pairs(table, names[row], names[col], values, when)


def _times(path: Path, column: NDArray[Any], name: str) -> Array:
    try:
        return parse_times([str(each) for each in column], name)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def _has_header(file: TextFile, options: ReadOptions, fitted: tuple[str, str, str]) -> bool:
    """As given; else true unless the model's own table had none and the first line has no usual names."""
    if options.header is not None:
        return options.header
    if fitted != UNNAMED or any(isinstance(column, str) for column in options.choice.values()):
        return True
    return all(column_position(file.path, file.fields, True, axis, None) is not None for axis in ("row", "col"))


def _unnamed(size: int, fitted: tuple[str, str, str]) -> list[str]:
    """Names for the columns of a file without header: those of the fit, then numbers."""
    return [*fitted, *(f"column{place}" for place in range(3, size))][:size]


def _places(
    path: Path, names: list[str], header: bool, options: ReadOptions, fitted: tuple[str, str, str]
) -> tuple[int, int, int | None]:
    """Where row, column and value are; the last may be missing."""
    if len(set(names)) < len(names):
        raise InputError(f"{path} must have columns of different names; some names occur twice.")
    if len(names) < 2:
        raise InputError(f"{path} has 1 column; a row and a column are expected in each line.")
    row, col, value = (
        _place(path, names, header, axis, column, name)
        for (axis, column), name in zip(options.choice.items(), fitted, strict=True)
    )
    if row is None or col is None or row == col:
        known = "" if fitted == UNNAMED else f" {fitted[0]!r} and {fitted[1]!r}, as at the fit"
        raise InputError(
            f"{path} needs columns of rows and columns{' called' if known else ''}{known}; it has {few(names)}: say "
            "which they are by row= and col= (--row and --col on the command line), or that there is no header "
            "(--no-header)."
        )
    return row, col, None if value in (row, col) else value


def _place(path: Path, names: list[str], header: bool, axis: str, given: Any, fitted: str) -> int | None:
    """Where one of the three is: as given, as called at the fit, by a usual name, or by its place without header."""
    if given is not None:
        return column_position(path, names, header, axis, given)
    if not header:
        place = list(USUAL_NAMES).index(axis)
        return place if place < len(names) else None
    return names.index(fitted) if fitted in names else column_position(path, names, header, axis, None)
