"""Delimited text as bytes: where fields lie, the numbers in them, and which ids are equal.

Text is a uint8 array and a field is a span ``text[start:end]``; nothing is copied. Blanks around a field and
the quotes of a quoted one lie outside its span, except that a field holding doubled quotes keeps its outer
quotes, so a span that starts with a quote is one whose doubled quotes must still be undone. Every kernel has
a readable twin of the same signature, named ``*_reference``.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surefill.arrays import Array, Indices
from surefill.kernels.compile import compiled

Bytes = NDArray[np.uint8]

TAB, NEWLINE, RETURN, SPACE, QUOTE = 9, 10, 13, 32, 34
PLUS, MINUS, POINT, ZERO, LOWER_E = 43, 45, 46, 48, 101

MORE_FIELDS, COMPLETE, RAGGED, UNCLOSED_QUOTE, TEXT_AFTER_QUOTE = range(5)
"""How a field or a scan ended; the last three are errors."""

MOST_DIGITS = 15
MOST_TENS = 22
LOWEST = -(2**63)
POWERS_OF_TEN = np.array([float(f"1e{k}") for k in range(MOST_TENS + 1)])


@compiled
def count_bytes(text: Bytes, wanted: int) -> int:
    """How many bytes of ``text`` equal ``wanted``."""
    count = 0
    for byte in text:
        count += byte == wanted
    return count


def count_bytes_reference(text: Bytes, wanted: int) -> int:
    """Readable twin of `count_bytes`."""
    return text.tobytes().count(bytes([wanted]))


@compiled
def _bare_field(text: Bytes, start: int, first: int, second: int) -> tuple[int, int, int, int]:
    """(start, end, next, how it ended) of the field at ``start``, quotes having no meaning."""
    size, at = len(text), start
    following, ended = size, COMPLETE
    while at < size:
        byte = text[at]
        if byte == NEWLINE:
            following = at + 1
            break
        if byte == first and (second < 0 or (at + 1 < size and text[at + 1] == second)):
            following, ended = at + (1 if second < 0 else 2), MORE_FIELDS
            break
        at += 1
    while at > start and (text[at - 1] == SPACE or text[at - 1] == TAB or text[at - 1] == RETURN):
        at -= 1
    return start, at, following, ended


@compiled
def _quoted_field(text: Bytes, opening: int, first: int, second: int) -> tuple[int, int, int, int]:
    """(start, end, next, how it ended) of the field whose opening quote is at ``opening``."""
    size, at, doubled = len(text), opening + 1, False
    while at < size:
        if text[at] == QUOTE:
            if at + 1 < size and text[at + 1] == QUOTE:
                doubled = True
                at += 1
            else:
                break
        at += 1
    if at >= size:
        return opening, size, size, UNCLOSED_QUOTE
    after, end_after, following, ended = _bare_field(text, at + 1, first, second)
    if end_after > after:
        return opening, end_after, following, TEXT_AFTER_QUOTE
    if doubled:
        return opening, at + 1, following, ended
    return opening + 1, at, following, ended


@compiled
def _next_field(text: Bytes, at: int, first: int, second: int) -> tuple[int, int, int, int]:
    """(start, end, next, how it ended) of the field that begins at ``at``."""
    size = len(text)
    while at < size and text[at] != first and (text[at] == SPACE or text[at] == TAB):
        at += 1
    if at < size and text[at] == QUOTE:
        return _quoted_field(text, at, first, second)
    return _bare_field(text, at, first, second)


@compiled
def _skip_blank_lines(text: Bytes, at: int) -> int:
    """Where the next line that holds more than blanks begins."""
    line = at
    while at < len(text) and (text[at] == SPACE or text[at] == TAB or text[at] == RETURN or text[at] == NEWLINE):
        at += 1
        if text[at - 1] == NEWLINE:
            line = at
    return line if at < len(text) else at


@compiled
def tokenize(
    text: Bytes, begin: int, delimiter: tuple[int, int], expected: int, wanted: Indices, starts: Indices, ends: Indices
) -> tuple[int, int, int, int]:
    """Find the (distinct) ``wanted`` fields of each record from offset ``begin`` on, in one pass.

    ``delimiter`` is one or two bytes, the second -1 when there is one. ``starts[w, r]`` and ``ends[w, r]``
    are filled for record r, as many records as they have room for; blank lines are no records. Every record
    must have ``expected`` fields, or as many as the first when that is 0.

    Returns (records, fields, offset, status): offset is where reading stopped, or where the record that broke
    a rule begins, and fields is then the number that record has.
    """
    first, second = delimiter
    slots = np.full(max(wanted) + 1 if len(wanted) else 0, -1)
    slots[wanted] = np.arange(len(wanted))
    records, at = 0, _skip_blank_lines(text, begin)
    while at < len(text) and records < starts.shape[1]:
        record, fields, ended = at, 0, MORE_FIELDS
        while ended == MORE_FIELDS:
            start, end, at, ended = _next_field(text, at, first, second)
            if fields < len(slots) and slots[fields] >= 0:
                starts[slots[fields], records], ends[slots[fields], records] = start, end
            fields += 1
        if ended != COMPLETE:
            return records, fields, record, ended
        if expected == 0:
            expected = fields
        if fields != expected:
            return records, fields, record, RAGGED
        records += 1
        at = _skip_blank_lines(text, at)
    return records, expected, at, COMPLETE


def tokenize_reference(
    text: Bytes, begin: int, delimiter: tuple[int, int], expected: int, wanted: Indices, starts: Indices, ends: Indices
) -> tuple[int, int, int, int]:
    """Readable twin of `tokenize`: one regular expression per field."""
    blank_lines = re.compile(rb"(?:[ \t\r]*\n)*(?:[ \t\r]+\Z)?")
    data, records = text.tobytes(), 0
    at = _end_of(blank_lines, data, begin)
    while at < len(data) and records < starts.shape[1]:
        record, spans, ended = at, [], MORE_FIELDS
        while ended == MORE_FIELDS:
            *span, at, ended = _field_reference(data, at, bytes(b for b in delimiter if b >= 0))
            spans.append(span)
        if ended != COMPLETE:
            return records, len(spans), record, ended
        expected = expected or len(spans)
        if len(spans) != expected:
            return records, len(spans), record, RAGGED
        for w, field in enumerate(wanted):
            if field < expected:
                starts[w, records], ends[w, records] = spans[field]
        records += 1
        at = _end_of(blank_lines, data, at)
    return records, expected, at, COMPLETE


def _end_of(pattern: re.Pattern[bytes], data: bytes, at: int) -> int:
    match = pattern.match(data, at)
    return match.end() if match else at


def _field_reference(data: bytes, at: int, delimiter: bytes) -> tuple[int, int, int, int]:
    separator = re.escape(delimiter)
    blanks = rb"(?:(?!" + separator + rb")[ \t])*"
    ending = rb"[ \t\r]*?(?:(?P<delimiter>" + separator + rb")|\n|\Z)"
    quoted = re.compile(blanks + rb'(?P<outer>"(?P<inner>(?:[^"]|"")*)"(?!"))').match(data, at)
    if quoted:
        close = re.compile(ending).match(data, quoted.end())
        name = "outer" if b'""' in quoted["inner"] else "inner"
        if not close:
            return *quoted.span("outer"), at, TEXT_AFTER_QUOTE
        return *quoted.span(name), close.end(), MORE_FIELDS if close["delimiter"] else COMPLETE
    if re.compile(blanks + rb'"').match(data, at):
        return at, len(data), len(data), UNCLOSED_QUOTE
    bare = re.compile(blanks + rb"(?P<field>[^\n]*?)" + ending).match(data, at)
    assert bare is not None
    return *bare.span("field"), bare.end(), MORE_FIELDS if bare["delimiter"] else COMPLETE


@compiled
def _digits(text: Any, at: int, end: int, number: int, significant: int) -> tuple[int, int, int]:
    """Append the digits from ``at`` on to ``number``; (where they end, the number, its significant digits).

    More than 18 digits wrap around modulo 2^64.
    """
    while at < end and ZERO <= text[at] <= ZERO + 9:
        number = number * 10 + (text[at] - ZERO)
        significant += number != 0
        at += 1
    return at, number, significant


@compiled
def _signed(text: Bytes, at: int, end: int) -> tuple[int, bool]:
    """(where the digits begin, whether a minus precedes them)."""
    if at < end and (text[at] == PLUS or text[at] == MINUS):
        return at + 1, text[at] == MINUS
    return at, False


@compiled
def _parse_decimal(text: Bytes, start: int, end: int) -> float:
    at, negative = _signed(text, start, end)
    point, mantissa, significant = _digits(text, at, end, 0, 0)
    written, exponent, at = point - at, 0, point
    if at < end and text[at] == POINT:
        at, mantissa, significant = _digits(text, point + 1, end, mantissa, significant)
        exponent = point + 1 - at
        written -= exponent
    if at < end and text[at] | 32 == LOWER_E:
        power_at, power_negative = _signed(text, at + 1, end)
        at, power, power_digits = _digits(text, power_at, end, 0, 0)
        if at == power_at or power_digits > MOST_DIGITS:
            return np.nan
        exponent += -power if power_negative else power
    if at != end or written == 0 or significant > MOST_DIGITS or abs(exponent) > MOST_TENS:
        return np.nan
    tens: float = POWERS_OF_TEN[abs(exponent)]
    magnitude = mantissa / tens if exponent < 0 else mantissa * tens
    return -magnitude if negative else magnitude


@compiled
def parse_decimals(text: Bytes, starts: Indices, ends: Indices) -> Array:
    """The plain decimal number in each span, correctly rounded; NaN where only Python's ``float`` can tell.

    A decimal of at most 15 significant digits times a power of ten up to 10^22 is one multiplication or
    division of two exact doubles, hence correctly rounded (Clinger 1990).
    """
    values = np.empty(len(starts))
    for k in range(len(starts)):
        values[k] = _parse_decimal(text, starts[k], ends[k])
    return values


def parse_decimals_reference(text: Bytes, starts: Indices, ends: Indices) -> Array:
    """Readable twin of `parse_decimals`."""
    plain = re.compile(rb"[+-]?(?P<whole>\d*)(?:\.(?P<part>\d*))?(?:[eE](?P<power>[+-]?\d+))?")
    values = np.full(len(starts), np.nan)
    for k, (start, end) in enumerate(zip(starts, ends, strict=True)):
        span = text[start:end].tobytes()
        match = plain.fullmatch(span)
        if match and (digits := match["whole"] + (match["part"] or b"")):
            exponent = int(match["power"] or 0) - len(match["part"] or b"")
            if len(digits.lstrip(b"0")) <= MOST_DIGITS and abs(exponent) <= MOST_TENS:
                values[k] = float(span)
    return values


@compiled
def parse_integers(text: Bytes, starts: Indices, ends: Indices) -> tuple[Indices, int]:
    """The canonical integer of each span ("-12", "0"; not "007", "+1", "-0"), up to the first without one.

    Returns the integers and how many were read.
    """
    values = np.empty(len(starts), dtype=np.int64)
    for k in range(len(starts)):
        start, end = starts[k], ends[k]
        negative = start < end and text[start] == MINUS
        start += negative
        size = end - start
        if size < 1 or size > 19 or (text[start] == ZERO and (size > 1 or negative)):
            return values, k
        at, magnitude, _ = _digits(text, start, end, 0, 0)
        if at != end or (magnitude < 0 and not (negative and magnitude == LOWEST)):  # 2^63 wraps to -2^63
            return values, k
        values[k] = -magnitude if negative else magnitude
    return values, len(starts)


def parse_integers_reference(text: Bytes, starts: Indices, ends: Indices) -> tuple[Indices, int]:
    """Readable twin of `parse_integers`."""
    values = np.empty(len(starts), dtype=np.int64)
    for k, (start, end) in enumerate(zip(starts, ends, strict=True)):
        span = text[start:end].tobytes()
        if not re.fullmatch(rb"0|-?[1-9]\d*", span) or not -(2**63) <= int(span) < 2**63:
            return values, k
        values[k] = int(span)
    return values, len(starts)


@compiled
def _hash_span(text: Any, start: int, end: int) -> int:
    """FNV-1a of a span, with its high bits mixed into the low ones."""
    hashed = -3750763034362895579
    for at in range(start, end):
        hashed = (hashed ^ text[at]) * 1099511628211
    return hashed ^ (hashed >> 32)


@compiled
def _same_span(text: Bytes, start: int, end: int, other_text: Bytes, other: int, other_end: int) -> bool:
    if end - start != other_end - other:
        return False
    while start < end and text[start] == other_text[other]:
        start += 1
        other += 1
    return start == end


@compiled
def _find_slot(text: Bytes, start: int, end: int, hashed: int, ids: Bytes, known: Indices, table: Indices) -> int:
    """The slot of ``table`` that holds the code of a span, or the free one where it belongs."""
    slot = hashed & (len(table) - 1)
    while table[slot] >= 0:
        code = table[slot]
        if known[code, 0] == hashed and _same_span(text, start, end, ids, known[code, 1], known[code, 2]):
            break
        slot = (slot + 1) & (len(table) - 1)
    return slot


@compiled
def _enlarged(known: Indices) -> tuple[Indices, Indices]:
    """``known`` with twice the room, and an open-addressing table that is half full once all room is used."""
    count = len(known)
    larger = np.empty((2 * count, 4), dtype=np.int64)
    larger[:count] = known
    table = np.full(4 * count, -1, dtype=np.int64)
    for code in range(count):
        slot = known[code, 0] & (len(table) - 1)
        while table[slot] >= 0:
            slot = (slot + 1) & (len(table) - 1)
        table[slot] = code
    return larger, table


@compiled
def _appended(ids: Bytes, used: int, text: Bytes, start: int, end: int) -> Bytes:
    """``ids`` with the span behind its first ``used`` bytes, in more room where it needs it."""
    size = end - start
    if used + size > len(ids):
        larger = np.empty(2 * (used + size), dtype=np.uint8)
        larger[:used] = ids[:used]
        ids = larger
    ids[used : used + size] = text[start:end]
    return ids


@compiled
def factorize_spans(text: Bytes, starts: Indices, ends: Indices) -> tuple[Indices, Indices]:
    """Number the distinct spans in order of first appearance.

    Returns each span's number, and for each number the position in ``starts`` at which it first appears.
    """
    codes = np.empty(len(starts), dtype=np.int64)
    count, known = 0, np.empty((512, 4), dtype=np.int64)  # of each code: hash, start and end in ids, first appearance
    used, ids = 0, np.empty(8192, dtype=np.uint8)  # the distinct ids side by side: near memory, unlike the text
    table = np.full(1024, -1, dtype=np.int64)
    for k in range(len(starts)):
        start, end = starts[k], ends[k]
        if k > 0 and _same_span(text, starts[k - 1], ends[k - 1], text, start, end):
            codes[k] = codes[k - 1]  # files are often sorted by one of their ids
            continue
        hashed = _hash_span(text, start, end)
        slot = _find_slot(text, start, end, hashed, ids, known, table)
        if table[slot] < 0:
            if count == len(known):
                known, table = _enlarged(known)
                slot = _find_slot(text, start, end, hashed, ids, known, table)
            table[slot] = count
            ids = _appended(ids, used, text, start, end)
            known[count, 0], known[count, 1], known[count, 2], known[count, 3] = hashed, used, used + end - start, k
            used, count = used + end - start, count + 1
        codes[k] = table[slot]
    return codes, known[:count, 3].copy()


def factorize_spans_reference(text: Bytes, starts: Indices, ends: Indices) -> tuple[Indices, Indices]:
    """Readable twin of `factorize_spans`."""
    number: dict[bytes, int] = {}
    codes, firsts = np.empty(len(starts), dtype=np.int64), []
    for k, (start, end) in enumerate(zip(starts, ends, strict=True)):
        span = text[start:end].tobytes()
        if span not in number:
            number[span] = len(number)
            firsts.append(k)
        codes[k] = number[span]
    return codes, np.array(firsts, dtype=np.int64)
