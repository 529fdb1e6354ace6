"""Which entries are kept at a tolerance, and what is and is not promised about them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefill.arrays import Array
from surefill.guarantee.betting import LARGEST_BET, fallback_rejections, running_log_capital
from surefill.guarantee.plan import SelectionPlan, up_to_rounding, within
from surefill.registry import storable
from surefill.spaces.confidence_matrix import Confidence, some_cells

BY_TOLERANCE = "the tolerance"
BY_SUPPORT = "how much of the matrix the observations support"
BY_CALIBRATION = "the number of calibration entries"
ENOUGH = 1.1
MIXING = 1.1
"""log 3: what is lost at most by betting on three horses instead of the best."""


@storable
@dataclass(frozen=True)
class Selection:
    """The kept set {x : risk_x <= threshold, C_x >= floor} and how it did on the calibration entries.

    Attributes
    ----------
    threshold : the largest risk kept; minus infinity where nothing is kept.
    floor : the least confidence kept, whatever the risk.
    tolerance : the mean squared error asked for, in the user's squared units.
    held_out_error : mean squared error of the kept calibration entries; None where none are kept.
    held_out_share : share of the calibration entries that are kept.
    n_held_out : how many calibration entries there were.
    limited_by : what stopped the set from being larger.
    finding : all of this in words, but for the limit.

    Examples
    --------
    >>> import surefill as sf
    >>> sim = sf.datasets.make_low_rank((60, 50), rank=2, n_draws=2000, noise=0.1, random_state=0)
    >>> completer = sf.PartialCompleter(tolerance=0.05, confidence="posterior").fit(sim.observations)
    >>> selection = completer.result_.selection
    >>> selection.empty, selection.held_out_error <= selection.tolerance
    (False, True)
    """

    threshold: float
    floor: float
    tolerance: float
    held_out_error: float | None
    held_out_share: float
    n_held_out: int
    limited_by: str
    finding: str

    @property
    def empty(self) -> bool:
        """Whether nothing is kept."""
        return self.threshold == -np.inf

    @property
    def sentence(self) -> str:
        """What was found, and why not more is kept."""
        return self.finding if self.empty else f"{self.finding} What keeps it from being larger is {self.limited_by}."

    def keeps(self, risk: ArrayLike, confidence: ArrayLike) -> NDArray[np.bool_]:
        """Whether entries of the given risks and confidences are kept; those within rounding of the limits are."""
        return within(risk, confidence, self.threshold, self.floor)


@storable
@dataclass(frozen=True)
class Guarantee:
    """What is promised about the kept set, over which entries, and what is not.

    Examples
    --------
    >>> import surefill as sf
    >>> sim = sf.datasets.make_low_rank((60, 50), rank=2, n_draws=2000, noise=0.1, random_state=0)
    >>> completer = sf.PartialCompleter(tolerance=0.05, confidence="posterior").fit(sim.observations)
    >>> guarantee = completer.result_.guarantee
    >>> guarantee.promised, guarantee.delta
    (True, 0.05)
    """

    promised: bool
    delta: float
    sentence: str
    holds_over: str
    not_promised: str


@storable
@dataclass(frozen=True, eq=False)
class Calibration:
    """Cells that had no part in predictions, risks and confidences: what those say of them, and what was lost.

    ``loss`` is the squared error, averaged over a cell's draws; ``weight`` in (0, 1] aims at other entries than those
    seen. Every cell counts once, however often it was drawn: its draws share what is unknown about the cell.

    Examples
    --------
    >>> import numpy as np
    >>> calibration = Calibration(np.array([0.1, 0.9]), np.ones(2), np.array([0.2, 1.0]), np.ones(2))
    >>> calibration.mean_loss(np.array([True, True]))
    0.6
    """

    risk: Array
    confidence: Array
    loss: Array
    weight: Array

    def __len__(self) -> int:
        return len(self.loss)

    def mean_loss(self, which: NDArray[np.bool_]) -> float:
        """Weighted mean loss of some of the cells."""
        return float(np.average(self.loss[which], weights=self.weight[which]))


def select(plan: SelectionPlan, calibration: Calibration) -> Selection:
    """The largest set of the plan whose mean loss is shown to be at most the tolerance.

    For each threshold of the plan the hypothesis "the mean loss of the kept entries is at least the tolerance" is
    tested by the capital of :mod:`surefill.guarantee.betting`, in the plan's sequence and at its levels, which add up
    to delta. With probability at least 1 - delta no true hypothesis is rejected, and then the mean loss of the set that
    is chosen is below the tolerance. The plan must not depend on the calibration cells.

    Examples
    --------
    >>> import numpy as np
    >>> plan = SelectionPlan(
    ...     tolerance=0.5, delta=0.1, largest_loss=4.0, floor=0.2, n_calibration=200, n_observed=1000,
    ...     reference=np.linspace(0.1, 1.0, 800), reference_share=1.0,
    ... )
    >>> rng = np.random.default_rng(0)
    >>> risk = rng.uniform(0.1, 1.0, 200)
    >>> calibration = Calibration(risk, np.ones(200), np.minimum(risk * rng.chisquare(1, 200), 4.0), np.ones(200))
    >>> selection = select(plan, calibration)
    >>> selection.empty, selection.held_out_error <= 0.5
    (False, True)
    """
    ranked = _Ranked.of(plan, calibration)
    rejected = ranked.rejected(plan)
    if rejected.size == 0:
        return _nothing(plan, ranked, len(calibration))
    last = int(rejected[-1])
    threshold = float(plan.thresholds[last])
    kept = within(calibration.risk, calibration.confidence, threshold, plan.floor)
    error, share = calibration.mean_loss(kept), float(np.average(kept, weights=calibration.weight))
    finding = (
        f"{share:.0%} of {len(calibration)} calibration entries were kept, with mean squared error {error:.4g} where "
        f"{plan.tolerance:.4g} was asked."
    )
    limit = BY_SUPPORT if last == len(plan.thresholds) - 1 else BY_TOLERANCE
    return Selection(threshold, plan.floor, plan.tolerance, error, share, len(calibration), limit, finding)


@dataclass(frozen=True, eq=False)
class _Ranked:
    """The supported calibration entries in order of risk, and how many of them each threshold of a plan keeps."""

    loss: Array
    weight: Array
    sizes: NDArray[np.int64]

    @classmethod
    def of(cls, plan: SelectionPlan, calibration: Calibration) -> Self:
        supported = within(calibration.risk, calibration.confidence, np.inf, plan.floor)
        order = np.flatnonzero(supported)[np.argsort(calibration.risk[supported], kind="stable")]
        sizes = np.searchsorted(calibration.risk[order], up_to_rounding(plan.thresholds), side="right")
        return cls(calibration.loss[order], calibration.weight[order], sizes)

    def log_capital(self, plan: SelectionPlan) -> Array:
        """For each threshold of the plan, the log of the capital won on the entries it keeps."""
        return running_log_capital(self.weight * (plan.tolerance - self.loss), plan.bets)[self.sizes]

    def rejected(self, plan: SelectionPlan) -> NDArray[np.int64]:
        """The thresholds of the plan that are shown to keep the tolerance."""
        return np.flatnonzero(fallback_rejections(self.log_capital(plan), plan.levels))

    def mean_losses(self) -> Array:
        """Weighted mean loss at each threshold that keeps an entry."""
        sizes = self.sizes[self.sizes > 0]
        return np.asarray(np.cumsum(self.weight * self.loss)[sizes - 1] / np.cumsum(self.weight)[sizes - 1])


def _nothing(plan: SelectionPlan, ranked: _Ranked, n: int) -> Selection:
    """Why nothing can be promised, and what would help."""
    finding, limit = _why_nothing(plan, ranked, n)
    return Selection(-np.inf, plan.floor, plan.tolerance, None, 0.0, n, limit, f"Nothing is kept: {finding}")


def _why_nothing(plan: SelectionPlan, ranked: _Ranked, n: int) -> tuple[str, str]:
    if ranked.sizes.max(initial=0) == 0:
        return f"none of the {n} calibration entries is supported by the others; observe more.", BY_SUPPORT
    supported = len(ranked.loss)
    if supported < n / 2:
        return (
            f"only {supported} of the {n} calibration entries have the confidence of {plan.floor:.3g} that support "
            f"asks for, too few to promise {plan.tolerance:.4g} with probability {1 - plan.delta:g}; observe more, or "
            "take a confidence that asks for less and proves less, such as 'posterior'.",
            BY_SUPPORT,
        )
    reachable = _reachable_tolerance(plan, ranked)
    tolerance = (
        f"a tolerance of about {reachable:.3g} could be promised with what is there"
        if reachable is not None
        else f"with {n} calibration entries no tolerance below the square of the values' range can"
    )
    needed = _needed_entries(plan, ranked, n)
    if needed is None:
        return (
            f"the best set of calibration entries has mean squared error {ranked.mean_losses().min():.4g}, not enough "
            f"below the tolerance {plan.tolerance:.4g}; {tolerance}.",
            BY_TOLERANCE,
        )
    return (
        f"{n} calibration entries are too few to promise {plan.tolerance:.4g} with probability {1 - plan.delta:g}, "
        f"about {needed:,} would do ({n / plan.n_observed:.0%} of the observed cells are taken for that); {tolerance}.",
        BY_CALIBRATION,
    )


def _reachable_tolerance(plan: SelectionPlan, ranked: _Ranked) -> float | None:
    """By bisection, the least tolerance at which the same calibration entries would let something be kept."""
    low, high = plan.tolerance, plan.largest_loss
    if not ranked.rejected(plan.at_tolerance(high / ENOUGH)).size:
        return None
    while high > low * 1.01:
        middle = float(np.sqrt(low * high))
        low, high = (low, middle) if ranked.rejected(plan.at_tolerance(middle)).size else (middle, high)
    return high


def _needed_entries(plan: SelectionPlan, ranked: _Ranked, n: int) -> int | None:
    """About how many calibration entries like these would do; None where their losses are too large for any number.

    On k times as many entries like these the logarithm of the best bet's capital is k times as large; it has to reach
    that of one over the level at a threshold where testing starts.
    """
    bets = np.geomspace(1e-4, 1.0, 30) * LARGEST_BET / max(plan.largest_loss - plan.tolerance, plan.tolerance)
    steps = np.log1p(np.multiply.outer(bets, ranked.weight * (plan.tolerance - ranked.loss)))
    starts = np.flatnonzero((plan.levels > 0) & (ranked.sizes > 0))
    growth = np.cumsum(steps, axis=1)[:, ranked.sizes[starts] - 1].max(axis=0, initial=0.0)
    grows = growth > 0
    if not grows.any():
        return None
    factor = float(np.min((np.log(1 / plan.levels[starts][grows]) + MIXING) / growth[grows]))
    return max(n + 1, round(ENOUGH * factor * n))


def rounding_threshold(confidence: Confidence, n_sampled: int = 200_000, random_state: int = 0) -> float:
    """The lowest t with |{x : C_x >= t}| <= |C|: the set of most trusted entries, no larger than the coverage.

    The paper rounds C at random to a set whose size is within 1 of |C|; this is its deterministic counterpart.
    Exact where the matrix has at most ``n_sampled`` entries, estimated on a sample of them elsewhere.

    Examples
    --------
    >>> import numpy as np
    >>> from surefill.coverage import DenseConfidence
    >>> rounding_threshold(DenseConfidence(np.array([[0.9, 0.8], [0.3, 0.1]])))
    0.8
    """
    ranked = np.sort(confidence.at(*some_cells(confidence.shape, n_sampled, random_state)))[::-1]
    size = int(ranked.sum() + 1e-9)
    fits = np.flatnonzero(np.r_[ranked[:-1] > ranked[1:], True] & (np.arange(1, len(ranked) + 1) <= size))
    return float(ranked[fits[-1]]) if fits.size else np.inf
