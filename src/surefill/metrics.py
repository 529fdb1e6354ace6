"""How well an order of entries by trust, a predicted risk or an interval did on entries whose values are known.

``loss`` is what was lost at each entry, such as a squared error; ``score`` is low where an entry is trusted, such as a
predicted risk, a variance or minus a confidence. Entries of equal score cannot be told apart: they are kept together,
and areas are those expected when they are put in random order.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefill.arrays import Array
from surefill.errors import InputError, invalid_parameter


@dataclass(frozen=True, eq=False)
class RiskCoverageCurve:
    """``risk[k]`` is the mean loss of the share ``coverage[k]`` of entries that are trusted most.

    Examples
    --------
    >>> import surefill as sf
    >>> curve = sf.metrics.risk_coverage_curve([0.0, 4.0], [0.1, 0.9])
    >>> curve.coverage, curve.risk
    (array([0.5, 1. ]), array([0., 2.]))
    """

    coverage: Array
    risk: Array


def risk_coverage_curve(loss: ArrayLike, score: ArrayLike, weight: ArrayLike | None = None) -> RiskCoverageCurve:
    """The mean loss of the most trusted entries, for every size at which no tie is broken.

    With weights, shares and means are weighted by them.

    >>> curve = risk_coverage_curve([0.0, 1.0, 4.0, 3.0], [0.1, 0.2, 0.3, 0.3])
    >>> curve.coverage.tolist(), curve.risk.tolist()
    ([0.25, 0.5, 1.0], [0.0, 0.5, 2.0])
    """
    losses, scores = _checked(loss, score)
    order = np.argsort(scores, kind="stable")
    ranked = scores[order]
    sizes = np.flatnonzero(np.r_[ranked[1:] > ranked[:-1], True]) + 1
    weights = np.ones(len(losses)) if weight is None else np.asarray(weight, dtype=np.float64)
    _require_entries(losses, weights)
    total = np.cumsum(weights[order])[sizes - 1]
    return RiskCoverageCurve(total / total[-1], np.cumsum((weights * losses)[order])[sizes - 1] / total)


def aurc(loss: ArrayLike, score: ArrayLike) -> float:
    """Area under the risk-coverage curve: the mean over k = 1..n of the mean loss of the k most trusted entries.

    >>> aurc([0.0, 2.0], [0.1, 0.9])
    0.5
    """
    losses, scores = _checked(loss, score)
    _, group = np.unique(scores, return_inverse=True)
    means = np.bincount(group, losses) / np.bincount(group)
    ranked = means[np.sort(group)]
    return float(np.mean(np.cumsum(ranked) / np.arange(1, len(ranked) + 1)))


def normalized_aurc(loss: ArrayLike, score: ArrayLike) -> float:
    """(AURC - oracle) / (random - oracle): 0 for the order by the losses themselves, 1 for a random order.

    The oracle knows how every entry turned out, its noise included, so that 0 is out of reach for any prediction. Above
    1 the order is worse than none. 0 where all losses are equal.

    >>> normalized_aurc([0.0, 2.0], [0.1, 0.9]), normalized_aurc([0.0, 2.0], [0.5, 0.5])
    (0.0, 1.0)
    """
    losses, scores = _checked(loss, score)
    best, chance = aurc(losses, losses), float(losses.mean())
    return (aurc(losses, scores) - best) / (chance - best) if chance > best else 0.0


def coverage_at_risk(loss: ArrayLike, score: ArrayLike, risk: float) -> float:
    """The largest share of entries, most trusted first, whose mean loss is at most ``risk``; 0 where there is none.

    >>> coverage_at_risk([0.0, 1.0, 4.0, 3.0], [0.1, 0.2, 0.3, 0.3], risk=0.6)
    0.5
    """
    curve = risk_coverage_curve(loss, score)
    return float(curve.coverage[curve.risk <= risk].max(initial=0.0))


@dataclass(frozen=True, eq=False)
class CalibrationTable:
    """For each of several groups of entries of similar predicted risk: its mean, the mean loss seen, the size.

    Examples
    --------
    >>> import surefill as sf
    >>> table = sf.metrics.calibration_by_decile([0.1, 0.3, 1.0, 3.0], [0.2, 0.2, 2.0, 2.0], 2)
    >>> table.predicted, table.seen, table.size
    (array([0.2, 2. ]), array([0.2, 2. ]), array([2, 2]))
    """

    predicted: Array
    seen: Array
    size: NDArray[np.int64]


def calibration_by_decile(loss: ArrayLike, risk: ArrayLike, n_groups: int = 10) -> CalibrationTable:
    """Entries in order of predicted risk, cut into ``n_groups`` groups of equal size as nearly as may be.

    >>> table = calibration_by_decile([1.0, 3.0, 2.0, 4.0], [1.0, 2.0, 3.0, 3.0], n_groups=2)
    >>> table.predicted.tolist(), table.seen.tolist()
    ([1.5, 3.0], [2.0, 3.0])
    """
    losses, risks = _checked(loss, risk)
    if not 1 <= n_groups <= len(losses):
        raise invalid_parameter("calibration_by_decile", "n_groups", f"from 1 to {len(losses)}, the entries", n_groups)
    parts = np.array_split(np.argsort(risks, kind="stable"), n_groups)
    return CalibrationTable(
        np.array([risks[part].mean() for part in parts]),
        np.array([losses[part].mean() for part in parts]),
        np.array([len(part) for part in parts]),
    )


def interval_coverage(values: ArrayLike, low: ArrayLike, high: ArrayLike) -> float:
    """Share of values inside their interval, ends included.

    >>> interval_coverage([1.0, 2.0, 3.0, 4.0], [0.0, 2.0, 4.0, 0.0], [1.0, 3.0, 5.0, 5.0])
    0.75
    """
    y, a, b = (np.asarray(given, dtype=np.float64) for given in (values, low, high))
    _require_entries(y, a, b)
    return float(np.mean((a <= y) & (y <= b)))


def interval_width(low: ArrayLike, high: ArrayLike) -> float:
    """Mean width of intervals.

    >>> interval_width([0.0, 1.0], [1.0, 4.0])
    2.0
    """
    a, b = np.asarray(low, dtype=np.float64), np.asarray(high, dtype=np.float64)
    _require_entries(a, b)
    return float(np.mean(b - a))


def _checked(loss: ArrayLike, score: ArrayLike) -> tuple[Array, Array]:
    losses, scores = np.asarray(loss, dtype=np.float64), np.asarray(score, dtype=np.float64)
    _require_entries(losses, scores)
    if np.isnan(losses).any() or np.isnan(scores).any():
        raise InputError("losses and scores must be numbers; some are NaN.")
    return losses, scores


def _require_entries(*arrays: Array) -> None:
    if arrays[0].ndim != 1 or len(arrays[0]) == 0 or any(array.shape != arrays[0].shape for array in arrays):
        shapes = " and ".join(str(array.shape) for array in arrays)
        raise InputError(f"metrics need lists of one length with at least one entry; got shapes {shapes}.")
