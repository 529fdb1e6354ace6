"""Saddle escape: leave a stationary point that is no optimum, along its certificate's directions or by new columns."""

from __future__ import annotations

import numpy as np

from surefill.arrays import Array
from surefill.spaces.certificates import DualBound
from surefill.spaces.stage import SERIAL_WORK, one_core_if

# The four numbers below decide how soon a saddle is left, not where the solver ends: its certificate does.

STEP = 0.2
"""Length of a step along a direction of gain, per square root of the gain; rows have length 1."""

MAX_DIRECTIONS = 8
"""Directions followed at once."""

NEGLIGIBLE = 0.02
"""Share of the largest singular value of the factors below which the smallest counts as 0."""

NEW_ENTRY_SIZE = 1e-3
"""Standard deviation of the entries of a new column; the gradient in a column of zeros is 0, so it would stay."""


def escape_saddle(rows: Array, found: DualBound, least: float) -> Array:
    """Add the directions whose singular value exceeds 1 + ``least`` to the factors' weakest columns.

    ``rows`` are variables of :class:`Spheres` for one matrix, of unit length, the spare coordinate last. The factors
    are turned to their principal axes first, which changes no product, so that the last columns are the weakest.
    """
    width = rows.shape[1] - 1
    count = min(MAX_DIRECTIONS, width, int(np.sum(found.singular_values > 1 + least)))
    if count == 0:
        return rows
    factors, spare = rows[:, :-1], rows[:, -1:]
    with one_core_if(factors.size * width < SERIAL_WORK):
        _, _, turn = np.linalg.svd(factors, full_matrices=False)
        factors = factors @ turn.T
    steps = np.minimum(STEP, STEP * np.sqrt(found.singular_values[:count] - 1))
    directions = found.directions[:, :count]
    factors[:, -count:] += steps * directions / np.abs(directions).max(axis=0)
    return np.concatenate([factors, spare], axis=1).astype(rows.dtype)


def has_full_rank(rows: Array) -> bool:
    """Whether the factors use all their columns: their smallest singular value is not negligible."""
    squares = np.linalg.eigvalsh(rows[:, :-1].T @ rows[:, :-1])
    return bool(squares[0] > NEGLIGIBLE**2 * squares[-1])


def widen(rows: Array, width: int, rng: np.random.Generator) -> Array:
    """The same rows with ``width`` columns beside the spare one, the new ones nearly 0."""
    new = rng.normal(0, NEW_ENTRY_SIZE, (len(rows), width - rows.shape[1] + 1))
    return np.concatenate([rows[:, :-1], new, rows[:, -1:]], axis=1)
