"""Delimited text as bytes: finding the records of a file, and reading columns of numbers and of ids from them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from surefill.data.labels import EncodedIds, encode_integers, encode_names, whole_numbers
from surefill.errors import InputError, invalid_parameter
from surefill.inputs import cannot, check_size, current_limits
from surefill.io.numbers import BadNumber, NotText, Spans, decimal_sign, decode, decode_field, parse_numbers
from surefill.io.unpacking import is_packed, read_bytes
from surefill.kernels import span_values, tokenizer
from surefill.parallel import current_map, n_cores

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
"""What some programs begin UTF-8 text with."""

DELIMITERS = ("::", "\t", ",", ";", "|", " ")
"""Tried in this order, since a rarer sign that splits all lines alike is hardly part of a field."""

COMMA, SEMICOLON = (ord(","), -1), (ord(";"), -1)
"""As the tokenizer takes them."""

BLOCK_FIELDS = 1 << 20
"""Fields whose places are held at a time where all of a record are read: 16 megabytes, and a call costs nothing."""

RECORDS_TO_GUESS_FROM = 20
"""Records that a delimiter has to split into equally many fields."""

SMALLEST_PART = 1 << 20
"""Bytes below which a text is not cut into parts for several cores: a megabyte takes milliseconds."""

PIECE_BYTES = 1 << 24
"""Bytes of a long file read at a time: their fields' places take a few times as much, and a call costs nothing."""

WINDOW = 1 << 16
"""Bytes searched at a time for the next line end."""


class _Scan(NamedTuple):
    """Outcome of `tokenizer.tokenize`, the spans cut to the records found."""

    starts: NDArray[np.int64]
    ends: NDArray[np.int64]
    fields: int
    offset: int
    status: int


def _scan(
    text: NDArray[np.uint8],
    begin: int,
    delimiter: tuple[int, int],
    positions: Sequence[int] = (),
    room: int = 1,
    expected: int = 0,
) -> _Scan:
    wanted = np.array(positions, dtype=np.int64)
    starts, ends = np.empty((2, len(wanted), room), dtype=np.int64)
    records, fields, offset, status = tokenizer.tokenize(text, begin, delimiter, expected, wanted, starts, ends)
    return _Scan(starts[:, :records], ends[:, :records], fields, offset, status)


class TextFile:
    """A text file of records with the same number of fields each, its delimiter known or guessed.

    Attributes
    ----------
    path : the file, as errors name it.
    fields : the texts of the first record, which may be a header.
    """

    def __init__(self, path: Path, delimiter: str | None, text: NDArray[np.uint8] | None = None) -> None:
        self.path = path
        self._text = _load_bytes(path) if text is None else text
        self._begin = 3 if self._text[:3].tobytes() == BYTE_ORDER_MARK else 0
        if tokenizer.count_bytes(self._text, 0):
            raise InputError(f"{path} is not a text file: it holds zero bytes, and UTF-8 text is expected.")
        given = _delimiter_bytes(delimiter) if delimiter is not None else None
        self._delimiter = given or self._guess_delimiter()
        self.fields = self._first_record()
        if not self.fields:
            raise InputError(f"{path} is empty: one observation per line is expected.")

    def check_decimal(self, decimal: str | None) -> None:
        """Refuse a decimal comma in a file whose fields commas separate, unless they are in quotes."""
        if decimal == "," and self._delimiter == COMMA and not tokenizer.count_bytes(self._text, tokenizer.QUOTE):
            raise InputError(
                f"{self.path}: fields are separated by commas, so a comma can be the decimal sign only of values in "
                "quotes; if something else separates fields, give delimiter (--delimiter on the command line)."
            )

    def columns(self, positions: Sequence[int], header: bool) -> TextColumns:
        """The fields at ``positions`` of every record, the first left out if it is a ``header``."""
        begin = self.records_begin(header)

        def scan_part(ends: tuple[int, int]) -> _Scan:
            first, last = ends
            lines = tokenizer.count_bytes(self._text[first:last], tokenizer.NEWLINE) + 1
            return _scan(self._text[:last], first, self._delimiter, positions, lines, len(self.fields))

        cuts = self._cuts(begin)
        scans = current_map().map(scan_part, pairwise(cuts))
        for scan in scans:
            if scan.status != tokenizer.COMPLETE:
                raise self._error(scan, len(self.fields))
        if not any(scan.starts.shape[1] for scan in scans):
            raise InputError(f"{self.path} holds a header and no observations: at least one line must follow.")
        return TextColumns(self.path, self._text, [(scan.starts, scan.ends) for scan in scans])

    def first_records(self) -> list[list[str]]:
        """The fields of the first records after a header; fewer where a line has another number of them."""
        size = len(self.fields)
        scan = self._scan(self.records_begin(header=True), range(size), RECORDS_TO_GUESS_FROM, size)
        spans = np.stack([scan.starts.T, scan.ends.T], axis=2).tolist()
        try:
            return [decode([_content(self._text, *span) for span in record]) for record in spans]
        except NotText as bad:
            raise bad.at(f"{self.path}, in the first lines") from None

    def records_begin(self, header: bool) -> int:
        """The offset at which the records begin, after a byte order mark and a ``header``."""
        return self._scan(self._begin, room=1).offset if header else self._begin

    def columns_of(self, text: NDArray[np.uint8], positions: Sequence[int], lines_before: int) -> TextColumns:
        """The fields at ``positions`` of more text of the same layout, which follows ``lines_before`` lines."""
        if tokenizer.count_bytes(text, 0):
            line = lines_before + _line_at(text, int(np.argmin(text)))
            raise InputError(f"{self.path}, line {line}: it holds a zero byte; UTF-8 text is expected.")
        lines = tokenizer.count_bytes(text, tokenizer.NEWLINE) + 1
        scan = _scan(text, 0, self._delimiter, positions, lines, len(self.fields))
        if scan.status != tokenizer.COMPLETE:
            raise self._error(scan, len(self.fields), lines_before + _line_at(text, scan.offset))
        return TextColumns(self.path, text, [(scan.starts, scan.ends)], lines_before)

    def pieces(self, header: bool) -> list[tuple[int, int, int]]:
        """Where pieces of whole lines begin and end, and how many lines come before each; one where quotes may span."""
        begin, size = self.records_begin(header), len(self._text)
        if size - begin < 2 * PIECE_BYTES or tokenizer.count_bytes(self._text, tokenizer.QUOTE):
            return [(begin, size, _line_at(self._text, begin) - 1)]
        cuts = [begin]
        while cuts[-1] < size:
            cuts.append(_next_line(self._text, min(size, cuts[-1] + PIECE_BYTES)))
        lines = [tokenizer.count_bytes(self._text[first:last], tokenizer.NEWLINE) for first, last in pairwise(cuts)]
        before = _line_at(self._text, begin) - 1 + np.cumsum([0, *lines])
        return [(first, last, int(n)) for (first, last), n in zip(pairwise(cuts), before, strict=False)]

    def columns_of_piece(self, piece: tuple[int, int, int], positions: Sequence[int]) -> TextColumns:
        """The fields at ``positions`` of the records of a piece."""
        first, last, lines_before = piece
        return self.columns_of(self._text[first:last], positions, lines_before)

    def ends_in_quotes(self, text: NDArray[np.uint8]) -> bool:
        """Whether more text of the same layout ends within a quoted field, which goes on in the next line."""
        lines = tokenizer.count_bytes(text, tokenizer.NEWLINE) + 1
        status = _scan(text, 0, self._delimiter, (), lines, len(self.fields)).status
        return status == tokenizer.UNCLOSED_QUOTE

    def blocks(self) -> Iterator[TextColumns]:
        """All fields of the records after the header, some records at a time."""
        size, at = len(self.fields), self.records_begin(header=True)
        while at < len(self._text):
            scan = self._scan(at, range(size), max(1, BLOCK_FIELDS // size), size)
            if scan.status != tokenizer.COMPLETE:
                raise self._error(scan, size)
            if scan.starts.shape[1]:
                yield TextColumns(self.path, self._text, [(scan.starts, scan.ends)])
            at = scan.offset

    def _cuts(self, begin: int) -> list[int]:
        """Offsets of line starts that cut the text into one part per core; quotes may span lines, so none then."""
        size = len(self._text)
        if size - begin < SMALLEST_PART or tokenizer.count_bytes(self._text, tokenizer.QUOTE):
            return [begin, size]
        goals = np.linspace(begin, size, n_cores() + 1)[1:-1].astype(int).tolist()
        return [begin, *(_next_line(self._text, goal) for goal in goals), size]

    def _scan(self, begin: int, positions: Sequence[int] = (), room: int = 1, expected: int = 0) -> _Scan:
        return _scan(self._text, begin, self._delimiter, positions, room, expected)

    def _guess_delimiter(self) -> tuple[int, int]:
        """The first candidate that splits the first lines into three fields or more, or comes nearest."""

        def fitness(delimiter: tuple[int, int]) -> tuple[bool, bool, int]:
            fields = _scan(self._text, self._begin, delimiter, room=1).fields
            status = _scan(self._text, self._begin, delimiter, room=RECORDS_TO_GUESS_FROM).status
            return fields >= 3, status == tokenizer.COMPLETE, min(fields, 3)

        best = max(map(_delimiter_bytes, DELIMITERS), key=fitness)
        if best == COMMA and fitness(SEMICOLON) == fitness(COMMA) == (True, True, 3):
            # Commas may be decimal signs, and semicolons part of a field: a wrong guess would give wrong numbers.
            raise InputError(
                f"{self.path}: either commas or semicolons may separate fields; say which with delimiter (--delimiter "
                "on the command line)."
            )
        return best

    def _first_record(self) -> list[str]:
        scan = self._scan(self._begin)
        if scan.status != tokenizer.COMPLETE:
            raise self._error(scan, scan.fields)
        scan = self._scan(self._begin, range(scan.fields))
        spans = zip(scan.starts.ravel().tolist(), scan.ends.ravel().tolist(), strict=True)
        try:
            return decode([_content(self._text, start, end) for start, end in spans])
        except NotText as bad:
            raise bad.at(f"{self.path}, line 1") from None

    def _error(self, scan: _Scan, expected: int, line: int | None = None) -> InputError:
        found = "1 field" if scan.fields == 1 else f"{scan.fields} fields"
        problem = {
            tokenizer.RAGGED: f"{expected} fields are expected, as in the first line; there are {found}.",
            tokenizer.UNCLOSED_QUOTE: 'a quote (") is opened and never closed.',
            tokenizer.TEXT_AFTER_QUOTE: 'text follows a closing quote ("); quotes within must be doubled.',
        }[scan.status]
        return InputError(f"{self.path}, line {line or _line_at(self._text, scan.offset)}: {problem}")


class TextColumns:
    """Columns of a text file as spans of its bytes, ``text[starts[c, r]:ends[c, r]]`` for record r of each part."""

    def __init__(self, path: Path, text: NDArray[np.uint8], parts: list[Spans], lines_before: int = 0) -> None:
        self.path = path
        self._text, self._parts, self._lines_before = text, parts, lines_before

    @property
    def count(self) -> int:
        """How many records there are."""
        return sum(starts.shape[1] for starts, _ in self._parts)

    def where(self, record: int) -> str:
        """The file and line of a record, to begin a sentence with."""
        return f"{self.path}, line {self._lines_before + _line_at(self._text, self._span(0, record)[0])}"

    def _span(self, column: int, record: int) -> tuple[int, int]:
        for starts, ends in self._parts:
            if record < starts.shape[1]:
                return int(starts[column, record]), int(ends[column, record])
            record -= starts.shape[1]
        raise IndexError(record)

    def _content_of(self, column: int, record: int) -> bytes:
        return _content(self._text, *self._span(column, record))

    def numbers(self, column: int, decimal: str | None = None) -> tuple[NDArray[np.float64], str]:
        """A column of finite numbers in any notation of Python's, NaN where one is missing, and the decimal sign."""
        try:
            return parse_numbers(self._text, [(part[0][column], part[1][column]) for part in self._parts], decimal)
        except BadNumber as bad:
            raise bad.at(self.where(bad.position)) from None

    def matrix(
        self, columns: Sequence[int], names: Sequence[str], decimal: str | None
    ) -> tuple[NDArray[np.float64], str]:
        """Columns side by side as numbers, NaN in holes, and the decimal sign; ``names`` are for errors."""
        flat = [(starts[columns].ravel(), ends[columns].ravel()) for starts, ends in self._parts]
        try:
            values, sign = parse_numbers(self._text, flat, decimal)
        except BadNumber as bad:
            column, record = divmod(bad.position, self.count)
            raise bad.at(f"{self.where(record)}, column {names[column]!r}") from None
        return values.reshape(len(columns), self.count).T, sign

    def first_decimal_sign(self, column: int) -> str | None:
        """The decimal sign of the first number that has one; None where none has."""
        names, _, firsts = self.names(column)
        signed = [(int(first), name) for name, first in zip(names, firsts, strict=True) if "." in name or "," in name]
        if not signed:
            return None
        first, name = min(signed)
        try:
            return decimal_sign(first, name.strip(' \t"').encode())
        except BadNumber as bad:
            raise bad.at(self.where(first)) from None

    def texts(self, column: int) -> list[str]:
        """What every record says in a column."""
        names, codes, _ = self.names(column)
        return [names[code] for code in codes.tolist()]

    def missing_value(self, column: int, record: int) -> InputError:
        """What to say of a value that is missing."""
        shown = self._decoded(column, record)
        missing = f"the value {shown!r} stands for a missing one" if shown else "the value is empty"
        return InputError(
            f"{self.where(record)}: {missing}; leave such lines out, or have them skipped by skip_missing=True "
            "(--skip-missing on the command line)."
        )

    def select(self, which: NDArray[np.bool_]) -> TextColumns:
        """The records that ``which`` names."""
        sizes = np.cumsum([starts.shape[1] for starts, _ in self._parts])[:-1]
        masks = np.split(which, sizes)
        parts = [(starts[:, mask], ends[:, mask]) for (starts, ends), mask in zip(self._parts, masks, strict=True)]
        return TextColumns(self.path, self._text, parts, self._lines_before)

    def names(self, column: int) -> tuple[list[str], NDArray[np.int64], NDArray[np.int64]]:
        """The distinct texts of a column in order of appearance, each record's number, and their first records."""
        starts, ends = (np.concatenate([part[side][column] for part in self._parts]) for side in (0, 1))
        codes, firsts = span_values.factorize_spans(self._text, starts, ends)
        return [self._decoded(column, record) for record in firsts.tolist()], codes, firsts

    def _decoded(self, column: int, record: int) -> str:
        try:
            return decode_field(self._content_of(column, record))
        except NotText as bad:
            raise bad.at(self.where(record)) from None

    def ids(self, *columns: int) -> list[EncodedIds]:
        """Columns of ids, each integers if all are canonical integers, or such floats (196.0), names otherwise."""
        return current_map().map(self._axis, columns)

    def _check_sizes(self, column: int) -> None:
        """Refuse ids that are longer than the limits take."""
        before = 0
        for starts, ends in self._parts:
            sizes = ends[column] - starts[column]
            if sizes.size and sizes.max() > current_limits().id:
                longest = int(np.argmax(sizes))
                check_size(self.where(before + longest), "id", int(sizes[longest]))
            before += sizes.size

    def _axis(self, column: int) -> EncodedIds:
        self._check_sizes(column)
        integers = [
            span_values.parse_integers(self._text, starts[column], ends[column]) for starts, ends in self._parts
        ]
        if all(parsed == len(values) for values, parsed in integers):
            return encode_integers(np.concatenate([values for values, _ in integers]))
        names, codes, firsts = self.names(column)
        if "" in names:
            first = int(firsts[names.index("")])
            raise InputError(f"{self.where(first)}: an id is empty; every row and column needs one.")
        whole = whole_numbers(names)
        return encode_names(names, codes) if whole is None else encode_integers(whole[codes])


def _load_bytes(path: Path) -> NDArray[np.uint8]:
    try:
        if not is_packed(path) and path.is_file() and path.stat().st_size:
            return np.asarray(np.memmap(path, dtype=np.uint8, mode="r"))
    except (OSError, ValueError) as error:
        raise cannot(path, "be read", error) from None
    return np.frombuffer(read_bytes(path), dtype=np.uint8)


def _delimiter_bytes(delimiter: str) -> tuple[int, int]:
    encoded = delimiter.encode(errors="surrogateescape")
    if not 1 <= len(encoded) <= 2 or any(byte in b'"\r\n' for byte in encoded):
        expected = "one or two characters other than quotes and line ends"
        raise invalid_parameter("read_observations", "delimiter", expected, delimiter)
    return encoded[0], encoded[1] if len(encoded) == 2 else -1


def _next_line(text: NDArray[np.uint8], at: int) -> int:
    """Where the line after the one at ``at`` begins, or the end of the text."""
    while at < len(text):
        found = text[at : at + WINDOW].tobytes().find(b"\n")
        if found >= 0:
            return at + found + 1
        at += WINDOW
    return len(text)


def _line_at(text: NDArray[np.uint8], offset: int) -> int:
    return tokenizer.count_bytes(text[:offset], tokenizer.NEWLINE) + 1


def _content(text: NDArray[np.uint8], start: int, end: int) -> bytes:
    """What a span says: quotes removed, doubled quotes undone, surrounding blanks stripped."""
    written = text[start:end].tobytes()
    if written.startswith(b'"'):
        written = written[1:-1].replace(b'""', b'"')
    return written.strip(b" \t")
