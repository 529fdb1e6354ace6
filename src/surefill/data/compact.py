"""Arrays with an item for each cell, kept small where there are many cells, and exact: nothing is ever rounded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surefill.arrays import Floats, read_only

COMPACT_CELLS = 1 << 19
"""Cells from which on values are kept in single precision, where that holds each exactly: two megabytes of them,
about a cache's size, from where on time and memory go by bytes."""

PIECE = 1 << 20
"""Items converted at a time: eight megabytes in double precision."""


def exact_floats(values: NDArray[Any]) -> Floats:
    """The numbers in an array of our own: float32 where there are many and each is exactly one, else float64.

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
    """Numbers that come in parts, as :func:`exact_floats` has them all."""
    single = all(part.dtype == np.float32 for part in parts)
    return np.concatenate(parts, dtype=np.float32 if single else np.float64)


def shortest_floats(values: NDArray[Any]) -> Floats:
    """The numbers as float32 where each is exactly one, else as they are."""
    with np.errstate(over="ignore"):
        short = values.astype(np.float32)
    return short if np.array_equal(short, values) else values


def piecewise(function: Callable[..., NDArray[Any]], *arrays: NDArray[Any]) -> NDArray[np.float64]:
    """``function`` of arrays with an item for each cell, taken piece by piece so that what it needs itself stays small.

    >>> piecewise(np.add, np.array([1.0, 2.0]), np.array([0.5, 0.5]))
    array([1.5, 2.5])
    """
    length = len(arrays[0])
    if length <= PIECE:
        return np.asarray(function(*arrays), dtype=np.float64)
    result = np.empty(length)
    for first in range(0, length, PIECE):
        here = slice(first, first + PIECE)
        result[here] = function(*(array[here] for array in arrays))
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
    """``length`` times the same item, held once.

    >>> constant(1, 10**12, np.int64).strides
    (0,)
    """
    return read_only(np.broadcast_to(np.array(value, dtype=dtype), (length,)))


def is_constant(array: NDArray[Any]) -> bool:
    """Whether an array holds one item for all."""
    return array.strides == (0,)


def squeezed(array: NDArray[Any], value: float) -> NDArray[Any]:
    """The array, or one item for all where each is ``value``."""
    same = len(array) > 0 and array[0] == value and (is_constant(array) or bool((array == value).all()))
    return constant(value, len(array), array.dtype.type) if same else array


def taken(array: NDArray[Any], which: NDArray[Any], length: int) -> NDArray[Any]:
    """``array[which]``, of which there are ``length``; still one item where there is one for all."""
    return constant(array[0], length, array.dtype.type) if is_constant(array) and len(array) else array[which]
