"""Numbers as decimal text, many at a time, without a Python object for each.

A column of text is a table of bytes with a row for each number, and the lengths of these rows. Numbers whose text might
differ from the one that Python writes (those close to half a unit of the last digit, very small or large ones) get
length -1 and are left to Python, whose own formatting is the readable twin.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from surefill.arrays import Array
from surefill.kernels.compile import compiled

Text = NDArray[np.uint8]
Lengths = NDArray[np.int32]

WIDTH = 24
"""Bytes of the longest number: a sign, 17 digits, a point and an exponent of five bytes."""

ZERO, POINT, MINUS, LINE_END = 48, 46, 45, 10
"""The bytes of "0", ".", "-" and the line feed."""

LEAST, MOST = 1e-4, 1e15
"""Smaller numbers and larger ones are written with an exponent, which is left to Python."""

LEAST_DIGITS = 4
"""LEAST is 10^-4."""

WHOLE_POWERS = 10 ** np.arange(19, dtype=np.int64)
POWERS = WHOLE_POWERS.astype(np.float64)
"""Powers of ten up to 10^18, exact in 64-bit integers and in doubles."""

SIGNIFICANT = 6
"""Significant digits of %.6g."""

CERTAIN = 1e-6
"""Least distance from half a unit of the last digit: a product of two doubles has a smaller error."""


@compiled
def _write_integer(value: int, n_digits: int, text: Text, at: int) -> int:
    """Write ``value`` with at least ``n_digits`` digits at position ``at``, and return the position after it."""
    end = at + n_digits
    while value >= WHOLE_POWERS[end - at]:
        end += 1
    for k in range(end - 1, at - 1, -1):
        text[k] = ZERO + value % 10
        value //= 10
    return end


@compiled
def _write_decimal(negative: bool, code: int, digits: int, text: Text) -> int:
    """Write code / 10^digits without trailing zeros, and return its number of bytes."""
    while digits > 0 and code % 10 == 0:
        code //= 10
        digits -= 1
    at = 0
    if negative and code > 0:
        text[0], at = MINUS, 1
    unit = WHOLE_POWERS[digits]
    at = _write_integer(code // unit, 1, text, at)
    if digits > 0:
        text[at] = POINT
        at = _write_integer(code % unit, digits, text, at + 1)
    return at


@compiled
def _is_minus_zero(number: float) -> bool:
    return number == 0 and math.copysign(1.0, number) < 0


@compiled
def format_exactly(numbers: Array, digits: int, text: Text, lengths: Lengths) -> None:
    """The shortest decimals that read back as the numbers, where at most ``digits`` after the point suffice."""
    unit = POWERS[digits]
    for t in range(len(numbers)):
        size = abs(numbers[t])
        code = np.rint(size * unit)
        if numbers[t] != numbers[t]:
            lengths[t] = 0
        elif (0 < size < LEAST) or code >= MOST or code / unit != size or _is_minus_zero(numbers[t]):
            lengths[t] = -1
        else:
            lengths[t] = _write_decimal(numbers[t] < 0, int(code), digits, text[t])


@compiled
def format_to_six(numbers: Array, text: Text, lengths: Lengths) -> None:
    """The text of %.6g."""
    for t in range(len(numbers)):
        size = abs(numbers[t])
        if size != size:
            lengths[t] = 0
            continue
        if size == 0 and not _is_minus_zero(numbers[t]):
            text[t, 0], lengths[t] = ZERO, 1
            continue
        lengths[t] = -1
        if not LEAST <= size < POWERS[SIGNIFICANT - 1]:
            continue
        digits = SIGNIFICANT - 1 + LEAST_DIGITS
        while size * POWERS[digits] >= POWERS[SIGNIFICANT]:
            digits -= 1
        scaled = size * POWERS[digits]
        code = np.rint(scaled)
        if abs(abs(scaled - code) - 0.5) < CERTAIN or not 100_000 <= code <= 999_999:
            continue
        lengths[t] = _write_decimal(numbers[t] < 0, int(code), digits, text[t])


@compiled
def merge_columns(
    text: Text, starts: NDArray[np.int64], lengths: Lengths, cells: NDArray[np.int64], delimiter: int, out: Text
) -> None:
    """Write line t as the fields cells[:, t], field g being ``lengths[g]`` bytes of ``text`` from ``starts[g]`` on."""
    at = 0
    for t in range(cells.shape[1]):
        for c in range(cells.shape[0]):
            g = cells[c, t]
            for k in range(starts[g], starts[g] + lengths[g]):
                out[at] = text[k]
                at += 1
            out[at] = delimiter
            at += 1
        out[at - 1] = LINE_END
