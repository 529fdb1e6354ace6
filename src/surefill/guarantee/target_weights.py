"""How likely each entry is to be observed, and the weights that aim a promise at other entries than those seen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import ArrayLike

from surefill.arrays import Array
from surefill.data import Observations
from surefill.errors import InputError
from surefill.registry import storable

Aim = Literal["observed", "unobserved", "all"]
AIMS = ("observed", "unobserved", "all")
"""Entries that a promise may be about."""

CLIP = 20.0
"""Largest weight over the median one; a promise that rests on rarer entries would rest on very few of them."""

MOST_LIKELY = 0.95
"""Largest modelled chance of being observed: a product of marginal rates can exceed 1."""


class Propensity(Protocol):
    """P(entry is observed), asked entry by entry."""

    def at(self, rows: ArrayLike, cols: ArrayLike) -> Array:
        """Probabilities in (0, 1] at the cells (rows[t], cols[t])."""
        ...


@storable
@dataclass(frozen=True, eq=False)
class GivenPropensity:
    """An m x n matrix of probabilities."""

    matrix: Array

    def at(self, rows: ArrayLike, cols: ArrayLike) -> Array:
        """Probabilities at the cells (rows[t], cols[t])."""
        return _probabilities(self.matrix[np.asarray(rows), np.asarray(cols)])


@dataclass(frozen=True, eq=False)
class PropensityFunction:
    """A user's own function of rows and columns."""

    function: Callable[[Any, Any], ArrayLike]

    def at(self, rows: ArrayLike, cols: ArrayLike) -> Array:
        """Probabilities at the cells (rows[t], cols[t])."""
        return _probabilities(self.function(np.asarray(rows), np.asarray(cols)))


@storable
@dataclass(frozen=True, eq=False)
class MarginalPropensity:
    """p_ij = min(a_i b_j, 0.95): how often rows and columns are observed, multiplied.

    a_i = (r_i + 1) sqrt(N) / (N + m), b_j = (c_j + 1) sqrt(N) / (N + n), with r_i and c_j the cells seen of row i and
    column j and N of all, so that rows and columns have the expected numbers of cells that were seen of them; the 1
    lends those of which nothing was seen one cell. Both are divided by the root of the share of cells that was looked
    at.
    """

    row_rate: Array
    col_rate: Array

    @classmethod
    def of(cls, observations: Observations, share: float) -> MarginalPropensity:
        """From the locations of a random ``share`` of all observed cells."""
        m, n = observations.shape
        total, scale = len(observations), np.sqrt(len(observations) / share)
        rows, cols = np.bincount(observations.rows, minlength=m), np.bincount(observations.cols, minlength=n)
        return cls(scale * (rows + 1) / (total + m), scale * (cols + 1) / (total + n))

    def at(self, rows: ArrayLike, cols: ArrayLike) -> Array:
        """Probabilities at the cells (rows[t], cols[t])."""
        chance = self.row_rate[np.asarray(rows)] * self.col_rate[np.asarray(cols)]
        return np.asarray(np.minimum(chance, MOST_LIKELY))


@storable
@dataclass(frozen=True, eq=False)
class TargetWeights:
    """w_x in (0, 1], in proportion to how much more often x is among the entries aimed at than among those held out.

    With p_x the chance that x is observed and q the share of observed cells held out, a cell that was not used in
    training is held out with probability q p / (1 - (1 - q) p). Hence, up to a factor,

        all cells not used in training       w = (1 - (1 - q) p) / p
        of these, the ones never observed    w = (1 - p) / p

    clipped at ``largest`` and divided by it; 1 for entries drawn like the observed ones.

    Examples
    --------
    >>> import numpy as np
    >>> propensity = GivenPropensity(np.array([[0.8, 0.2], [0.8, 0.2]]))
    >>> weights = TargetWeights.of("unobserved", propensity, 0.2, Observations([0, 1], [0, 1], [1.0, 2.0]))
    >>> weights.at([0, 0], [0, 1])
    array([0.0625, 1.    ])
    """

    aim: Aim
    held_out_share: float
    propensity: Propensity | None
    largest: float

    @classmethod
    def of(cls, aim: Aim, propensity: Propensity | None, held_out_share: float, train: Observations) -> TargetWeights:
        """Weights clipped at their largest over the training cells, or at 20 times their median there, if less."""
        if propensity is None:
            return cls(aim, held_out_share, None, 1.0)
        raw = cls(aim, held_out_share, propensity, np.inf)._raw(train.rows, train.cols)
        median = float(np.median(raw))
        if median <= 0:
            raise InputError(
                "most observed entries have propensity 1, so none like them is unobserved; use aim='all' or 'observed'."
            )
        return cls(aim, held_out_share, propensity, min(CLIP * median, float(raw.max())))

    def at(self, rows: ArrayLike, cols: ArrayLike) -> Array:
        """Weights at the cells (rows[t], cols[t])."""
        if self.propensity is None:
            return np.ones(np.asarray(rows).shape)
        return np.minimum(self._raw(rows, cols) / self.largest, 1.0)

    def _raw(self, rows: ArrayLike, cols: ArrayLike) -> Array:
        assert self.propensity is not None
        p = self.propensity.at(rows, cols)
        left_out = (1 - self.held_out_share) if self.aim == "all" else 1.0
        return np.asarray((1 - left_out * p) / p)


def choose_propensity(given: Any, aim: Aim, train: Observations, held_out_share: float) -> Propensity | None:
    """What the user gave for P(observed), or the marginal model of the training cells where the aim needs one.

    Examples
    --------
    >>> import numpy as np
    >>> seen = Observations([0, 0, 1], [0, 1, 1], [1.0, 2.0, 3.0])
    >>> choose_propensity(np.full((2, 2), 0.5), "unobserved", seen, 0.2).at([0], [1])
    array([0.5])
    """
    if aim == "observed":
        if given is not None:
            raise InputError(
                "propensities aim a promise at other entries than those seen: add aim='unobserved' or 'all'."
            )
        return None
    if given is None:
        return MarginalPropensity.of(train, 1 - held_out_share)
    if callable(given):
        return PropensityFunction(given)
    matrix = np.asarray(given, dtype=np.float64)
    if matrix.shape != train.shape:
        expected = f"None, a function of rows and columns, or an array of shape {train.shape}"
        raise InputError(
            f"The 'propensity' parameter of PartialCompleter must be {expected}. Got shape {matrix.shape}."
        )
    return GivenPropensity(matrix)


def _probabilities(given: ArrayLike) -> Array:
    p = np.asarray(given, dtype=np.float64)
    if p.size and not ((p > 0) & (p <= 1)).all():
        raise InputError("propensities are probabilities above 0 and at most 1; some given are not.")
    return p
