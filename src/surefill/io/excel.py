"""Sheets of Excel workbooks as delimited text, so that they are read as text files are."""

from __future__ import annotations

import csv
import datetime
import io
import warnings
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from surefill.errors import InputError, MissingPackageError, few
from surefill.inputs import check_ratio
from surefill.io.delimited import TextFile

WORKBOOK_SUFFIXES = (".xlsx", ".xlsm")

ROWS_TO_LOOK_AT = 50
"""Rows in which a sheet that holds a table has something."""

BYTES_PER_CELL, BYTES_PER_ROW = 8, 64
"""Of a list of Python's, in which a row is held: a cell that is empty takes these, however few bytes say where the next
one is."""


def open_sheet(path: Path, sheet: str | None, decimal: str | None) -> TextFile:
    """A sheet as tab-separated text; numbers in it have the decimal sign that is expected of text."""
    try:
        import openpyxl
    except ImportError:
        raise MissingPackageError("reading Excel workbooks", "openpyxl") from None
    try:
        packed = _check_members(path)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of styles and extensions, which say nothing about values
            workbook = openpyxl.load_workbook(path, read_only=True, data_only=True)
            try:
                found, name = _choose(path, workbook, sheet)
                text = _as_text(path, packed, found, decimal or ".")
            finally:
                workbook.close()
    except InputError:
        raise
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}.") from None
    except (zipfile.BadZipFile, KeyError, ValueError, TypeError, SyntaxError, EOFError, AttributeError):
        raise InputError(f"{path} is damaged, protected by a password or not an Excel workbook.") from None
    return TextFile(Path(f"{path}, sheet {name!r}" if sheet else path), "\t", np.frombuffer(text, np.uint8))


def _check_members(path: Path) -> int:
    """Refuse a workbook that unpacks to far more than it is; its size. A member is never read beyond what it states."""
    with zipfile.ZipFile(path) as archive:
        packed = path.stat().st_size
        check_ratio(path, packed, sum(member.file_size for member in archive.infolist()))
    return packed


def _choose(path: Path, workbook: Any, sheet: str | None) -> tuple[Any, str]:
    """The sheet asked for, or the only one that is not empty, and its name."""
    sheets = {each.title: each for each in workbook.worksheets}
    if sheet is not None:
        if sheet not in sheets:
            raise InputError(f"{path} has no sheet {sheet!r}; its sheets are {few(list(sheets))}.")
        return sheets[sheet], sheet
    filled = [name for name, each in sheets.items() if _holds_something(each)]
    if len(filled) > 1:
        raise InputError(
            f"{path} has {len(filled)} sheets ({few(filled)}): say which with sheet (--sheet on the command line)."
        )
    if not filled:
        raise InputError(f"{path} is empty: one observation per line is expected.")
    return sheets[filled[0]], filled[0]


def _holds_something(sheet: Any) -> bool:
    sheet.reset_dimensions()  # what a file says of its own size is often wrong
    rows = sheet.iter_rows(max_row=ROWS_TO_LOOK_AT, values_only=True)
    return any(value is not None for row in rows for value in row)


def _as_text(path: Path, packed: int, sheet: Any, decimal: str) -> bytes:
    """Tab-separated lines of equal width, one per row; empty rows are empty lines.

    A cell far to the right, or a row far below, stands for all that are empty before it: these are counted.
    """
    sheet.reset_dimensions()
    rows, width, held = list[list[str]](), 0, 0
    for row in sheet.iter_rows(values_only=True):
        rows.append([_written(value, decimal) for value in row])
        width = max(width, max((k + 1 for k, text in enumerate(rows[-1]) if text), default=0))
        held += BYTES_PER_ROW + BYTES_PER_CELL * len(row)
        check_ratio(path, packed, max(held, len(rows) * width))
    out = io.StringIO()
    writer = csv.writer(out, delimiter="\t", lineterminator="\n")
    for row in rows:
        if any(row):
            writer.writerow((row + [""] * width)[:width])
        else:
            out.write("\n")
    return out.getvalue().encode()


def _written(value: Any, decimal: str) -> str:
    """A cell as text: numbers in full, dates as ISO, nothing where it is empty."""
    if value is None:
        return ""
    if isinstance(value, float):
        return repr(value).replace(".", decimal)
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    return str(value).replace("\0", "")
