"""The risk at every cell of a grid of rows and columns, in passes over one row at a time while it is in cache.

    risk_ij = exp(slope log v_ij + curve(M_ij) + log a_i + clip(d_i (M_ij - c_i)) + log b_j + clip(e_j (M_ij - f_j))
                  + max(0, 1 - C_ij / floor) log k),     clipped to [-1, 1]

The curve is linear between its knots t and flat beyond, a sum of ramps:

    curve(x) = h_0 + sum_k s_k (min(max(x, t_k), t_(k+1)) - t_k),    s_k = (h_(k+1) - h_k) / (t_(k+1) - t_k).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from surefill.arrays import Array
from surefill.kernels.compile import compiled_terms
from surefill.kernels.exponential import exponential


class Curve(NamedTuple):
    """Knots t_k and heights h_k."""

    knots: Array
    heights: Array


class LineFactors(NamedTuple):
    """(log a, d, c) of the rows and (log b, e, f) of the columns, three lines each, and the limit of the clipping."""

    rows: Array
    cols: Array
    largest: float


class Unsupported(NamedTuple):
    """log k and the floor of the confidence."""

    log_factor: float
    floor: float


@compiled_terms
def add_ramps(x: Array, knots: Array, slopes: Array, out: Array) -> None:
    """out += curve(x) - h_0."""
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
    curve: Curve,
    factors: LineFactors,
    unsupported: Unsupported,
) -> None:
    """Replace log v by the risk."""
    (knots, heights), (rows, cols, largest), (log_unsupported, floor) = curve, factors, unsupported
    slopes = np.diff(heights) / np.diff(knots)
    log_b, e, f = cols[0], cols[1], cols[2]
    for i in range(len(log_variance)):
        out, M, C = log_variance[i], predicted[i], confidence[i]
        level, d, c = heights[0] + rows[0, i], rows[1, i], rows[2, i]
        for j in range(len(out)):
            of_row = min(max(d * (M[j] - c), -largest), largest)
            of_col = min(max(e[j] * (M[j] - f[j]), -largest), largest)
            of_support = log_unsupported * max(0.0, 1.0 - C[j] / floor)
            out[j] = slope * out[j] + (level + log_b[j]) + of_row + of_col + of_support
        add_ramps(M, knots, slopes, out)
        for j in range(len(out)):
            out[j] = exponential(out[j])


def risks_on_grid_reference(
    log_variance: Array,
    predicted: Array,
    confidence: Array,
    slope: float,
    curve: Curve,
    factors: LineFactors,
    unsupported: Unsupported,
) -> None:
    """The readable twin of :func:`risks_on_grid`."""
    log_factors = log_factors_reference(predicted, curve, factors)
    of_support = unsupported.log_factor * np.maximum(0.0, 1.0 - confidence / unsupported.floor)
    log_variance[:] = np.exp(slope * log_variance + log_factors + of_support)


def log_factors_reference(predicted: Array, curve: Curve, factors: LineFactors) -> Array:
    """curve(M_ij) + log a_i + clip(d_i (M_ij - c_i)) + log b_j + clip(e_j (M_ij - f_j)), for the readable twins."""
    (log_a, d, c), (log_b, e, f) = (table[:, None] for table in factors.rows), factors.cols
    tilts = (np.clip(tilt, -factors.largest, factors.largest) for tilt in (d * (predicted - c), e * (predicted - f)))
    return np.asarray(np.interp(predicted, *curve) + log_a + log_b + sum(tilts))
