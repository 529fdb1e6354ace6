"""Long tables: one observation per line, a row id, a column id and a value, and if asked for when it was made."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from surefill.arrays import Array, Floats
from surefill.data.compact import joined_floats, shortest_floats
from surefill.data.containers import encoded_columns
from surefill.data.labels import EncodedIds, merge_encoded, merge_labels
from surefill.data.observations import Observations
from surefill.errors import InputError
from surefill.inputs import check_range
from surefill.io.delimited import TextColumns, TextFile
from surefill.io.times import parse_times
from surefill.parallel import current_map

Positions = tuple[int, int, int]

UNNAMED = ("row", "column", "value")
"""What the columns of a file without header are called."""


@dataclass(frozen=True, eq=False)
class LongTable:
    """The lines of a long table that have a value: ids, values, times where asked for, and how many were skipped."""

    rows: EncodedIds
    cols: EncodedIds
    values: Floats
    names: tuple[str, str, str]
    skipped: int
    times: Array | None = None

    def observations(self, bounds: tuple[float, float] | None) -> Observations:
        """The observations, repeats of a cell merged."""
        return Observations(
            self.rows.codes,
            self.cols.codes,
            self.values,
            bounds=bounds,
            row_labels=self.rows.labels,
            col_labels=self.cols.labels,
            names=self.names,
            skipped=self.skipped,
        )

    def dated_observations(self, bounds: tuple[float, float] | None) -> Observations:
        """The observations with their times, of repeats the mean."""
        assert self.times is not None
        return self.observations(bounds).with_mean_times(self.rows.codes, self.cols.codes, self.times)

    def last_times(self, observations: Observations) -> Array:
        """When each observed cell was last drawn."""
        assert self.times is not None
        last = np.full(len(observations), -np.inf)
        np.maximum.at(last, observations.find(self.rows.codes, self.cols.codes), self.times)
        return last


def read_long_text(
    file: TextFile,
    header: bool,
    positions: Positions,
    *,
    order: int | None = None,
    decimal: str | None = None,
    skip_missing: bool = False,
    bounds: tuple[float, float] | None = None,
) -> LongTable:
    """The lines of a text file, its row, column and value at ``positions``, and times at ``order``."""
    file.check_decimal(decimal)
    if order is None and len(pieces := file.pieces(header)) > 1:
        names = (file.fields[positions[0]], file.fields[positions[1]], file.fields[positions[2]]) if header else UNNAMED
        table = _read_pieces(file, pieces, positions, names, decimal, skip_missing, bounds)
        if table is not None:
            return table
    wanted = (*positions, order) if order is not None and order not in positions else positions
    columns, values, _, skipped = PresentValues.of(file.columns(wanted, header), decimal, skip_missing)
    if not columns.count:
        raise InputError(f"{file.path} holds no values: all of its {skipped:,} lines lack one.")
    rows, cols = columns.ids(0, 1)
    check_bounds(columns, values, bounds)
    row, col, value = (file.fields[position] for position in positions) if header else UNNAMED
    times = None
    if order is not None:
        name = file.fields[order] if header else str(order)
        times = read_times(columns, wanted.index(order), name)
    return LongTable(rows, cols, values, (row, col, value), skipped, times)


def _read_pieces(
    file: TextFile,
    pieces: list[tuple[int, int, int]],
    positions: Positions,
    names: tuple[str, str, str],
    decimal: str | None,
    skip_missing: bool,
    bounds: tuple[float, float] | None,
) -> LongTable | None:
    """The lines of a long file piece by piece, each made compact at once; None where pieces are not alike.

    They are not where only some have decimal commas, or text for ids: then the whole file tells what it is.
    """

    def read(piece: tuple[int, int, int]) -> tuple[LongTable | None, str]:
        columns, values, sign, skipped = PresentValues.of(
            file.columns_of_piece(piece, positions), decimal, skip_missing
        )
        if not columns.count:
            return None, sign
        check_bounds(columns, values, bounds)
        rows, cols = columns.ids(0, 1)
        return LongTable(rows, cols, shortest_floats(values), names, skipped), sign

    found = current_map().map(read, pieces)
    tables = [table for table, _ in found if table is not None]
    alike = len(tables) == len(pieces) and len({sign for _, sign in found}) == 1
    return joined_tables(tables) if alike else None


def joined_tables(tables: Sequence[LongTable]) -> LongTable | None:
    """The lines of several tables in one; None where the ids of some are integers and those of others text."""
    rows, cols = (merge_encoded([getattr(table, side) for table in tables]) for side in ("rows", "cols"))
    if rows is None or cols is None:
        return None
    values, skipped = joined_floats([table.values for table in tables]), sum(table.skipped for table in tables)
    return LongTable(rows, cols, values, tables[0].names, skipped)


class PresentValues(NamedTuple):
    """The records of a text that have a value: their columns, values and decimal sign, and how many were skipped."""

    columns: TextColumns
    values: Array
    sign: str
    skipped: int

    @classmethod
    def of(cls, columns: TextColumns, decimal: str | None, skip_missing: bool) -> PresentValues:
        """Values are in the third column; one that is missing is skipped on request and refused otherwise."""
        values, sign = columns.numbers(2, decimal)
        missing = np.isnan(values)
        if not missing.any():
            return cls(columns, values, sign, 0)
        if not skip_missing:
            raise columns.missing_value(2, int(np.argmax(missing)))
        return cls(columns.select(~missing), values[~missing], sign, int(missing.sum()))


def read_times(columns: TextColumns, column: int, name: str) -> Array:
    """A column of times as numbers that grow with time."""
    texts, codes, _ = columns.names(column)
    try:
        return parse_times(texts, name)[codes]
    except InputError as error:
        raise InputError(f"{columns.path}: {error}") from None


def check_bounds(columns: TextColumns, values: Array, bounds: tuple[float, float] | None) -> None:
    """Refuse values outside the bounds, naming the line of the first."""
    if bounds is None:
        return
    low, high = bounds
    check_range(low, high)
    outside = np.flatnonzero((values < low) | (values > high))
    if outside.size:
        first = int(outside[0])
        problem = f"the value {values[first]:g} is outside the bounds ({low:g}, {high:g})"
        raise InputError(f"{columns.where(first)}: {problem}.")


def read_long_frame(
    table: Any, names: tuple[str, str, str], source: str, *, order: str | None = None, skip_missing: bool = False
) -> LongTable:
    """The lines of a table in memory, as :func:`read_long_text` gives those of a text."""
    found = encoded_columns(table, names, source, skip_missing)
    times = None
    if order is not None:
        texts, codes = np.unique([str(each) for each in found.column(order)], return_inverse=True)
        try:
            times = parse_times(texts.tolist(), order)[codes]
        except InputError as error:
            raise InputError(f"{source}: {error}") from None
    return LongTable(found.rows, found.cols, found.values, names, found.skipped, times)


def read_long_frames(
    tables: Iterable[Any], names: tuple[str, str, str], source: str, skip_missing: bool, length: int
) -> LongTable | None:
    """The lines of a table of ``length`` lines that comes in parts; None where the parts are not alike."""
    lines: _JoinedLines | None = None
    for table in tables:
        part = read_long_frame(table, names, source, skip_missing=skip_missing)
        lines = lines or _JoinedLines(length)  # not before a first part was found sound
        lines.add(part)
    return None if lines is None else lines.table(names)


class _JoinedLines:
    """Lines that come in parts, in arrays for all of them: hundreds of small arrays, once they are not needed any more,
    would leave memory that no large array can use."""

    def __init__(self, length: int) -> None:
        self._codes: tuple[NDArray[np.int32], ...] = np.empty(length, np.int32), np.empty(length, np.int32)
        self._values: Floats = np.empty(length, np.float32)
        self._labels: tuple[list[NDArray[Any]], ...] = [], []
        self._ends, self._skipped = [0], 0

    def add(self, part: LongTable) -> None:
        """The lines of one more part."""
        here = slice(self._ends[-1], self._ends[-1] + len(part.values))
        for codes, labels, ids in zip(self._codes, self._labels, (part.rows, part.cols), strict=True):
            codes[here] = ids.codes
            labels.append(ids.labels)
        values = shortest_floats(part.values)
        if values.dtype != self._values.dtype and self._values.dtype == np.float32:
            self._values = self._values.astype(np.float64)
        self._values[here] = values
        self._ends.append(here.stop)
        self._skipped += part.skipped

    def table(self, names: tuple[str, str, str]) -> LongTable | None:
        """All lines; None where the ids of some parts are integers and those of others text."""
        rows, cols = (self._encoded(codes, labels) for codes, labels in zip(self._codes, self._labels, strict=True))
        if rows is None or cols is None:
            return None
        return LongTable(rows, cols, self._values[: self._ends[-1]], names, self._skipped)

    def _encoded(self, codes: NDArray[np.int32], labels: list[NDArray[Any]]) -> EncodedIds | None:
        """The ids of an axis; the codes of each part are overwritten."""
        merged = merge_labels(labels)
        if merged is None:
            return None
        for place, (first, last) in zip(merged[1], pairwise(self._ends), strict=True):
            codes[first:last] = place[codes[first:last]]
        return EncodedIds(merged[0], codes[: self._ends[-1]])
