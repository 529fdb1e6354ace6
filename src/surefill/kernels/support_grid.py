"""Confidences of the coverage game on a grid, 2^(-max(0, Mbar_ij) / f_ij), in one pass over the matrix product."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from surefill.arrays import Array
from surefill.kernels.compile import compiled_terms
from surefill.kernels.exponential import exponential

LOG_2 = math.log(2)
"""2^x = exp(x log 2)."""


@compiled_terms
def supports_on_grid(
    totals: NDArray[np.float32],
    count: int,
    floors: Array,
    row_classes: NDArray[np.int64],
    col_classes: NDArray[np.int64],
    row_components: NDArray[np.int64],
    col_components: NDArray[np.int64],
    out: Array,
) -> None:
    """C from the sums of ``count`` products; 0 where components differ, where one is -1, or where a floor is 0.

    ``floors`` has a line for each class of rows and a column for each class of columns.
    """
    rates = np.empty((floors.shape[0], len(col_classes)))
    for a in range(len(rates)):
        for j in range(len(col_classes)):
            floor = floors[a, col_classes[j]]
            rates[a, j] = LOG_2 / (count * floor) if floor > 0 else np.inf
    for i in range(len(totals)):
        total, rate, component, C = totals[i], rates[row_classes[i]], row_components[i], out[i]
        for j in range(len(C)):
            known = (component >= 0) & (component == col_components[j]) & (rate[j] < np.inf)
            exponent = -max(np.float64(total[j]), 0.0) * (rate[j] if known else 0.0)
            C[j] = exponential(exponent) if known else 0.0


def supports_on_grid_reference(
    totals: NDArray[np.float32],
    count: int,
    floors: Array,
    row_classes: NDArray[np.int64],
    col_classes: NDArray[np.int64],
    row_components: NDArray[np.int64],
    col_components: NDArray[np.int64],
    out: Array,
) -> None:
    """The readable twin of :func:`supports_on_grid`."""
    floor = floors[row_classes[:, None], col_classes]
    known = (row_components[:, None] >= 0) & (row_components[:, None] == col_components) & (floor > 0)
    exponent = np.divide(
        np.maximum(totals.astype(np.float64), 0.0), count * floor, out=np.zeros(out.shape), where=known
    )
    out[:] = np.where(known, np.exp2(-exponent), 0.0)
