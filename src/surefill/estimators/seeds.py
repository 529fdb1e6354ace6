"""The seed of a run: as given, drawn from a generator, or fresh."""

from __future__ import annotations

import numpy as np

from surefill.errors import invalid_parameter, is_seed
from surefill.inputs import LARGEST_SEED

SEEDS = 2**31
"""Seeds are drawn below this: it fits every integer type, and people can type them."""


def choose_seed(owner: str, given: object) -> int:
    """The whole number that a run starts from; None draws a fresh one, a generator gives its next.

    >>> choose_seed("PartialCompleter", 7)
    7
    >>> 0 <= choose_seed("PartialCompleter", None) < 2**31
    True
    """
    check_random_state(owner, given)
    if given is None:
        given = np.random.default_rng()
    if isinstance(given, np.random.RandomState):
        return int(given.randint(SEEDS))
    if isinstance(given, np.random.Generator):
        return int(given.integers(SEEDS))
    return int(given)  # type: ignore[call-overload, no-any-return]


def check_random_state(owner: str, given: object) -> None:
    """Refuse what no seed can be made of."""
    number = is_seed(given) and int(given) <= LARGEST_SEED  # type: ignore[call-overload]
    if not (given is None or number or isinstance(given, np.random.RandomState | np.random.Generator)):
        expected = "a whole number from 0 to 2^63 - 1, None for a fresh one, or a numpy generator"
        raise invalid_parameter(owner, "random_state", expected, given)
