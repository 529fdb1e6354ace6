"""Which cells of a grid may still be kept, once their values are known: a lower bound of the risk, a pass of sums.

    log risk_ij >= u_i + w_j + curve(M_ij) + clip(d_i (M_ij - c_i)) + clip(e_j (M_ij - f_j))

with u_i and w_j what is certain of a row and a column (:mod:`surefill.risk.least_risk`).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from surefill.arrays import Array
from surefill.kernels.compile import compiled_terms
from surefill.kernels.risk_grid import add_ramps


@compiled_terms
def candidates_on_grid(
    predicted: Array,
    knots: Array,
    heights: Array,
    rows: Array,
    cols: Array,
    largest: float,
    limit: float,
    out: NDArray[np.bool_],
) -> None:
    """Write whether the bound is at most ``limit``. ``rows`` holds u, d, c and ``cols`` w, e, f, three lines each."""
    slopes = np.diff(heights) / np.diff(knots)
    w, e, f = cols[0], cols[1], cols[2]
    bound = np.empty(predicted.shape[1])
    for i in range(len(predicted)):
        M, may_be = predicted[i], out[i]
        level, d, c = heights[0] + rows[0, i], rows[1, i], rows[2, i]
        for j in range(len(M)):
            of_row = min(max(d * (M[j] - c), -largest), largest)
            bound[j] = level + w[j] + of_row + min(max(e[j] * (M[j] - f[j]), -largest), largest)
        add_ramps(M, knots, slopes, bound)
        for j in range(len(M)):
            may_be[j] = bound[j] <= limit


def candidates_on_grid_reference(
    predicted: Array,
    knots: Array,
    heights: Array,
    rows: Array,
    cols: Array,
    largest: float,
    limit: float,
    out: NDArray[np.bool_],
) -> None:
    """The readable twin of :func:`candidates_on_grid`."""
    u, d, c = (table[:, None] for table in rows)
    w, e, f = cols
    of_row, of_col = (np.clip(tilt, -largest, largest) for tilt in (d * (predicted - c), e * (predicted - f)))
    out[:] = u + w + of_row + of_col + np.interp(predicted, knots, heights) <= limit
