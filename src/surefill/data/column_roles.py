"""Which columns of a long table hold the row, the column and the value: as given, by their usual names, or by place."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from surefill.errors import InputError, few, invalid_parameter

Column = str | int | None
Choice = dict[str, Column]

MOST_UNNAMED = 8
"""Columns of a file without header from which the first three are taken; a file of more is likely a matrix."""

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


def usual_position(names: Sequence[str], role: str) -> int | None:
    """Where the column with the likeliest name for a role is; of question1 and question2 neither is the one.

    >>> usual_position(["Movie ID", "User ID", "Rating"], "row"), usual_position(["question1", "question2"], "col")
    (1, None)
    """
    written = [re.sub(r"[^a-z0-9]", "", name.lower()) for name in names]
    letters = [re.sub(r"[0-9]", "", name) for name in written]
    for usual in USUAL_NAMES[role]:
        if usual in written:
            return written.index(usual)
        if usual in letters:
            return letters.index(usual) if letters.count(usual) == 1 else None
    return None


def usual_roles(names: Sequence[str]) -> tuple[int | None, int | None, int | None]:
    """Where row, column and value are by their usual names; None for each that has none."""
    row, col, value = (usual_position(names, role) for role in USUAL_NAMES)
    return row, col, value


IF_WIDE = "give wide=True (--wide on the command line)"
"""What to do with a file that is a wide table."""


def wide_table(source: object, n_columns: int, if_wide: str) -> InputError:
    """What to say of a table that looks like a wide one where a long one is expected."""
    return InputError(
        f"{source} looks like a wide table, with labels of rows and {n_columns:,} columns of values: {if_wide}, or say "
        "which columns hold row, col and value."
    )


def positions_of(
    source: object,
    fields: Sequence[str],
    header: bool,
    choice: Choice,
    looks_wide: Callable[[], bool] | None = None,
    if_wide: str = IF_WIDE,
) -> tuple[int, int, int]:
    """Where the row, column and value are among the fields of each record.

    ``source`` is what errors call the table, ``looks_wide`` whether it seems to be a wide one, asked where the choice
    does not say what is meant, and ``if_wide`` what to do if it is.

    >>> positions_of("ratings", ["film", "when", "user", "stars"], True, {"row": None, "col": None, "value": None})
    (2, 0, 3)
    """
    names = f" ({few(fields)})" if header else ""
    if len(fields) < 3:
        count = "1 column" if len(fields) == 1 else f"{len(fields)} columns"
        raise InputError(f"{source} has {count}{names}; at least three are expected: row, column and value.")
    found = {axis: column_position(source, fields, header, axis, column) for axis, column in choice.items()}
    unknown = [axis for axis, position in found.items() if position is None]
    row, col, value = (place if position is None else position for place, position in enumerate(found.values()))
    guessed = (unknown or len({row, col, value}) < 3) and choice["col"] is None and choice["value"] is None
    if guessed and row == 0 and header and looks_wide is not None and looks_wide():
        raise wide_table(source, len(fields) - 1, if_wide)
    if unknown and len(fields) > (3 if header else MOST_UNNAMED):
        wide = f", or, if it has a column for each item, {if_wide}"
        raise InputError(
            f"{source} has {len(fields)} columns{names or ' and no header'}: say which hold {' and '.join(unknown)}"
            f"{wide if header and looks_wide is not None else ''}."
        )
    if len({row, col, value}) < 3:
        raise InputError(
            f"{source}: row, col and value must be three different columns, but {row}, {col} and {value} would "
            f"be taken; say which of the columns they are{names}."
        )
    if header:
        _check_names(source, fields, (row, col, value))
    return row, col, value


def _check_names(source: object, fields: Sequence[str], places: tuple[int, int, int]) -> None:
    """Refuse a used column whose name another column has too: it is unclear which was meant."""
    for place in places:
        if fields.count(fields[place]) > 1:
            raise InputError(
                f"{source} has {fields.count(fields[place])} columns called {fields[place]!r}; give each column "
                "that is used a name of its own."
            )


def column_position(source: object, fields: Sequence[str], header: bool, axis: str, column: Column) -> int | None:
    """Where a column is: as given, or for row, col and value by a usual name; None where neither says."""
    if column is None:
        return usual_position(fields, axis) if header and axis in USUAL_NAMES else None
    if isinstance(column, str):
        if not header:
            raise InputError(f"{source} is read without header, so {axis} must be a position; got {column!r}.")
        if column not in fields:
            raise InputError(f"{source} has no column {column!r} for {axis}; its columns are {few(fields)}.")
        return list(fields).index(column)
    if not isinstance(column, int):
        raise invalid_parameter("read_observations", axis, "a column name or a position", column)
    if not 0 <= column < len(fields):
        raise InputError(f"{source} has columns 0 to {len(fields) - 1}; {axis} is to be column {column}.")
    return column
