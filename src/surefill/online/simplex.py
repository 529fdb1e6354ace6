"""Projections onto the simplex: in relative entropy with a floor, and in Euclidean distance.

Both have the form C_x = max(floor, f(W_x)) with one unknown scalar, found without sorting: fix the cells that a first
guess pushes below the floor, guess again from the others, and repeat. Fixing raises those cells, so the next guess is
lower and fixes at least as many; the rounds end, and where they end the optimality conditions hold. One round is one
pass; two or three are usual.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from surefill.errors import InputError

Array = NDArray[np.float64]


def project_relative_entropy(weights: Array, floor: float) -> Array:
    """argmin of sum_x C_x log(C_x / W_x) - C_x + W_x over {sum C = 1, C >= floor}, for W = ``weights`` > 0.

    Stationarity is log(C_x / W_x) = -lambda + mu_x with mu_x >= 0 and mu_x (C_x - floor) = 0, so
    C_x = max(floor, s W_x) with s = e^-lambda the root of sum_x max(floor, s W_x) = 1.
    """
    flat = weights.ravel()
    if floor * flat.size > 1:
        raise InputError(f"{flat.size} cells of at least {floor:g} add up to more than 1.")
    free = np.ones(flat.size, dtype=bool)
    scale = 1.0 / flat.sum()
    while True:
        low = free & (flat * scale < floor)
        if not low.any():
            return np.where(free, flat * scale, floor).reshape(weights.shape)
        free &= ~low
        if not free.any():  # only where the floor is 1/size, to rounding
            return np.full(weights.shape, 1.0 / flat.size)
        scale = (1.0 - floor * (flat.size - np.count_nonzero(free))) / flat[free].sum()


def project_euclidean(point: Array) -> Array:
    """argmin of |C - W|_F over {sum C = 1, C >= 0}, W = ``point``: C_x = max(0, W_x - t), sum C = 1 (Michelot)."""
    flat = point.ravel()
    kept = flat
    while True:
        shift = (kept.sum() - 1.0) / kept.size
        above = kept > shift
        if above.all():
            projected: Array = np.maximum(point - shift, 0.0)
            return projected
        kept = kept[above]
