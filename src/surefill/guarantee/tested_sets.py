"""Calibration cells, and the capital won on the sets of a plan that hold them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from surefill.arrays import Array
from surefill.guarantee.betting import robust_gains, running_log_capital
from surefill.guarantee.plan import TINY, SelectionPlan, exposure, up_to_rounding, within
from surefill.registry import storable


@storable
@dataclass(frozen=True, eq=False)
class Calibration:
    """Cells that had no part in predictions, risks and confidences: what those say of them, and what was lost.

    ``loss`` is averaged over a cell's draws, ``largest_loss`` the most it could have been, ``weight`` one over the
    chance that a cell outside training is one of these, or 1 where the promise is about cells like them. Every cell
    counts once, however often it was drawn: its draws share what is unknown about the cell.

    Examples
    --------
    >>> import numpy as np
    >>> calibration = Calibration(
    ...     np.array([0.1, 0.9]), np.ones(2), np.array([0.2, 1.0]), np.full(2, 4.0), np.array([3.0, 1.0])
    ... )
    >>> calibration.mean_loss(np.array([True, True]))
    0.4
    """

    risk: Array
    confidence: Array
    loss: Array
    largest_loss: Array
    weight: Array

    def __len__(self) -> int:
        return len(self.loss)

    def mean_loss(self, which: NDArray[np.bool_]) -> float:
        """Weighted mean loss of some of the cells."""
        return float(np.average(self.loss[which], weights=self.weight[which]))

    def exposure(self, tolerance: float) -> Array:
        """w (L - tolerance) of each."""
        return exposure(self.weight, self.largest_loss, tolerance)


@dataclass(frozen=True, eq=False)
class TestedSets:
    """The calibration cells that a plan's sets may hold, in order of risk, and how many of them each set holds."""

    risk: Array
    loss: Array
    weight: Array
    sizes: NDArray[np.int64]

    @classmethod
    def of(cls, plan: SelectionPlan, calibration: Calibration) -> Self:
        """Leave out what the plan leaves out."""
        exposed = calibration.exposure(plan.tolerance)
        inside = within(0.0, calibration.confidence, 0.0, plan.floor, exposed, plan.sets.most_exposure)
        order = np.flatnonzero(inside)[np.argsort(calibration.risk[inside], kind="stable")]
        sizes = np.searchsorted(calibration.risk[order], up_to_rounding(plan.sets.thresholds), side="right")
        return cls(calibration.risk[order], calibration.loss[order], calibration.weight[order], sizes)

    def log_capitals(self, plan: SelectionPlan, sensitivity: float) -> Array:
        """Sets x bets: the log of the capital won by each bet on the entries that each set of the plan holds.

        Bets are smaller by the factor by which ``sensitivity`` is above the plan's: else there might be cells, seen or
        not, on which they could lose more than all.
        """
        gains = plan.tolerance - self.loss
        robust, left_out = robust_gains(gains, sensitivity), gains if plan.leaves_out_calibration else 0.0
        bets = plan.sets.bets * plan.sensitivity / sensitivity
        won = [running_log_capital(robust, self.weight, float(bet), left_out)[self.sizes] for bet in bets]
        return np.stack(won, axis=1) - bets * plan.gain_of_asked

    def rejected(self, plan: SelectionPlan, sensitivity: float) -> NDArray[np.int64]:
        """The sets of the plan that are shown to keep the tolerance."""
        if len(self.loss) == 0 or len(plan.sets.bets) == 0 or self.only_by_luck(plan):
            return np.empty(0, dtype=np.int64)
        return rejected_sets(plan, self.log_capitals(plan, sensitivity))

    def only_by_luck(self, plan: SelectionPlan, times: float = 1.0, errors: float = 0.0) -> bool:
        """Whether these cells, ``times`` over, would hardly ever let the target be promised if they lost what the risks
        say, or ``errors`` standard errors less.

        With a chance below delta: a false promise has up to that chance, whatever is expected, so that one, if made,
        could well be false. What was lost is not looked at.
        """
        target = plan.sets.target
        held_out, bet = slice(int(self.sizes[target])), plan.sets.bets[plan.sets.best[target]]
        gain, square = plan.expected_gain(self.risk[held_out])
        won = times * bet * (self.weight[held_out] - plan.leaves_out_calibration) @ gain - bet * plan.gain_of_asked
        variance = float(times * bet**2 * (self.weight[held_out] ** 2 @ square))
        chance = ndtr(errors + (won - variance / 2 + np.log(plan.delta)) / np.sqrt(max(variance, TINY)))
        return bool(chance < min(plan.delta, 1 - plan.delta))

    def mean_losses(self, first: int = 0) -> Array:
        """Weighted mean loss of each set from number ``first`` on that holds an entry; of the last where none does."""
        sizes = self.sizes[np.minimum(first, np.argmax(self.sizes)) :]
        sizes = sizes[sizes > 0]
        return np.asarray(np.cumsum(self.weight * self.loss)[sizes - 1] / np.cumsum(self.weight)[sizes - 1])


def rejected_sets(plan: SelectionPlan, log_capitals: Array) -> NDArray[np.int64]:
    """The sets that are shown to keep the tolerance by what each bet won on each, mixed as the plan stakes them.

    By Ville's inequality all sets whose capital reaches 1 / delta: cells are held out by coins of their own.
    """
    with np.errstate(divide="ignore"):
        mixed = np.logaddexp.reduce(log_capitals + np.log(plan.stakes), axis=1)
    return np.flatnonzero(mixed >= -np.log(plan.delta))
