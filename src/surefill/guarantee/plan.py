"""Everything about the choice of a kept set that is settled before calibration entries are looked at."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefill.arrays import Array
from surefill.guarantee.betting import LARGEST_BET, choose_bets
from surefill.losses import SQUARED, Loss
from surefill.registry import storable

ROUNDING = 1e-5
"""Confidences this close to the floor have it: single precision, and sums in another order, move them by less."""

MOST_THRESHOLDS = 200
"""Thresholds on the risk that are tested: sets half a percent apart, finer than the promise can tell."""

STARTS = ((0.5, 0.1), (1.0, 0.9))
"""Where testing starts, as shares of the set that promises most, and the share of delta that each start gets."""


def within(risk: ArrayLike, confidence: ArrayLike, threshold: float, floor: float) -> NDArray[np.bool_]:
    """risk <= threshold and confidence >= floor, up to rounding."""
    return np.asarray((np.asarray(risk) <= up_to_rounding(threshold)) & (np.asarray(confidence) >= floor - ROUNDING))


def up_to_rounding(threshold: ArrayLike) -> Array:
    """Thresholds on the risk, raised by a relative 1e-10: what equals them is within, however it was computed."""
    return np.asarray(threshold, dtype=np.float64) * (1 + ROUNDING**2)


@storable
@dataclass(frozen=True, eq=False)
class SelectionPlan:
    """Thresholds on the risk in rising order, the level each is tested at, and the bets.

    ``reference`` holds the risks of the training cells that have the floor's confidence, in rising order; the
    thresholds are quantiles of them, so that no entry is kept whose risk exceeds all of these.

    Attributes
    ----------
    tolerance, delta : what is to be promised, and the chance that it fails.
    largest_loss : no loss exceeds it: the square of the largest distance from a prediction to a bound of the values.
    floor : least confidence, whatever the risk.
    n_calibration, n_observed : cells held out, and all.
    reference_share : the share of the training cells that have the floor's confidence.
    mean_square_weight : mean of w^2 over the training cells.
    loss : what an error costs: the variance of the losses to expect, and words.

    Examples
    --------
    >>> import numpy as np
    >>> plan = SelectionPlan(
    ...     tolerance=0.5, delta=0.1, largest_loss=4.0, floor=0.2, n_calibration=200, n_observed=1000,
    ...     reference=np.linspace(0.1, 1.0, 800), reference_share=1.0,
    ... )
    >>> len(plan.thresholds), round(float(plan.levels.sum()), 6)
    (200, 0.1)
    """

    tolerance: float
    delta: float
    largest_loss: float
    floor: float
    n_calibration: int
    n_observed: int
    reference: Array
    reference_share: float
    mean_square_weight: float = 1.0
    loss: Loss = SQUARED

    def at_tolerance(self, tolerance: float) -> Self:
        """The same plan for another tolerance."""
        return replace(self, tolerance=tolerance)

    @cached_property
    def thresholds(self) -> Array:
        """Quantiles of the reference risks, the largest included."""
        if len(self.reference) == 0:
            return np.empty(0)
        ends = np.unique(np.linspace(0, len(self.reference) - 1, MOST_THRESHOLDS + 1).round().astype(int)[1:])
        return np.unique(self.reference[ends])

    @cached_property
    def bets(self) -> Array:
        """See :func:`surefill.guarantee.betting.choose_bets`."""
        return choose_bets(
            self.tolerance, self.largest_loss, self.n_calibration, self.delta, self.mean_square_weight, self.loss
        )

    @cached_property
    def levels(self) -> Array:
        """delta, divided among the thresholds where testing starts.

        The best start is where the capital is expected to grow most, if losses are as the risks say and have the
        variance of squared normal errors; risks may be too low, so that smaller sets get a part of delta.
        """
        thresholds = self.thresholds
        levels = np.zeros(len(thresholds))
        if len(thresholds) == 0:
            return levels
        sizes = np.searchsorted(self.reference, thresholds, side="right")
        best = sizes[int(np.argmax(self._expected_log_capital(sizes)))]
        for part, share in STARTS:
            start = min(int(np.searchsorted(sizes, part * best)), len(sizes) - 1)
            levels[start] += share * self.delta
        return levels

    def _expected_log_capital(self, sizes: NDArray[np.int64]) -> Array:
        mean = np.cumsum(self.reference)[sizes - 1] / sizes
        margin = np.maximum(self.tolerance - mean, 0)
        square = self.loss.variance(mean) + margin**2 + 1e-300
        most = LARGEST_BET / max(self.largest_loss - self.tolerance, 1e-300)
        bet = np.minimum(margin / square, most)
        n = self.n_calibration * self.reference_share * sizes / len(self.reference)
        return np.asarray(n * (bet * margin - bet**2 * square / 2))
