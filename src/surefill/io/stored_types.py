"""Whether what a file holds is of the types that the fields of our own objects declare.

Objects are built from files by their declared fields. What another type would do there shows when the object is used,
long after loading, or never; so it is compared with the declaration first. Sizes and ranges are each object's own to
check.
"""

from __future__ import annotations

import numbers
from collections.abc import Mapping
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np

from surefill.registry import STORABLE

FAMILIES = (np.floating, np.integer, np.bool_, np.str_)
"""Kinds of arrays that are told apart; single precision may stand for double, and short integers for long."""

PLAIN: dict[Any, tuple[type, ...]] = {float: (numbers.Real,), int: (numbers.Integral,), str: (str,)}
"""What may stand for a number or a text; a truth value, which Python counts among numbers, may not."""

LARGEST = 2**63
"""Whole numbers are below it in size, as 64 bits hold them: compiled code takes no others."""


def check_fields(kind: type, values: Mapping[str, Any]) -> None:
    """TypeError where a value is not what the field of its name is declared to be.

    >>> from surefill.data import UnitMap
    >>> check_fields(UnitMap, {"low": 1, "high": 5.0})
    >>> check_fields(UnitMap, {"low": None, "high": 5.0})
    Traceback (most recent call last):
        ...
    TypeError: low of UnitMap
    """
    for name, hint in _declared(kind).items():
        if name in values and not fits(values[name], hint):
            raise TypeError(f"{name} of {kind.__name__}")


@cache
def _declared(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)


def fits(value: Any, hint: Any) -> bool:
    """Whether a value is of a declared type.

    >>> fits((3, 4), tuple[int, int]), fits([3, 4], tuple[int, int]), fits(None, float | None), fits(True, int)
    (True, False, True, False)
    """
    origin, inside = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return any(fits(value, each) for each in inside)
    if origin is Literal:
        return isinstance(value, str) and value in inside
    if origin is np.ndarray:
        return isinstance(value, np.ndarray) and _is_of_family(value, get_args(inside[1])[0])
    if origin is tuple:
        return isinstance(value, tuple) and _fit_each(value, inside)
    if origin is dict:
        return isinstance(value, dict) and all(fits(each, inside[1]) for each in value.values())
    return hint is Any or _is_plain(value, hint)


def _is_plain(value: Any, hint: Any) -> bool:
    """Of one of Python's own types, of a class, or, where anything that has some methods would do, of one of ours."""
    if hint in (None, NoneType, bool):
        return value is None if hint is not bool else isinstance(value, bool)
    if hint in PLAIN:
        too_large = isinstance(value, int) and abs(value) >= LARGEST
        return isinstance(value, PLAIN[hint]) and not isinstance(value, bool) and not too_large
    if isinstance(hint, type) and not getattr(hint, "_is_protocol", False):
        return isinstance(value, hint)
    return STORABLE.get(type(value).__name__) is type(value)


def _fit_each(values: tuple[Any, ...], hints: tuple[Any, ...]) -> bool:
    if len(hints) == 2 and hints[1] is Ellipsis:
        return all(fits(value, hints[0]) for value in values)
    return len(values) == len(hints) and all(map(fits, values, hints))


def _is_of_family(array: np.ndarray[Any, Any], declared: Any) -> bool:
    family = next((each for each in FAMILIES if isinstance(declared, type) and issubclass(declared, each)), None)
    return family is None or bool(np.issubdtype(array.dtype, family))
