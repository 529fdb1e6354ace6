"""Delimited text as bytes: where its fields lie.

Text is a uint8 array and a field is a span ``text[start:end]``; nothing is copied. Blanks around a field and
the quotes of a quoted one lie outside its span, except that a field holding doubled quotes keeps its outer
quotes, so a span that starts with a quote is one whose doubled quotes must still be undone. Every kernel has
a readable twin of the same signature, named ``*_reference``.
"""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import NDArray

from surefill.arrays import Indices
from surefill.kernels.compile import compiled

Bytes = NDArray[np.uint8]

TAB, NEWLINE, RETURN, SPACE, QUOTE = 9, 10, 13, 32, 34
"""Their codes in ASCII and UTF-8."""

MORE_FIELDS, COMPLETE, RAGGED, UNCLOSED_QUOTE, TEXT_AFTER_QUOTE = range(5)
"""How a field or a scan ended; the last three are errors."""


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
