"""The chance of a large error, from the expected size of errors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit

from surefill.arrays import Array
from surefill.errors import InputError
from surefill.registry import storable

PSEUDO_DRAWS, PRIOR_SLOPE = 1.0, 2.0
"""Draws of chance one half that the prior counts for, and the slope it draws to: with errors of one size each way,
doubling their size makes the odds of a large one about four times as large."""


@storable
@dataclass(frozen=True)
class ChanceOfLargeError:
    """P(|error| > distance) = 1 / (1 + exp(-level - slope log risk)), with the risk an expected absolute error.

    A chance saturates at 0 and 1, which a product of factors does not; its logarithmic odds are about linear in the log
    of the error's size. The slope is at least 0: larger errors make large ones no rarer.

    Examples
    --------
    >>> chance = ChanceOfLargeError(level=-1.0, slope=2.0)
    >>> chance.at(np.array([0.1, 1.0, 100.0])).round(3)
    array([0.004, 0.269, 1.   ])
    """

    level: float
    slope: float

    def __post_init__(self) -> None:
        if not (np.isfinite(self.level) and 0 <= self.slope < np.inf):
            raise InputError("a chance of large errors needs a finite level and a slope of at least 0.")

    @classmethod
    def fit(cls, risk: Array, missed: Array, weight: Array) -> Self:
        """Logistic regression of the shares ``missed`` of entries on the log of their ``risk``."""
        x = np.log(risk)
        middle = float(np.average(x, weights=weight))
        x, y, w = np.append(x - middle, 0.0), np.append(missed, 0.5), np.append(weight, PSEUDO_DRAWS)

        def objective(t: Array) -> tuple[float, Array]:
            z, off = t[0] + t[1] * x, t[1] - PRIOR_SLOPE
            residual = w * (expit(z) - y)
            value = float(w @ (np.logaddexp(0.0, z) - y * z)) + PSEUDO_DRAWS * off**2 / 2
            return value, np.array([residual.sum(), residual @ x + PSEUDO_DRAWS * off])

        start, limits = np.array([0.0, PRIOR_SLOPE]), [(None, None), (0.0, None)]
        level, slope = minimize(objective, start, jac=True, method="L-BFGS-B", bounds=limits).x
        return cls(float(level - slope * middle), float(slope))

    def at(self, risk: Array) -> Array:
        """Chances where absolute errors of these sizes are expected."""
        return np.asarray(expit(self.level + self.slope * np.log(risk)))
