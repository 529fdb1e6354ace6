"""What can go wrong with what a user gives, said in one sentence each."""

from __future__ import annotations

import numbers
from collections.abc import Sequence


class InputError(ValueError):
    """Something given to surefill cannot be used; the message is one sentence that says what would do.

    Examples
    --------
    >>> import surefill as sf
    >>> try:
    ...     sf.Observations([0, 1], [0], [1.0, 2.0])
    ... except sf.InputError as error:
    ...     print(error)
    rows, cols and values must have one item per observation; got 2, 1 and 2.
    """


class MissingPackageError(ImportError):
    """A feature needs packages that are not installed; the message says how to get them.

    Examples
    --------
    >>> import surefill as sf
    >>> print(sf.errors.MissingPackageError("drawing pictures", "matplotlib"))
    drawing pictures needs what is not installed: pip install matplotlib
    """

    def __init__(self, feature: str, *packages: str) -> None:
        super().__init__(f"{feature} needs what is not installed: pip install {' '.join(packages)}")


class SolverError(RuntimeError):
    """No solver could answer; the message says what to try."""


def invalid_parameter(owner: str, name: str, expected: str, got: object) -> InputError:
    """One sentence shape for every parameter error: which parameter, what is valid, what was given."""
    return InputError(f"The {name!r} parameter of {owner} must be {expected}. Got {got!r} instead.")


def is_number(given: object) -> bool:
    """Whether ``given`` is a real number, numpy's included and booleans left out."""
    return isinstance(given, numbers.Real) and not isinstance(given, bool)


def is_seed(given: object) -> bool:
    """Whether ``given`` is a whole number of at least 0, booleans left out."""
    return is_number(given) and isinstance(given, numbers.Integral) and int(given) >= 0


FEW = 5
"""Names that a sentence quotes of many: enough to recognise them."""


def few(names: Sequence[object]) -> str:
    """The first few of some names, and how many there are beside.

    >>> few(["a", "b"]), few(list("abcdefgh"))
    ('a, b', 'a, b, c, d, e and 3 more')
    """
    shown = ", ".join(map(str, names[:FEW]))
    return f"{shown} and {len(names) - FEW:,} more" if len(names) > FEW else shown
