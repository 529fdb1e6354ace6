"""Why nothing can be kept, and what would help: another tolerance, more observations, or neither."""

from __future__ import annotations

import enum
from dataclasses import dataclass, replace

import numpy as np

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

CLOSE = 1.02
"""Tolerances are advised to within 2%."""


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

    @property
    def sentence(self) -> str:
        """Why nothing is kept and what would help."""
        n, promise = self.n_calibration, f"promise {self.tolerance:.4g} with probability {1 - self.delta:g}"
        if self.n_supported == 0 or self.best_error is None:
            none = f"none of the {n:,} calibration cells is" if n > 1 else "the only calibration cell is not"
            return f"{none} supported by the others; observe more."
        if self.limited_by is Limit.SUPPORT:
            return (
                f"only {self.n_supported:,} of the {n:,} calibration cells have the confidence of {self.floor:.3g} "
                f"that support asks for, too few to {promise}; observe more, or take a confidence that asks for less, "
                f"such as CoverageGame(false_support=0.1). {self._advice}"
            )
        if self.needed_observations is None and self.best_error < self.tolerance:
            return (
                f"{n:,} calibration cells are too few to {promise}; they do not tell how many would do. {self._advice}"
            )
        if self.needed_observations is None:
            return (
                f"the best set of calibration cells has {self.loss.mean_name} {self.best_error:.4g}, not "
                f"below the tolerance {self.tolerance:.4g}: the table is too noisy for it with any number of cells "
                f"like these. {self._advice}"
            )
        return (
            f"{n:,} calibration cells are too few to {promise}; about {self.needed_observations:,} observed cells "
            f"would do{self._range}, where there are {self.n_observed:,}. {self._advice}"
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
            return f"With {self.n_calibration:,} calibration cells nothing can be promised at any tolerance."
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
        if best < plan.tolerance:  # else more cells like these have the same errors
            needed, within = _needed_observations(plan, calibration)
        limit = Limit.TOLERANCE if needed is None and best >= plan.tolerance else Limit.CALIBRATION
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
    )


def _reachable(plan: SelectionPlan, calibration: Calibration) -> tuple[ReachableTolerance, ...]:
    """By bisection, the least tolerances at which shares of the calibration cells would be kept."""
    found: dict[float, float] = {}
    low = plan.tolerance
    for share in SHARES:
        if max(found.values(), default=0.0) > share:
            continue
        high = plan.largest_loss / CLOSE
        if _kept_share(plan.at_tolerance(high), calibration) <= share:
            break
        while high > low * CLOSE:
            middle = float(np.sqrt(low * high))
            low, high = (low, middle) if _kept_share(plan.at_tolerance(middle), calibration) > share else (middle, high)
        found[high] = _kept_share(plan.at_tolerance(high), calibration)
    return tuple(ReachableTolerance(tolerance, share) for tolerance, share in found.items())


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
    """The least factor by which there would have to be more cells; None where a thousand times as many do not do.

    Tried one after the other: with too many, hardly a cell would be left to promise about.
    """
    factors = STEP ** np.arange(1, int(np.log(MOST_TIMES) / np.log(STEP)) + 1)
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
