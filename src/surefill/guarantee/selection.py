"""Which cells are kept at a tolerance, as the calibration cells allow."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefill.arrays import Array
from surefill.guarantee.figures import bound, probability
from surefill.guarantee.plan import SelectionPlan, limits, within
from surefill.guarantee.reasons import Reason
from surefill.guarantee.shortfall import Limit, Shortfall, find_shortfall
from surefill.guarantee.tested_sets import Calibration, TestedSets
from surefill.kernels.limits_grid import keep_on_grid
from surefill.losses import Loss
from surefill.registry import storable
from surefill.spaces.confidence_matrix import Confidence, some_cells

MOST_SENSITIVITY = 10.0
"""Beyond a factor of ten nobody would call a promise sensitive; the search ends there."""

SENSITIVITY_STEP = 1.02
"""Between factors that are tried; finer than anybody knows the true one."""

REFUSALS = (Reason.KEPT, Reason.SUPPORT, Reason.RARE, Reason.RISK, Reason.NOTHING)
"""Why a cell is not kept, by the numbers of :meth:`Selection.refusals`; 0 is kept."""


@storable
@dataclass(frozen=True)
class Selection:
    """The kept set {x : risk_x <= threshold, C_x >= floor, exposure_x <= most_exposure}, and how it did when tested.

    Attributes
    ----------
    threshold : the largest risk kept; minus infinity where nothing is kept.
    floor : the least confidence kept, whatever the risk.
    most_exposure : the largest w (L - tolerance) kept, of cells too rare to be promised about: w is one over a cell's
        chance of being a calibration cell, L its largest loss.
    tolerance, delta : the mean loss asked for, in the user's units, and the chance to fail it.
    held_out_error : mean loss of the kept calibration cells, weighted to all kept cells that the model was not fitted
        on, or not weighted where the promise is about cells like the observed ones; None where none are kept.
    held_out_share : their share of the calibration cells, weighted likewise.
    n_held_out : how many calibration cells there were.
    n_filled, n_missing : cells that are kept and were not observed, and all that were not observed, counted on a sample
        of the cells where the matrix is large; None where the promise is not about these.
    limited_by : what stopped the set from being larger.
    loss : what errors are measured by.
    shortfall : where nothing is kept, what there was and what would do, if advice was asked; else None.

    Examples
    --------
    >>> import surefill as sf
    >>> sim = sf.datasets.make_low_rank((60, 50), rank=2, n_draws=2000, noise=0.1, random_state=0)
    >>> completer = sf.PartialCompleter(tolerance=0.1, confidence="posterior").fit(sim.observations)
    >>> selection = completer.result_.selection
    >>> selection.empty, selection.held_out_error <= selection.tolerance
    (False, True)
    """

    threshold: float
    floor: float
    most_exposure: float
    tolerance: float
    delta: float
    held_out_error: float | None
    held_out_share: float
    n_held_out: int
    n_filled: float | None
    n_missing: float | None
    limited_by: Limit
    loss: Loss
    shortfall: Shortfall | None = None

    @property
    def empty(self) -> bool:
        """Whether nothing is kept."""
        return self.threshold == -np.inf

    @property
    def filled_share(self) -> float | None:
        """Share of the cells never observed that are kept; None where the promise is not about these."""
        return None if self.n_filled is None or self.n_missing is None else self.n_filled / max(self.n_missing, 1.0)

    @property
    def reason(self) -> str:
        """Why not more is kept, or why nothing is and what would help."""
        if self.shortfall is not None:
            return self.shortfall.sentence
        if self.empty:
            return (
                f"the {self.n_held_out:,} calibration cells do not allow to promise {bound(self.tolerance)} with "
                f"probability {probability(self.delta)}."
            )
        return f"What keeps it from being larger is {self.limited_by.value}."

    @property
    def sentence(self) -> str:
        """What was found on the calibration cells, and why not more is kept."""
        if self.empty:
            return f"Nothing is kept: {self.reason}"
        return (
            f"{self.held_out_share:.0%} of the {self.n_held_out:,} calibration cells were kept; their "
            f"{self.loss.mean_name} is {self.held_out_error:.4g} where {bound(self.tolerance)} was asked. {self.reason}"
        )

    def keeps(self, risk: ArrayLike, confidence: ArrayLike, exposure: ArrayLike = 0.0) -> NDArray[np.bool_]:
        """Whether entries of these risks, confidences and exposures are kept; those within rounding are."""
        return within(risk, confidence, self.threshold, self.floor, exposure, self.most_exposure)

    def keeps_on_grid(
        self, risk: Array, confidence: Array, weight: Array, largest_loss: Array
    ) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """The same on a grid, from weights and largest losses, and which cells are so close to a limit that rounding
        could decide."""
        keep, close = np.empty((2, *risk.shape), dtype=np.bool_)
        at, near = limits(self.threshold, self.floor, self.most_exposure)
        keep_on_grid(risk, confidence, weight, largest_loss, self.tolerance, at, near, keep, close)
        return keep, close

    def refusals(self, risk: ArrayLike, confidence: ArrayLike, exposure: ArrayLike = 0.0) -> NDArray[np.int8]:
        """Why entries are not kept, as positions in ``REFUSALS``: 0 where they are, else the first that applies."""
        supported = within(0.0, confidence, 0.0, self.floor)
        common = within(0.0, np.inf, 0.0, 0.0, exposure, self.most_exposure)
        kept = self.keeps(risk, confidence, exposure)
        return np.select([kept, ~supported, ~common], [0, 1, 2], 4 if self.empty else 3).astype(np.int8)


def select(plan: SelectionPlan, calibration: Calibration, advise: bool = True) -> Selection:
    """The largest set of the plan whose mean loss is shown to be at most the tolerance.

    For each threshold of the plan the hypothesis "the mean loss of the kept entries is at least the tolerance" is
    tested by the capital of :mod:`surefill.guarantee.betting`, all at once by Ville's inequality. With probability at
    least 1 - delta no true hypothesis is rejected, and then the mean loss of the set chosen is below the tolerance.
    The plan must not depend on what the calibration cells lost. Where nothing is kept, ``advise`` asks what would
    help, which takes some hundred trials.

    Examples
    --------
    >>> import numpy as np
    >>> from surefill.guarantee import Population
    >>> from surefill.losses import SquaredError
    >>> rng = np.random.default_rng(0)
    >>> risk, tested = rng.uniform(0.1, 1.0, 5000), rng.random(5000) < 0.1
    >>> weight, largest = np.full(5000, 10.0), np.full(5000, 4.0)
    >>> cells = Population.of(risk, weight, largest, 1.0, ~tested, 5000 - tested.sum())
    >>> plan = SelectionPlan(0.5, 0.1, 0.2, int(tested.sum()), 5000, cells, SquaredError())
    >>> loss = np.minimum(risk * rng.chisquare(1, 5000), 4.0)
    >>> calibration = Calibration(risk[tested], np.ones(tested.sum()), loss[tested], largest[tested], weight[tested])
    >>> selection = select(plan, calibration)
    >>> bool(selection.filled_share > 0.5), bool(loss[~tested & selection.keeps(risk, 1.0, 35.0)].mean() <= 0.5)
    (True, True)
    """
    tested = TestedSets.of(plan, calibration)
    rejected = tested.rejected(plan, plan.sensitivity)
    if rejected.size == 0:
        return _nothing(plan, len(calibration), find_shortfall(plan, calibration) if advise else None)
    last = int(rejected[-1])
    threshold, most = float(plan.sets.thresholds[last]), plan.sets.most_exposure
    exposed = calibration.exposure(plan.tolerance)
    kept = within(calibration.risk, calibration.confidence, threshold, plan.floor, exposed, most)
    error, share = calibration.mean_loss(kept), float(np.average(kept, weights=calibration.weight))
    limit = Limit.SUPPORT if last == len(plan.sets.thresholds) - 1 else Limit.TOLERANCE
    filled, missing = _filled(plan, last), _missing(plan)
    return Selection(
        threshold, plan.floor, most, plan.tolerance, plan.delta, error, share, len(calibration), filled, missing, limit,
        plan.loss,
    )  # fmt: skip


def _nothing(plan: SelectionPlan, n: int, shortfall: Shortfall | None) -> Selection:
    """The empty set, and what would help where that was asked."""
    missing = _missing(plan)
    limit = Limit.TOLERANCE if shortfall is None else shortfall.limited_by
    return Selection(
        -np.inf, plan.floor, plan.sets.most_exposure, plan.tolerance, plan.delta, None, 0.0, n,
        None if missing is None else 0.0, missing, limit, plan.loss, shortfall,
    )  # fmt: skip


def survived_sensitivity(plan: SelectionPlan, calibration: Calibration, selection: Selection) -> float:
    """The largest G, in steps of 2%, up to which the selection would have been promised at every step.

    Whatever G is true, let G' be the step above it: a false promise that is said to survive G was rejected at G' too,
    by a test that is valid there, which has probability at most delta.
    """
    tested, place = TestedSets.of(plan, calibration), int(np.searchsorted(plan.sets.thresholds, selection.threshold))
    survived = plan.sensitivity
    while survived < MOST_SENSITIVITY and place in tested.rejected(plan, survived * SENSITIVITY_STEP):
        survived *= SENSITIVITY_STEP
    return survived


def _missing(plan: SelectionPlan) -> float | None:
    """Cells never observed, where the promise is about these alone."""
    return plan.population.n_missing if plan.leaves_out_calibration else None


def _filled(plan: SelectionPlan, last: int) -> float | None:
    """Those of them in the plan's set number ``last``."""
    cells = plan.population
    if _missing(plan) is None:
        return None
    kept = within(
        cells.risk, np.inf, plan.sets.thresholds[last], 0.0, cells.exposure(plan.tolerance), plan.sets.most_exposure
    )
    return float(cells.count * np.count_nonzero(kept & cells.missing))


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
