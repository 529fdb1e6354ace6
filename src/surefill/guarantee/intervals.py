"""Intervals that hold a new value with a stated probability: split conformal prediction scaled by the risk."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from surefill.arrays import Array

LEAST_RISK = 1e-9
"""Risks below are taken as this: a score divides by the root."""


@dataclass(frozen=True, eq=False)
class ConformalScores:
    """s_t = |y_t - prediction_t| / sqrt(risk_t) on the calibration entries, in rising order, with their weights.

    With W = sum_t w_t, a new entry x of weight w gets the interval prediction_x -+ s sqrt(risk_x) with s the least
    score at which the running sum of the w_t reaches level (W + w), infinite where none does. It holds the value with
    probability at least ``level`` over the calibration entries and the new one, for entries exchangeable with them
    (all weights 1) or drawn by the weights (Tibshirani, Barber, Candes, Ramdas, 2019). That is a statement about all
    entries on average, not about the kept ones or any single one. A cell seen repeatedly counts once, with the root
    mean square of its draws' scores, and its intervals hold only about that often.

    Examples
    --------
    >>> import numpy as np
    >>> scores = ConformalScores.of(np.array([0.04, 0.01, 0.09, 0.16]), np.full(4, 0.04), np.ones(4))
    >>> scores.half_widths(np.array([0.04]), np.ones(1), level=0.5)
    array([0.3])
    """

    scores: Array
    weights: Array

    @classmethod
    def of(cls, squared_error: Array, risk: Array, weights: Array) -> Self:
        """From the squared errors of the calibration entries."""
        scores = np.sqrt(squared_error / np.maximum(risk, LEAST_RISK))
        order = np.argsort(scores, kind="stable")
        return cls(scores[order], weights[order])

    def half_widths(self, risk: ArrayLike, weights: ArrayLike, level: float) -> Array:
        """s sqrt(risk) for new entries; infinite where the calibration entries are too few for the level."""
        running = np.cumsum(self.weights)
        total = running[-1] if len(running) else 0.0
        needed = level * (total + np.asarray(weights, dtype=np.float64))
        reached = np.searchsorted(running, needed * (1 - 1e-12))
        score = np.append(self.scores, np.inf)[reached]
        return np.asarray(score * np.sqrt(np.maximum(np.asarray(risk, dtype=np.float64), LEAST_RISK)))
