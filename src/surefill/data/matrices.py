"""Observations from a matrix in memory: an array with holes, or a scipy sparse matrix."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from surefill.data.observations import Observations
from surefill.errors import InputError

Entries = tuple[NDArray[Any], NDArray[Any], NDArray[np.float64], tuple[int, int]]


def from_matrix(matrix: Any, bounds: tuple[float, float] | None = None) -> Observations:
    """Observations from a two-dimensional array with NaN (or masked) holes, or from a sparse matrix.

    Every stored entry of a sparse matrix was seen, zeros included, except stored NaN; entries stored twice
    are two draws of one cell.
    """
    read = _stored_entries if sparse.issparse(matrix) else _array_entries
    rows, cols, values, (m, n) = read(matrix)
    infinite = np.flatnonzero(np.isinf(values))
    if infinite.size:
        first = infinite[0]
        where = f"({rows[first]}, {cols[first]})"
        raise InputError(f"the matrix must hold finite numbers; entry {where} is {values[first]}.")
    seen = ~np.isnan(values)
    if not seen.any():
        raise InputError(f"the {m} x {n} matrix holds no observations: at least one entry must be seen.")
    return Observations(rows[seen], cols[seen], values[seen], (m, n), bounds)


def _check_dimensions(count: int) -> None:
    if count != 2:
        raise InputError(f"a matrix must have two dimensions; got {count}.")


def _as_floats(values: NDArray[Any]) -> NDArray[np.float64]:
    if values.dtype.kind not in "biufO":
        raise InputError(f"a matrix must hold real numbers; got {values.dtype}.")
    try:
        return values.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"a matrix must hold real numbers: {error}.") from None


def _array_entries(matrix: Any) -> Entries:
    array = np.ma.asarray(matrix)
    _check_dimensions(array.ndim)
    values = _as_floats(array.data)
    rows, cols = np.nonzero(~np.isnan(values) & ~np.ma.getmaskarray(array))
    return rows, cols, values[rows, cols], (array.shape[0], array.shape[1])


def _stored_entries(matrix: Any) -> Entries:
    _check_dimensions(matrix.ndim)
    if matrix.format == "dia":
        return _stored_diagonals(matrix)
    entries = matrix.tocoo()
    return entries.row, entries.col, _as_floats(entries.data), matrix.shape


def _stored_diagonals(matrix: Any) -> Entries:
    """All entries of the stored diagonals; scipy's own conversion drops their zeros."""
    m, n = matrix.shape
    cols = np.broadcast_to(np.arange(matrix.data.shape[1]), matrix.data.shape)
    rows = cols - matrix.offsets[:, None]
    inside = (rows >= 0) & (rows < m) & (cols < n)
    return rows[inside], cols[inside], _as_floats(matrix.data[inside]), (m, n)
