"""Numbers written in a text: decimal points or commas, and words that stand for a missing value."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from surefill.arrays import Array, Indices
from surefill.errors import SCREEN, InputError, invalid_parameter
from surefill.inputs import LARGEST_VALUE
from surefill.kernels import decimal_spans
from surefill.kernels.tokenizer import Bytes
from surefill.parallel import current_map

Spans = tuple[Indices, Indices]
"""Starts and ends of fields in a text."""

DECIMAL_COMMA = re.compile(rb"[+-]?\d*,\d+(?:[eE][+-]?\d+)?")
"""A number with a decimal comma, such as 3,5."""

THOUSANDS = re.compile(rb"[+-]?\d{1,3}(?:,\d{3})+")
"""A number that may have separated thousands as well as a decimal comma, such as 1,234."""


def decode(texts: list[bytes]) -> list[str]:
    """Each field as text, whatever the others are: the same bytes are the same label wherever they stand."""
    return [decode_field(text) for text in texts]


def decode_field(text: bytes) -> str:
    """UTF-8, or where it is not that, the text of Western Windows, which holds Latin-1.

    What is partly UTF-8 and partly not is damaged, and refused.

    >>> decode_field("Zoë".encode()), decode_field("Zoë".encode("latin-1"))
    ('Zoë', 'Zoë')
    """
    with suppress(UnicodeDecodeError):  # the next encoding is tried then
        return text.decode()
    if any(ord(sign) > 127 for sign in text.decode(errors="ignore")):
        raise NotText(text)
    try:
        return text.decode("cp1252")
    except UnicodeDecodeError:
        raise NotText(text) from None


class NotText(Exception):  # noqa: N818
    """A field that is text in no encoding that is read."""

    def __init__(self, written: bytes) -> None:
        super().__init__(written)
        self.written = written

    def at(self, where: str) -> InputError:
        """The sentence about it."""
        shown = self.written[:SCREEN].decode(errors="backslashreplace")
        return InputError(f"{where}: {shown!r} is not UTF-8 text, and no other that is read; save the file as UTF-8.")


class BadNumber(Exception):  # noqa: N818
    """A field that is no number: which one, how it is written, and what is wrong with it."""

    def __init__(self, position: int, written: bytes, problem: str) -> None:
        super().__init__(problem)
        self.position, self.written, self.problem = position, written, problem

    def at(self, where: str) -> InputError:
        """The sentence about it."""
        written = self.written[: 2 * SCREEN].decode(errors="backslashreplace")
        return InputError(f"{where}: the value {written!r} {self.problem}.")


class _Texts(NamedTuple):
    """Fields that need a closer look: where they are among all, and what they say."""

    positions: Indices
    contents: list[bytes]


def check_decimal(decimal: str | None) -> None:
    """Refuse a decimal sign other than a point or a comma."""
    if decimal not in (None, ".", ","):
        raise invalid_parameter("read_observations", "decimal", "'.' or ','", decimal)


def parse_numbers(text: Bytes, parts: Sequence[Spans], decimal: str | None = None) -> tuple[Array, str]:
    """The number in each span, NaN where it is missing, and the decimal sign; :class:`BadNumber` where it is neither.

    Without ``decimal`` a point is expected, and if that fails a comma, unless what is written may be separated
    thousands: 1,234 is two numbers, and neither is taken.
    """
    sign = decimal or "."
    values, rest = _parsed(text, parts, sign)
    if decimal is None and any(DECIMAL_COMMA.fullmatch(content) for content in rest.contents):
        _refuse_thousands(rest)
        sign = ","
        values, rest = _parsed(text, parts, sign)
    _fill_in(values, rest, sign)
    return values, sign


def decimal_sign(position: int, content: bytes) -> str:
    """The decimal sign of a number that has one; :class:`BadNumber` where it may separate thousands.

    >>> decimal_sign(0, b"3,5"), decimal_sign(0, b"3.5")
    (',', '.')
    """
    if b"." in content:
        return "."
    _refuse_thousands(_Texts(np.array([position]), [content]))
    return ","


def _parsed(text: Bytes, parts: Sequence[Spans], point: str) -> tuple[Array, _Texts]:
    """Plain decimals at once, and the fields that are neither these nor missing."""

    def parse(part: Spans) -> tuple[Array, NDArray[np.bool_]]:
        values = decimal_spans.parse_decimals(text, *part, ord(point))
        unsure = np.flatnonzero(np.isnan(values))
        rest = np.zeros(len(values), dtype=bool)
        rest[unsure] = ~decimal_spans.find_missing(text, part[0][unsure], part[1][unsure])
        return values, rest

    parsed = current_map().map(parse, parts)
    contents = []
    for (starts, ends), (_, rest) in zip(parts, parsed, strict=True):
        spans = zip(starts[rest].tolist(), ends[rest].tolist(), strict=True)
        contents += [text[start:end].tobytes().strip(b' \t"') for start, end in spans]
    positions = np.flatnonzero(np.concatenate([rest for _, rest in parsed]))
    return np.concatenate([values for values, _ in parsed]), _Texts(positions, contents)


def _refuse_thousands(rest: _Texts) -> None:
    """Refuse commas all of which may separate thousands."""
    with_comma = [k for k, content in enumerate(rest.contents) if b"," in content]
    if all(THOUSANDS.fullmatch(rest.contents[k]) for k in with_comma):
        first = with_comma[0]
        whole = rest.contents[first].replace(b",", b"").decode()
        part = rest.contents[first].replace(b",", b".", 1).decode()
        problem = (
            f"may be {whole} or {part}: remove separators of thousands, or give decimal=',' (--decimal , on the "
            "command line)"
        )
        raise BadNumber(int(rest.positions[first]), rest.contents[first], problem)


def _fill_in(values: Array, rest: _Texts, decimal: str) -> None:
    """Read what is left as Python does, which takes exponents and digits of any length."""
    for position, content in zip(rest.positions.tolist(), rest.contents, strict=True):
        values[position] = _read(position, content, decimal)


def _read(position: int, content: bytes, decimal: str) -> float:
    sign, other = (b".", b",") if decimal == "." else (b",", b".")
    number = content.replace(sign, b".")
    try:
        value = float(number) if other not in content and b"_" not in content else None
    except ValueError:
        value = None
    if value is None:
        raise BadNumber(position, content, _problem(content, sign, other))
    if not abs(value) <= LARGEST_VALUE:
        problem = f"is larger than {LARGEST_VALUE:g} in size" if np.isfinite(value) else "is not finite"
        raise BadNumber(position, content, f"{problem}; a finite number is expected")
    return value


def _problem(content: bytes, sign: bytes, other: bytes) -> str:
    """What is wrong with a field that is not a number."""
    digits = re.sub(rb"[.,' _]", b"", content.lstrip(b"+-"))
    if not digits.isdigit():  # a sign inside is one of a date or a range
        return "is not a number; a finite number is expected"
    if other in content and sign not in content:
        names = {b".": "a point", b",": "a comma"}
        return f"has {names[other]}, but the decimal sign is {names[sign]}; separators of thousands are not read"
    return "is not a number that can be read: remove separators of thousands"
