"""Weights that aim a promise at other entries than those seen."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from surefill.arrays import Array
from surefill.data import Observations
from surefill.errors import InputError
from surefill.guarantee.propensity import (
    AIMS,
    Aim,
    GivenPropensity,
    MarginalPropensity,
    Propensity,
    PropensityFunction,
    choose_propensity,
)
from surefill.registry import storable

__all__ = [
    "AIMS",
    "Aim",
    "GivenPropensity",
    "MarginalPropensity",
    "Propensity",
    "PropensityFunction",
    "TargetWeights",
    "choose_propensity",
]

CLIP = 20.0
"""Largest weight over the median one; a promise that rests on rarer entries would rest on very few of them."""


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
