"""Weights of the cells of a grid from their log odds of being observed, one row at a time while it is in cache.

With l the modelled log odds, clipped at those of p = 0.95, s the share of observed cells the model was fitted on and
f(l) the shift by strata (see :mod:`surefill.guarantee.propensity.calibration` and ``raking``):

    p = expit(l),   q = min(scale / sqrt(p), most),   p' = min(expit(l + f(l)), 0.95)
    h(p') = (1 - s) p' / (1 - s p'),   h = min(h(p') / (a_i b_j), h(0.95)),   p'' = h / ((1 - s) + s h)
    w = (1 - (1 - q) p'') / (q p'').
"""

from __future__ import annotations

import math

import numpy as np

from surefill.arrays import Array
from surefill.kernels.compile import compiled_terms
from surefill.kernels.exponential import exponential
from surefill.kernels.risk_grid import add_ramps


@compiled_terms
def weights_on_grid(
    logits: Array,
    likeliest: float,
    knots: Array,
    shifts: Array,
    rows: Array,
    cols: Array,
    share: float,
    scale: float,
    most: float,
) -> None:
    """Replace modelled log odds by weights w. ``rows`` and ``cols`` are a and b; ``share`` 0 means without raking."""
    top = np.log(likeliest / (1 - likeliest))
    most_h = (1 - share) * likeliest / (1 - share * likeliest)
    slopes = np.diff(shifts) / np.diff(knots)
    shifted = np.empty(logits.shape[1])
    for i in range(len(logits)):
        line, a = logits[i], rows[i]
        for j in range(len(line)):
            line[j] = min(line[j], top)
            shifted[j] = line[j] + shifts[0]
        add_ramps(line, knots, slopes, shifted)
        for j in range(len(line)):
            odds, corrected = exponential(line[j]), exponential(min(shifted[j], top))
            q = min(scale * math.sqrt((1 + odds) / odds), most)
            # in odds e of p', h = (1 - s) e / (1 + (1 - s) e)
            unseen = (1 - share) * corrected
            h = min(unseen / ((1 + unseen) * (a * cols[j])), most_h)
            # 1 / p'' = s + (1 - s) / h, and w = (1 / p'' - (1 - q)) / q
            line[j] = (share + (1 - share) / h - (1 - q)) / q


@compiled_terms
def log_odds_on_grid(
    x: Array, rows: Array, cols: Array, constant: float, levels: Array, slopes: Array, low: float, high: float
) -> None:
    """Replace interactions x by log odds g + c + max(0, k(g)) x, with g_ij = rows_i + cols_j:

    k(g) = levels + slopes (g - high), g clipped to [low, high], the first of each for x <= 0 and the second for x > 0.
    """
    for i in range(len(x)):
        line, g_i = x[i], rows[i]
        for j in range(len(line)):
            g, positive = g_i + cols[j], line[j] > 0
            away = min(max(g, low), high) - high
            k = (levels[1] if positive else levels[0]) + (slopes[1] if positive else slopes[0]) * away
            line[j] = g + (constant + max(k, 0.0) * line[j])


def log_odds_on_grid_reference(
    x: Array, rows: Array, cols: Array, constant: float, levels: Array, slopes: Array, low: float, high: float
) -> None:
    """The readable twin of :func:`log_odds_on_grid`."""
    g, positive = rows[:, None] + cols, (x > 0).astype(np.int64)
    k = levels[positive] + slopes[positive] * (np.clip(g, low, high) - high)
    x[:] = g + (constant + np.maximum(k, 0) * x)


def weights_on_grid_reference(
    logits: Array,
    likeliest: float,
    knots: Array,
    shifts: Array,
    rows: Array,
    cols: Array,
    share: float,
    scale: float,
    most: float,
) -> None:
    """The readable twin of :func:`weights_on_grid`."""
    modelled = np.minimum(1 / (1 + np.exp(-logits)), likeliest)
    q = np.minimum(scale / np.sqrt(modelled), most)
    clipped = np.minimum(logits, np.log(likeliest / (1 - likeliest)))
    p = np.minimum(1 / (1 + np.exp(-clipped - np.interp(clipped, knots, shifts))), likeliest)
    h, most_h = ((1 - share) * chance / (1 - share * chance) for chance in (p, likeliest))
    h = np.minimum(h / (rows[:, None] * cols), most_h)
    p = h / ((1 - share) + share * h)
    logits[:] = (1 - (1 - q) * p) / (q * p)
