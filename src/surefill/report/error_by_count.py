"""How wrong predictions are by how often a row, or a column, was seen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from surefill.arrays import Array, Indices
from surefill.guarantee import Calibration, Selection

GROUPS = 5
"""Groups by count: fifths of the cells that the calibration cells stand for."""


@dataclass(frozen=True)
class CountGroup:
    """Calibration cells whose row (column) has from ``low`` to ``high`` observed cells.

    Attributes
    ----------
    n_cells : how many calibration cells these are.
    share : of all that the calibration cells stand for.
    error : their mean loss.
    kept_shares, kept_errors : by tolerance, the share of them that is kept, and its mean loss or None.

    Shares and means are weighted as the promise is.
    """

    low: int
    high: int
    n_cells: int
    share: float
    error: float
    kept_shares: tuple[float, ...]
    kept_errors: tuple[float | None, ...]


def errors_by_count(
    calibration: Calibration, counts: Indices, selections: Sequence[Selection]
) -> tuple[CountGroup, ...]:
    """Groups of calibration cells in rising order of ``counts``, the observed cells of the row or column of each.

    Groups have equal weight as nearly as whole counts allow.
    """
    kept = [
        each.keeps(calibration.risk, calibration.confidence, calibration.exposure(each.tolerance))
        for each in selections
    ]
    group = _groups(counts, calibration.weight)
    return tuple(_group(calibration, counts, group == k, kept) for k in np.unique(group))


def _groups(counts: Indices, weight: Array) -> Indices:
    """Which fifth of the weight the middle of each count falls in."""
    present, place = np.unique(counts, return_inverse=True)
    by_count = np.bincount(place, weight, len(present))
    middle = (np.cumsum(by_count) - by_count / 2) / by_count.sum()
    return np.asarray(np.minimum((GROUPS * middle).astype(np.int64), GROUPS - 1)[place])


def _group(
    calibration: Calibration, counts: Indices, which: NDArray[np.bool_], kept: Sequence[NDArray[np.bool_]]
) -> CountGroup:
    weight = calibration.weight
    both = [which & each for each in kept]
    return CountGroup(
        low=int(counts[which].min()),
        high=int(counts[which].max()),
        n_cells=int(which.sum()),
        share=float(weight[which].sum() / weight.sum()),
        error=calibration.mean_loss(which),
        kept_shares=tuple(float(weight[each].sum() / weight[which].sum()) for each in both),
        kept_errors=tuple(calibration.mean_loss(each) if each.any() else None for each in both),
    )
