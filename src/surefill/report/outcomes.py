"""How far rows and columns can be trusted, what each of many tolerances would keep, and the risk-coverage curve."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from surefill.arrays import Array, Indices
from surefill.data import Observations
from surefill.estimators import Answer, PartialCompletion
from surefill.guarantee import Selection, select
from surefill.guarantee.plan import exposure, within
from surefill.metrics import RiskCoverageCurve

MOST_OTHERS, FEWEST_OTHERS = 200, 8
"""Cells of each row (column) that its trust is estimated from: 200 give a share with a standard error of at most 3.5%;
of very many rows 8 are looked at, a rough share."""

MOST_CELLS = 4_000_000
"""Cells asked about for the trust in all rows, which bounds the time it takes; beyond it fewer are asked per row."""

CELLS_AT_ONCE = 1 << 18
"""Cells asked about in one call: a few arrays of 2 MB."""

COARSE, FINE = 24, 64
"""Tolerances tried to find the range in which the kept set changes, and tolerances shown within it."""

LEAST_TOLERANCE = 1e-4
"""The least tolerance tried, as a share of the largest squared error there can be."""


@dataclass(frozen=True, eq=False)
class Trust:
    """For each row (or column): its mean confidence, the share of it that is kept, how many cells were observed.

    Means are over ``n_looked_at`` columns (rows): all where there are at most 200, else drawn once for all rows.
    """

    confidence: Array
    kept: Array
    observed: NDArray[np.int64]
    n_looked_at: int

    def ranked(self) -> NDArray[np.int64]:
        """Most trusted first: by the share kept, then by confidence."""
        return np.lexsort((-self.confidence, -self.kept))


def trust_by_row(result: PartialCompletion, observations: Observations) -> Trust:
    """The trust in each row."""
    return _trust(result, observations, axis=0)


def trust_by_column(result: PartialCompletion, observations: Observations) -> Trust:
    """The trust in each column."""
    return _trust(result, observations, axis=1)


def _trust(result: PartialCompletion, observations: Observations, axis: int) -> Trust:
    size, n_others = observations.shape[axis], observations.shape[1 - axis]
    others = _drawn(n_others, min(n_others, max(FEWEST_OTHERS, min(MOST_OTHERS, MOST_CELLS // size))))
    confidence, kept = np.empty(size), np.empty(size)
    step = max(1, CELLS_AT_ONCE // len(others))
    for start in range(0, size, step):
        lines = np.arange(start, min(size, start + step))
        cells = np.repeat(lines, len(others)), np.tile(others, len(lines))
        rows, cols = cells if axis == 0 else cells[::-1]
        answer = result.answer(rows, cols)
        means = (each.reshape(len(lines), -1).mean(axis=1) for each in (answer.confidence, answer.keep))
        confidence[lines], kept[lines] = means
    observed = np.bincount(observations.rows if axis == 0 else observations.cols, minlength=size)
    return Trust(confidence, kept, observed, len(others))


def _drawn(size: int, wanted: int) -> NDArray[np.int64]:
    return np.sort(np.random.default_rng(0).choice(size, wanted, replace=False))


@dataclass(frozen=True)
class ToleranceOutcome:
    """The set kept at a tolerance, and the share of the whole matrix that it holds."""

    selection: Selection
    kept_share: float


def risk_coverage(result: PartialCompletion) -> RiskCoverageCurve:
    """The risk-coverage curve of the calibration entries, at the sets that could be chosen.

    One point for each threshold of the plan that keeps an entry.
    """
    plan, seen = result.plan, result.calibration
    exposed, sets = seen.exposure(plan.tolerance), plan.sets
    kept = [
        within(seen.risk, seen.confidence, threshold, plan.floor, exposed, sets.most_exposure)
        for threshold in sets.thresholds
    ]
    kept = [each for each in kept if each.any()]
    share = [float(np.average(each, weights=seen.weight)) for each in kept]
    return RiskCoverageCurve(np.array(share), np.array([seen.mean_loss(each) for each in kept]))


def outcomes_by_tolerance(
    result: PartialCompletion, drawn: Answer, rows: Indices, cols: Indices
) -> tuple[ToleranceOutcome, ...]:
    """What each of some 60 tolerances in rising order would keep, the one asked for among them.

    ``drawn`` is what is said of the cells (rows[t], cols[t]), drawn from the whole matrix. The tolerances run from
    where nothing can be promised to where more of it keeps no more.
    """
    chosen = [_selected(result, tolerance) for tolerance in _tolerances(result)]
    chosen = sorted([*chosen, result.selection], key=lambda selection: selection.tolerance)
    weight, largest = result.weights.at(rows, cols), result.loss.largest_at(drawn.value)
    return tuple(
        ToleranceOutcome(
            each, float(each.keeps(drawn.risk, drawn.confidence, exposure(weight, largest, each.tolerance)).mean())
        )
        for each in chosen
    )


def _selected(result: PartialCompletion, tolerance: float) -> Selection:
    return select(result.plan.at_tolerance(tolerance), result.calibration, advise=False)


def _tolerances(result: PartialCompletion) -> list[float]:
    """Evenly spaced in ratio over the range where the kept set changes, with three digits; not the one asked for."""
    asked, largest = result.selection.tolerance, result.plan.largest_loss
    errors = risk_coverage(result).risk
    least = max(LEAST_TOLERANCE * largest, float(errors.min(initial=largest)) / 2)
    coarse = np.geomspace(min(least, asked / 2, largest / 2), largest, COARSE)
    shares = np.array([_selected(result, float(tolerance)).held_out_share for tolerance in coarse])
    first = int(np.argmax(shares > 0))
    last = int(np.argmax(shares >= shares.max())) if shares.max() > 0 else COARSE - 1
    low, high = coarse[max(0, first - 1)], coarse[min(last + 1, COARSE - 1)]
    # Three digits are what the page shows; the tolerance asked for is added as it is.
    fine = np.geomspace(min(low, asked / 1.2), max(high, asked * 1.2), FINE)
    return sorted({float(f"{tolerance:.3g}") for tolerance in fine} - {float(f"{asked:.3g}"), asked})
