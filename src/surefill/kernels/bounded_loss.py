"""Sums over the listed cells of one factored matrix: squared loss, the box's augmented Lagrangian, and their gradient.

The box |M_x| <= 1 adds [a_x^2 - multiplier_x^2] / (2 stiffness), a_x = max(0, multiplier_x + stiffness (|M_x| - 1)),
for each cell x; a_x is the multiplier of the next stage.
"""

from __future__ import annotations

import numpy as np

from surefill.arrays import Floats, Indices, IntArray
from surefill.kernels.compile import compiled_sums


@compiled_sums
def set_row_terms(
    first: int,
    last: int,
    starts: Indices,
    other: Indices,
    target: Floats,
    weight: Floats,
    multiplier: Floats,
    stiffness: float,
    scale: float,
    U: Floats,
    V: Floats,
    entries: Floats,
    slopes: Floats,
    dU: Floats,
    value: Floats,
) -> None:
    """value_i = sum_x w_x (M_x - target_x)^2 + [a_x^2 - multiplier_x^2] / (2 stiffness) over a row's cells x = (i, j).

    M_x = scale u_i . v_j is left in ``entries``, the derivative in M_x in ``slopes``, and dU_i = sum_x slopes_x v_j. A
    stiffness of 0 leaves the box out.
    """
    width = U.shape[1]
    for i in range(first, last):
        total = 0.0
        dU[i] = 0.0
        for x in range(starts[i], starts[i + 1]):
            j = other[x]
            product = np.float32(0.0) * U[i, 0]  # a zero of the factors' precision, single or double
            for k in range(width):
                product += U[i, k] * V[j, k]
            entry = scale * product
            miss = entry - target[x]
            slope = 2.0 * weight[x] * miss
            total += weight[x] * miss * miss
            if stiffness > 0.0:
                a = max(0.0, multiplier[x] + stiffness * (abs(entry) - 1.0))
                total += (a * a - multiplier[x] * multiplier[x]) / (2.0 * stiffness)
                slope += a if entry > 0.0 else -a
            entries[x] = entry
            slopes[x] = slope
            pull = slopes[x]  # rounded to the precision of the slopes
            for k in range(width):
                dU[i, k] += pull * V[j, k]
        value[i] = total


@compiled_sums
def set_weighted_sums(
    first: int, last: int, starts: Indices, order: IntArray, other: Indices, slopes: Floats, U: Floats, dV: Floats
) -> None:
    """dV_j = sum of slopes_x u_i over the cells x = (i, j) of a column, listed by ``order``."""
    width = U.shape[1]
    for j in range(first, last):
        dV[j] = 0.0
        for t in range(starts[j], starts[j + 1]):
            x = order[t]
            i = other[x]
            pull = slopes[x]
            for k in range(width):
                dV[j, k] += pull * U[i, k]


def set_row_terms_reference(
    first: int,
    last: int,
    starts: Indices,
    other: Indices,
    target: Floats,
    weight: Floats,
    multiplier: Floats,
    stiffness: float,
    scale: float,
    U: Floats,
    V: Floats,
    entries: Floats,
    slopes: Floats,
    dU: Floats,
    value: Floats,
) -> None:
    """The readable twin of :func:`set_row_terms`."""
    for i in range(first, last):
        x = slice(starts[i], starts[i + 1])
        v, w, h = V[other[x]], weight[x], multiplier[x]
        M = entries[x] = scale * v @ U[i]
        a = np.maximum(0.0, h + stiffness * (np.abs(M) - 1)) if stiffness > 0 else np.zeros_like(h)
        box = np.sum(a**2 - h**2) / (2 * stiffness) if stiffness > 0 else 0.0
        value[i] = np.sum(w * (M - target[x]) ** 2) + box
        slopes[x] = 2 * w * (M - target[x]) + np.sign(M) * a
        dU[i] = slopes[x] @ v


def set_weighted_sums_reference(
    first: int, last: int, starts: Indices, order: IntArray, other: Indices, slopes: Floats, U: Floats, dV: Floats
) -> None:
    """The readable twin of :func:`set_weighted_sums`."""
    for j in range(first, last):
        x = order[starts[j] : starts[j + 1]]
        dV[j] = slopes[x] @ U[other[x]]
