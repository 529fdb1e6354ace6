"""Quadratic forms of all pairs of rows and columns by matrix products."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from surefill.arrays import Array


def is_grid(rows: NDArray[np.int64], cols: NDArray[np.int64]) -> bool:
    """Whether a column of rows is to be broadcast against a line of columns, as ``np.ix_`` makes them."""
    return rows.ndim == 2 and cols.ndim == 2 and rows.shape[1] == 1 and cols.shape[0] == 1


def packed(matrices: Array) -> Array:
    """The upper triangles of symmetric matrices, a line each."""
    a, b = np.triu_indices(matrices.shape[-1])
    return np.asarray(matrices[:, a, b])


def packed_squares(vectors: Array) -> Array:
    """Lines with which <S, v v'> = packed(S) . packed_squares(v): v_a v_b, twice where a < b."""
    a, b = np.triu_indices(vectors.shape[-1])
    return np.asarray(vectors[:, a] * vectors[:, b] * np.where(a < b, 2.0, 1.0))
