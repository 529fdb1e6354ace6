"""Which entries are kept at a tolerance, and what is and is not promised about them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefill.coverage import Confidence

Array = NDArray[np.float64]

FEWEST_HELD_OUT = 10
UNTESTED = 0.05


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
    sentence : all of this in words.
    """

    threshold: float
    tolerance: float
    held_out_error: float | None
    held_out_share: float
    n_held_out: int
    sentence: str

    def keeps(self, confidence: ArrayLike) -> NDArray[np.bool_]:
        """Whether entries of the given confidences are kept."""
        return np.asarray(confidence, dtype=np.float64) >= self.threshold


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
    candidates = ends_tie & enough & (ranked >= max(floor, np.quantile(confidence, UNTESTED)))
    allowed = np.flatnonzero(candidates & (running <= tolerance))
    if allowed.size == 0:
        sentence = _why_nothing(len(ranked), running[candidates], tolerance)
        return Selection(np.inf, tolerance, None, 0.0, len(ranked), sentence)
    last = int(allowed[-1])
    share = float(count[order][: last + 1].sum() / count.sum())
    sentence = (
        f"{share:.0%} of {len(ranked)} held-out entries were kept, with mean squared error {running[last]:.4g} "
        f"where {tolerance:.4g} was asked."
    )
    return Selection(float(ranked[last]), tolerance, float(running[last]), share, len(ranked), sentence)


def rounding_threshold(confidence: Confidence, n_sampled: int = 200_000, random_state: int = 0) -> float:
    """The lowest t with |{x : C_x >= t}| <= |C|: the set of most trusted entries, no larger than the coverage.

    The paper rounds C at random to a set whose size is within 1 of |C|; this is its deterministic counterpart.
    Exact where the matrix has at most ``n_sampled`` entries, estimated on a sample of them elsewhere.
    """
    m, n = confidence.shape
    cells = np.arange(m * n)
    if m * n > n_sampled:
        cells = np.random.default_rng(random_state).integers(m * n, size=n_sampled)
    ranked = np.sort(confidence.at(cells // n, cells % n))[::-1]
    size = int(ranked.sum() + 1e-9)
    fits = np.flatnonzero(np.r_[ranked[:-1] > ranked[1:], True] & (np.arange(1, len(ranked) + 1) <= size))
    return float(ranked[fits[-1]]) if fits.size else np.inf


def _why_nothing(n_held_out: int, errors: Array, tolerance: float) -> str:
    if errors.size == 0:
        return (
            f"Nothing is kept: fewer than {FEWEST_HELD_OUT} of the {n_held_out} held-out entries are supported by the "
            "others, too few to judge any set by; observe more entries."
        )
    return (
        f"Nothing is kept: the best held-out set has mean squared error {errors.min():.4g}, above the tolerance "
        f"{tolerance:.4g}; raise the tolerance to at least that or observe more entries."
    )
