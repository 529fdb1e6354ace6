"""Which entries are kept at a tolerance, and what is and is not promised about them."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefill.arrays import Array
from surefill.guarantee.betting import LARGEST_BET, STEPS, fallback_rejections, running_log_capital
from surefill.guarantee.plan import SelectionPlan, up_to_rounding, within
from surefill.losses import SQUARED, Loss
from surefill.registry import storable
from surefill.spaces.confidence_matrix import Confidence, some_cells

ENOUGH = 1.1
"""A tenth more than estimated is advised: the estimate of how many entries would do has about that error."""

AVERAGING = float(np.log(len(STEPS)))
"""Averaging several bets costs at most the log of their number in log capital, against the best of them."""


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
    CALIBRATION = "the number of calibration entries"


@storable
@dataclass(frozen=True)
class Shortfall:
    """Why nothing could be kept, in figures.

    Attributes
    ----------
    n_supported : calibration entries with the confidence that support asks for.
    best_error : least mean loss of any set that the plan considers; None where none holds an entry.
    reachable_tolerance : about the least tolerance that could be promised with what is there; None if none can.
    needed_calibration : about how many calibration entries would do; None where no number would.
    calibration_share : share of the observed cells that are set aside as calibration entries.

    Examples
    --------
    >>> import surefill as sf
    >>> sim = sf.datasets.make_low_rank((60, 50), rank=2, n_draws=2000, noise=0.1, random_state=0)
    >>> completer = sf.PartialCompleter(tolerance=1e-4, confidence="posterior").fit(sim.observations)
    >>> shortfall = completer.result_.selection.shortfall
    >>> shortfall.needed_calibration is None, shortfall.reachable_tolerance > shortfall.best_error
    (True, True)
    """

    n_supported: int
    best_error: float | None
    reachable_tolerance: float | None
    needed_calibration: int | None
    calibration_share: float


@storable
@dataclass(frozen=True)
class Selection:
    """The kept set {x : risk_x <= threshold, C_x >= floor} and how it did on the calibration entries.

    Attributes
    ----------
    threshold : the largest risk kept; minus infinity where nothing is kept.
    floor : the least confidence kept, whatever the risk.
    tolerance, delta : the mean loss asked for, by default a squared error, and the chance to fail it.
    held_out_error : mean loss of the kept calibration entries; None where none are kept.
    held_out_share : share of the calibration entries that are kept.
    n_held_out : how many calibration entries there were.
    limited_by : what stopped the set from being larger.
    shortfall : where nothing is kept, what there was and what would do; else None.
    loss : what errors are measured by, the squared error unless another was asked for.

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
    delta: float
    held_out_error: float | None
    held_out_share: float
    n_held_out: int
    limited_by: Limit
    shortfall: Shortfall | None = None
    loss: Loss = SQUARED

    @property
    def empty(self) -> bool:
        """Whether nothing is kept."""
        return self.threshold == -np.inf

    @property
    def reason(self) -> str:
        """Why not more is kept, or why nothing is and what would help."""
        if self.shortfall is not None:
            return describe_shortfall(self, self.shortfall)
        return f"What keeps it from being larger is {self.limited_by.value}."

    @property
    def sentence(self) -> str:
        """What was found on the calibration entries, and why not more is kept."""
        if self.empty:
            return f"Nothing is kept: {self.reason}"
        return (
            f"{self.held_out_share:.0%} of {self.n_held_out} calibration entries were kept, with {self.loss.mean_name} "
            f"{self.held_out_error:.4g} where {self.tolerance:.4g} was asked. {self.reason}"
        )

    def keeps(self, risk: ArrayLike, confidence: ArrayLike) -> NDArray[np.bool_]:
        """Whether entries of the given risks and confidences are kept; those within rounding of the limits are."""
        return within(risk, confidence, self.threshold, self.floor)


def describe_shortfall(selection: Selection, shortfall: Shortfall) -> str:
    """One sentence on why nothing is kept and what would help."""
    n, promise = selection.n_held_out, f"promise {selection.tolerance:.4g} with probability {1 - selection.delta:g}"
    if selection.limited_by is Limit.SUPPORT:
        if shortfall.n_supported == 0:
            return f"none of the {n} calibration entries is supported by the others; observe more."
        return (
            f"only {shortfall.n_supported} of the {n} calibration entries have the confidence of {selection.floor:.3g} "
            f"that support asks for, too few to {promise}; observe more, or take a confidence that asks for less, such "
            "as CoverageGame(false_support=0.1)."
        )
    reachable = shortfall.reachable_tolerance
    advice = (
        f"with {n} calibration entries no tolerance below the largest loss can"
        if reachable is None
        else f"a tolerance of about {reachable:.3g} could be promised with what is there"
    )
    if shortfall.needed_calibration is None:
        return (
            f"the best set of calibration entries has {selection.loss.mean_name} {shortfall.best_error:.4g}, not "
            f"enough below the tolerance {selection.tolerance:.4g}; {advice}."
        )
    return (
        f"{n} calibration entries are too few to {promise}, about {shortfall.needed_calibration:,} would do "
        f"({shortfall.calibration_share:.0%} of the observed cells are taken for that); {advice}."
    )


@storable
@dataclass(frozen=True)
class Guarantee:
    """What is promised about the kept set, over which entries, and what is not.

    ``withheld`` says why nothing is promised although something is kept; it is empty where nothing stands in the way.

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
    withheld: str = ""


@storable
@dataclass(frozen=True, eq=False)
class Calibration:
    """Cells that had no part in predictions, risks and confidences: what those say of them, and what was lost.

    ``loss`` is the squared error or another, averaged over a cell's draws; ``weight`` in (0, 1] aims at other entries
    than those seen. Every cell counts once, however often it was drawn: its draws share what is unknown about the cell.

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
    limit = Limit.SUPPORT if last == len(plan.thresholds) - 1 else Limit.TOLERANCE
    return Selection(
        threshold, plan.floor, plan.tolerance, plan.delta, error, share, len(calibration), limit, loss=plan.loss
    )


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
    """The empty set, and what would help."""
    supported = len(ranked.loss)
    needed, best = None, None
    if ranked.sizes.max(initial=0) == 0:
        limit, supported = Limit.SUPPORT, 0
    else:
        best, needed = float(ranked.mean_losses().min()), _needed_entries(plan, ranked, n)
        limit = Limit.TOLERANCE if needed is None else Limit.CALIBRATION
        limit = Limit.SUPPORT if supported < n / 2 else limit
    reachable = None if limit is Limit.SUPPORT else _reachable_tolerance(plan, ranked)
    shortfall = Shortfall(supported, best, reachable, needed, n / plan.n_observed)
    return Selection(-np.inf, plan.floor, plan.tolerance, plan.delta, None, 0.0, n, limit, shortfall, plan.loss)


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
    factor = float(np.min((np.log(1 / plan.levels[starts][grows]) + AVERAGING) / growth[grows]))
    return max(n + 1, round(ENOUGH * factor * n))


def rounding_threshold(confidence: Confidence, n_sampled: int = 200_000, random_state: int = 0) -> float:
    """The lowest t with |{x : C_x >= t}| <= |C|: the set of most trusted entries, no larger than the coverage.

    Not the paper's rounding, which draws each entry with probability C_x (:func:`surefill.round_confidence`) and keeps
    the mean error in expectation: a level set keeps none of the entries below t, and no theorem speaks of it.
    Exact where the matrix has at most ``n_sampled`` entries, estimated on a sample of them elsewhere.

    Examples
    --------
    >>> import numpy as np
    >>> from surefill.spaces import DenseConfidence
    >>> rounding_threshold(DenseConfidence(np.array([[0.9, 0.8], [0.3, 0.1]])))
    0.8
    """
    ranked = np.sort(confidence.at(*some_cells(confidence.shape, n_sampled, random_state)))[::-1]
    size = int(ranked.sum() + 1e-9)
    fits = np.flatnonzero(np.r_[ranked[:-1] > ranked[1:], True] & (np.arange(1, len(ranked) + 1) <= size))
    return float(ranked[fits[-1]]) if fits.size else np.inf
