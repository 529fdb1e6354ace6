"""Wide tables: a line for each row of the matrix, a column for each of its columns, holes where nothing was seen."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surefill.arrays import Array
from surefill.data.column_roles import MOST_UNNAMED, usual_roles
from surefill.data.labels import text_array, whole_numbers
from surefill.data.observations import Observations
from surefill.errors import InputError, few
from surefill.inputs import check_ids
from surefill.io.delimited import TextColumns, TextFile

INTEGER = re.compile(r"0|-?[1-9]\d{0,17}")
"""A whole number as one writes it, which surely fits in 64 bits."""


def read_wide_text(
    file: TextFile, row: str | int | None, decimal: str | None, bounds: tuple[float, float] | None
) -> Observations:
    """Observations from a wide text file, with labels and column names in the order of the file.

    The first line has the names of the columns, and one column, the first unless ``row`` says another, the labels of
    the rows. Empty cells and words such as NA are holes.
    """
    file.check_decimal(decimal)
    check_not_long(file.path, file.fields, row)
    label_column = label_position(file.path, file.fields, row)
    places = [place for place in range(len(file.fields)) if place != label_column]
    names = [file.fields[place] for place in places]
    check_column_names(file.path, names, places)
    low, high = bounds or (-np.inf, np.inf)
    labels, known, cells = list[str](), set[str](), list[tuple[Any, ...]]()
    for block in file.blocks():
        matrix, sign = block.matrix(places, names, decimal)
        if decimal is None and sign == ",":
            return read_wide_text(file, row, sign, bounds)  # from the start, so that no value has a point
        _check_block(block, matrix, names, low, high)
        _add_labels(block, label_column, labels, known)
        i, j = np.nonzero(~np.isnan(matrix))
        cells.append((i + len(labels) - block.count, j, matrix[i, j]))
    if not labels:
        raise InputError(f"{file.path} holds a header and no rows: at least one line must follow.")
    rows, cols, values = (np.concatenate(parts) for parts in zip(*cells, strict=True))
    return wide_observations(file.path, (rows, cols, values), labels, names, file.fields[label_column], bounds)


def _check_block(block: TextColumns, matrix: Array, names: Sequence[str], low: float, high: float) -> None:
    outside = np.argwhere((matrix < low) | (matrix > high))
    if outside.size:
        i, j = outside[0]
        raise InputError(
            f"{block.where(int(i))}, column {names[j]!r}: the value {matrix[i, j]:g} is outside the bounds "
            f"({low:g}, {high:g})."
        )


def _add_labels(block: TextColumns, column: int, labels: list[str], known: set[str]) -> None:
    """Append the labels of a block's rows; each must be there, and once."""
    for record, label in enumerate(block.texts(column)):
        if not label:
            raise InputError(f"{block.where(record)}: the row has no label; every row of a wide table needs one.")
        if label in known:
            raise InputError(
                f"{block.where(record)}: there is a row {label!r} before, and in a wide table each has one line; a "
                "long one, with one observation per line, is read without wide."
            )
        known.add(label)
        labels.append(label)


def check_not_long(path: Path, names: Sequence[str], row: str | int | None) -> None:
    """Refuse a table with few columns, three of which have the usual names of those of a long one."""
    roles = usual_roles(names)
    if row is None and len(names) <= MOST_UNNAMED and None not in roles and len(set(roles)) == 3:
        long = ", ".join(names[place] for place in roles if place is not None)
        raise InputError(
            f"{path} looks like a long table, one observation per line in columns {long}: leave out wide=True (--wide "
            "on the command line), or say which column has the labels of rows."
        )


def label_position(path: Path, names: Sequence[str], row: str | int | None) -> int:
    """Where the labels of rows are: as given, or first."""
    if len(names) < 2:
        raise InputError(f"{path} has 1 column; a wide table has one with labels of rows and others with values.")
    if row is None:
        return 0
    if isinstance(row, str):
        if row not in names:
            raise InputError(f"{path} has no column {row!r} for row; its columns are {few(names)}.")
        return list(names).index(row)
    if not 0 <= row < len(names):
        raise InputError(f"{path} has columns 0 to {len(names) - 1}; row is to be column {row}.")
    return row


def check_column_names(path: Path, names: Sequence[str], places: Sequence[int]) -> None:
    """Refuse columns without a name, and two of one name."""
    seen = set[str]()
    for name, place in zip(names, places, strict=True):
        if not name:
            raise InputError(
                f"{path}: column {place} counted from 0 has no name; every column of a wide table needs one."
            )
        if name in seen:
            raise InputError(f"{path}: two columns are called {name!r}; in a wide table every column has its own name.")
        seen.add(name)


def wide_observations(
    path: Path,
    cells: tuple[NDArray[Any], NDArray[Any], Array],
    row_labels: Sequence[str | int],
    col_labels: Sequence[str],
    row_name: str,
    bounds: tuple[float, float] | None,
) -> Observations:
    """Observations of labelled rows and columns, those without a value included."""
    rows, cols, values = cells
    if not len(values):
        raise InputError(f"{path} holds no values: at least one cell must be seen.")
    for labels in (row_labels, col_labels):
        check_ids(str(path), map(str, labels))
    return Observations(
        rows,
        cols,
        values,
        (len(row_labels), len(col_labels)),
        bounds,
        row_labels=_as_ids(row_labels),
        col_labels=_as_ids(col_labels),
        names=(row_name if row_name and row_name != INDEX_NAME else "row", "column", "value"),
    )


def _as_ids(labels: Sequence[str | int]) -> NDArray[Any]:
    """Integers where all labels are, as in long files; text otherwise."""
    if all(INTEGER.fullmatch(str(label)) for label in labels):
        return np.array([int(label) for label in labels], dtype=np.int64)
    whole = whole_numbers([str(label) for label in labels])
    if whole is not None and len(np.unique(whole)) == len(whole):
        return whole
    return text_array([str(label) for label in labels])


INDEX_NAME = "__index_level_0__"
"""What pandas calls an index without a name in a parquet file."""


def read_wide_parquet(
    path: Path, table: Any, row: str | int | None, bounds: tuple[float, float] | None
) -> Observations:
    """Observations from a wide pyarrow table; labels are in its first column, or in the index that pandas kept."""
    names = [str(name) for name in table.column_names]
    check_not_long(path, names, row)
    label_column = label_position(path, names, _index_name(table) if row is None else row)
    places = [place for place in range(len(names)) if place != label_column]
    check_column_names(path, [names[place] for place in places], places)
    labels = table.column(label_column).to_pylist()
    if any(label is None or label == "" for label in labels):
        raise InputError(f"{path}: a row has no label; every row of a wide table needs one.")
    twice = [label for label, count in Counter(labels).items() if count > 1]
    if twice:
        raise InputError(f"{path}: two rows are called {str(twice[0])!r}; in a wide table each has one line.")
    columns = [_floats(path, names[place], table.column(place)) for place in places]
    matrix = np.stack(columns, axis=1)
    infinite = np.argwhere(np.isinf(matrix))
    if infinite.size:
        raise InputError(f"{path}, column {names[places[infinite[0][1]]]!r}: values must be finite numbers.")
    i, j = np.nonzero(~np.isnan(matrix))
    cells = i, j, matrix[i, j]
    return wide_observations(path, cells, labels, [names[place] for place in places], names[label_column], bounds)


def _index_name(table: Any) -> str | None:
    """The column that pandas kept its index in, if it did."""
    try:
        index = json.loads(table.schema.metadata[b"pandas"])["index_columns"][0]
    except (KeyError, TypeError, ValueError, IndexError):
        return None
    return index if isinstance(index, str) else None


def _floats(path: Path, name: str, column: Any) -> Array:
    from pyarrow import float64, types

    numeric = types.is_integer, types.is_floating, types.is_boolean, types.is_decimal, types.is_null
    if not any(kind(column.type) for kind in numeric):
        raise InputError(f"{path}, column {name!r}: numbers are expected; they are {column.type}.")
    values: Array = column.cast(float64(), safe=False).to_numpy()
    return values
