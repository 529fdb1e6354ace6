"""What may come in: the numbers, seeds, texts and paths that every command and the Python interface take.

Each limit is in one place, with the reason for it, so that all refuse the same things in the same words. Limits that
a table may exceed in earnest, the length of lines and ids and how much a file grows when unpacked, can be raised by
:func:`using_limits`, on the command line by ``--limit``.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from surefill.errors import InputError, invalid_parameter, is_number, is_seed

__all__ = ["Limits", "current_limits", "using_limits"]

LARGEST_VALUE = 1e60
"""Of values and bounds: losses are squares, 10^120, and what is computed with their squares, 10^240 and sums of many
such, stays below the largest double, 1.8e308."""

VALUE_WORDS = f"a finite number of at most {LARGEST_VALUE:g} in size"
"""What sentences call a value that is taken."""

SMALLEST_RANGE = 1 / LARGEST_VALUE
"""Of values and bounds, from the least to the largest: the squares of their squares are doubles, too."""

LARGEST_TOLERANCE = LARGEST_VALUE**2
"""Of mean squared errors; their squares, by which bets are sized, stay below the largest double, too."""

LARGEST_SEED = 2**63 - 1
"""Seeds fit into 64 bits with sign, as files and other libraries keep them."""

MEGABYTE = 1 << 20

HALF_CHARACTER = re.compile(r"[\ud800-\udfff]")
"""Half of a pair that stands for one sign, alone."""


@dataclass(frozen=True)
class Limits:
    """How much of a file is taken on trust.

    Attributes
    ----------
    line : bytes of one line; those that hold an observation have some hundred, and those of a wide table with a
        million columns a few million.
    id : bytes of the id of a row or column; the longest addresses of pages that browsers take have 2000.
    ratio : how many times larger a packed file may be once unpacked. Tables of ratings reach 10, endless repeats of a
        few lines 200, and zeros, the stuff of bombs, 1000.

    Examples
    --------
    >>> Limits().line
    16777216
    """

    line: int = 16 * MEGABYTE
    id: int = 4096
    ratio: float = 250.0

    def __post_init__(self) -> None:
        for name in ("line", "id", "ratio"):
            given = getattr(self, name)
            if not (is_number(given) and given >= 1):
                raise invalid_parameter("Limits", name, "a number of at least 1", given)


FREE = 64 * MEGABYTE
"""Bytes that any file may unpack to, whatever the ratio."""

_LIMITS: ContextVar[Limits] = ContextVar("surefill_limits", default=Limits())  # noqa: B039  (it is frozen)


def current_limits() -> Limits:
    """The limits that hold now.

    >>> current_limits() == Limits()
    True
    """
    return _LIMITS.get()


@contextmanager
def using_limits(**changed: Any) -> Iterator[None]:
    """Take longer lines or denser files inside.

    >>> with using_limits(ratio=1000):
    ...     current_limits().ratio
    1000
    """
    token = _LIMITS.set(replace(_LIMITS.get(), **changed))
    try:
        yield
    finally:
        _LIMITS.reset(token)


def check_size(where: str, name: str, size: int) -> None:
    """Refuse a line or an id of more bytes than the limits take; ``where`` says which one it is.

    >>> check_size("ratings.csv, line 7", "line", 80)
    """
    limit = getattr(current_limits(), name)
    if size > limit:
        raise InputError(
            f"{where}: {'an id' if name == 'id' else 'the line'} has more than {limit:,} bytes; if that is meant, "
            f"raise the limit by --limit {name}=NUMBER (surefill.inputs.using_limits in Python)."
        )


def check_ids(where: str, texts: Iterable[str]) -> None:
    """Refuse ids of which one has more bytes than the limits take.

    >>> check_ids("ratings.parquet, column 'user'", ["ann", "bob"])
    """
    limit = current_limits().id
    for text in texts:
        if 4 * len(text) > limit:  # a sign has at most four bytes
            check_size(where, "id", len(text.encode("utf-8", "surrogatepass")))


def check_text(where: str, text: str) -> None:
    """Refuse text with a zero sign, which ends texts elsewhere, or with half a character, which no file can hold.

    >>> check_text("the label", "Zoë")
    """
    zero = "\0" in text
    if zero or not (text.isascii() or HALF_CHARACTER.search(text) is None):
        raise InputError(f"{where} {text!r} is no text: it holds {'a zero sign' if zero else 'half a character'}.")


def check_ratio(source: object, packed: int, unpacked: int) -> None:
    """Refuse what unpacks to more than :attr:`Limits.ratio` times its size."""
    limit = current_limits().ratio
    if unpacked > max(FREE, limit * packed):
        raise InputError(
            f"{source} unpacks to more than {limit:,.0f} times its size, as files made to fill a memory do; if it is "
            "to be trusted, raise the limit by --limit ratio=NUMBER (surefill.inputs.using_limits in Python)."
        )


def check_seed(owner: str, name: str, given: object) -> None:
    """Refuse what is not a whole number from 0 to 2^63 - 1.

    >>> check_seed("surefill", "seed", 7)
    """
    if not (is_seed(given) and int(given) <= LARGEST_SEED):  # type: ignore[call-overload]
        raise invalid_parameter(owner, name, "a whole number from 0 to 2^63 - 1", given)


def check_tolerance(owner: str, given: object) -> None:
    """Refuse what is neither None nor a number above 0 that is not too large.

    >>> check_tolerance("PartialCompleter", 0.5)
    """
    if given is None:
        return
    # Python's own number: some of numpy's kinds hold none as large as the limit
    number: Any = getattr(given, "item", lambda: given)() if is_number(given) else 0
    if not 0 < number <= LARGEST_TOLERANCE:
        expected = f"a number above 0 and at most {LARGEST_TOLERANCE:g}, or None"
        raise invalid_parameter(owner, "tolerance", expected, given)


def check_range(low: float, high: float) -> None:
    """Refuse bounds that are no range of values.

    >>> check_range(1, 5)
    """
    if not -LARGEST_VALUE <= low < high <= LARGEST_VALUE:
        raise InputError(
            f"bounds must be two finite numbers, low < high, of at most {LARGEST_VALUE:g} in size; got ({low:g}, "
            f"{high:g})."
        )
    if high - low < SMALLEST_RANGE:
        raise InputError(
            f"values and bounds must range over {SMALLEST_RANGE:g} or more, or their squared errors are too small to "
            f"compute with; ({low:g}, {high:g}) is narrower: give values in a smaller unit."
        )


def position_or_name(given: str) -> str | int:
    """A column's position where digits say it, else its name.

    >>> position_or_name("12"), position_or_name("user"), position_or_name("²")
    (12, 'user', '²')
    """
    return int(given) if given.isascii() and given.isdigit() and len(given) < 10 else given


def check_exists(path: Path, expected: str) -> None:
    """Refuse a path at which nothing is, or that may not be looked at; ``expected`` says what should be there."""
    try:
        os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        raise InputError(f"{path} does not exist; {expected} is expected.") from None
    except (OSError, ValueError) as error:
        raise cannot(path, "be read", error) from None


def cannot(path: object, what: str, error: BaseException) -> InputError:
    """What to say of a file with which something cannot be done, for the system's own reason."""
    reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return InputError(f"{path} cannot {what}: {reason[0].lower()}{reason[1:].rstrip('.')}.")
