"""Columns that say when: numbers, ISO dates and date-times, as numbers that grow with time."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

import numpy as np

from surefill.arrays import Array
from surefill.errors import InputError
from surefill.kernels.decimal_spans import MISSING


def parse_times(texts: Sequence[str], column: str) -> Array:
    """Times as numbers: as they are, or for ISO dates and date-times seconds since 1970; they must all be of one kind.

    >>> parse_times(["881250949", "1.5"], "when").tolist()
    [881250949.0, 1.5]
    >>> float(np.ptp(parse_times(["2026-01-31", "2026-02-01T06:00:00"], "when"))) / 3600
    30.0
    """
    numbers, dates = [_number(text) for text in texts], [_date(text) for text in texts]
    for text, number, date in zip(texts, numbers, dates, strict=True):
        if number is None and date is None:
            raise InputError(f"{_what(text)} in column {column!r}; a number, or a date such as {EXAMPLES} is expected.")
    if all(number is not None for number in numbers):
        return np.array(numbers, dtype=np.float64)
    odd = next((text for text, date in zip(texts, dates, strict=True) if date is None), None)
    if odd is not None:
        raise InputError(f"column {column!r} holds dates, and numbers such as {odd!r}; one kind is expected.")
    zoned = [date for date in dates if date is not None and date.tzinfo is not None]
    if zoned and len(zoned) < len(dates):
        raise InputError(f"column {column!r} holds date-times with a time zone and without; one kind is expected.")
    return np.array([_seconds(date) for date in dates if date is not None])


EXAMPLES = "2026-01-31 or 2026-01-31T12:00:00"
"""How dates are to be written."""


def _what(text: str) -> str:
    return "a time is missing" if text.lower() in MISSING else f"{text!r} is no time that can be read"


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if np.isfinite(number) and "_" not in text else None


def _date(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None


def _seconds(date: datetime) -> float:
    return (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp()
