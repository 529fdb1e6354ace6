"""Names for kinds of arrays, arrays that grow, blocks of rows and tiles of grids: what all layers share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Floats = NDArray[Any]
"""Single or double precision."""

Indices = NDArray[np.int64]
IntArray = NDArray[np.int32] | NDArray[np.int64]

SMALLEST_CAPACITY = 16
"""Rows that a growing array starts with, so that the first few do not copy it each."""

BLOCK_CELLS = 4_000_000
"""Cells of a block of rows: 32 MB in double precision, beyond the caches and small beside the memory."""

TILE_ROWS, TILE_CELLS = 128, 1 << 16
"""Rows and cells of a tile: half a megabyte for each array, which stays in a core's cache, and rows enough for a matrix
product to run at full speed."""


def row_blocks(m: int, n: int, cells: int = BLOCK_CELLS) -> list[slice]:
    """Consecutive ranges of the m rows that hold about ``cells`` of the m x n cells each.

    >>> row_blocks(5, 10, cells=20)
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    step = max(1, cells // max(1, n))
    return [slice(first, min(m, first + step)) for first in range(0, m, step)]


def tiles(m: int, n: int) -> list[tuple[slice, slice]]:
    """Ranges of rows and of columns that cut an m x n grid into tiles of about 128 x 512 cells.

    >>> tiles(200, 512)
    [(slice(0, 128, None), slice(0, 512, None)), (slice(128, 200, None), slice(0, 512, None))]
    """
    width = max(1, TILE_CELLS // max(1, min(m, TILE_ROWS)))
    return [
        (slice(i, min(m, i + TILE_ROWS)), slice(j, min(n, j + width)))
        for i in range(0, m, TILE_ROWS)
        for j in range(0, n, width)
    ]


def is_grid(rows: IntArray, cols: IntArray) -> bool:
    """Whether rows and columns are those of a grid, as ``np.ix_`` makes them."""
    return rows.ndim == 2 and cols.ndim == 2 and rows.shape[1] == 1 and cols.shape[0] == 1


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """A view of the array that cannot be written to."""
    view = array.view()
    view.flags.writeable = False
    return view


def with_capacity(array: NDArray[Any], size: int) -> NDArray[Any]:
    """``array`` itself if it has ``size`` rows, else a copy of twice the length, padded with zeros.

    Doubling makes a new row cost a constant on average.
    """
    if len(array) >= size:
        return array
    longer = np.zeros((max(size, 2 * len(array), SMALLEST_CAPACITY), *array.shape[1:]), array.dtype)
    longer[: len(array)] = array
    return longer


def as_stored(array: object, dtype: np.dtype[Any]) -> NDArray[Any]:
    """An array that came from a file as the type it should have; ValueError where that could lose anything.

    >>> as_stored(np.array([1, 2], np.int8), np.dtype(np.int64))
    array([1, 2])
    """
    if not isinstance(array, np.ndarray) or not np.can_cast(array.dtype, dtype, "safe"):
        raise ValueError(f"an array of {dtype} is expected")
    return array.astype(dtype, copy=False)


def size_needed(index: Indices, present: int) -> int:
    """How many rows there are once the rows ``index`` are."""
    return max(present, int(index.max()) + 1) if len(index) else present


def records(table: Mapping[str, NDArray[Any]]) -> list[dict[str, Any]]:
    """One mapping per line of a table held as columns, of plain values.

    >>> records({"item": np.array(["Alien"]), "rating": np.array([4.5])})
    [{'item': 'Alien', 'rating': 4.5}]
    """
    columns = [column.tolist() for column in table.values()]
    return [dict(zip(table, line, strict=True)) for line in zip(*columns, strict=True)]
