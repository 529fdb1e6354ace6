"""Figures of a promise as they are said: rounded so that never more is said than was shown."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, Context, Decimal


def probability(delta: float) -> str:
    """1 - delta, not rounded.

    >>> probability(0.1), probability(1e-9), probability(0.25)
    ('0.9', '0.999999999', '0.75')
    """
    return f"{1 - Decimal(repr(float(delta))):f}"


def rounded_up(number: float, digits: int = 4) -> float:
    """The least number of so many significant digits that is at least this one.

    >>> rounded_up(0.344449), rounded_up(0.3), rounded_up(76.23, digits=3)
    (0.3445, 0.3, 76.3)
    """
    return float(Context(prec=digits, rounding=ROUND_CEILING).create_decimal(repr(float(number))))


def bound(tolerance: float) -> str:
    """A tolerance with four digits, never smaller than what was tested.

    >>> bound(0.344449), bound(0.5), bound(1234567.0)
    ('0.3445', '0.5', '1.235e+06')
    """
    return f"{rounded_up(tolerance):.4g}"


def floored(factor: float) -> str:
    """A factor that a promise survives, to two decimals and never up: more is not promised.

    >>> floored(1.369), floored(10.0)
    ('1.36', '10')
    """
    return f"{math.floor(100 * factor) / 100:.4g}"


def counted(number: float, exact: bool) -> str:
    """A count, or about how many where it was found on a sample.

    >>> counted(1234.0, exact=True), counted(1234567.8, exact=False)
    ('1,234', 'about 1,230,000')
    """
    if exact:
        return f"{number:,.0f}"
    return f"about {float(f'{number:.3g}'):,.0f}"


def calibration_cells(number: int) -> str:
    """How many calibration cells, and the verb that follows.

    >>> calibration_cells(1), calibration_cells(1200)
    ('1 calibration cell is', '1,200 calibration cells are')
    """
    return f"{number:,} calibration cell{' is' if number == 1 else 's are'}"
