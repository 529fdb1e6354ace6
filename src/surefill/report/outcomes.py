"""What each of some tolerances would keep, and the risk-coverage curve of the calibration cells at each."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from surefill.arrays import Array
from surefill.estimators import PartialCompletion
from surefill.guarantee import Calibration, Selection, SelectionPlan, select
from surefill.guarantee.plan import within
from surefill.guarantee.selection import REFUSALS
from surefill.guarantee.tested_sets import TestedSets
from surefill.metrics import RiskCoverageCurve
from surefill.report.asked_cells import AskedCells

COARSE, FINE = 24, 24
"""Tolerances tried to find the range in which the kept set changes, and tolerances shown within it: the page holds a
map for each."""

LEAST_TOLERANCE = 1e-4
"""The least tolerance tried, as a share of the largest squared error there can be."""

TAIL_POINTS = 40
"""Points of the curve beyond what can be kept, which nobody chooses from."""


@dataclass(frozen=True, eq=False)
class ToleranceOutcome:
    """The set kept at a tolerance.

    Attributes
    ----------
    kept_share : the share of all cells that are kept.
    missing_shares : of the missing cells, the share refused for each of ``REFUSALS``; the first is the share filled.
    curve : mean loss of the calibration cells in each set that could be kept.
    tail : the same as those follow that cannot be kept, whatever their risk.
    """

    selection: Selection
    kept_share: float
    missing_shares: Array
    curve: RiskCoverageCurve
    tail: RiskCoverageCurve

    @property
    def filled_share(self) -> float:
        """Share of the missing cells that is filled."""
        return float(self.missing_shares[0])


def risk_coverage(plan: SelectionPlan, calibration: Calibration) -> tuple[RiskCoverageCurve, RiskCoverageCurve]:
    """The risk-coverage curve of the calibration cells in two parts: what a plan could keep, and what it never does.

    The first has one point for each threshold of the plan that keeps a cell. The second goes on from its end with the
    cells that have too little support or are too rarely observed, those of least risk first, to the mean of all.
    """
    exposed = calibration.exposure(plan.tolerance)
    possible = within(0.0, calibration.confidence, 0.0, plan.floor, exposed, plan.sets.most_exposure)
    order = np.lexsort((calibration.risk, ~possible))
    weight = np.cumsum(calibration.weight[order])
    loss = np.cumsum((calibration.weight * calibration.loss)[order])
    sizes = np.unique(TestedSets.of(plan, calibration).sizes)
    sizes = sizes[sizes > 0]
    last, n = int(sizes.max(initial=1)), len(calibration)
    beyond = np.unique(np.linspace(last, n, TAIL_POINTS).round().astype(int)) if last < n else np.empty(0, dtype=int)
    return tuple(  # type: ignore[return-value]
        RiskCoverageCurve(weight[ends - 1] / weight[-1], loss[ends - 1] / weight[ends - 1]) for ends in (sizes, beyond)
    )


def outcomes_by_tolerance(
    result: PartialCompletion, drawn: AskedCells, missing: NDArray[np.bool_]
) -> tuple[ToleranceOutcome, ...]:
    """What each of some 25 tolerances in rising order would keep, the one asked for among them.

    ``drawn`` are cells of the whole matrix, ``missing`` says which of them were not observed. The tolerances run from
    where nothing can be promised to where more of it keeps no more.
    """
    plans = [result.plan.at_tolerance(tolerance) for tolerance in _tolerances(result)]
    chosen = [(plan, select(plan, result.calibration, advise=False)) for plan in plans]
    chosen = sorted([*chosen, (result.plan, result.selection)], key=lambda each: each[1].tolerance)
    return tuple(_outcome(result, plan, selection, drawn, missing) for plan, selection in chosen)


def _outcome(
    result: PartialCompletion,
    plan: SelectionPlan,
    selection: Selection,
    drawn: AskedCells,
    missing: NDArray[np.bool_],
) -> ToleranceOutcome:
    refusals = drawn.refusals(selection)
    shares = np.bincount(refusals[missing], minlength=len(REFUSALS)) / max(int(missing.sum()), 1)
    if selection.filled_share is not None:  # the promise's own count; reasons share what is left of it
        rest = shares[1:].sum()
        shares[1:] *= (1 - selection.filled_share) / rest if rest > 0 else 0.0
        shares[0] = selection.filled_share
    return ToleranceOutcome(selection, float(np.mean(refusals == 0)), shares, *risk_coverage(plan, result.calibration))


def _tolerances(result: PartialCompletion) -> list[float]:
    """Evenly spaced in ratio over the range where the kept set changes, with three digits; not the one asked for."""
    asked, largest = result.selection.tolerance, result.plan.largest_loss
    if largest == 0:  # nothing is supported, so that no tolerance keeps anything
        return []
    errors = risk_coverage(result.plan, result.calibration)[0].risk
    least = max(LEAST_TOLERANCE * largest, float(errors.min(initial=largest)) / 2)
    coarse = np.geomspace(min(least, asked / 2, largest / 2), largest, COARSE)
    shares = np.array([_kept_share(result, float(tolerance)) for tolerance in coarse])
    first = int(np.argmax(shares > 0))
    last = int(np.argmax(shares >= shares.max())) if shares.max() > 0 else COARSE - 1
    low, high = coarse[max(0, first - 1)], coarse[min(last + 1, COARSE - 1)]
    # Three digits are what the page shows; the tolerance asked for is added as it is.
    fine = np.geomspace(min(low, asked / 1.2), max(high, asked * 1.2), FINE)
    return sorted({float(f"{tolerance:.3g}") for tolerance in fine} - {float(f"{asked:.3g}"), asked})


def _kept_share(result: PartialCompletion, tolerance: float) -> float:
    """Share of the calibration cells that a tolerance keeps."""
    return select(result.plan.at_tolerance(tolerance), result.calibration, advise=False).held_out_share
