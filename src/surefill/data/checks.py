"""Validation of the arguments of observations; a fault raises InputError with one sentence that names the item."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefill.arrays import Floats
from surefill.data.compact import constant, constant_if_all, exact_floats
from surefill.data.labels import TEXT, as_text, label_array
from surefill.errors import InputError
from surefill.inputs import LARGEST_VALUE

MAX_CELLS = np.iinfo(np.int64).max
"""Cells are numbered row by row with 64-bit integers."""

LARGEST_COUNT = 2**31
"""Largest count of one cell; the counts of 2^31 such cells still add up in 64 bits."""


def as_indices(name: str, given: ArrayLike) -> NDArray[Any]:
    """0-based indices, one per draw, of any integer type."""
    array = np.asarray(given)
    if array.ndim != 1:
        raise InputError(f"{name} must be one-dimensional; got {array.ndim} dimensions.")
    if array.size and array.dtype.kind not in "iu":
        raise InputError(f"{name} must be 0-based integer indices; got {array.dtype}. Labels go in {name[:-1]}_labels.")
    if array.size and (array.min() < 0 or array.max() > MAX_CELLS - 1):
        outlier = int(np.argmin(array)) if array.min() < 0 else int(np.argmax(array))
        raise InputError(f"{name} must be 0 or more, and below 2^63; item {outlier} is {int(array[outlier])}.")
    return array if array.size else array.astype(np.int64)


def as_values(given: ArrayLike) -> Floats:
    """A copy of the values: finite numbers, one per draw."""
    try:
        array = exact_floats(np.atleast_1d(np.asarray(given)))
    except (TypeError, ValueError) as error:
        raise InputError(f"values must be numbers: {error}.") from None
    if array.ndim != 1:
        raise InputError(f"values must be one-dimensional; got {array.ndim} dimensions.")
    if array.size == 0:
        raise InputError("there are no observations: at least one (row, column, value) is needed.")
    low, high = float(array.min()), float(array.max())
    if not (np.isfinite(low) and np.isfinite(high)):
        bad = int(np.argmin(np.isfinite(array)))
        raise InputError(f"values must be finite; item {bad} is {array[bad]}. Leave unseen entries out.")
    if max(-low, high) > LARGEST_VALUE:
        largest = int(np.argmax(np.abs(array)))
        raise InputError(f"values must be at most {LARGEST_VALUE:g} in size; item {largest} is {array[largest]:g}.")
    return array


def as_counts(given: ArrayLike | None, length: int) -> NDArray[np.int64]:
    """How often each draw was seen; 1 when not given."""
    if given is None:
        return constant(1, length, np.int64)
    array = np.asarray(given)
    if array.shape != (length,) or array.dtype.kind not in "iu" or array.min() < 1 or array.max() > LARGEST_COUNT:
        raise InputError("counts must hold one integer from 1 to 2^31 per observation.")
    return constant_if_all(array.astype(np.int64), 1)


def as_scatter(given: ArrayLike | None, length: int) -> NDArray[np.float64]:
    """Squared deviations within each draw; 0 when not given."""
    if given is None:
        return constant(0.0, length, np.float64)
    array = np.array(given, dtype=np.float64)
    if array.shape != (length,) or not (np.isfinite(array) & (array >= 0)).all():
        raise InputError("scatter must hold one finite number of at least 0 per observation.")
    return constant_if_all(array, 0.0)


def as_times(given: ArrayLike, length: int) -> NDArray[np.float64]:
    """The time at which each cell was drawn."""
    try:
        array = np.array(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError("times must be numbers that grow with time, such as seconds since 1970.") from None
    if array.shape != (length,) or not np.isfinite(array).all():
        raise InputError(f"times must hold one finite number for each of the {length} cells; got shape {array.shape}.")
    return array


def as_labels(name: str, given: ArrayLike | None) -> NDArray[Any] | None:
    """Distinct names, text where they are objects."""
    if given is None:
        return None
    array = label_array(given)
    if array.ndim != 1:
        raise InputError(f"{name} must be one-dimensional; got {array.ndim} dimensions.")
    array = as_text(array) if array.dtype.kind in TEXT else array
    if len(np.unique(array)) != len(array):
        raise InputError(f"{name} must be distinct; {len(array) - len(np.unique(array))} are repeated.")
    return array


def resolve_shape(
    shape: tuple[int, int] | None,
    i: NDArray[Any],
    j: NDArray[Any],
    labels: tuple[NDArray[Any] | None, NDArray[Any] | None],
) -> tuple[int, int]:
    """The shape given, or the smallest that holds all labels or indices; both axes checked against it."""
    if shape is not None and not (len(np.atleast_1d(shape)) == 2 and all(float(size) == int(size) for size in shape)):
        raise InputError(f"shape must be two whole numbers, rows and columns; got {shape}.")
    sizes = []
    for axis, (name, index, names) in enumerate([("rows", i, labels[0]), ("cols", j, labels[1])]):
        needed = int(index.max()) + 1
        size = int(shape[axis]) if shape is not None else len(names) if names is not None else needed
        if needed > size:
            raise InputError(
                f"{name} must be below {size} to fit the shape; item {int(np.argmax(index))} is {needed - 1}."
            )
        if names is not None and len(names) != size:
            raise InputError(f"{name[:-1]}_labels must name all {size} {name}; got {len(names)}.")
        sizes.append(size)
    if sizes[0] > MAX_CELLS // sizes[1]:
        raise InputError(f"shape {sizes[0]} x {sizes[1]} has more than 2^63 cells, too many to number.")
    return sizes[0], sizes[1]


def as_cells(
    shape: tuple[int, int], rows: ArrayLike, cols: ArrayLike, values: ArrayLike
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """Rows, columns and values of equal length, inside the matrix and on [-1, 1]."""
    i, j = (as_indices(name, part).astype(np.int64) for name, part in (("rows", rows), ("cols", cols)))
    numbers = as_values(values)
    if not len(i) == len(j) == len(numbers):
        raise InputError(f"rows, cols and values must be equally long; got {len(i)}, {len(j)} and {len(numbers)}.")
    for name, part, size in (("rows", i, shape[0]), ("cols", j, shape[1])):
        if part.max() >= size:
            raise InputError(f"{name} must be below {size}, the matrix's size; got {int(part.max())}.")
    worst = numbers[np.argmax(np.abs(numbers))]
    if abs(worst) > 1:
        raise InputError(f"values must lie in [-1, 1], the paper's scale; got {worst:g}. UnitMap brings others there.")
    return i, j, numbers
