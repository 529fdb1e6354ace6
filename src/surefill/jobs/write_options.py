"""What is written of a completed matrix, and how."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np

from surefill.arrays import Indices
from surefill.data import Observations
from surefill.errors import InputError, invalid_parameter, is_number, is_seed
from surefill.estimators.long_table import Entries
from surefill.io.excel_writer import check_excel_size
from surefill.io.files import EXCEL_SUFFIXES
from surefill.jobs.digits import MOST_DIGITS

Layout = Literal["long", "wide"]

MOST_WIDE_COLUMNS = 16_384
"""Columns of a wide table: as many as Excel has, and more than data frames or parquet are made for."""


@dataclass(frozen=True)
class WriteOptions:
    """Which cells of a completed matrix are written, with how many digits, and in which layout.

    Parameters
    ----------
    entries : cells to write: "kept" the observed and the kept ones, "missing" all that were not observed, "all".
    top_n : only this many cells of each row: those with the largest values among its kept cells that were not
        observed, the largest first. A promise about all filled cells is not one about these.
    rows : a file with one row label per line; only these rows are written, in its order. All when None.
    digits : after the point of completed values; when None two more than observed values have, or than an error to be
        expected calls for. Observed values are written as they were read. What is promised is about values before
        rounding.
    level : adds the columns low and high of intervals that hold a new observation with this probability.
    layout : "long", a line for each cell, or "wide", a line for each row and a column for each column, empty where a
        cell is not written; None takes that of the file read, and of a model "long".

    Examples
    --------
    >>> import surefill as sf
    >>> sf.jobs.WriteOptions(top_n=10, digits=1).entries
    'kept'
    """

    entries: Entries = "kept"
    top_n: int | None = None
    rows: str | Path | None = None
    digits: int | None = None
    level: float | None = None
    layout: Layout | None = None

    def __post_init__(self) -> None:
        if self.entries not in ("kept", "missing", "all"):
            raise invalid_parameter("WriteOptions", "entries", "'kept', 'missing' or 'all'", self.entries)
        if self.top_n is not None and not (is_seed(self.top_n) and self.top_n > 0):
            raise invalid_parameter("WriteOptions", "top_n", "a whole number of at least 1, or None", self.top_n)
        if self.digits is not None and not (is_seed(self.digits) and self.digits <= MOST_DIGITS):
            expected = f"a whole number from 0 to {MOST_DIGITS}, or None"
            raise invalid_parameter("WriteOptions", "digits", expected, self.digits)
        if self.level is not None and not (is_number(self.level) and 0 < self.level < 1):
            raise invalid_parameter("WriteOptions", "level", "a number above 0 and below 1, or None", self.level)
        if self.layout not in ("long", "wide", None):
            raise invalid_parameter("WriteOptions", "layout", "'long', 'wide' or None", self.layout)
        if self.top_n is not None and self.entries != "kept":
            raise InputError("the top n of each row are kept cells: they go with the entries 'kept', not with others.")
        if self.level is not None and self.layout == "wide":
            raise InputError("intervals are columns of a long table: a wide one (--write wide) has no place for them.")

    def in_layout(self, of_file: Layout) -> WriteOptions:
        """The same, in the layout of the file read where none was asked for."""
        return self if self.layout is not None else replace(self, layout=of_file)

    def rows_of(self, seen: Observations) -> Indices:
        """Positions of the rows to write."""
        return np.arange(seen.shape[0]) if self.rows is None else rows_named(Path(self.rows), seen)

    def check_size(self, seen: Observations, n_rows: int, output: Path) -> None:
        """Refuse a table whose layout or kind of file is too small for it, as far as that is known before a fit."""
        n = seen.shape[1]
        if self.layout == "wide" and n > MOST_WIDE_COLUMNS:
            raise InputError(
                f"a wide table of {n:,} columns is more than the {MOST_WIDE_COLUMNS:,} that programs can open: write a "
                "long one (--write long)."
            )
        if output.suffix.lower() in EXCEL_SUFFIXES:
            # Of kept cells it is known only after the fit how many there are.
            lines = {"kept": 0, "missing": n_rows * n - len(seen), "all": n_rows * n}[self.entries]
            check_excel_size(*((n_rows, n + 1) if self.layout == "wide" else (lines, 0)))


def rows_named(file: Path, seen: Observations) -> Indices:
    """Positions of the rows whose labels a file lists, one per line, each row once."""
    try:
        text = file.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not text in UTF-8"
        raise InputError(f"{file}, which is to list row labels, cannot be read: {reason}.") from None
    lines = [line.removesuffix("\r") for line in text.split("\n") if line.strip()]
    if not lines:
        raise InputError(f"{file} is to list row labels, one per line, and is empty.")
    labels = seen.row_names(np.arange(seen.shape[0])).tolist()
    positions = {str(label): position for position, label in enumerate(labels)}
    wanted = [line if line in positions else line.strip() for line in lines]
    unknown = [label for label in wanted if label not in positions]
    if unknown:
        others = f", and neither are {len(unknown) - 1:,} others of its lines" if len(unknown) > 1 else ""
        raise InputError(f"{file} names the row {unknown[0]!r}, which is not in the data{others}.")
    return np.array([positions[label] for label in dict.fromkeys(wanted)], dtype=np.int64)
