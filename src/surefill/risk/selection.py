"""Which entries are kept at a tolerance, and what is and is not promised about them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefill.coverage.confidence import Confidence, some_cells

Array = NDArray[np.float64]

FEWEST_HELD_OUT = 10
UNTESTED = 0.05
ROUNDING = 1e-5

BY_TOLERANCE = "the tolerance"
BY_SUPPORT = "how much of the matrix the observations support"
BY_TESTS = "how weakly supported the entries are on which errors could be measured"


@dataclass(frozen=True)
class Selection:
    """The kept set {x : C_x >= threshold} and how it did on held-out entries.

    Attributes
    ----------
    threshold : the least confidence kept; infinite where nothing is kept.
    tolerance : the mean squared error asked for, in the user's squared units.
    held_out_error : mean squared error of the kept held-out entries; None where none are kept.
    held_out_share : share of the held-out entries that are kept.
    n_held_out : how many entries were held out.
    limited_by : what stopped the threshold from going lower.
    finding : all of this in words, but for the limit.
    """

    threshold: float
    tolerance: float
    held_out_error: float | None
    held_out_share: float
    n_held_out: int
    limited_by: str
    finding: str

    @property
    def sentence(self) -> str:
        """What was found, and why not more is kept."""
        return f"{self.finding} What keeps it from being larger is {self.limited_by}."

    def keeps(self, confidence: ArrayLike) -> NDArray[np.bool_]:
        """Whether entries of the given confidences are kept; those within rounding of the threshold are."""
        return np.asarray(confidence, dtype=np.float64) >= self.threshold - ROUNDING

    def raised_to(self, floor: float) -> Selection:
        """The same selection with a threshold of at least ``floor``, the rounding of the final confidence."""
        if floor <= self.threshold:
            return self
        return replace(self, threshold=floor, limited_by=BY_SUPPORT)


@dataclass(frozen=True)
class Guarantee:
    """What is promised about the kept set, over which entries, and what is not."""

    promised: bool
    delta: float
    sentence: str
    holds_over: str
    not_promised: str


def select_by_threshold(
    confidence: Array, squared_error: Array, weight: ArrayLike, tolerance: float, floor: float
) -> Selection:
    """The lowest threshold whose kept held-out entries have a mean squared error of at most ``tolerance``.

    Held-out entries are drawn like the observed ones and say nothing of entries that are never drawn. So two
    floors stop the threshold, however small the held-out error: the given one (see :func:`rounding_threshold`), and
    the confidence that all but one in twenty held-out entries have, for less supported ones were hardly tested.
    Entries of equal confidence go together, and no set with fewer than ten held-out entries is considered.
    """
    count = np.asarray(weight, dtype=np.float64)
    order = np.argsort(-confidence, kind="stable")
    ranked = confidence[order]
    running = np.cumsum((squared_error * count)[order]) / np.cumsum(count[order])
    ends_tie = np.r_[ranked[:-1] > ranked[1:], True]
    enough = np.arange(1, len(ranked) + 1) >= FEWEST_HELD_OUT
    tested = float(np.quantile(confidence, UNTESTED))
    candidates = ends_tie & enough & (ranked >= max(floor, tested))
    allowed = np.flatnonzero(candidates & (running <= tolerance))
    if allowed.size == 0:
        finding, limit = _why_nothing(len(ranked), running[candidates], tolerance)
        return Selection(np.inf, tolerance, None, 0.0, len(ranked), limit, finding)
    last = int(allowed[-1])
    share = float(count[order][: last + 1].sum() / count.sum())
    finding = (
        f"{share:.0%} of {len(ranked)} held-out entries were kept, with mean squared error {running[last]:.4g} "
        f"where {tolerance:.4g} was asked."
    )
    limit = BY_TOLERANCE if candidates[last + 1 :].any() else BY_SUPPORT if floor > tested else BY_TESTS
    return Selection(float(ranked[last]), tolerance, float(running[last]), share, len(ranked), limit, finding)


def rounding_threshold(confidence: Confidence, n_sampled: int = 200_000, random_state: int = 0) -> float:
    """The lowest t with |{x : C_x >= t}| <= |C|: the set of most trusted entries, no larger than the coverage.

    The paper rounds C at random to a set whose size is within 1 of |C|; this is its deterministic counterpart.
    Exact where the matrix has at most ``n_sampled`` entries, estimated on a sample of them elsewhere.
    """
    ranked = np.sort(confidence.at(*some_cells(confidence.shape, n_sampled, random_state)))[::-1]
    size = int(ranked.sum() + 1e-9)
    fits = np.flatnonzero(np.r_[ranked[:-1] > ranked[1:], True] & (np.arange(1, len(ranked) + 1) <= size))
    return float(ranked[fits[-1]]) if fits.size else np.inf


def _why_nothing(n_held_out: int, errors: Array, tolerance: float) -> tuple[str, str]:
    """Why no set is kept: what was found, and the limit."""
    if n_held_out < FEWEST_HELD_OUT:
        return (
            f"Nothing is kept: only {n_held_out} entries could be held out to judge by, and at least {FEWEST_HELD_OUT} "
            "are needed.",
            "the number of observations",
        )
    if errors.size == 0:
        return (
            f"Nothing is kept: fewer than {FEWEST_HELD_OUT} of the {n_held_out} held-out entries are supported by the "
            "others, too few to judge any set by; observe more entries.",
            BY_SUPPORT,
        )
    return (
        f"Nothing is kept: the best held-out set has mean squared error {errors.min():.4g}, above the tolerance "
        f"{tolerance:.4g}; raise the tolerance to at least that or observe more entries.",
        BY_TOLERANCE,
    )
