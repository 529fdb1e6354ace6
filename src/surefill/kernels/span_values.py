"""Fields of a text as ids: the integers and the distinct names that spans of its bytes hold.

A span is ``text[start:end]`` of a uint8 array, as :mod:`surefill.kernels.tokenizer` finds it. Every kernel has a
readable twin of the same signature, named ``*_reference``.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from surefill.arrays import Indices
from surefill.kernels.compile import compiled
from surefill.kernels.tokenizer import Bytes

MINUS, ZERO = 45, 48
"""Their codes in ASCII and UTF-8."""

LOWEST = -(2**63)
"""The least 64-bit integer, whose magnitude alone does not fit in 64 bits."""


@compiled
def read_digits(text: Any, at: int, end: int, number: int, significant: int) -> tuple[int, int, int]:
    """Append the digits from ``at`` on to ``number``; (where they end, the number, its significant digits).

    More than 18 digits wrap around modulo 2^64.
    """
    while at < end and ZERO <= text[at] <= ZERO + 9:
        number = number * 10 + (text[at] - ZERO)
        significant += number != 0
        at += 1
    return at, number, significant


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
        at, magnitude, _ = read_digits(text, start, end, 0, 0)
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
