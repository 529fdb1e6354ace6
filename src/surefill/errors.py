"""What can go wrong with what a user gives, said in one sentence each."""

from __future__ import annotations

import numbers
import re
from collections.abc import Sequence

CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
"""What moves a cursor, sets colours, ends lines, turns writing around or is half a character: none of it is shown."""

SCREEN = 80
"""Signs of a quotation that a sentence shows: the width of a screen."""

LONGEST_WORD, LONGEST_SENTENCE = 240, 1000
"""Signs without a blank, which holds most paths, and of all that is said: a dozen lines of a screen."""


def printable(text: str, kept: str = "") -> str:
    r"""Text with its control signs escaped, those ``kept`` excepted: a file's bytes command no terminal.

    >>> printable("a\x1b[31mred\n"), printable("two\nlines", kept="\n")
    ('a\\x1b[31mred\\n', 'two\nlines')
    """

    def escape(found: re.Match[str]) -> str:
        sign = found[0]
        return sign if sign in kept else sign.encode("unicode_escape").decode()

    return CONTROL.sub(escape, text)


def brief(sentence: str) -> str:
    """A sentence in one line that quotes at most a screen's width of what it is about.

    >>> brief("the value '" + 5000 * "x" + "' is not a number")
    "the value 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx...' is not a number"
    """
    if len(sentence) <= SCREEN and sentence.isprintable():
        return sentence
    for quote in "'\"":
        # an apostrophe follows a letter and opens nothing; short quotations are gone through, so that pairs stay pairs
        sentence = re.sub(rf"(?<!\w){quote}[^{quote}]*{quote}", _shortened_quotation, sentence)
    sentence = re.sub(rf"\S{{{LONGEST_WORD},}}", lambda found: _shortened(found[0], LONGEST_WORD // 2), sentence)
    return _shortened(printable(sentence), LONGEST_SENTENCE)


def _shortened_quotation(found: re.Match[str]) -> str:
    quote, text = found[0][0], found[0][1:-1]
    return found[0] if len(text) <= SCREEN else f"{quote}{text[: SCREEN * 4 // 5]}...{quote}"


def _shortened(text: str, size: int) -> str:
    """The beginning, which says what is wrong, and the end, which says what to do."""
    return text if len(text) <= size else f"{text[: size * 3 // 4]} ... {text[-size // 4 :]}"


class InputError(ValueError):
    """Something given to surefill cannot be used; the message is one sentence that says what would do.

    The sentence is fit for a terminal whatever was given: control signs are escaped, long quotations cut.

    Examples
    --------
    >>> import surefill as sf
    >>> try:
    ...     sf.Observations([0, 1], [0], [1.0, 2.0])
    ... except sf.InputError as error:
    ...     print(error)
    rows, cols and values must have one item per observation; got 2, 1 and 2.
    """

    def __init__(self, sentence: object = "") -> None:
        super().__init__(brief(str(sentence)))


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


class OutOfMemoryError(MemoryError):
    """Memory did not suffice; the message says what would fit.

    Examples
    --------
    >>> import surefill as sf
    >>> isinstance(sf.errors.OutOfMemoryError("ratings.csv takes about 3 GB."), MemoryError)
    True
    """


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
