"""The chance that a cell is observed: what is asked of a model of it, and chances that a user gives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from surefill.arrays import Array
from surefill.errors import InputError
from surefill.registry import storable

MOST_LIKELY = 0.95
"""Largest modelled chance of being observed: no pattern proves that a cell could not have been missed."""


class Propensity(Protocol):
    """P(cell is observed), asked cell by cell."""

    def at(self, rows: ArrayLike, cols: ArrayLike) -> Array:
        """Probabilities in (0, 1] at the cells (rows[t], cols[t]); on a grid where given ``np.ix_(rows, cols)``."""
        ...


@storable
@dataclass(frozen=True, eq=False)
class GivenPropensity:
    """An m x n matrix of probabilities.

    Examples
    --------
    >>> import numpy as np
    >>> GivenPropensity(np.array([[0.8, 0.2]])).at([0], [1])
    array([0.2])
    """

    matrix: Array

    def at(self, rows: ArrayLike, cols: ArrayLike) -> Array:
        """Probabilities at the cells (rows[t], cols[t])."""
        return _probabilities(self.matrix[np.asarray(rows), np.asarray(cols)])


@dataclass(frozen=True, eq=False)
class PropensityFunction:
    """A user's own function of rows and columns.

    Examples
    --------
    >>> PropensityFunction(lambda rows, cols: 0.1 + 0.2 * cols).at([0, 0], [1, 2])
    array([0.3, 0.5])
    """

    function: Callable[[Any, Any], ArrayLike]

    def at(self, rows: ArrayLike, cols: ArrayLike) -> Array:
        """Probabilities at the cells (rows[t], cols[t])."""
        i, j = np.broadcast_arrays(np.asarray(rows), np.asarray(cols))
        return _probabilities(self.function(i.ravel(), j.ravel())).reshape(i.shape)


def _probabilities(given: ArrayLike) -> Array:
    p = np.asarray(given, dtype=np.float64)
    if p.size and not ((p > 0) & (p <= 1)).all():
        raise InputError("propensities are probabilities above 0 and at most 1; some given are not.")
    return p
