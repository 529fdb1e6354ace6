"""Ways out of a stationary point that is not the optimum: along the certificate's directions of gain, and wider."""

from __future__ import annotations

import numpy as np

from surefill.arrays import Array
from surefill.spaces.certificate import DualBound
from surefill.spaces.stage import SERIAL_WORK, one_core_if

STEP = 0.2
"""Length of a step along a direction of gain, per square root of the gain."""

MOST = 8
"""Directions followed at once."""

NEGLIGIBLE = 0.02
"""A column of the factors, turned to their axes, below this share of the longest carries nothing."""

SEED_LENGTH = 1e-3
"""Entries of a column that is added empty; at zero it would never be left."""


def follow_gains(rows: Array, found: DualBound, least: float) -> Array:
    """Add the directions whose strength exceeds 1 + ``least`` to the factors' weakest columns.

    ``rows`` are variables of :class:`Spheres` for one matrix, of unit length, the spare coordinate last. The factors
    are turned to their axes first, which changes no product, so that the weakest columns are as good as unused.
    """
    width = rows.shape[1] - 1
    count = min(MOST, width, int(np.sum(found.strengths > 1 + least)))
    if count == 0:
        return rows
    factors, spare = rows[:, :-1], rows[:, -1:]
    with one_core_if(factors.size * width < SERIAL_WORK):
        _, _, turn = np.linalg.svd(factors, full_matrices=False)
        factors = factors @ turn.T
    steps = np.minimum(STEP, STEP * np.sqrt(found.strengths[:count] - 1))
    directions = found.directions[:, :count]
    factors[:, -count:] += steps * directions / np.abs(directions).max(axis=0)
    return np.concatenate([factors, spare], axis=1).astype(rows.dtype)


def uses_all_columns(rows: Array) -> bool:
    """Whether the weakest column of the factors, turned to their axes, carries something."""
    squares = np.linalg.eigvalsh(rows[:, :-1].T @ rows[:, :-1])
    return bool(squares[0] > NEGLIGIBLE**2 * squares[-1])


def widen(rows: Array, width: int, rng: np.random.Generator) -> Array:
    """The same rows with ``width`` columns beside the spare one, the new ones nearly empty."""
    new = rng.normal(0, SEED_LENGTH, (len(rows), width - rows.shape[1] + 1))
    return np.concatenate([rows[:, :-1], new, rows[:, -1:]], axis=1)
