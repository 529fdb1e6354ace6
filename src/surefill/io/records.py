"""Records (row, column, value) from a file or pipe, a few lines at a time, each at a known place in the input."""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from surefill.data.column_roles import Choice, Column, column_position, positions_of
from surefill.data.labels import text_array, texts_one_by_one
from surefill.errors import InputError, is_seed
from surefill.inputs import LARGEST_VALUE, VALUE_WORDS, check_size, check_text, current_limits
from surefill.io.delimited import TextFile
from surefill.io.long_tables import PresentValues, check_bounds
from surefill.io.readers import choose_columns
from surefill.io.times import parse_times
from surefill.io.unpacking import DAMAGED, unreadable
from surefill.kernels.decimal_spans import MISSING

CHUNK = 1 << 18
"""Bytes read at a time: thousands of lines, which amortises a call, and little memory."""

LINES_AT_ONCE = 1 << 20
"""Lines read at a time where all are wanted."""


class Place(NamedTuple):
    """How far the input was read: bytes (decompressed), lines, records, and lines skipped for want of a value.

    ``digest`` is a hash of all that was read up to there, by which a later run knows the same input, and ``decimal``
    the decimal sign that values had, if any had one.
    """

    position: int = 0
    lines: int = 0
    records: int = 0
    skipped: int = 0
    digest: str = ""
    decimal: str = ""

    @classmethod
    def from_note(cls, note: Any) -> Place:
        """The place that a file tells; ValueError where it tells none."""
        place = cls(*note)
        texts = isinstance(place.digest, str) and place.decimal in ("", ".", ",")
        if not (all(is_seed(number) for number in place[:4]) and texts):
            raise ValueError("a place is four numbers, a hash and a decimal sign")
        return place


class Records(NamedTuple):
    """Labels as text and values, in the order of the input, the place after them, and times as text if asked for.

    What has no ``line_end``, the last line of a file, may have been written in part only.
    """

    rows: NDArray[Any]
    cols: NDArray[Any]
    values: NDArray[np.float64]
    place: Place
    times: NDArray[Any] | None = None
    line_end: bool = True


class RecordReader:
    """A csv, tsv or dat text, or JSON lines (known by its first sign, a brace), read from a binary file piece by piece.

    A record is one line, or several where quotes hold line ends. What has arrived is given out at once, so a pipe is
    read as it fills.

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
        """Go on reading after ``place``; what comes before must be what was read before."""
        self._lines.resume(place)
        self._decimal = self._decimal or place.decimal or None

    def pieces(self, limit: Callable[[], int]) -> Iterator[Records]:
        """Records from here to the end of the input, at most ``limit()`` lines of it at a time."""
        records, skipped = self._lines.place[2:4]
        while piece := self._lines.next(limit()):
            if not self._json:
                piece += self._rest_of_quotation(piece)
            before = self._lines.place.lines - piece.count(b"\n")
            parsed = (self._parse_json if self._json else self._parse_text)(piece, before)
            records += len(parsed.values)
            skipped += parsed.place.skipped
            self._lines.place = self._lines.place._replace(records=records, skipped=skipped)
            place = self._lines.place._replace(digest=self._lines.digest(), decimal=self._decimal or "")
            yield parsed._replace(place=place, line_end=piece.endswith(b"\n"))

    def _rest_of_quotation(self, piece: bytes) -> bytes:
        """The lines that belong to the last record because its quotes are open, wherever the piece was cut."""
        rest = b""
        while b'"' in piece and self._text.ends_in_quotes(np.frombuffer(piece + rest, np.uint8)):
            more = self._lines.through(b'"')
            if not more:
                break  # the parser says where the quote was opened
            rest += more
        return rest

    def _parse_text(self, piece: bytes, lines_before: int) -> Records:
        """The records of some lines; of the place only how many were skipped."""
        positions = (*self._positions, *(() if self._order in (None, *self._positions) else (self._order,)))
        columns = self._text.columns_of(np.frombuffer(piece, np.uint8), positions, lines_before)
        if not columns.count:
            return _no_records(0)
        columns, values, sign, skipped = PresentValues.of(columns, self._decimal, self._skip_missing)
        if not columns.count:
            return _no_records(skipped)
        if self._decimal is None and (sign == "," or b"." in piece):
            # the first number with a sign decides, however lines are grouped
            self._decimal = columns.first_decimal_sign(2)
        rows, cols = columns.ids(0, 1)
        check_bounds(columns, values, self._bounds)
        i, j = (texts_one_by_one(ids.labels)[ids.codes] for ids in (rows, cols))
        times = None if self._order is None else text_array(columns.texts(positions.index(self._order)))
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
        labels = text_array(rows), text_array(cols)
        when = None if self.order_name is None else text_array(times)
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
            if isinstance(label, str):
                check_text(f"{where}: {key!r}", label)
            check_size(where, "id", len(str(label).encode()))
        if _is_missing(value):
            raise InputError(f"{where}: {self._keys[2]!r} is missing; --skip-missing leaves such lines out.")
        if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= LARGEST_VALUE:
            raise InputError(f"{where}: {self._keys[2]!r} must be {VALUE_WORDS}; got {json.dumps(value)}.")
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
        self._given, self._digest = 0, _new_digest()

    def resume(self, place: Place) -> None:
        """Go on after ``place``; the records before it must be those of before."""
        self._give(place.records)
        if self._digest.hexdigest() != place.digest:
            raise _another_input(self.name)

    def pieces(self, limit: Callable[[], int]) -> Iterator[Records]:
        """Records from here to the last, at most ``limit()`` at a time."""
        while self._given < len(self._values):
            part = self._give(limit())
            place = Place(records=self._given, skipped=self._skipped, digest=self._digest.hexdigest())
            yield Records(self._rows[part], self._cols[part], self._values[part], place)

    def _give(self, count: int) -> slice:
        """The next ``count`` records as a slice, hashed one by one, so that it does not matter how they are split."""
        part = slice(self._given, min(self._given + count, len(self._values)))
        lines = zip(*(column[part].tolist() for column in (self._rows, self._cols, self._values)), strict=True)
        for line in lines:
            self._digest.update(json.dumps(line).encode())
        self._given = part.stop
        return part


def _new_digest() -> Any:
    return hashlib.blake2b(digest_size=16)


def _another_input(name: str) -> InputError:
    return InputError(
        f"{name} is shorter than, or differs from, what was read before the checkpoint; give the same input, to which "
        "lines may have been added at its end, or another checkpoint."
    )


def _no_records(skipped: int) -> Records:
    return Records(np.empty(0, str), np.empty(0, str), np.empty(0), Place(skipped=skipped), np.empty(0, str))


def _is_missing(value: Any) -> bool:
    """Whether the value of an object stands for a missing one."""
    return value is None or value != value or (isinstance(value, str) and value.strip().lower() in MISSING)


def _object(name: str, line: int, text: bytes) -> dict[str, Any]:
    try:
        item = json.loads(text)
    except (ValueError, RecursionError):
        item = None
    if not isinstance(item, dict):
        raise InputError(f"{name}, line {line}: a JSON object is expected, such as {{...}}, one to a line.")
    return item


class _Lines:
    """Whole lines of a binary file, and the place after those given out."""

    def __init__(self, file: IO[bytes], name: str) -> None:
        self._file, self._name = file, name
        self._held, self._ended = b"", False
        self._digest = _new_digest()
        self.place = Place()

    def digest(self) -> str:
        """A hash of everything given out."""
        return str(self._digest.hexdigest())

    def peek(self) -> bytes:
        """What comes first: as many whole lines as arrive at once, at least one."""
        self._read_until(b"\n")
        if not self._held:
            raise InputError(f"{self._name} is empty: one observation per line is expected.")
        return self._held if self._ended else self._held[: self._held.rfind(b"\n") + 1]

    def skip(self, n_bytes: int) -> None:
        """Leave out the next bytes, which were looked at."""
        self._given(n_bytes)

    def resume(self, place: Place) -> None:
        """Read again up to a place; whether that is what was read before is told by its hash."""
        while self.place.position < place.position:
            self._given(place.position - self.place.position)
            if self._ended:
                break
            self._read()
        if (self.place.position, self.digest()) != (place.position, place.digest):
            raise _another_input(self._name)
        self.place = place

    def next(self, limit: int) -> bytes:
        """The next lines, at most ``limit``; then the last if it has no end; nothing at the end of the file."""
        self._read_until(b"\n")
        ends = np.flatnonzero(np.frombuffer(self._held, np.uint8) == ord("\n"))[:limit]
        return self._given(int(ends[-1]) + 1 if len(ends) else len(self._held))

    def through(self, sign: bytes) -> bytes:
        """The next lines up to one that holds a ``sign``; nothing where none comes within the length of a line."""
        while sign not in self._held:
            if self._ended or len(self._held) > current_limits().line:
                return b""
            self._read()
        at = self._held.index(sign)
        while b"\n" not in self._held[at:] and not self._ended:
            self._read()
        end = self._held.find(b"\n", at)
        return self._given(len(self._held) if end < 0 else end + 1)

    def _read_until(self, sign: bytes) -> None:
        while not self._ended and sign not in self._held:
            check_size(f"{self._name}, line {self.place.lines + 1}", "line", len(self._held))
            self._read()

    def _given(self, n_bytes: int) -> bytes:
        piece, self._held = self._held[:n_bytes], self._held[n_bytes:]
        self._digest.update(piece)
        position, lines = self.place.position + len(piece), self.place.lines + piece.count(b"\n")
        self.place = self.place._replace(position=position, lines=lines)
        return piece

    def _read(self) -> None:
        try:
            read = getattr(self._file, "read1", self._file.read)
            new = read(CHUNK)
        except (*DAMAGED, OSError) as error:
            raise unreadable(self._name, error) from None
        self._held += new
        self._ended = not new
