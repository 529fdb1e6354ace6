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
from surefill.errors import InputError
from surefill.io.delimited import TextFile
from surefill.io.readers import Choice, check_bounds, choose_columns, positions_of

CHUNK = 1 << 18
"""Bytes read at a time: thousands of lines, which amortises a call, and little memory."""


class Place(NamedTuple):
    """How far the input was read: bytes (decompressed), lines and records."""

    position: int = 0
    lines: int = 0
    records: int = 0


class Records(NamedTuple):
    """Labels as text and values, in the order of the input, and the place after them."""

    rows: NDArray[Any]
    cols: NDArray[Any]
    values: NDArray[np.float64]
    place: Place


class RecordReader:
    """A csv, tsv or dat text, or JSON lines (known by its first sign, a brace), read from a binary file piece by piece.

    A record is one line. What has arrived is given out at once, so a pipe is read as it fills.

    Parameters
    ----------
    file : opened for reading bytes, at its start.
    name : what errors call it.
    choice : columns of row, col and value, as in :func:`read_observations`.
    """

    def __init__(
        self,
        file: IO[bytes],
        name: str,
        choice: Choice,
        delimiter: str | None = None,
        header: bool | None = None,
        bounds: tuple[float, float] | None = None,
    ) -> None:
        self.name, self._bounds = name, bounds
        self._lines = _Lines(file, name)
        first = self._lines.peek()
        self.first_line = zlib.crc32(first.partition(b"\n")[0])
        self._json = first.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{")
        if self._json:
            fields = list(_object(name, 1, first.lstrip(b"\xef\xbb\xbf \t\r\n").partition(b"\n")[0]))
            self._keys = [fields[place] for place in positions_of(Path(name), fields, True, choice)]
            self.columns: tuple[str, ...] = tuple(self._keys)
            return
        self._text = TextFile(Path(name), delimiter, np.frombuffer(first, np.uint8))
        has_header, self._positions = choose_columns(self._text, choice, header)
        self.columns = (
            tuple(self._text.fields[place] for place in self._positions) if has_header else ("row", "column", "value")
        )
        self._lines.skip(self._text.records_begin(has_header))

    def resume(self, place: Place) -> None:
        """Go on reading after ``place``: a file is positioned, a pipe is read up to there and not looked at."""
        self._lines.resume(place)

    def pieces(self, limit: Callable[[], int]) -> Iterator[Records]:
        """Records from here to the end of the input, at most ``limit()`` lines of it at a time."""
        records = self._lines.place.records
        while piece := self._lines.next(limit()):
            before = self._lines.place.lines - piece.count(b"\n")
            rows, cols, values = (self._parse_json if self._json else self._parse_text)(piece, before)
            records += len(values)
            self._lines.place = self._lines.place._replace(records=records)
            yield Records(rows, cols, values, self._lines.place)

    def _parse_text(self, piece: bytes, lines_before: int) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.float64]]:
        columns = self._text.columns_of(np.frombuffer(piece, np.uint8), self._positions, lines_before)
        if not columns.count:
            return np.empty(0, str), np.empty(0, str), np.empty(0)
        (rows, cols), values = columns.ids(0, 1), columns.numbers(2)
        check_bounds(columns, values, self._bounds)
        return rows.labels.astype(str)[rows.codes], cols.labels.astype(str)[cols.codes], values

    def _parse_json(self, piece: bytes, lines_before: int) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.float64]]:
        found: list[tuple[str, str, float]] = []
        for number, line in enumerate(piece.split(b"\n"), lines_before + 1):
            if line.strip():
                found.append(self._from_object(number, _object(self.name, number, line)))
        rows, cols, values = zip(*found, strict=True) if found else ((), (), ())
        return np.array(rows, dtype=str), np.array(cols, dtype=str), np.array(values, dtype=np.float64)

    def _from_object(self, line: int, item: dict[str, Any]) -> tuple[str, str, float]:
        where = f"{self.name}, line {line}"
        missing = [key for key in self._keys if key not in item]
        if missing:
            raise InputError(f"{where}: there is no {missing[0]!r}; every object needs {', '.join(self._keys)}.")
        row, col, value = (item[key] for key in self._keys)
        for key, label in zip(self._keys, (row, col), strict=False):
            if isinstance(label, bool) or not isinstance(label, str | int) or label == "":
                raise InputError(f"{where}: {key!r} must be text or a whole number; got {json.dumps(label)}.")
        if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < LARGEST_VALUE:
            raise InputError(f"{where}: {self._keys[2]!r} must be a finite number; got {json.dumps(value)}.")
        low, high = self._bounds or (-np.inf, np.inf)
        if not low <= value <= high:
            raise InputError(f"{where}: the value {value:g} is outside the bounds ({low:g}, {high:g}).")
        return str(row), str(col), float(value)


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
        position, lines, records = self.place
        self.place = Place(position + len(piece), lines + piece.count(b"\n"), records)
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
