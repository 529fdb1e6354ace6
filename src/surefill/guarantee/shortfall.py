"""Why nothing can be kept, and what would help: another tolerance, more observations, or neither."""

from __future__ import annotations

import enum
from dataclasses import dataclass, replace

import numpy as np

from surefill.guarantee.betting import robust_gains
from surefill.guarantee.figures import bound, calibration_cells, probability, rounded_up
from surefill.guarantee.plan import SelectionPlan
from surefill.guarantee.tested_sets import Calibration, TestedSets, rejected_sets
from surefill.losses import Loss
from surefill.registry import storable

SHARES = (0.0, 0.25, 0.5)
"""Shares of the cells whose tolerances are advised: the least that keeps anything, a quarter, and half."""

MOST_TIMES = 1000.0
"""Numbers of observations are tried up to so many times those there are; beyond, none is advised."""

STEP = 1.2
"""Numbers of observations are tried a fifth apart."""

APART, CLOSE = 1.1, 1.02
"""Tolerances are tried a tenth apart, and advised to within 2%."""

MOST_TRIED = 60
"""Tolerances tried, each of which takes a plan of its own: from a three-hundredth of the largest loss on."""


@storable
class Limit(enum.Enum):
    """What keeps the kept set from being larger, in words that end a sentence.

    Examples
    --------
    >>> Limit.TOLERANCE.value
    'the tolerance'
    """

    TOLERANCE = "the tolerance"
    SUPPORT = "how much of the matrix the observations support"
    CALIBRATION = "the number of calibration cells"
    SENSITIVITY = "the sensitivity asked for"


@storable
@dataclass(frozen=True)
class ReachableTolerance:
    """A tolerance at which these calibration cells would let a share of the cells be kept.

    Picked by looking at the calibration cells, so that a promise at it is not one at a tolerance settled beforehand.

    Examples
    --------
    >>> ReachableTolerance(0.8, 0.31).share
    0.31
    """

    tolerance: float
    share: float


@storable
@dataclass(frozen=True)
class Shortfall:
    """Why nothing could be kept, in figures.

    Attributes
    ----------
    limited_by : what stands in the way.
    tolerance, delta, floor : what was asked, and the confidence that support asks for.
    n_calibration, n_supported : calibration cells, and those with that confidence.
    best_error : least mean loss of the sets but the smallest; None where none holds an entry.
    reachable : tolerances that could be promised with what is there and what they would keep, in rising order.
    needed_observations : about how many observed cells would do; None where no number would.
    needed_range : one standard error less and more; the second None where it has no end.
    n_observed : observed cells there are.
    loss : what errors are measured by.
    sensitivity : G as asked for.
    n_asked : cells observed since the calibration cells were held out, each of which has to be made up for.

    Examples
    --------
    >>> import surefill as sf
    >>> sim = sf.datasets.make_low_rank((60, 50), rank=2, n_draws=2000, noise=0.1, random_state=0)
    >>> completer = sf.PartialCompleter(tolerance=1e-4, confidence="posterior").fit(sim.observations)
    >>> shortfall = completer.result_.selection.shortfall
    >>> shortfall.n_observed, shortfall.reachable[0].tolerance > shortfall.tolerance
    (1460, True)
    """

    limited_by: Limit
    tolerance: float
    delta: float
    floor: float
    n_calibration: int
    n_supported: int
    best_error: float | None
    reachable: tuple[ReachableTolerance, ...]
    needed_observations: int | None
    needed_range: tuple[int, int | None] | None
    n_observed: int
    loss: Loss
    sensitivity: float = 1.0
    n_asked: int = 0

    @property
    def sentence(self) -> str:
        """Why nothing is kept and what would help."""
        return f"{self._why}{self._asked_since}"

    @property
    def _why(self) -> str:
        n, promise = self.n_calibration, f"promise {bound(self.tolerance)} with probability {probability(self.delta)}"
        if self.n_supported == 0 or self.best_error is None:
            none = f"none of the {n:,} calibration cells is" if n > 1 else "the only calibration cell is not"
            return f"{none} supported by the others; observe more."
        if self.limited_by is Limit.SUPPORT:
            return (
                f"only {self.n_supported:,} of the {n:,} calibration cells have the confidence of {self.floor:.3g} "
                f"that support asks for, too few to {promise}; observe more, or take a confidence that asks for less, "
                f"such as CoverageGame(false_support=0.1). {self._advice}"
            )
        if self.limited_by is Limit.SENSITIVITY:
            return (
                f"the best set of calibration cells has {self.loss.mean_name} {self.best_error:.4g}, below the "
                f"tolerance {bound(self.tolerance)}, but not by enough to survive odds of being observed that are off "
                f"by a factor of {self.sensitivity:g}, with any number of cells like these. {self._advice}"
            )
        if self.needed_observations is None and self.best_error < self.tolerance:
            return (
                f"{calibration_cells(n)} too few to {promise}; as far as they tell, no number of observed cells that "
                f"the table has room for would do. {self._advice}"
            )
        if self.needed_observations is None:
            return (
                f"the best set of calibration cells has {self.loss.mean_name} {self.best_error:.4g}, not "
                f"below the tolerance {bound(self.tolerance)}: the table is too noisy for it with any number of cells "
                f"like these. {self._advice}"
            )
        return (
            f"{calibration_cells(n)} too few to {promise}; about {self.needed_observations:,} observed cells "
            f"would do{self._range}, where there are {self.n_observed:,}. {self._advice}"
        )

    @property
    def _asked_since(self) -> str:
        """That cells observed since the first fit make a promise harder."""
        if not self.n_asked:
            return ""
        return (
            f" The {self.n_asked:,} cells observed since the first fit stand for no others and have to be made up for; "
            "fit() on all observations takes them for cells like the others."
        )

    @property
    def _range(self) -> str:
        if self.needed_range is None:
            return ""
        low, high = self.needed_range
        return f" (from {low:,}{' on' if high is None else f' to {high:,}'})"

    @property
    def _advice(self) -> str:
        if not self.reachable:
            cells = f"{self.n_calibration:,} calibration cell{'' if self.n_calibration == 1 else 's'}"
            return f"With {cells} nothing can be promised at any tolerance that an error could exceed."
        first, *others = self.reachable
        kept = f"{first.tolerance:.3g} (keeps {first.share:.0%} of the calibration cells)"
        kept += "".join(f", {each.tolerance:.3g} ({each.share:.0%})" for each in others)
        return (
            f"Tolerances that could be promised with what is there: about {kept}; they were found on the calibration "
            "cells, so check one with another seed or on new data before relying on it."
        )


def find_shortfall(plan: SelectionPlan, calibration: Calibration) -> Shortfall:
    """What was missing for a plan that found nothing to keep."""
    tested = TestedSets.of(plan, calibration)
    n, supported = len(calibration), len(tested.loss)
    best, needed, within = None, None, None
    if tested.sizes.max(initial=0) == 0:
        limit, supported = Limit.SUPPORT, 0
    else:
        best = float(tested.mean_losses(plan.sets.first_of_note).min())
        survivable = _best_robust_gain(plan, tested) > 0
        if survivable:  # else more cells like these have the same errors
            needed, within = _needed_observations(plan, calibration)
        limit = Limit.CALIBRATION if survivable else Limit.TOLERANCE
        limit = Limit.SENSITIVITY if best < plan.tolerance and not survivable else limit
        limit = Limit.SUPPORT if supported < n / 10 else limit
    reachable = () if supported == 0 else _reachable(plan, calibration)
    return Shortfall(
        limit,
        plan.tolerance,
        plan.delta,
        plan.floor,
        n,
        supported,
        best,
        reachable,
        needed,
        within,
        plan.n_observed,
        plan.loss,
        plan.sensitivity,
        plan.n_asked,
    )


def _best_robust_gain(plan: SelectionPlan, tested: TestedSets) -> float:
    """The largest weighted mean gain of a set, gains and losses counted as the sensitivity asks."""
    sizes = tested.sizes[np.minimum(plan.sets.first_of_note, np.argmax(tested.sizes)) :]
    sizes = sizes[sizes > 0]
    gains = tested.weight * robust_gains(plan.tolerance - tested.loss, plan.sensitivity)
    return float((np.cumsum(gains)[sizes - 1] / np.cumsum(tested.weight)[sizes - 1]).max())


def _reachable(plan: SelectionPlan, calibration: Calibration) -> tuple[ReachableTolerance, ...]:
    """The least tolerances, of those tried, at which shares of the calibration cells would be kept.

    They are tried from below, a tenth apart, and then closer: what is kept need not rise with the tolerance, since each
    has bets of its own. They have three digits, as they are said.
    """
    found: dict[float, float] = {}
    low = plan.tolerance
    for high in _tolerances_above(plan):
        share = next((share for share in SHARES if share >= max(found.values(), default=0.0)), None)
        if share is None:
            break
        if _kept_at(plan, calibration, high) > share:
            closer = _closer(plan, calibration, low, high, share)
            found[closer] = _kept_at(plan, calibration, closer)
        low = high
    return tuple(ReachableTolerance(tolerance, share) for tolerance, share in sorted(found.items()))


def _tolerances_above(plan: SelectionPlan) -> list[float]:
    """Tolerances a tenth apart, or farther where that would be too many, below the largest loss."""
    ratio = plan.largest_loss / plan.tolerance / CLOSE
    if ratio <= 1:
        return []
    steps = min(int(np.ceil(np.log(ratio) / np.log(APART))), MOST_TRIED)
    return [float(plan.tolerance * ratio ** (k / steps)) for k in range(1, steps + 1)]


def _closer(plan: SelectionPlan, calibration: Calibration, low: float, high: float, share: float) -> float:
    """By bisection to within 2%, a tolerance of three digits that keeps more than a share, as ``high`` does."""
    while high > low * CLOSE:
        middle = float(np.sqrt(low * high))
        low, high = (low, middle) if _kept_at(plan, calibration, middle) > share else (middle, high)
    said = rounded_up(high, digits=3)
    return said if _kept_at(plan, calibration, said) > share else high


def _kept_at(plan: SelectionPlan, calibration: Calibration, tolerance: float) -> float:
    """Weighted share of the calibration cells that would be kept at another tolerance."""
    return _kept_share(plan.at_tolerance(tolerance), calibration)


def _kept_share(plan: SelectionPlan, calibration: Calibration) -> float:
    """Weighted share of the calibration cells that a plan keeps."""
    tested = TestedSets.of(plan, calibration)
    rejected = tested.rejected(plan, plan.sensitivity)
    if rejected.size == 0:
        return 0.0
    return float(tested.weight[: tested.sizes[rejected[-1]]].sum() / calibration.weight.sum())


def _needed_observations(
    plan: SelectionPlan, calibration: Calibration
) -> tuple[int | None, tuple[int, int | None] | None]:
    """About how many observed cells like these would do, and that with capitals one standard error more and less."""
    about, fewest, most = (_least_factor(plan, calibration, errors) for errors in (0.0, 1.0, -1.0))
    if about is None:
        return None, None
    cells = [None if factor is None else round(plan.n_observed * factor) for factor in (about, fewest, most)]
    return cells[0], (cells[1] or plan.n_observed, cells[2])


def _least_factor(plan: SelectionPlan, calibration: Calibration, errors: float) -> float | None:
    """The least factor by which there would have to be more cells; None where no number does that the table has.

    Tried one after the other: with too many, hardly a cell would be left to promise about.
    """
    missing = plan.population.n_missing
    most = MOST_TIMES if missing is None else min(MOST_TIMES, 1 + missing / plan.n_observed)
    factors = STEP ** np.arange(1, int(np.log(most) / np.log(STEP)) + 1)
    return next((float(factor) for factor in factors if _enough(plan, calibration, factor, errors)), None)


def _enough(plan: SelectionPlan, calibration: Calibration, factor: float, errors: float) -> bool:
    """Whether ``factor`` times as many cells like these would let something be kept.

    The chance of being a calibration cell is then that much larger, a weight that much smaller, and the logarithm of
    each capital, made on weights that much smaller, that many times as large. ``errors`` adds so many of its
    standard errors.
    """
    cells = plan.population
    if plan.population.n_missing is None:
        grown, weight = replace(plan, population=replace(cells, count=cells.count * factor)), calibration.weight
    else:
        grown = replace(plan, population=replace(cells, weight=cells.weight / factor))
        weight = calibration.weight / factor
    tested = TestedSets.of(grown, replace(calibration, weight=weight))
    if len(tested.loss) == 0 or tested.only_by_luck(grown, factor, errors):
        return False
    won = tested.log_capitals(grown, grown.sensitivity)
    squares = np.append(0.0, np.cumsum((tested.weight * (grown.tolerance - tested.loss)) ** 2))
    spread = np.multiply.outer(np.sqrt(squares[tested.sizes]), grown.sets.bets)
    return rejected_sets(grown, factor * (won + errors * spread)).size > 0
