"""A piecewise linear curve as a linear model, and the penalty that keeps it smooth."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

ENDS = 0.005


def knots_for(x: Array, n_knots: int) -> Array:
    """Quantiles of ``x``, without its last half percent at either end; fewer than asked where they coincide."""
    return np.unique(np.quantile(x, np.linspace(ENDS, 1 - ENDS, n_knots)))


def hats(x: Array, knots: Array) -> Array:
    """B with B_tk the value at x_t of the curve that is 1 at knot k, 0 at the others, linear between, flat beyond."""
    basis = np.zeros((len(x), len(knots)))
    if len(knots) == 1:
        return basis + 1.0
    inside = np.clip(x, knots[0], knots[-1])
    left = np.clip(np.searchsorted(knots, inside, side="right") - 1, 0, len(knots) - 2)
    share = (inside - knots[left]) / (knots[left + 1] - knots[left])
    entry = np.arange(len(x))
    basis[entry, left], basis[entry, left + 1] = 1.0 - share, share
    return basis


def roughness(n_knots: int, steps: float, bends: float) -> Array:
    """The matrix R with h' R h = steps sum (h_k+1 - h_k)^2 + bends sum (h_k+1 - 2 h_k + h_k-1)^2."""
    first, second = (np.diff(np.eye(n_knots), order, axis=0) for order in (1, 2))
    return np.asarray(steps * first.T @ first + bends * second.T @ second)
