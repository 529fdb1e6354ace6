"""The chosen cells of a grid as the columns of a table, row by row."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from surefill.arrays import Array
from surefill.kernels.compile import compiled

Grids = tuple[Array, Array, Array, NDArray[np.bool_], NDArray[np.bool_]]
Columns = tuple[Any, ...]


@compiled
def list_cells(wanted: NDArray[np.bool_], grids: Grids, lines: NDArray[np.int32], columns: Columns) -> None:
    """Write row and column of each wanted cell to ``lines`` (2 x count), its entries in the grids to ``columns``."""
    a, b, c, d, e = grids
    p, q, r, s, t = columns
    k = 0
    for i in range(wanted.shape[0]):
        for j in range(wanted.shape[1]):
            if wanted[i, j]:
                lines[0, k], lines[1, k] = i, j
                p[k], q[k], r[k], s[k], t[k] = a[i, j], b[i, j], c[i, j], d[i, j], e[i, j]
                k += 1


def list_cells_reference(wanted: NDArray[np.bool_], grids: Grids, lines: NDArray[np.int32], columns: Columns) -> None:
    """The readable twin of :func:`list_cells`."""
    lines[:] = np.nonzero(wanted)
    for grid, column in zip(grids, columns, strict=True):
        column[:] = grid[wanted]
