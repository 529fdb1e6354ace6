"""Everything about the choice of the kept set that is fixed before the calibration cells are used."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr

from surefill.arrays import Array
from surefill.guarantee.betting import LARGEST_BET, N_BETS
from surefill.losses import Loss
from surefill.registry import storable

ROUNDING = 1e-5
"""Confidences this close to the floor have it: single precision, and sums in another order, move them by less."""

MOST_THRESHOLDS = 200
"""Thresholds on the risk that are tested: sets half a percent apart, finer than the promise can tell."""

LEFT_OUT = (0.0, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.85)
"""Shares of the supported cells, the most exposed ones, that may be left out so that bets can be larger."""

LARGEST_GAIN = 10.0
"""b g at most, on a cell without loss: bets are bounded where no loss is far above the tolerance. The least of eight
bets is then below .08, at which cells of any weight above 1.04 win; eight from a thousand on end at 8, and lose."""

TINY = 1e-300
"""Keeps divisions and roots defined where there is nothing to lose."""

STAKED = float(np.log(1 / 0.8))
"""Log capital that has to be won besides log(1 / delta): about eight tenths of the capital are on the best bet."""

MEAN_SIZE = float(np.sqrt(2 / np.pi))
"""E|g| over its root mean square, for normal g."""


SAME_RISK, SAME_CONFIDENCE = 1e-11, 4e-6
"""Largest difference between two ways to compute one cell: relative for risk and exposure (double precision), absolute
for confidence (sums in single precision). Both are below the slack of the limits, so that a tie is not "close"."""


def within(
    risk: ArrayLike, confidence: ArrayLike, threshold: float, floor: float, exposure: ArrayLike = 0.0, most: float = 0.0
) -> NDArray[np.bool_]:
    """risk <= threshold, confidence >= floor and exposure <= most, up to rounding."""
    trusted = np.asarray(confidence) >= floor - ROUNDING
    return np.asarray(
        (np.asarray(risk) <= up_to_rounding(threshold)) & trusted & (np.asarray(exposure) <= up_to_rounding(most))
    )


def limits(threshold: float, floor: float, most: float) -> tuple[Array, Array]:
    """The limits of :func:`within` on risk, confidence and exposure, and the margins within which a cell is close."""
    at = np.array([up_to_rounding(threshold), floor - ROUNDING, up_to_rounding(most)])
    near = np.array([SAME_RISK, SAME_CONFIDENCE, SAME_RISK])
    return at, np.where(np.isfinite(at), near, 0.0)


def up_to_rounding(threshold: ArrayLike) -> Array:
    """Limits, raised by a relative 1e-10: what equals them is within, however it was computed."""
    return np.asarray(threshold, dtype=np.float64) * (1 + ROUNDING**2)


@storable
@dataclass(frozen=True, eq=False)
class Population:
    """Supported cells that a promise may be about, or some of them drawn evenly, in rising order of risk.

    Attributes
    ----------
    risk, weight, largest_loss : of each; the weight is one over its chance of being a calibration cell, or 1 where the
        promise is about cells drawn like the observed ones.
    count : how many cells each stands for.
    missing : whether it was never observed. No part of a plan: only the number of filled cells rests on it.
    n_missing : cells never observed, supported or not; None where the promise is about cells like the observed ones.

    Examples
    --------
    >>> import numpy as np
    >>> cells = Population.of(np.array([0.3, 0.1]), np.array([5.0, 9.0]), np.ones(2), 1.0, np.ones(2, dtype=bool), 2)
    >>> cells.risk, cells.weight
    (array([0.1, 0.3]), array([9., 5.]))
    """

    risk: Array
    weight: Array
    largest_loss: Array
    count: float
    missing: NDArray[np.bool_]
    n_missing: float | None

    @classmethod
    def of(
        cls,
        risk: Array,
        weight: Array,
        largest_loss: Array,
        count: float,
        missing: NDArray[np.bool_],
        n_missing: float | None,
    ) -> Self:
        """In rising order of risk."""
        order = np.argsort(risk, kind="stable")
        return cls(risk[order], weight[order], largest_loss[order], count, missing[order], n_missing)

    def exposure(self, tolerance: float) -> Array:
        """w (L - tolerance), what a bet of 1 can lose on each."""
        return exposure(self.weight, self.largest_loss, tolerance)


def exposure(weight: Array, largest_loss: Array, tolerance: float) -> Array:
    """w (L - tolerance), the most that a bet of 1 can lose on a cell; bets are at most 0.95 over the largest."""
    return np.asarray(weight * np.maximum(largest_loss - tolerance, 0.0))


class Sets(NamedTuple):
    """Nested sets {exposure <= most_exposure, risk <= threshold}, with the bets on each.

    ``sizes`` counts the population's cells; ``best`` is the place of each set's bet among ``bets``, and ``success``
    by how many standard deviations its log capital is expected to exceed log(1 / delta).
    """

    most_exposure: float
    thresholds: Array
    sizes: NDArray[np.int64]
    bets: Array
    best: NDArray[np.int64]
    success: Array

    @property
    def start(self) -> int:
        """The set that is likeliest to be promised."""
        return int(np.argmax(self.success))

    @property
    def expected_sizes(self) -> Array:
        """Cells of each set, times the chance that it is promised."""
        return np.asarray(self.sizes * ndtr(self.success))

    @property
    def first_of_note(self) -> int:
        """The least set of at least half the size of the likeliest: the mean loss of smaller ones says little."""
        return int(np.searchsorted(self.sizes, self.sizes[self.start] / 2))

    @property
    def target(self) -> int:
        """The set by which most cells are expected to be kept."""
        return int(np.argmax(self.expected_sizes))


@storable
@dataclass(frozen=True, eq=False)
class SelectionPlan:
    """Sets in rising order of a threshold on the risk, and the bets by which they are tested.

    Cells whose exposure w (L - tolerance) is too large are left out of all sets: one of them alone could take the
    capital, so that all bets would have to be small. How many are left out and which bets are made follow from what
    is expected: with E g = tolerance - risk and the variance of losses of normal errors,

        E log K(b) = sum_x b E g_x - b^2 w_x E g_x^2 / 2,       Var log K(b) = sum_x b^2 w_x E g_x^2 = b^2 V.

    The bet on a set is the one by which the least mean gain reaches e = log(1 / delta) + log(1 / 0.8): sqrt(2 e / V).

    Attributes
    ----------
    tolerance, delta : what is to be promised, and the chance that it fails.
    floor : least confidence, whatever the risk.
    n_calibration, n_observed : cells held out, and all.
    population : the cells the promise is about.
    loss : what an error costs.
    sensitivity : G >= 1, by which factor a value may influence whether its cell is seen.
    leaves_out_calibration : whether the promise is about cells never observed, calibration cells not among them.
    n_asked : cells observed since the calibration cells were held out, which were chosen among the others. The promise
        is not about them, and each counts as if it had lost nothing: the capital has to be won without them.

    Examples
    --------
    >>> import numpy as np
    >>> from surefill.losses import SquaredError
    >>> cells = Population.of(
    ...     np.linspace(0.1, 1.0, 800), np.full(800, 5.0), np.full(800, 4.0), 1.0, np.ones(800, dtype=bool), 800
    ... )
    >>> plan = SelectionPlan(0.5, 0.1, 0.2, 160, 800, cells, SquaredError())
    >>> len(plan.sets.thresholds), round(float(plan.stakes.sum()), 6)
    (200, 1.0)
    """

    tolerance: float
    delta: float
    floor: float
    n_calibration: int
    n_observed: int
    population: Population
    loss: Loss
    sensitivity: float = 1.0
    leaves_out_calibration: bool = True
    n_asked: int = 0

    def at_tolerance(self, tolerance: float) -> Self:
        """The same plan for another tolerance."""
        return replace(self, tolerance=tolerance)

    @property
    def largest_loss(self) -> float:
        """The largest loss of any cell."""
        return float(self.population.largest_loss.max(initial=0.0))

    @cached_property
    def sets(self) -> Sets:
        """Of the choices of how many cells to leave out, the one that is expected to keep most."""
        exposed = self.population.exposure(self.tolerance)
        if len(exposed) == 0:
            nothing = np.empty(0)
            return Sets(np.inf, nothing, nothing.astype(np.int64), nothing, nothing.astype(np.int64), nothing)
        limits = np.unique(np.quantile(exposed, 1 - np.array(LEFT_OUT), method="higher"))
        choices = [self._sets(exposed, float(limit)) for limit in limits[::-1]]
        return max(choices, key=lambda sets: (sets.expected_sizes.max(), sets.success[sets.start]))

    def _sets(self, exposed: Array, most_exposure: float) -> Sets:
        cells, inside = self.population, exposed <= most_exposure
        risk, weight = cells.risk[inside], cells.weight[inside]
        gain, square = self.expected_gain(risk)
        last = np.linspace(0, len(risk) - 1, MOST_THRESHOLDS + 1).round().astype(int)[1:]
        thresholds = np.unique(risk[last])
        sizes = np.searchsorted(risk, thresholds, side="right")
        mean = cells.count * np.cumsum(gain)[sizes - 1] - self.gain_of_asked
        variance = cells.count * np.cumsum(weight * square)[sizes - 1]
        largest = LARGEST_BET / max(self.sensitivity * most_exposure, LARGEST_BET * self.tolerance / LARGEST_GAIN)
        bets = np.asarray(largest * 0.5 ** np.arange(N_BETS), dtype=np.float64)
        evidence = np.log(1 / self.delta) + STAKED
        wanted = np.sqrt(2 * evidence / np.maximum(variance, TINY))
        best = np.clip(np.log2(largest / wanted).round(), 0, N_BETS - 1).astype(np.int64)
        growth = mean * bets[best] - variance * bets[best] ** 2 / 2
        success = (growth - evidence) / np.maximum(bets[best] * np.sqrt(variance), TINY)
        return Sets(most_exposure, thresholds, sizes, bets, best, success)

    @property
    def gain_of_asked(self) -> float:
        """The most that the cells asked since may have gained."""
        return self.tolerance * self.n_asked

    def expected_gain(self, risk: Array) -> tuple[Array, Array]:
        """E g and E g^2 with g = tolerance - l, gains and losses counted as ``sensitivity`` asks."""
        G, gain = self.sensitivity, self.tolerance - risk
        square = self.loss.variance(risk) + gain**2
        robust = gain * (G + 1 / G) / 2 - MEAN_SIZE * np.sqrt(square) * (G - 1 / G) / 2
        return robust, square * (G**2 + 1 / G**2) / 2

    @cached_property
    def stakes(self) -> Array:
        """The shares of the capital that go on each bet, the same for all sets.

        Capitals of one mixture are a supermartingale along the sets, so that all are tested at once. It is made of the
        best bets of the target and of all larger sets, each for the cells that these are expected to keep.
        """
        sets = self.sets
        if len(sets.best) == 0:
            return np.empty(0)
        large = slice(sets.target, None)
        stakes = np.bincount(sets.best[large], sets.expected_sizes[large] + TINY, len(sets.bets))
        return np.asarray(stakes / stakes.sum())
