"""Fields of a text as numbers: the decimals that spans of its bytes hold, and which spans stand for a missing value.

A span is ``text[start:end]`` of a uint8 array, as :mod:`surefill.kernels.tokenizer` finds it. Every kernel has a
readable twin of the same signature, named ``*_reference``.
"""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import NDArray

from surefill.arrays import Array, Indices
from surefill.kernels.compile import compiled
from surefill.kernels.span_values import MINUS, read_digits
from surefill.kernels.tokenizer import SPACE, TAB, Bytes

PLUS, POINT, LOWER_E = 43, 46, 101
"""Their codes in ASCII and UTF-8."""

MOST_DIGITS = 15
"""Digits of a decimal that a double holds exactly: 10^15 < 2^53."""

MOST_LONG_DIGITS = 18
"""Digits of a decimal that 64 bits hold: 10^18 < 2^63. The shortest text that tells doubles apart has 17."""

MOST_TENS = 22
"""The largest power of ten that is a double exactly: 5^22 < 2^53."""

POWERS_OF_TEN = np.array([float(f"1e{k}") for k in range(MOST_TENS + 1)])
"""The powers that doubles hold exactly."""

SPLITTER = 2.0**27 + 1
"""Dekker's constant: the product with it cuts a double of 53 bits into two of at most 26."""

SLACK = 2.0**-46
"""A bound on the relative error of the second part of a quotient, which is a few roundings, 2^-53 each."""

MISSING = (
    "", "na", "n/a", "nan", "-nan", "null", "none", "<na>", "#n/a", "#na", "#n/a n/a", "1.#ind", "-1.#ind", "1.#qnan",
    "-1.#qnan", "?", "-",
)  # fmt: skip
"""What stands for a missing value, in lower case: what pandas takes for one, and two signs that people write."""

_MISSING_BYTES = np.frombuffer("".join(MISSING).encode(), dtype=np.uint8)
_MISSING_ENDS = np.cumsum([len(word) for word in MISSING])


@compiled
def _signed(text: Bytes, at: int, end: int) -> tuple[int, bool]:
    """(where the digits begin, whether a minus precedes them)."""
    if at < end and (text[at] == PLUS or text[at] == MINUS):
        return at + 1, text[at] == MINUS
    return at, False


@compiled
def _halves(number: float) -> tuple[float, float]:
    """A double as the sum of two whose products with other halves are exact (Dekker 1971)."""
    scaled = SPLITTER * number
    high = scaled - (scaled - number)
    return high, number - high


@compiled
def _long_quotient(mantissa: int, tens: float) -> float:
    """mantissa / tens correctly rounded, for a mantissa of more digits than a double holds; NaN where it is too close.

    mantissa = s + e, both doubles, and s / tens = q + r / tens with r = s - q tens exactly. Then the quotient is q +
    (r + e) / tens up to SLACK times the second part; where both ends of that round alike, so does the quotient.
    """
    nearest = float(mantissa)
    error = float(mantissa - np.int64(nearest))
    quotient = nearest / tens
    (q_high, q_low), (t_high, t_low) = _halves(quotient), _halves(tens)
    product = quotient * tens
    product_error = ((q_high * t_high - product) + q_high * t_low + q_low * t_high) + q_low * t_low
    second = ((nearest - product) - product_error + error) / tens
    low, high = quotient + second * (1 - SLACK), quotient + second * (1 + SLACK)
    return low if low == high else np.nan


@compiled
def _parse_decimal(text: Bytes, start: int, end: int, point: int) -> float:
    at, negative = _signed(text, start, end)
    whole, mantissa, significant = read_digits(text, at, end, 0, 0)
    written, exponent, at = whole - at, 0, whole
    if at < end and text[at] == point:
        at, mantissa, significant = read_digits(text, whole + 1, end, mantissa, significant)
        exponent = whole + 1 - at
        written -= exponent
    if at < end and text[at] | 32 == LOWER_E:
        power_at, power_negative = _signed(text, at + 1, end)
        at, power, power_digits = read_digits(text, power_at, end, 0, 0)
        if at == power_at or power_digits > MOST_DIGITS:
            return np.nan
        exponent += -power if power_negative else power
    if at != end or written == 0 or significant > MOST_LONG_DIGITS or abs(exponent) > MOST_TENS:
        return np.nan
    tens: float = POWERS_OF_TEN[abs(exponent)]
    if significant > MOST_DIGITS:
        magnitude = _long_quotient(mantissa, tens) if exponent < 0 else np.nan
    else:
        magnitude = mantissa / tens if exponent < 0 else mantissa * tens
    return -magnitude if negative else magnitude


@compiled
def parse_decimals(text: Bytes, starts: Indices, ends: Indices, point: int) -> Array:
    """The plain decimal number in each span, correctly rounded; NaN where only Python's ``float`` can tell.

    ``point`` is the byte between whole and fractional part. A decimal of at most 15 significant digits times a power
    of ten up to 10^22 is one multiplication or division of two exact doubles, hence correctly rounded (Clinger 1990).
    Fractions of up to 18 digits are divided with twice the precision.
    """
    values = np.empty(len(starts))
    for k in range(len(starts)):
        values[k] = _parse_decimal(text, starts[k], ends[k], point)
    return values


def parse_decimals_reference(text: Bytes, starts: Indices, ends: Indices, point: int) -> Array:
    """Readable twin of `parse_decimals`."""
    sign = re.escape(bytes([point]))
    plain = re.compile(rb"[+-]?(?P<whole>\d*)(?:" + sign + rb"(?P<part>\d*))?(?:[eE](?P<power>[+-]?\d+))?")
    values = np.full(len(starts), np.nan)
    for k, (start, end) in enumerate(zip(starts, ends, strict=True)):
        span = text[start:end].tobytes()
        match = plain.fullmatch(span)
        if match and (digits := match["whole"] + (match["part"] or b"")):
            exponent = int(match["power"] or 0) - len(match["part"] or b"")
            most = MOST_LONG_DIGITS if exponent < 0 else MOST_DIGITS
            if len(digits.lstrip(b"0")) <= most and abs(exponent) <= MOST_TENS:
                values[k] = float(span.replace(bytes([point]), b"."))
    return values


@compiled
def _is_word(text: Bytes, start: int, end: int, word: int) -> bool:
    """Whether a span is the given word of `MISSING`, in letters of any case."""
    begin = _MISSING_ENDS[word - 1] if word > 0 else 0
    if end - start != _MISSING_ENDS[word] - begin:
        return False
    for k in range(end - start):
        byte = text[start + k]
        if 65 <= byte <= 90:  # A to Z
            byte |= 32
        if byte != _MISSING_BYTES[begin + k]:
            return False
    return True


@compiled
def find_missing(text: Bytes, starts: Indices, ends: Indices) -> NDArray[np.bool_]:
    """Whether each span, blanks around it left out, is one of the words that stand for a missing value."""
    missing = np.zeros(len(starts), dtype=np.bool_)
    for k in range(len(starts)):
        start, end = starts[k], ends[k]
        while start < end and (text[start] == SPACE or text[start] == TAB):
            start += 1
        while start < end and (text[end - 1] == SPACE or text[end - 1] == TAB):
            end -= 1
        for word in range(len(_MISSING_ENDS)):
            if _is_word(text, start, end, word):
                missing[k] = True
                break
    return missing


def find_missing_reference(text: Bytes, starts: Indices, ends: Indices) -> NDArray[np.bool_]:
    """Readable twin of `find_missing`."""
    spans = (text[start:end].tobytes().strip(b" \t").lower() for start, end in zip(starts, ends, strict=True))
    words = {word.encode() for word in MISSING}
    return np.array([span in words for span in spans], dtype=np.bool_)
