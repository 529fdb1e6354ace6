"""Which cells of a grid may be kept, by a lower bound of their risk that needs their values alone.

    log risk_ij >= u_i + w_j + curve(M_ij) + clip(d_i (M_ij - c_i)) + clip(e_j (M_ij - f_j))

where u_i and w_j are lower bounds that hold for a whole row and column (:mod:`surefill.risk.lower_bounds`).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from surefill.arrays import Array
from surefill.kernels.compile import compiled_terms
from surefill.kernels.risk_grid import Curve, LineFactors, add_ramps, log_factors_reference


@compiled_terms
def candidates_on_grid(
    predicted: Array, curve: Curve, factors: LineFactors, limit: float, out: NDArray[np.bool_]
) -> None:
    """Write whether the bound is at most ``limit``; u and w take the places of log a and log b in ``factors``."""
    (knots, heights), (rows, cols, largest) = curve, factors
    slopes = np.diff(heights) / np.diff(knots)
    w, e, f = cols[0], cols[1], cols[2]
    bound = np.empty(predicted.shape[1])
    for i in range(len(predicted)):
        M, is_candidate = predicted[i], out[i]
        level, d, c = heights[0] + rows[0, i], rows[1, i], rows[2, i]
        for j in range(len(M)):
            of_row = min(max(d * (M[j] - c), -largest), largest)
            bound[j] = level + w[j] + of_row + min(max(e[j] * (M[j] - f[j]), -largest), largest)
        add_ramps(M, knots, slopes, bound)
        for j in range(len(M)):
            is_candidate[j] = bound[j] <= limit


def candidates_on_grid_reference(
    predicted: Array, curve: Curve, factors: LineFactors, limit: float, out: NDArray[np.bool_]
) -> None:
    """The readable twin of :func:`candidates_on_grid`."""
    out[:] = log_factors_reference(predicted, curve, factors) <= limit
