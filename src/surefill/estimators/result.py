"""The frozen result of a fit, from which everything else is read."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefill.arrays import Array, IntArray, tiles
from surefill.completion import BayesianFactorCompletion, Completion, extend_completion
from surefill.completion.base import completion_words
from surefill.confidence import Certificate, ExtendableConfidence, ExtendedConfidence
from surefill.data import BoundsSource, Observations
from surefill.errors import invalid_parameter, is_number
from surefill.estimators.estimates import Estimates, EstimatesAt
from surefill.estimators.new_rows import matched
from surefill.guarantee import (
    Calibration,
    ConformalScores,
    Guarantee,
    Selection,
    SelectionPlan,
    TargetWeights,
    select,
    state_guarantee,
)
from surefill.guarantee.figures import counted
from surefill.guarantee.plan import exposure, up_to_rounding, within
from surefill.guarantee.selection import REFUSALS
from surefill.guarantee.wording import NOT_THERE
from surefill.losses import ClippedLoss
from surefill.notebook import card
from surefill.plots import View, plot_calibration, plot_confidence, plot_matrix, plot_risk_coverage
from surefill.registry import storable
from surefill.risk import PriorRisk, Risk
from surefill.risk.lower_bounds import RiskLowerBounds
from surefill.spaces.confidence_matrix import some_cells

if TYPE_CHECKING:
    from matplotlib.axes import Axes

HTML_SAMPLE = 50_000
"""Cells drawn for the kept share that a notebook shows: its error is below half a percent."""


@dataclass(frozen=True, eq=False)
class Answer:
    """Value, confidence in [0, 1], expected loss and whether kept of entries, an array each.

    Examples
    --------
    >>> import surefill as sf
    >>> sim = sf.datasets.make_low_rank((60, 50), rank=2, n_draws=2000, noise=0.1, random_state=0)
    >>> completer = sf.PartialCompleter(tolerance=0.1, confidence="posterior").fit(sim.observations)
    >>> answer = completer.result_.answer([0, 1], [3, 4])
    >>> answer.value.shape, answer.keep.dtype
    ((2,), dtype('bool'))
    """

    value: Array
    confidence: Array
    risk: Array
    keep: NDArray[np.bool_]


@storable
@dataclass(frozen=True, eq=False)
class PartialCompletion:
    """A completion, how far each entry of it can be trusted, the part that is kept, and what is promised of it.

    Attributes
    ----------
    completion : M-hat, a value for every entry.
    confidence : C in [0, 1], how well the observations support each entry.
    risk : the expected loss of every entry whose row and column were seen.
    prior : the expected loss where row or column was not.
    selection : the kept set at the tolerance asked for.
    certificate : how close the confidence is to the best possible.
    guarantee : what is promised of the kept set, and what is not.
    plan : what was settled about the kept set before the calibration cells were looked at.
    calibration : the cells that nothing was fitted on: their risks, confidences and losses.
    calibration_cells : their rows and columns.
    weights : which entries promise and intervals are aimed at.
    loss : what an error costs, the bounds of the values and of the predictions, and the largest loss.
    scores : how far off the calibration cells were, for intervals.
    timings : seconds spent in each stage.
    n_added : cells observed after the fit; of a result that holds any, nothing is promised, and selection, plan and
        calibration are those of the fit.
    col_labels : labels of the columns, by which new rows are matched; None where columns have positions only.

    Examples
    --------
    >>> import surefill as sf
    >>> sim = sf.datasets.make_low_rank((60, 50), rank=2, n_draws=2000, noise=0.1, random_state=0)
    >>> completer = sf.PartialCompleter(tolerance=0.1, confidence="posterior").fit(sim.observations)
    >>> result = completer.result_
    >>> result.values_at([0, 1], [3, 4]).shape
    (2,)
    >>> 0 < result.kept_share() <= 1
    True
    >>> sorted(result.timings)
    ['choice', 'fit', 'promise', 'risk', 'trial fit']
    """

    completion: Completion
    confidence: ExtendableConfidence
    risk: Risk
    prior: PriorRisk
    selection: Selection
    certificate: Certificate
    guarantee: Guarantee
    plan: SelectionPlan
    calibration: Calibration
    calibration_cells: tuple[IntArray, IntArray]
    weights: TargetWeights
    loss: ClippedLoss
    scores: ConformalScores
    timings: dict[str, float]
    n_added: int = 0
    col_labels: NDArray[Any] | None = None

    def __repr__(self) -> str:
        (m, n), kept = self.completion.shape, self.selection
        return (
            f"PartialCompletion({m} x {n}, {kept.held_out_share:.0%} of {kept.n_held_out} calibration cells kept at "
            f"tolerance {kept.tolerance:.4g}, {'promised' if self.guarantee.promised else 'nothing promised'})"
        )

    @property
    def bounds(self) -> tuple[float, float]:
        """The range of values: as given, or that of the training cells."""
        return self.loss.bounds

    @property
    def predicted_range(self) -> tuple[float, float]:
        """The least and the largest prediction at a training cell; all predictions are clipped to it."""
        return self.loss.predicted_range

    def answer(self, rows: ArrayLike, cols: ArrayLike) -> Answer:
        """Value, confidence, risk and keep at the pairs (rows[t], cols[t]), with one prediction per entry."""
        return self._answer(self._estimates.at(rows, cols), self.weights.at(rows, cols))

    def answer_block(self, rows: IntArray, cols: IntArray) -> Answer:
        """The same on the grid rows x cols, each array len(rows) x len(cols).

        Matrix products round differently from sums over one entry. Entries so close to a limit that this could matter
        are computed one by one, so that a grid keeps what :meth:`answer` keeps.
        """
        shape = len(rows), len(cols)
        value, confidence, risk = np.empty((3, *shape))
        keep, close = np.empty((2, *shape), dtype=np.bool_)
        for i, j in tiles(*shape):
            found, close[i, j] = self._on_tile(rows[i], cols[j])
            value[i, j], confidence[i, j], risk[i, j], keep[i, j] = vars(found).values()
        block = Answer(value, confidence, risk, keep)
        if close.any():
            line, place = np.nonzero(close)
            for name, alone in vars(self.answer(rows[line], cols[place])).items():
                getattr(block, name)[line, place] = alone
        return block

    @cached_property
    def risk_lower_bounds(self) -> RiskLowerBounds | None:
        """Lower bounds of the risks, by which cells that cannot be kept are skipped; None where none are known."""
        return RiskLowerBounds.of(self.risk, float(up_to_rounding(self.selection.threshold)))

    def _on_tile(self, rows: IntArray, cols: IntArray) -> tuple[Answer, NDArray[np.bool_]]:
        """The answer by matrix products, and which entries are close to a limit."""
        predicted, confidence, risk = self._estimates.block(rows, cols)
        value = np.clip(predicted, *self.predicted_range)
        weight, largest = self.weights.at(*np.ix_(rows, cols)), self.loss.largest_at(value)
        keep, close = self.selection.keeps_on_grid(risk, confidence, weight, largest)
        return Answer(value, confidence, risk, keep), close

    def _answer(self, estimates: EstimatesAt, weight: Array) -> Answer:
        predicted, confidence, risk = estimates
        value = np.clip(predicted, *self.predicted_range)
        exposed = exposure(weight, self.loss.largest_at(value), self.selection.tolerance)
        return Answer(value, confidence, risk, self.selection.keeps(risk, confidence, exposed))

    def reasons(self, rows: ArrayLike, cols: ArrayLike, answer: Answer | None = None) -> NDArray[np.str_]:
        """Why each entry is not kept, such as "too little support"; empty where it is. ``answer``, if known."""
        answer = self.answer(rows, cols) if answer is None else answer
        exposed = exposure(self.weights.at(rows, cols), self.loss.largest_at(answer.value), self.selection.tolerance)
        return np.array(REFUSALS)[self.selection.refusals(answer.risk, answer.confidence, exposed)]

    @property
    def _estimates(self) -> Estimates:
        return Estimates(self.completion, self.confidence, self.risk, self.prior)

    def values_at(self, rows: ArrayLike, cols: ArrayLike, times: ArrayLike | None = None) -> NDArray[np.float64]:
        """Completed values at the pairs (rows[t], cols[t]), kept or not; at these times where given.

        Confidence, risk and promise are about values at no date in particular.
        """
        if times is not None and isinstance(self.completion, BayesianFactorCompletion):
            return self.completion.at(rows, cols, times)
        return np.clip(self.completion.at(rows, cols), *self.predicted_range)

    def confidence_at(self, rows: ArrayLike, cols: ArrayLike) -> NDArray[np.float64]:
        """Confidences in [0, 1]."""
        return self._estimates.at(rows, cols).confidence

    def risk_at(self, rows: ArrayLike, cols: ArrayLike) -> NDArray[np.float64]:
        """Expected losses: squared errors in the data's squared units, unless another loss was asked for."""
        return self._estimates.at(rows, cols).risk

    def keeps(self, rows: ArrayLike, cols: ArrayLike) -> NDArray[np.bool_]:
        """Whether each entry is in the kept set."""
        return self.answer(rows, cols).keep

    def keeps_dense(self) -> NDArray[np.bool_]:
        """Whether each of all m x n entries is kept; only for matrices small enough to hold."""
        rows, cols = np.indices(self.completion.shape).reshape(2, -1)
        return self.keeps(rows, cols).reshape(self.completion.shape)

    def interval_at(
        self, rows: ArrayLike, cols: ArrayLike, level: float
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Lower and upper ends of intervals that hold a new value with probability ``level``.

        They stay within the bounds, unless no more is known of these than the range seen. In rows and columns never
        seen they are as much wider as the risk is larger, which no calibration cell has tested; where the loss is a
        chance, which does not say how large errors are, they have no ends there.
        """
        return self.interval_around(self.answer(rows, cols), rows, cols, level)

    def interval_around(
        self, answer: Answer, rows: ArrayLike, cols: ArrayLike, level: float
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The same where the answers at these pairs are known already."""
        scale = self.loss.loss.error_scale(answer.risk)
        if self.loss.loss.degree == 0:
            scale = np.where(self.prior.seen(rows, cols), scale, np.inf)
        half = self.scores.half_widths(scale, self.weights.at(rows, cols), level)
        ends = (-np.inf, np.inf) if self.loss.bounds_from is BoundsSource.SEEN else self.bounds
        return np.clip(answer.value - half, *ends), np.clip(answer.value + half, *ends)

    def at_tolerance(self, tolerance: float) -> Self:
        """The same completion, confidences and risks with the set kept at another tolerance; nothing is fitted again.

        The promise holds for each tolerance that is settled without looking at the calibration cells, not for one
        picked because of how much it keeps.
        """
        if not (is_number(tolerance) and 0 < tolerance < np.inf):
            raise invalid_parameter("at_tolerance", "tolerance", "a number above 0", tolerance)
        plan = self.plan.at_tolerance(float(tolerance))
        selection = select(plan, self.calibration, advise=not self.guarantee.withheld)
        guarantee = state_guarantee(
            plan,
            selection,
            self.calibration,
            self.weights,
            self.loss,
            asked_later=True,
            withheld=self.guarantee.withheld,
            shape=self.completion.shape,
        )
        return replace(self, plan=plan, selection=selection, guarantee=guarantee)

    def kept_share(self, n_sampled: int = 200_000, random_state: int = 0) -> float:
        """Share of all m x n entries that are kept: exact where there are at most ``n_sampled``, else sampled."""
        return float(self.keeps(*some_cells(self.completion.shape, n_sampled, random_state)).mean())

    def plot_risk_coverage(self, ax: Axes | None = None) -> Axes:
        """The error of the calibration cells for every share of them, the share that was chosen, the tolerance."""
        seen, selection = self.calibration, self.selection
        exposed, most = seen.exposure(selection.tolerance), selection.most_exposure
        supported = within(seen.risk, seen.confidence, np.inf, selection.floor, exposed, most)
        error = selection.held_out_error
        chosen, name = None if error is None else (selection.held_out_share, error), self.loss.loss.mean_name
        return plot_risk_coverage(seen.loss, seen.risk, seen.weight, supported, selection.tolerance, chosen, ax, name)

    def plot_calibration(self, ax: Axes | None = None) -> Axes:
        """The risks predicted for the calibration cells against the errors seen, by tenths of them."""
        return plot_calibration(self.calibration.loss, self.calibration.risk, ax, self.loss.loss.mean_name)

    def plot_confidence(self, ax: Axes | None = None, order: bool = True) -> Axes:
        """Confidences, in an order in which blocks show; of at most 600 rows and columns, drawn at random."""
        return plot_confidence(self.confidence, ax, order)

    def plot_kept(self, ax: Axes | None = None, order: bool = True) -> Axes:
        """The completed values that are kept, grey elsewhere, in the order of :meth:`plot_confidence`."""
        view = View.of(self.confidence, order)
        rows, cols = (side.ravel() for side in np.meshgrid(view.rows, view.cols, indexing="ij"))
        answer = self.answer(rows, cols)
        kept = np.where(answer.keep, answer.value, np.nan)
        return plot_matrix(kept.reshape(view.confidence.shape), view.shape, "kept values", self.bounds, "PuOr", ax)

    def fold_in(self, observations: Observations) -> Self:
        """The same for other rows, seen at ``observations``; nothing is promised of these.

        Columns are matched by label where both have labels, else there must be as many as in the fit. Rows answer by
        their position in ``observations``; one rating suffices, and of a row without any nothing is trusted. Values
        must lie within the bounds of the fit.

        >>> import surefill as sf
        >>> sim = sf.datasets.make_low_rank((60, 50), rank=2, n_draws=2000, noise=0.1, random_state=0)
        >>> completer = sf.PartialCompleter(tolerance=0.1, confidence="posterior").fit(sim.observations)
        >>> someone = sf.Observations([0], [7], [0.5], shape=(1, 50))
        >>> completer.result_.fold_in(someone).values_at([0, 0], [3, 4]).shape
        (2,)
        """
        n = self.completion.shape[1]
        folded = self._estimates.fold_in(matched(observations, n, self.col_labels, self.loss))
        weights = TargetWeights("observed")  # chances of being observed are not known of other rows
        guarantee = state_guarantee(
            self.plan, self.selection, self.calibration, self.weights, self.loss, withheld=NOT_THERE
        )
        return replace(self, **vars(folded), weights=weights, guarantee=guarantee)

    def extended(self, shape: tuple[int, int], observations: Observations) -> Self:
        """The same for a larger table: of rows and columns beyond the old shape nothing was seen.

        Their values are the prior's mean, their confidence is 0 and nothing of them is kept; ``observations`` are those
        that the completion was fitted on.
        """
        completion = extend_completion(self.completion, shape, observations)
        return replace(self, completion=completion, confidence=ExtendedConfidence.of(self.confidence, shape))

    @property
    def completed_by(self) -> str:
        """The completion algorithm and its chosen parameters in words, such as "Bayesian factors of rank 20"."""
        return completion_words(self.completion)

    @property
    def _filled_fact(self) -> dict[str, str]:
        """The share of the missing cells that is filled, where the promise is about these."""
        share, missing = self.selection.filled_share, self.selection.n_missing
        if share is None or missing is None:
            return {}
        return {"filled": f"{share:.1%} of the {counted(missing, self.plan.population.count == 1)} missing cells"}

    def _repr_html_(self) -> str:
        """The promise first, then what it rests on, for notebooks."""
        (m, n), selection = self.completion.shape, self.selection
        facts = {
            "kept": f"{self.kept_share(HTML_SAMPLE):.1%} of all {m:,} x {n:,} cells",
            **self._filled_fact,
            "completed by": self.completed_by,
            "on cells left out": selection.sentence,
            "confidence": self.certificate.sentence,
            "holds over": self.guarantee.holds_over,
            "not promised": self.guarantee.not_promised,
            "seconds": f"{sum(self.timings.values()):.1f}",
        }
        return card("PartialCompletion", self.guarantee.sentence, facts)
