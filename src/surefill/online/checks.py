"""What a stream's observations must be like, each fault in one sentence."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefill.data.checks import as_indices, as_values
from surefill.errors import InputError


def checked_cells(
    shape: tuple[int, int], rows: ArrayLike, cols: ArrayLike, values: ArrayLike
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """Rows, columns and values of equal length, inside the matrix and on [-1, 1]."""
    i, j, numbers = as_indices("rows", rows), as_indices("cols", cols), as_values(values)
    if not len(i) == len(j) == len(numbers):
        raise InputError(f"rows, cols and values must be equally long; got {len(i)}, {len(j)} and {len(numbers)}.")
    for name, part, size in (("rows", i, shape[0]), ("cols", j, shape[1])):
        if part.max() >= size:
            raise InputError(f"{name} must be below {size}, the matrix's size; got {int(part.max())}.")
    worst = numbers[np.argmax(np.abs(numbers))]
    if abs(worst) > 1:
        raise InputError(f"values must lie in [-1, 1], the paper's scale; got {worst:g}. UnitMap brings others there.")
    return i, j, numbers
