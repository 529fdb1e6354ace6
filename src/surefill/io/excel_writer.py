"""Excel sheets, written line by line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surefill.errors import InputError
from surefill.io.files import Block, Write

MOST_EXCEL_LINES, MOST_EXCEL_COLUMNS, MOST_EXCEL_SIGNS = 1_048_576, 16_384, 32_767
"""What a sheet of Excel can hold: lines with the header's, columns, and signs in a cell."""

FORBIDDEN = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f]")
"""Signs that no cell of a sheet may hold: XML has none of them."""


@contextmanager
def excel_file(path: Path) -> Iterator[Write]:
    """A function that adds blocks to the one sheet of a workbook; text is never taken for a formula."""
    from openpyxl import Workbook

    workbook = Workbook(write_only=True)
    sheet, lines = workbook.create_sheet("surefill"), 0

    def write(block: Block) -> None:
        nonlocal lines
        if lines == 0:
            check_excel_size(0, len(block))
            sheet.append([_text(sheet, name) for name in block])
            lines = 1
        lines += len(next(iter(block.values())))
        check_excel_size(lines - 1, len(block))
        for line in zip(*(_cells(sheet, np.asarray(column)) for column in block.values()), strict=True):
            sheet.append(line)

    try:
        yield write
    except BaseException:
        sheet.close()  # openpyxl keeps lines in a file of its own until then
        raise
    workbook.save(path)


def check_excel_size(lines: int, columns: int) -> None:
    """Refuse a table that is larger than a sheet can be.

    >>> check_excel_size(1000, 20)
    """
    if lines >= MOST_EXCEL_LINES or columns > MOST_EXCEL_COLUMNS:
        raise InputError(
            f"a sheet of Excel holds at most {MOST_EXCEL_LINES - 1:,} lines under its header and "
            f"{MOST_EXCEL_COLUMNS:,} columns, which this table exceeds; write .csv or .parquet, or fewer cells."
        )


def _cells(sheet: Any, column: NDArray[Any]) -> list[Any]:
    """A column as what openpyxl takes: numbers, truth values, text, and None where there is no number."""
    if column.dtype.kind == "f":
        return [cell if np.isfinite(cell) else None for cell in column.tolist()]
    if column.dtype.kind in "biu":
        return list(column.tolist())
    return [_text(sheet, str(cell)) for cell in column.tolist()]


def _text(sheet: Any, text: str) -> Any:
    """Text as a cell; what begins like a formula is marked as text, which it stays."""
    from openpyxl.cell import WriteOnlyCell

    if len(text) > MOST_EXCEL_SIGNS or FORBIDDEN.search(text):
        raise InputError(
            f"the label {text[:20]!r} cannot be written to Excel, which takes up to {MOST_EXCEL_SIGNS:,} signs and no "
            "control signs; write .csv or .parquet."
        )
    if not text.startswith("="):
        return text
    cell = WriteOnlyCell(sheet, value=text)
    cell.data_type = "s"
    return cell
