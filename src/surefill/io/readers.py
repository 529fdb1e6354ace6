"""Observations from a file: one (row, column, value) per line, or a wide table."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from surefill.arrays import Array
from surefill.data.column_roles import (
    IF_WIDE,
    MOST_UNNAMED,
    Choice,
    Column,
    column_position,
    positions_of,
    usual_position,
    usual_roles,
    wide_table,
)
from surefill.data.observations import Observations
from surefill.data.wide_as_long import are_values
from surefill.errors import InputError
from surefill.inputs import check_exists
from surefill.io.delimited import TextFile
from surefill.io.excel import WORKBOOK_SUFFIXES, open_sheet
from surefill.io.files import PARQUET_SUFFIXES
from surefill.io.long_tables import LongTable, read_long_frame, read_long_frames, read_long_text
from surefill.io.numbers import check_decimal
from surefill.io.parquet import (
    only_numbers_beside_first,
    parquet_batches,
    parquet_length,
    parquet_names,
    read_parquet,
)
from surefill.io.side_tables import with_side_files
from surefill.io.wide import read_wide_parquet, read_wide_text
from surefill.kernels.decimal_spans import MISSING

BATCH_LINES = 1 << 20
"""Lines of parquet read at a time: some dozen megabytes."""

OTHER_KINDS = {
    ".xls": "a workbook of Excel before 2007, which is not read: save it as .xlsx or .csv",
    ".xlsb": "a binary workbook, which is not read: save it as .xlsx or .csv",
    ".ods": "an OpenDocument sheet, which is not read: save it as .xlsx or .csv",
    ".numbers": "a sheet of Numbers, which is not read: save it as .xlsx or .csv",
    ".zip": "an archive, which is not read: unpack it first",
    ".bz2": "compressed by bzip2, which is not read: decompress it, or compress it by gzip (.gz)",
    ".xz": "compressed by xz, which is not read: decompress it, or compress it by gzip (.gz)",
    ".zst": "compressed by zstandard, which is not read: decompress it, or compress it by gzip (.gz)",
}
"""Suffixes of files that people have and that are not read, and what to do."""


def read_observations(
    path: str | os.PathLike[str],
    *,
    row: Column = None,
    col: Column = None,
    value: Column = None,
    delimiter: str | None = None,
    header: bool | None = None,
    bounds: tuple[float, float] | None = None,
    wide: bool = False,
    skip_missing: bool = False,
    decimal: str | None = None,
    sheet: str | None = None,
    time: Column = None,
    row_features: str | os.PathLike[str] | None = None,
    col_features: str | os.PathLike[str] | None = None,
) -> Observations:
    """Observations from a text file (csv, tsv, dat, ...; ``.gz`` too), an Excel sheet, parquet or a folder of it.

    A long file has one observation per line; ids that are all integers become integer labels, others names; labels are
    sorted. A wide file has a line for each row and a column for each column of the matrix, and holes where nothing was
    seen; labels keep the order of the file.

    Parameters
    ----------
    row, col, value : names or 0-based positions of the columns. When not given, columns with usual names
        (user, item, rating and the like), or else the first, second and third. In a wide file ``row`` is the column
        with labels of rows, the first when not given, and the others are not used.
    delimiter : what separates fields in a text file, one or two characters; guessed when not given.
    header : whether a text file starts with column names; guessed when not given.
    bounds : (low, high), the range values may take; the range seen when not given.
    wide : whether the file is wide. Empty cells, NA and the like are holes.
    skip_missing : leave out lines of a long file whose value is empty, NA or the like, and count them in
        ``Observations.skipped``, instead of refusing them.
    decimal : "." or ",", the decimal sign; when not given, a point, or a comma where values show that it is one.
    sheet : the sheet of an Excel workbook; not needed where only one holds anything.
    time : the column of a long file that says when each observation was made: numbers, ISO dates or date-times. They
        become ``Observations.times``.
    row_features, col_features : files with side tables, a line for each row (or column): its label, in the column
        that is called as in ``path`` or else in the first, and numbers or kinds. See
        :meth:`surefill.Observations.with_features`.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import surefill as sf
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "ratings.csv"
    ...     _ = file.write_text("user,item,rating\\nann,Alien,5\\nbob,Alien,4\\nbob,Brazil,2\\n")
    ...     seen = sf.read_observations(file, bounds=(1, 5))
    ...     _ = file.write_text("name,Brazil,Alien\\nbob,2,4\\nann,,5\\n")
    ...     wide = sf.read_observations(file, bounds=(1, 5), wide=True)
    >>> seen.shape, len(seen), seen.row_labels.tolist()
    ((2, 2), 3, ['ann', 'bob'])
    >>> wide.shape, len(wide), wide.row_labels.tolist(), wide.col_labels.tolist()
    ((2, 2), 3, ['bob', 'ann'], ['Brazil', 'Alien'])
    """
    options = ReadOptions(row, col, value, delimiter, header, bounds, wide, skip_missing, decimal, sheet, time)
    options = replace(options, row_features=row_features, col_features=col_features)
    source = Path(path)
    check_source(source, options)
    if wide:
        return with_side_files(_read_wide(source, options), options.row_features, options.col_features)
    return _observations(_read_long(source, options, time), options)


def read_ordered(path: Path, options: ReadOptions, order_by: Column) -> tuple[Observations, Array]:
    """The observations in a long file, and when each cell was last drawn by the column ``order_by``."""
    check_source(path, options)
    if options.wide:
        raise InputError(f"{path}: a wide table has no column that says when; give a long file to order by one.")
    if options.time not in (None, order_by):
        raise InputError(f"{path}: give one column of times, for both order_by and time (--order-by and --time).")
    table = _read_long(path, options, order_by)
    observations = _observations(table, options)
    return observations, table.last_times(observations)


def _observations(table: LongTable, options: ReadOptions) -> Observations:
    """The observations of a long table, with their times where these were asked for."""
    dated = options.time is not None
    found = table.dated_observations(options.bounds) if dated else table.observations(options.bounds)
    return with_side_files(found, options.row_features, options.col_features)


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
    wide: bool = False
    skip_missing: bool = False
    decimal: str | None = None
    sheet: str | None = None
    time: Column = None
    row_features: str | os.PathLike[str] | None = None
    col_features: str | os.PathLike[str] | None = None

    @property
    def choice(self) -> Choice:
        """The columns of row, col and value, as far as they were given."""
        return {"row": self.row, "col": self.col, "value": self.value}

    @property
    def time_role(self) -> str:
        """What errors call the column of times: it is read for the observations, or only to order by."""
        return "order_by" if self.time is None else "time"

    def read(self, file: Path) -> Observations:
        """The observations in a file."""
        return read_observations(file, **vars(self))


def check_source(path: Path, options: ReadOptions) -> None:
    """Refuse what is no file, kinds of files that are not read, and options that do not go together."""
    check_exists(path, "a file with one observation per line")
    suffix = path.suffix.lower()
    if suffix in OTHER_KINDS:
        raise InputError(f"{path} is {OTHER_KINDS[suffix]}.")
    check_decimal(options.decimal)
    if options.sheet is not None and suffix not in WORKBOOK_SUFFIXES:
        raise InputError(f"{path} has no sheets; sheet is for Excel workbooks ({', '.join(WORKBOOK_SUFFIXES)}).")
    if options.wide:
        roles = options.choice | {"time": options.time}
        given = [name for name, column in roles.items() if name != "row" and column is not None]
        if given:
            raise InputError(f"a wide table has no column for {given[0]}; give {given[0]} for long files only.")
        if options.header is False:
            raise InputError(f"{path}: a wide table needs a first line with the names of its columns.")


def is_parquet(path: Path) -> bool:
    """Whether a path is a parquet file or a folder of them."""
    return path.is_dir() or path.suffix.lower() in PARQUET_SUFFIXES


def _read_long(path: Path, options: ReadOptions, order_by: Column = None) -> LongTable:
    if is_parquet(path):
        return _read_parquet(path, options, order_by)
    file = open_text(path, options)
    header, positions = choose_columns(file, options.choice, options.header)
    table = read_long_text(
        file,
        header,
        positions,
        order=column_position(file.path, file.fields, header, options.time_role, order_by),
        decimal=options.decimal,
        skip_missing=options.skip_missing,
        bounds=options.bounds,
    )
    _refuse_values_as_ids(path, table, file.fields if header else [""] * len(file.fields), options.choice)
    return table


def _refuse_values_as_ids(path: Path, table: LongTable, names: Sequence[str], choice: Choice) -> None:
    """Refuse three columns of values without labels of rows, where neither names nor options say what they hold."""
    told = any(column is not None for column in choice.values()) or any(role is not None for role in usual_roles(names))
    if told or len(names) != 3 or not are_values(table.rows.labels, table.cols.labels, table.values):
        return
    raise InputError(
        f"{path} looks like a matrix of 3 columns without labels of rows, not like a row, a column and a value in "
        "each line: say which columns hold row, col and value, or put labels of the rows first and give wide=True "
        "(--wide on the command line)."
    )


def open_text(path: Path, options: ReadOptions) -> TextFile:
    """The text of a file, or of a sheet of a workbook."""
    if path.suffix.lower() in WORKBOOK_SUFFIXES:
        return open_sheet(path, options.sheet, options.decimal)
    return TextFile(path, options.delimiter)


def _read_wide(path: Path, options: ReadOptions) -> Observations:
    if is_parquet(path):
        return read_wide_parquet(path, read_parquet(path), options.row, options.bounds)
    return read_wide_text(open_text(path, options), options.row, options.decimal, options.bounds)


def choose_columns(
    file: TextFile, choice: Choice, header: bool | None, may_be_wide: bool = True
) -> tuple[bool, tuple[int, int, int]]:
    """Whether the first record is a header, and where row, column and value are: as given, or guessed.

    A file that ``may_be_wide`` and looks like it is refused.
    """
    if header is None and may_be_wide and set(choice.values()) == {None} and _has_numbers_for_names(file):
        raise wide_table(file.path, len(file.fields) - 1, IF_WIDE)
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
    looks_wide = partial(_looks_wide, file) if may_be_wide else None
    return header, positions_of(file.path, file.fields, header, choice, looks_wide)


def _has_numbers_for_names(file: TextFile) -> bool:
    """Whether the first line names rows and then columns by number, as a pivot table does whose columns are ids."""
    first, *others = file.fields
    if len(others) < 2 or len(set(others)) < len(others) or not all(map(str.isdigit, others)) or _is_number(first):
        return False
    telling = first == "" or usual_position([first], "row") == 0
    return telling or all(_is_number(record[0]) for record in file.first_records())


def _looks_wide(file: TextFile) -> bool:
    """Whether beside the first column there are only numbers and holes, and where there are three no id comes twice."""
    if not all(_is_value(field) for record in file.first_records() for field in record[1:]):
        return False
    if len(file.fields) > 3:
        return True
    columns = file.columns((0, 1), header=True)
    return 1 < columns.count == len(columns.names(0)[0]) and all(map(_is_value, columns.names(1)[0]))


def _is_value(field: str) -> bool:
    return field.lower() in MISSING or _is_number(field)


def _read_parquet(path: Path, options: ReadOptions, order_by: Column) -> LongTable:
    names = parquet_names(path)
    looks_wide = partial(only_numbers_beside_first, path)
    row, col, value = (names[place] for place in positions_of(path, names, True, options.choice, looks_wide))
    place = column_position(path, names, True, options.time_role, order_by)
    order = None if place is None else names[place]
    found = _read_batches(path, (row, col, value), options.skip_missing) if order is None else None
    if found is None:
        table = read_parquet(path, list(dict.fromkeys([row, col, value, order or value])), ids=(row, col))
        found = read_long_frame(table, (row, col, value), str(path), order=order, skip_missing=options.skip_missing)
    _refuse_values_as_ids(path, found, names, options.choice)
    return found


def _read_batches(path: Path, names: tuple[str, str, str], skip_missing: bool) -> LongTable | None:
    """A long table some lines at a time; None where it is short, or where the whole has to tell what it is."""
    length = parquet_length(path)
    if length < 2 * BATCH_LINES:
        return None
    batches = parquet_batches(path, names, BATCH_LINES, names[:2])
    try:
        return read_long_frames(batches, names, str(path), skip_missing, length)
    except InputError:
        return None


def _looks_like_header(fields: Sequence[str], choice: Choice) -> bool:
    """Whether the first record has no number where ids and value are looked for, and text for the value."""
    places = [place if isinstance(place, int) else k for k, place in enumerate(choice.values())]
    looked_at = [fields[place] for place in places if 0 <= place < len(fields)]
    value_is_missing = bool(looked_at) and looked_at[-1].lower() in MISSING
    return not value_is_missing and not any(_is_number(field) for field in looked_at)


def _is_number(field: str) -> bool:
    try:
        float(field.replace(",", "."))
    except ValueError:
        return False
    return True
