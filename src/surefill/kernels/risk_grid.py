"""The risk on a grid of rows and columns, one pass over each line of it while that is in cache.

    risk_ij = exp(slope log v_ij + curve(M_ij) + log a_i + clip(d_i (M_ij - c_i)) + log b_j + clip(e_j (M_ij - f_j))
                  + max(0, 1 - C_ij / floor) log k),     clipped to [-1, 1]

The curve is linear between its knots t and flat beyond, a sum of ramps:

    curve(x) = h_0 + sum_k s_k (min(max(x, t_k), t_(k+1)) - t_k),    s_k = (h_(k+1) - h_k) / (t_(k+1) - t_k).
"""

from __future__ import annotations

import numpy as np

from surefill.arrays import Array
from surefill.kernels.compile import compiled_terms
from surefill.kernels.exponential import exponential


@compiled_terms
def add_ramps(x: Array, knots: Array, slopes: Array, out: Array) -> None:
    """out += curve(x) - h_0 for one line."""
    for k in range(len(slopes)):
        low, high, slope = knots[k], knots[k + 1], slopes[k]
        for t in range(len(x)):
            out[t] += slope * (min(max(x[t], low), high) - low)


@compiled_terms
def risks_on_grid(
    log_variance: Array,
    predicted: Array,
    confidence: Array,
    slope: float,
    knots: Array,
    heights: Array,
    rows: Array,
    cols: Array,
    largest: float,
    log_unsupported: float,
    floor: float,
) -> None:
    """Turn log v into the risk. ``rows`` and ``cols`` hold log a, d, c of each row (or column), three lines."""
    slopes = np.diff(heights) / np.diff(knots)
    log_b, e, f = cols[0], cols[1], cols[2]
    for i in range(len(log_variance)):
        out, M, C = log_variance[i], predicted[i], confidence[i]
        level, d, c = heights[0] + rows[0, i], rows[1, i], rows[2, i]
        for j in range(len(out)):
            of_row = min(max(d * (M[j] - c), -largest), largest)
            of_col = min(max(e[j] * (M[j] - f[j]), -largest), largest)
            unsupported = log_unsupported * max(0.0, 1.0 - C[j] / floor)
            out[j] = slope * out[j] + (level + log_b[j]) + of_row + of_col + unsupported
        add_ramps(M, knots, slopes, out)
        for j in range(len(out)):
            out[j] = exponential(out[j])


def risks_on_grid_reference(
    log_variance: Array,
    predicted: Array,
    confidence: Array,
    slope: float,
    knots: Array,
    heights: Array,
    rows: Array,
    cols: Array,
    largest: float,
    log_unsupported: float,
    floor: float,
) -> None:
    """The readable twin of :func:`risks_on_grid`."""
    log_a, d, c = (table[:, None] for table in rows)
    log_b, e, f = cols
    of_row, of_col = (np.clip(tilt, -largest, largest) for tilt in (d * (predicted - c), e * (predicted - f)))
    unsupported = log_unsupported * np.maximum(0.0, 1.0 - confidence / floor)
    curve = np.interp(predicted, knots, heights)
    log_variance[:] = np.exp(slope * log_variance + curve + log_a + of_row + log_b + of_col + unsupported)
