"""Compact arrays with one item per cell: single precision and constants where that loses nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surefill.arrays import Floats, read_only
from surefill.parallel import ThreadMap

COMPACT_CELLS = 1 << 19
"""From this many cells on values are stored in single precision where that is exact: at two megabytes, about the size
of a cache, time is spent on moving bytes."""

PIECE = 1 << 20
"""Items processed at a time: eight megabytes in double precision."""


CORE_PIECE = 1 << 17
"""Items that one core processes at a time: a megabyte in double precision, so that a few arrays of them fit a cache."""


def exact_floats(values: NDArray[Any]) -> Floats:
    """A copy of the numbers: float32 where there are many and float32 holds each exactly, else float64.

    >>> exact_floats(np.array([0.5, 0.1])).dtype
    dtype('float64')
    >>> exact_floats(np.full(COMPACT_CELLS, 0.5)).dtype, exact_floats(np.full(COMPACT_CELLS, 0.1)).dtype
    (dtype('float32'), dtype('float64'))
    """
    if values.ndim == 1 and len(values) >= COMPACT_CELLS:
        small = np.empty(len(values), dtype=np.float32)
        for first in range(0, len(values), PIECE):
            piece = np.asarray(values[first : first + PIECE], dtype=np.float64)
            with np.errstate(over="ignore", invalid="ignore"):
                small[first : first + PIECE] = piece
            if not np.array_equal(small[first : first + PIECE], piece, equal_nan=True):
                return np.array(values, dtype=np.float64)
        return small
    return np.array(values, dtype=np.float64)


def joined_floats(parts: Sequence[NDArray[Any]]) -> Floats:
    """Concatenate parts that :func:`exact_floats` made, in float32 if all of them are."""
    single = all(part.dtype == np.float32 for part in parts)
    return np.concatenate(parts, dtype=np.float32 if single else np.float64)


def joined(parts: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Concatenate parts; a single one is not copied, unless it is a :func:`constant` one.

    >>> one = np.arange(3)
    >>> joined([one]) is one, joined([constant(1.0, 2, np.float64)]).strides
    (True, (8,))
    """
    return parts[0] if len(parts) == 1 and not is_constant(parts[0]) else np.concatenate(parts)


def shortest_floats(values: NDArray[Any]) -> Floats:
    """The numbers as float32 where that holds each exactly, else unchanged."""
    with np.errstate(over="ignore"):
        short = values.astype(np.float32)
    return short if np.array_equal(short, values) else values


def piecewise(function: Callable[..., NDArray[Any]], *arrays: NDArray[Any]) -> NDArray[np.float64]:
    """Apply an elementwise ``function`` piece by piece on all cores, so that its temporary arrays stay small.

    >>> piecewise(np.add, np.array([1.0, 2.0]), np.array([0.5, 0.5]))
    array([1.5, 2.5])
    """
    length = len(arrays[0])
    if length <= CORE_PIECE:
        return np.asarray(function(*arrays), dtype=np.float64)
    result = np.empty(length)

    def fill(first: int) -> None:
        here = slice(first, first + CORE_PIECE)
        result[here] = function(*(array[here] for array in arrays))

    ThreadMap().map(fill, range(0, length, CORE_PIECE))
    return result


def mean_by_counts(values: NDArray[Any], counts: NDArray[np.int64]) -> float:
    """sum counts values / sum counts, in double precision.

    >>> mean_by_counts(np.array([1.0, 4.0]), np.array([2, 1]))
    2.0
    """
    if is_constant(counts):
        return float(np.sum(values, dtype=np.float64) / len(values))
    return float(np.average(values, weights=counts))


def constant(value: float, length: int, dtype: type[Any]) -> NDArray[Any]:
    """An array of ``length`` equal items that stores one of them.

    >>> constant(1, 10**12, np.int64).strides
    (0,)
    """
    return read_only(np.broadcast_to(np.array(value, dtype=dtype), (length,)))


def is_constant(array: NDArray[Any]) -> bool:
    """Whether an array was made by :func:`constant`."""
    return array.strides == (0,)


def constant_if_all(array: NDArray[Any], value: float) -> NDArray[Any]:
    """The array, or a :func:`constant` one if all items equal ``value``."""
    same = len(array) > 0 and array[0] == value and (is_constant(array) or bool((array == value).all()))
    return constant(value, len(array), array.dtype.type) if same else array


def taken(array: NDArray[Any], which: NDArray[Any], length: int) -> NDArray[Any]:
    """``array[which]``, which has ``length`` items; a :func:`constant` array stays one."""
    return constant(array[0], length, array.dtype.type) if is_constant(array) and len(array) else array[which]
