"""Compiled sums over the listed cells of one factored matrix: squared loss, the box's terms, and their gradient."""

from __future__ import annotations

import numpy as np

from surefill.arrays import Floats, Indices
from surefill.kernels.compile import compiled_sums


@compiled_sums
def set_row_terms(
    first: int,
    last: int,
    starts: Indices,
    other: Indices,
    target: Floats,
    weight: Floats,
    held: Floats,
    stiffness: float,
    scale: float,
    U: Floats,
    V: Floats,
    entries: Floats,
    slopes: Floats,
    dU: Floats,
    value: Floats,
) -> None:
    """value_i = sum_x w_x (M_x - target_x)^2 + [over_x^2 - held_x^2] / (2 stiffness) over a row's cells x = (i, j).

    M_x = scale u_i . v_j is left in ``entries``, over_x = max(0, held_x + stiffness (|M_x| - 1)) is the box's pull, the
    derivative in M_x is left in ``slopes``, and dU_i = sum_x slopes_x v_j. A stiffness of 0 leaves the box out.
    """
    width = U.shape[1]
    for i in range(first, last):
        total = 0.0
        dU[i] = 0.0
        for x in range(starts[i], starts[i + 1]):
            j = other[x]
            product = np.float32(0.0) * U[i, 0]
            for k in range(width):
                product += U[i, k] * V[j, k]
            entry = scale * product
            miss = entry - target[x]
            slope = 2.0 * weight[x] * miss
            total += weight[x] * miss * miss
            if stiffness > 0.0:
                over = max(0.0, held[x] + stiffness * (abs(entry) - 1.0))
                total += (over * over - held[x] * held[x]) / (2.0 * stiffness)
                slope += over if entry > 0.0 else -over
            entries[x] = entry
            slopes[x] = slope
            pull = slopes[x]
            for k in range(width):
                dU[i, k] += pull * V[j, k]
        value[i] = total


@compiled_sums
def set_weighted_sums(
    first: int, last: int, starts: Indices, order: Indices, other: Indices, slopes: Floats, U: Floats, dV: Floats
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
    held: Floats,
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
        v, w, h = V[other[x]], weight[x], held[x]
        M = entries[x] = scale * v @ U[i]
        over = np.maximum(0.0, h + stiffness * (np.abs(M) - 1)) if stiffness > 0 else np.zeros_like(h)
        box = np.sum(over**2 - h**2) / (2 * stiffness) if stiffness > 0 else 0.0
        value[i] = np.sum(w * (M - target[x]) ** 2) + box
        slopes[x] = 2 * w * (M - target[x]) + np.sign(M) * over
        dU[i] = slopes[x] @ v


def set_weighted_sums_reference(
    first: int, last: int, starts: Indices, order: Indices, other: Indices, slopes: Floats, U: Floats, dV: Floats
) -> None:
    """The readable twin of :func:`set_weighted_sums`."""
    for j in range(first, last):
        x = order[starts[j] : starts[j + 1]]
        dV[j] = slopes[x] @ U[other[x]]
