"""Intervals that hold a new value with a stated probability: split conformal prediction scaled by the risk."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from surefill.arrays import Array
from surefill.registry import storable

LEAST_SCALE = 3e-5
"""Scales below are taken as this: a score divides by them."""


@storable
@dataclass(frozen=True, eq=False)
class ConformalScores:
    """s_t = |y_t - prediction_t| / scale_t on the calibration cells, in rising order, with their weights.

    The scale is the size of a typical error there: sqrt(risk) for the squared error, see
    :meth:`surefill.losses.Loss.error_scale`. With W = sum_t w_t, a new entry x of weight w gets the interval
    prediction_x -+ s scale_x with s the least score at which the running sum of the w_t reaches level (W + w), infinite
    where none does. It holds the value with probability at least ``level`` over the calibration cells and the new
    one, for entries exchangeable with them (all weights 1) or drawn by the weights (Tibshirani, Barber, Candes, Ramdas,
    2019). That is a statement about all entries on average, not about the kept ones or any single one. A cell seen
    repeatedly counts once, with the root mean square of its draws' scores: its intervals hold only about that often.

    Examples
    --------
    >>> import numpy as np
    >>> scores = ConformalScores.of(np.array([0.2, 0.1, 0.3, 0.4]), np.full(4, 0.2), np.ones(4))
    >>> scores.half_widths(np.array([0.2]), np.ones(1), level=0.5)
    array([0.3])
    """

    scores: Array
    weights: Array

    @classmethod
    def of(cls, error: Array, scale: Array, weights: Array) -> Self:
        """From the sizes of the errors of the calibration cells."""
        scores = error / np.maximum(scale, LEAST_SCALE)
        order = np.argsort(scores, kind="stable")
        return cls(scores[order], weights[order])

    def half_widths(self, scale: ArrayLike, weights: ArrayLike, level: float) -> Array:
        """s times the scale for new entries; infinite where the calibration cells are too few for the level."""
        running, scores = self._running
        total = running[-1] if len(running) else 0.0
        needed = level * (total + np.asarray(weights, dtype=np.float64))
        score = scores[np.searchsorted(running, needed * (1 - 1e-12))]
        return np.asarray(score * np.maximum(np.asarray(scale, dtype=np.float64), LEAST_SCALE))

    @cached_property
    def _running(self) -> tuple[Array, Array]:
        """Running sums of the weights, and the scores with an infinite one behind them."""
        return np.cumsum(self.weights), np.append(self.scores, np.inf)
