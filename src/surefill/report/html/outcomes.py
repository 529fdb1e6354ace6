"""What each of many tolerances would keep, and the curve that the kept sets run along."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from surefill.estimators import PartialCompletion
from surefill.risk import Selection
from surefill.risk.plan import within

Array = NDArray[np.float64]

COARSE, FINE = 24, 64
FLAT = 1e-4
"""The least tolerance tried, as a share of the largest squared error there can be."""


@dataclass(frozen=True)
class Outcome:
    """The set kept at a tolerance, and the share of the whole matrix that it holds."""

    selection: Selection
    kept_share: float


@dataclass(frozen=True, eq=False)
class Curve:
    """``error[k]``: mean squared error of the share ``share[k]`` of the calibration entries with the least risk."""

    share: Array
    error: Array


def risk_coverage(result: PartialCompletion) -> Curve:
    """One point for each threshold of the plan that keeps a calibration entry: the sets that could be chosen."""
    plan, seen = result.plan, result.calibration
    kept = [within(seen.risk, seen.confidence, threshold, plan.floor) for threshold in plan.thresholds]
    kept = [each for each in kept if each.any()]
    share = [float(np.average(each, weights=seen.weight)) for each in kept]
    return Curve(np.array(share), np.array([seen.mean_loss(each) for each in kept]))


def outcomes(result: PartialCompletion, risk: Array, confidence: Array) -> tuple[Outcome, ...]:
    """What each of some 60 tolerances in rising order would keep, the one asked for among them.

    ``risk`` and ``confidence`` are those of cells drawn from the whole matrix. The tolerances run from where nothing
    can be promised to where more of it keeps no more.
    """
    chosen = [result.at_tolerance(tolerance).selection for tolerance in _tolerances(result)]
    chosen = sorted([*chosen, result.selection], key=lambda selection: selection.tolerance)
    return tuple(Outcome(each, float(each.keeps(risk, confidence).mean())) for each in chosen)


def _tolerances(result: PartialCompletion) -> list[float]:
    """Evenly spaced in ratio over the range where the kept set changes, with three digits; not the one asked for."""
    asked, largest = result.selection.tolerance, result.plan.largest_loss
    errors = risk_coverage(result).error
    least = max(FLAT * largest, float(errors.min(initial=largest)) / 2)
    coarse = np.geomspace(min(least, asked / 2, largest / 2), largest, COARSE)
    shares = np.array([result.at_tolerance(float(tolerance)).selection.held_out_share for tolerance in coarse])
    first = int(np.argmax(shares > 0))
    last = int(np.argmax(shares >= shares.max())) if shares.max() > 0 else COARSE - 1
    low, high = coarse[max(0, first - 1)], coarse[min(last + 1, COARSE - 1)]
    fine = np.geomspace(min(low, asked / 1.2), max(high, asked * 1.2), FINE)
    return sorted({float(f"{tolerance:.3g}") for tolerance in fine} - {float(f"{asked:.3g}"), asked})
