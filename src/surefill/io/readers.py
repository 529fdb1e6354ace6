"""Observations from a file with one (row, column, value) per line."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surefill.data.containers import observations_from_columns
from surefill.data.observations import Observations
from surefill.errors import InputError, MissingExtraError, invalid_parameter
from surefill.io.delimited import TextColumns, TextFile
from surefill.io.files import PARQUET_SUFFIXES

Column = str | int | None
Choice = dict[str, Column]

MOST_UNNAMED = 8
"""Columns of a file without header from which the first three are taken; a file of more is likely a matrix."""

UNNAMED = ("row", "column", "value")
"""What the columns of a file without header are called."""

USUAL_NAMES = {
    "row": ("user", "userid", "uid", "row", "rowid", "person", "personid", "student", "studentid", "rater", "cellline"),
    "col": (
        "item",
        "itemid",
        "iid",
        "movie",
        "movieid",
        "film",
        "filmid",
        "title",
        "column",
        "columnid",
        "col",
        "colid",
        "product",
        "productid",
        "question",
        "questionid",
        "drug",
        "drugid",
    ),
    "value": ("rating", "value", "score", "response", "stars", "points"),
}
"""Column names, lower-case letters only, that a role is guessed from, the likeliest first."""


def read_observations(
    path: str | os.PathLike[str],
    *,
    row: Column = None,
    col: Column = None,
    value: Column = None,
    delimiter: str | None = None,
    header: bool | None = None,
    bounds: tuple[float, float] | None = None,
) -> Observations:
    """Observations from a text file (csv, tsv, dat, ...; ``.gz`` too), a parquet file or a folder of them.

    Ids that are all integers become integer labels, others names; labels are sorted.

    Parameters
    ----------
    row, col, value : names or 0-based positions of the columns. When not given, columns with usual names
        (user, item, rating and the like), or else the first, second and third.
    delimiter : what separates fields in a text file, one or two characters; guessed when not given.
    header : whether a text file starts with column names; guessed when not given.
    bounds : (low, high), the range values may take; the range seen when not given.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import surefill as sf
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "ratings.csv"
    ...     _ = file.write_text("user,item,rating\\nann,Alien,5\\nbob,Alien,4\\nbob,Brazil,2\\n")
    ...     seen = sf.read_observations(file, bounds=(1, 5))
    >>> seen.shape, len(seen), seen.row_labels.tolist()
    ((2, 2), 3, ['ann', 'bob'])
    """
    source, choice = Path(path), {"row": row, "col": col, "value": value}
    if not source.exists():
        raise InputError(f"{source} does not exist; a file with one observation per line is expected.")
    if source.is_dir() or source.suffix.lower() in PARQUET_SUFFIXES:
        return _read_parquet(source, choice, bounds)
    return _read_text(source, choice, delimiter, header, bounds)


@dataclass(frozen=True)
class ReadOptions:
    """How a file of observations is to be read; each option is that of :func:`surefill.read_observations`.

    Examples
    --------
    >>> import surefill as sf
    >>> sf.io.ReadOptions(row="user", col="item", value="stars", bounds=(1, 5)).header is None
    True
    """

    row: Column = None
    col: Column = None
    value: Column = None
    delimiter: str | None = None
    header: bool | None = None
    bounds: tuple[float, float] | None = None

    def read(self, file: Path) -> Observations:
        """The observations in a file."""
        return read_observations(file, **vars(self))


def _read_text(
    path: Path, choice: Choice, delimiter: str | None, header: bool | None, bounds: tuple[float, float] | None
) -> Observations:
    file = TextFile(path, delimiter)
    header, positions = choose_columns(file, choice, header)
    columns = file.columns(positions, header)
    (rows, cols), values = columns.ids(0, 1), columns.numbers(2)
    check_bounds(columns, values, bounds)
    row, col, value = (file.fields[position] for position in positions) if header else UNNAMED
    return Observations(
        rows.codes, cols.codes, values, bounds=bounds, row_labels=rows.labels, col_labels=cols.labels,
        names=(row, col, value),
    )  # fmt: skip


def choose_columns(file: TextFile, choice: Choice, header: bool | None) -> tuple[bool, tuple[int, int, int]]:
    """Whether the first record is a header, and where row, column and value are: as given, or guessed."""
    if header is None:
        named = any(isinstance(column, str) for column in choice.values())
        header = named or _looks_like_header(file.fields, choice)
    if (
        not header
        and len(file.fields) > MOST_UNNAMED
        and not any(isinstance(column, int) for column in choice.values())
    ):
        raise InputError(
            f"{file.path} has {len(file.fields)} columns and no header: say which hold row, col and value, or, if it "
            "is a matrix, load it as an array and use Observations.from_matrix."
        )
    return header, positions_of(file.path, file.fields, header, choice)


def _read_parquet(path: Path, choice: Choice, bounds: tuple[float, float] | None) -> Observations:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise MissingExtraError("reading parquet files", "io") from None
    parts, tables = _parts_of(path) if path.is_dir() else [path], []
    for part in parts:
        try:
            with parquet.ParquetFile(part) as file:
                names = file.schema_arrow.names
                row, col, value = (names[position] for position in positions_of(part, names, True, choice))
                tables.append(file.read(columns=[row, col, value]))
        except (pyarrow.ArrowException, OSError) as error:
            reason = str(error).partition("\n")[0].rstrip(".")
            raise InputError(f"{part} is damaged or not a parquet file: {reason}.") from None
        if tables[-1].schema != tables[0].schema:
            raise InputError(f"{part} has other columns than {parts[0]}; the parts of a table must have the same.")
    return observations_from_columns(pyarrow.concat_tables(tables), (row, col, value), bounds, str(path))


def _parts_of(folder: Path) -> list[Path]:
    """The parquet files of a folder, which hold one table, in the order of their names."""
    parts = sorted(path for path in folder.iterdir() if path.suffix.lower() in PARQUET_SUFFIXES)
    if not parts:
        raise InputError(
            f"{folder} is a folder without parquet files; a file with one observation per line is expected, or a "
            "folder of parquet files."
        )
    return parts


def _looks_like_header(fields: Sequence[str], choice: Choice) -> bool:
    """Whether the first record has no number where ids and value are looked for, and text for the value."""
    places = [place if isinstance(place, int) else k for k, place in enumerate(choice.values())]
    looked_at = [fields[place] for place in places if 0 <= place < len(fields)]
    return looked_at[-1:] != [""] and not any(_is_number(field) for field in looked_at)


def _is_number(field: str) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return True


def positions_of(path: Path, fields: Sequence[str], header: bool, choice: Choice) -> tuple[int, int, int]:
    """Where the row, column and value are among the fields of each record."""
    names = f" ({', '.join(fields)})" if header else ""
    if len(fields) < 3:
        count = "1 column" if len(fields) == 1 else f"{len(fields)} columns"
        raise InputError(f"{path} has {count}{names}; at least three are expected: row, column and value.")
    found = {axis: _position(path, fields, header, axis, column) for axis, column in choice.items()}
    unknown = [axis for axis, position in found.items() if position is None]
    if unknown and len(fields) > (3 if header else MOST_UNNAMED):
        raise InputError(
            f"{path} has {len(fields)} columns{names or ' and no header'}: say which hold {', '.join(unknown)}, or, if "
            "it is a matrix, load it as an array and use Observations.from_matrix."
        )
    row, col, value = (place if position is None else position for place, position in enumerate(found.values()))
    if len({row, col, value}) < 3:
        raise InputError(
            f"{path}: row, col and value must be three different columns, but {row}, {col} and {value} would "
            f"be taken; say which of the columns they are{names}."
        )
    return row, col, value


def _position(path: Path, fields: Sequence[str], header: bool, axis: str, column: Column) -> int | None:
    """Where one of the three is: as given, or by a usual name; None where neither says."""
    if column is None:
        plain = [re.sub(r"[^a-z]", "", field.lower()) for field in fields] if header else []
        return next((plain.index(name) for name in USUAL_NAMES[axis] if name in plain), None)
    if isinstance(column, str):
        if not header:
            raise InputError(f"{path} is read without header, so {axis} must be a position; got {column!r}.")
        if column not in fields:
            there = ", ".join(fields)
            raise InputError(f"{path} has no column {column!r} for {axis}; its columns are {there}.")
        return list(fields).index(column)
    if not isinstance(column, int):
        raise invalid_parameter("read_observations", axis, "a column name or a position", column)
    if not 0 <= column < len(fields):
        raise InputError(f"{path} has columns 0 to {len(fields) - 1}; {axis} is to be column {column}.")
    return column


def check_bounds(columns: TextColumns, values: NDArray[Any], bounds: tuple[float, float] | None) -> None:
    """Refuse values outside the bounds, naming the line of the first."""
    low, high = bounds or (-np.inf, np.inf)
    if not low < high:
        raise InputError(f"bounds must be two numbers, low < high; got ({low:g}, {high:g}).")
    outside = np.flatnonzero((values < low) | (values > high))
    if outside.size:
        first = int(outside[0])
        problem = f"the value {values[first]:g} is outside the bounds ({low:g}, {high:g})"
        raise InputError(f"{columns.where(first)}: {problem}.")
