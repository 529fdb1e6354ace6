"""Records (row, column, value) from a file or pipe, a few lines at a time, each at a known place in the input."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from surefill.data.checks import LARGEST_VALUE
from surefill.data.column_roles import Choice, Column, column_position, positions_of
from surefill.errors import InputError
from surefill.io.delimited import TextFile
from surefill.io.long_tables import PresentValues, check_bounds
from surefill.io.readers import choose_columns
from surefill.io.times import parse_times
from surefill.kernels.decimal_spans import MISSING

CHUNK = 1 << 18
"""Bytes read at a time: thousands of lines, which amortises a call, and little memory."""


LINES_AT_ONCE = 1 << 20
"""Lines read at a time where all are wanted."""


class Place(NamedTuple):
    """How far the input was read: bytes (decompressed), lines, records, and lines skipped for want of a value."""

    position: int = 0
    lines: int = 0
    records: int = 0
    skipped: int = 0


class Records(NamedTuple):
    """Labels as text and values, in the order of the input, the place after them, and times as text if asked for."""

    rows: NDArray[Any]
    cols: NDArray[Any]
    values: NDArray[np.float64]
    place: Place
    times: NDArray[Any] | None = None


class RecordReader:
    """A csv, tsv or dat text, or JSON lines (known by its first sign, a brace), read from a binary file piece by piece.

    A record is one line. What has arrived is given out at once, so a pipe is read as it fills.

    Parameters
    ----------
    file : opened for reading bytes, at its start.
    name : what errors call it.
    choice, delimiter, header, bounds, decimal, skip_missing : as in :func:`read_observations`.
    order_by : the column with times, where records are to be sorted.
    """

    def __init__(
        self,
        file: IO[bytes],
        name: str,
        choice: Choice,
        delimiter: str | None = None,
        header: bool | None = None,
        bounds: tuple[float, float] | None = None,
        decimal: str | None = None,
        skip_missing: bool = False,
        order_by: Column = None,
    ) -> None:
        self.name, self._bounds, self._decimal, self._skip_missing = name, bounds, decimal, skip_missing
        self._lines = _Lines(file, name)
        first = self._lines.peek()
        self.first_line = zlib.crc32(first.partition(b"\n")[0])
        self._json = first.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{")
        if self._json:
            fields = list(_object(name, 1, first.lstrip(b"\xef\xbb\xbf \t\r\n").partition(b"\n")[0]))
            self._keys = [fields[place] for place in positions_of(Path(name), fields, True, choice)]
            self.columns: tuple[str, ...] = tuple(self._keys)
            order = column_position(Path(name), fields, True, "order_by", order_by)
            self.order_name = None if order is None else fields[order]
            return
        self._text = TextFile(Path(name), delimiter, np.frombuffer(first, np.uint8))
        has_header, self._positions = choose_columns(self._text, choice, header, may_be_wide=False)
        self.columns = (
            tuple(self._text.fields[place] for place in self._positions) if has_header else ("row", "column", "value")
        )
        self._text.check_decimal(decimal)
        self._order = column_position(Path(name), self._text.fields, has_header, "order_by", order_by)
        self.order_name = (
            None if self._order is None else self._text.fields[self._order] if has_header else str(order_by)
        )
        self._lines.skip(self._text.records_begin(has_header))

    def resume(self, place: Place) -> None:
        """Go on reading after ``place``: a file is positioned, a pipe is read up to there and not looked at."""
        self._lines.resume(place)

    def pieces(self, limit: Callable[[], int]) -> Iterator[Records]:
        """Records from here to the end of the input, at most ``limit()`` lines of it at a time."""
        records, skipped = self._lines.place[2:]
        while piece := self._lines.next(limit()):
            before = self._lines.place.lines - piece.count(b"\n")
            parsed = (self._parse_json if self._json else self._parse_text)(piece, before)
            records += len(parsed.values)
            skipped += parsed.place.skipped
            self._lines.place = self._lines.place._replace(records=records, skipped=skipped)
            yield parsed._replace(place=self._lines.place)

    def _parse_text(self, piece: bytes, lines_before: int) -> Records:
        """The records of some lines; of the place only how many were skipped."""
        positions = (*self._positions, *(() if self._order in (None, *self._positions) else (self._order,)))
        columns = self._text.columns_of(np.frombuffer(piece, np.uint8), positions, lines_before)
        if not columns.count:
            return _no_records(0)
        columns, values, sign, skipped = PresentValues.of(columns, self._decimal, self._skip_missing)
        if sign == ",":
            self._decimal = sign
        if not columns.count:
            return _no_records(skipped)
        rows, cols = columns.ids(0, 1)
        check_bounds(columns, values, self._bounds)
        i, j = rows.labels.astype(str)[rows.codes], cols.labels.astype(str)[cols.codes]
        times = None if self._order is None else np.array(columns.texts(positions.index(self._order)), dtype=str)
        return Records(i, j, values, Place(skipped=skipped), times)

    def _parse_json(self, piece: bytes, lines_before: int) -> Records:
        found, times, skipped = list[tuple[str, str, float]](), list[str](), 0
        for number, line in enumerate(piece.split(b"\n"), lines_before + 1):
            if not line.strip():
                continue
            item = _object(self.name, number, line)
            if self._skip_missing and self._keys[2] in item and _is_missing(item[self._keys[2]]):
                skipped += 1
                continue
            found.append(self._from_object(number, item))
            if self.order_name is not None:
                times.append(str(item.get(self.order_name, "")))
        rows, cols, values = zip(*found, strict=True) if found else ((), (), ())
        labels = np.array(rows, dtype=str), np.array(cols, dtype=str)
        when = None if self.order_name is None else np.array(times, dtype=str)
        return Records(*labels, np.array(values, dtype=np.float64), Place(skipped=skipped), when)

    def _from_object(self, line: int, item: dict[str, Any]) -> tuple[str, str, float]:
        where = f"{self.name}, line {line}"
        missing = [key for key in self._keys if key not in item]
        if missing:
            raise InputError(f"{where}: there is no {missing[0]!r}; every object needs {', '.join(self._keys)}.")
        row, col, value = (item[key] for key in self._keys)
        for key, label in zip(self._keys, (row, col), strict=False):
            if isinstance(label, bool) or not isinstance(label, str | int) or label == "":
                raise InputError(f"{where}: {key!r} must be text or a whole number; got {json.dumps(label)}.")
        if _is_missing(value):
            raise InputError(f"{where}: {self._keys[2]!r} is missing; --skip-missing leaves such lines out.")
        if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < LARGEST_VALUE:
            raise InputError(f"{where}: {self._keys[2]!r} must be a finite number; got {json.dumps(value)}.")
        low, high = self._bounds or (-np.inf, np.inf)
        if not low <= value <= high:
            raise InputError(f"{where}: the value {value:g} is outside the bounds ({low:g}, {high:g}).")
        return str(row), str(col), float(value)


class SortedRecords:
    """The records of a file in order of time, which :class:`RecordReader` gives in the order of the file.

    All of them are held in memory. Records of the same time keep the order of the file. A place in them says how many
    were given out.
    """

    def __init__(self, reader: RecordReader) -> None:
        self.name, self.columns, self.first_line = reader.name, reader.columns, reader.first_line
        pieces = list(reader.pieces(lambda: LINES_AT_ONCE))
        self._skipped = pieces[-1].place.skipped if pieces else 0
        rows, cols, values, times = (
            np.concatenate([getattr(piece, name) for piece in pieces]) for name in ("rows", "cols", "values", "times")
        )
        texts, codes = np.unique(times, return_inverse=True)
        try:
            order = np.argsort(parse_times(texts.tolist(), str(reader.order_name))[codes], kind="stable")
        except InputError as error:
            raise InputError(f"{self.name}: {error}") from None
        self._rows, self._cols, self._values = rows[order], cols[order], values[order]
        self._given = 0

    def resume(self, place: Place) -> None:
        """Go on after ``place``."""
        if place.records > len(self._values):
            raise InputError(f"{self.name} is shorter than, or differs from, what was read before the checkpoint.")
        self._given = place.records

    def pieces(self, limit: Callable[[], int]) -> Iterator[Records]:
        """Records from here to the last, at most ``limit()`` at a time."""
        while self._given < len(self._values):
            part = slice(self._given, self._given + limit())
            self._given = min(part.stop, len(self._values))
            place = Place(records=self._given, skipped=self._skipped)
            yield Records(self._rows[part], self._cols[part], self._values[part], place)


def _no_records(skipped: int) -> Records:
    return Records(np.empty(0, str), np.empty(0, str), np.empty(0), Place(skipped=skipped), np.empty(0, str))


def _is_missing(value: Any) -> bool:
    """Whether the value of an object stands for a missing one."""
    return value is None or value != value or (isinstance(value, str) and value.strip().lower() in MISSING)


def _object(name: str, line: int, text: bytes) -> dict[str, Any]:
    try:
        item = json.loads(text)
    except ValueError:
        item = None
    if not isinstance(item, dict):
        raise InputError(f"{name}, line {line}: a JSON object is expected, such as {{...}}, one to a line.")
    return item


class _Lines:
    """Whole lines of a binary file, and the place after those given out."""

    def __init__(self, file: IO[bytes], name: str) -> None:
        self._file, self._name = file, name
        self._held, self._ended = b"", False
        self.place = Place()

    def peek(self) -> bytes:
        """What comes first: as many whole lines as arrive at once, at least one."""
        while not self._ended and b"\n" not in self._held:
            self._read()
        if not self._held:
            raise InputError(f"{self._name} is empty: one observation per line is expected.")
        return self._held if self._ended else self._held[: self._held.rfind(b"\n") + 1]

    def skip(self, n_bytes: int) -> None:
        """Leave out the next bytes, which were looked at."""
        self._given(n_bytes)

    def resume(self, place: Place) -> None:
        """Go to a place where a line ended when it was recorded; whether the input still fits is checked."""
        before = place.position - 1
        if self._file.seekable():
            self._file.seek(before)
            self._held, self._ended = b"", False
        else:
            while self.place.position < before and not self._ended:
                self._given(before - self.place.position)
                self._read()
        while len(self._held) < 2 and not self._ended:
            self._read()
        if not self._held or (self._held[:1] != b"\n" and self._held[1:2] not in (b"", b"\n", b"\r")):
            raise InputError(f"{self._name} is shorter than, or differs from, what was read before the checkpoint.")
        self._held, self.place = self._held[1:], place

    def next(self, limit: int) -> bytes:
        """The next lines, at most ``limit``; nothing at the end of the file."""
        while not self._ended and b"\n" not in self._held:
            self._read()
        ends = np.flatnonzero(np.frombuffer(self._held, np.uint8) == ord("\n"))[:limit]
        whole_rest = self._ended and len(ends) < limit
        return self._given(len(self._held) if whole_rest else int(ends[-1]) + 1)

    def _given(self, n_bytes: int) -> bytes:
        piece, self._held = self._held[:n_bytes], self._held[n_bytes:]
        position, lines, *counts = self.place
        self.place = Place(position + len(piece), lines + piece.count(b"\n"), *counts)
        return piece

    def _read(self) -> None:
        try:
            read = getattr(self._file, "read1", self._file.read)
            new = read(CHUNK)
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise InputError(f"{self._name} is damaged and cannot be decompressed as gzip: {error}.") from None
        except OSError as error:
            raise InputError(f"{self._name} cannot be read: {error.strerror or error}.") from None
        self._held += new
        self._ended = not new
