"""How wrong a prediction will be, learnt from residuals that the completion had no part in."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefill.arrays import Array, Floats, IntArray, is_grid
from surefill.completion import Completion
from surefill.confidence import ExtendableConfidence
from surefill.data import COMPACT_CELLS, Observations
from surefill.data.compact import PIECE, mean_by_counts
from surefill.errors import InputError
from surefill.kernels.risk_grid import Curve, LineFactors, Unsupported, risks_on_grid
from surefill.loop import ProgressCallback, run
from surefill.losses import Loss
from surefill.parallel import one_blas_thread
from surefill.registry import storable
from surefill.risk.backfitting import Backfitting, hats, knots_for
from surefill.risk.chance import ChanceOfLargeError
from surefill.risk.cross_fitting import CrossFit, Evidence, HiddenBlocks, Residuals
from surefill.risk.line_curves import LineCurves, LineSummaries
from surefill.risk.noise_factors import LARGEST_TILT, TINY, NoiseFactors, NoisePrior, NoiseSide
from surefill.waiting import part


@storable
@dataclass(frozen=True, eq=False)
class SupportFactor:
    """k^(1 - C / floor) for an entry of confidence C below the floor, 1 from the floor on.

    ``unsupported`` is k >= 1, how many times larger losses are than expected where nothing ties row and column
    together, measured on blocks hidden on purpose.

    Examples
    --------
    >>> import surefill as sf
    >>> sim = sf.datasets.make_blocks((90, 80), n_groups=2, rank=2, n_draws=6000, noise=0.1, random_state=0)
    >>> support = sf.PartialCompleter(tolerance=0.1).fit(sim.observations).result_.risk.support
    >>> support.at(np.array([0.0, 0.5, 1.0]))[1:], bool(support.unsupported > 2)
    (array([1., 1.]), True)
    """

    confidence: ExtendableConfidence
    floor: float
    unsupported: float

    def at(self, confidence: Array) -> Array:
        """The factor of entries of these confidences."""
        return np.asarray(np.exp(self.log_at(confidence)))

    def log_at(self, confidence: Array) -> Array:
        """Its logarithm, (1 - C / floor) log k and at least 0."""
        return np.asarray(np.log(self.unsupported) * np.maximum(0.0, 1.0 - confidence / self.floor))


@storable
@dataclass(frozen=True, eq=False)
class FittedRisk:
    """risk_ij = v_ij^slope exp(curve(M_ij)) a_i(M_ij) b_j(M_ij) k^(1 - C_ij / floor), in the loss's units:

    the expected loss, the squared difference unless another was asked for, between a new draw at (i, j) and its
    prediction M_ij, noise included. v is the completion's variance, or a count of draws where it has none, a and b say
    how noisy the row and the column are, and whether more so where predictions are high. The curve is linear between
    its knots and flat beyond. The slope is at least 0, so that risk rises with v. The last factor, where a confidence
    was given, is for entries below its floor (:class:`SupportFactor`). Risk is always above 0. A row or column never
    seen has factor 1, as if it were like most, and the variance of the prior. Where the loss is a chance, ``chance``
    makes it from the expected absolute error, the above. ``part_powers`` are further powers, of what the uncertainty of
    the row and that of the column add to v.

    Examples
    --------
    >>> import surefill as sf
    >>> sim = sf.datasets.make_low_rank((60, 50), rank=2, n_draws=2000, noise=0.1, random_state=0)
    >>> completer = sf.PartialCompleter(tolerance=0.1, confidence="posterior").fit(sim.observations)
    >>> risk = completer.result_.risk
    >>> type(risk).__name__, risk.shape
    ('FittedRisk', (60, 50))
    >>> bool((risk.at([0, 1], [3, 4]) > 0).all())
    True
    """

    evidence: Evidence
    rows: NoiseFactors
    cols: NoiseFactors
    slope: float
    knots: Array
    heights: Array
    support: SupportFactor | None = None
    chance: ChanceOfLargeError | None = None
    part_powers: tuple[float, float] = (0.0, 0.0)

    def __post_init__(self) -> None:
        if not all(0 <= power < np.inf for power in self.part_powers):
            raise InputError("a risk rises with both parts of the variance: their powers must be at least 0.")
        fits = self.knots.shape == self.heights.shape and bool((np.diff(self.knots) > 0).all())
        if not (fits and 0 <= self.slope < np.inf and np.isfinite(self.heights).all()):
            raise InputError("a risk needs a slope of at least 0, and one finite height per knot.")

    @property
    def shape(self) -> tuple[int, int]:
        """(m, n)."""
        return self.evidence.completion.shape

    def at(self, rows: ArrayLike, cols: ArrayLike) -> NDArray[np.float64]:
        """Expected loss at the pairs (rows[t], cols[t]), at the cost of one prediction and variance each."""
        confidence = np.ones(np.shape(rows)) if self.support is None else self.support.confidence.at(rows, cols)
        return self.given(rows, cols, self.evidence.completion.at(rows, cols), confidence)

    def given(self, rows: ArrayLike, cols: ArrayLike, predicted: Array, confidence: Array) -> NDArray[np.float64]:
        """The same where the completion's values and the confidences at these pairs are known already."""
        i, j = np.asarray(rows), np.asarray(cols)
        if is_grid(i, j):
            return self._given_on_grid(i, j, predicted, confidence)
        log_risk = self._log_spread(rows, cols)
        log_risk += np.interp(predicted, self.knots, self.heights)
        log_risk += self.rows.log_at(rows, predicted)
        log_risk += self.cols.log_at(cols, predicted)
        if self.support is not None:
            log_risk += self.support.log_at(confidence)
        risk = np.exp(log_risk, out=log_risk)
        return risk if self.chance is None else self.chance.at(risk)

    def _given_on_grid(self, i: IntArray, j: IntArray, predicted: Array, confidence: Array) -> NDArray[np.float64]:
        """The same on a grid, where the terms of each row and column are computed once."""
        detailed = any(self.part_powers)
        risk, slope = (self._log_spread(i, j), 1.0) if detailed else (self.evidence.log_variance(i, j), self.slope)
        factor, floor = (1.0, 1.0) if self.support is None else (self.support.unsupported, self.support.floor)
        curve, unsupported = Curve(self.knots, self.heights), Unsupported(float(np.log(factor)), floor)
        factors = LineFactors(self.rows.table(i[:, 0]), self.cols.table(j[0]), LARGEST_TILT)
        risks_on_grid(risk, predicted, confidence, slope, curve, factors, unsupported)
        return risk if self.chance is None else self.chance.at(risk)

    def _log_spread(self, rows: ArrayLike, cols: ArrayLike) -> Array:
        """s log v, and the powers of its parts."""
        log_spread = self.slope * self.evidence.log_variance(rows, cols)
        if any(self.part_powers):
            for power, log_part in zip(self.part_powers, self.evidence.log_parts(rows, cols), strict=True):
                log_spread += power * log_part
        return log_spread

    def fold_in(
        self,
        observations: Observations,
        completion: Completion | None = None,
        confidence: ExtendableConfidence | None = None,
    ) -> Self:
        """The risk of other rows, seen at ``observations``: they have factor 1, as if they were like most.

        ``completion`` and ``confidence`` are the folded-in ones, where they are known.
        """
        support = self.support
        if support is not None:
            folded = support.confidence.fold_in(observations) if confidence is None else confidence
            support = replace(support, confidence=folded)
        evidence = self.evidence.fold_in(observations, completion)
        return replace(self, evidence=evidence, rows=NoiseFactors.none(observations.by_row.ids), support=support)


MOST_KNOTS, DETAILED_KNOTS, ENTRIES_PER_KNOT = 10, 40, 20
"""Knots of the curve of the prediction, those where cells are looked at in detail, and entries for each: about as many
as a smooth curve can be learnt from. The squared error of whole stars has bends between them (docs/benchmarks.md)."""

LEAST_ERROR = 1e-5
"""An error of this share of the half-width of the bounds is added as a loss: the log of an exact fit is finite."""

TOL, MAX_STEPS = 1e-4, 50
"""Convergence: steps end once the loss per draw changes by less than ``TOL``, far below its sampling error."""


@storable
@dataclass(frozen=True)
class RiskModel:
    """E l(y - M_ij) = v_ij^s exp(curve(M_ij)) a_i(M_ij) b_j(M_ij) for a new draw y; l is the square unless said.

    Each fold of the observed cells is predicted by a completion of the others. The losses of these
    predictions, never of cells a completion was fitted on, teach the model: the slope s >= 0 of the completion's own
    variance v, a smooth curve of the prediction M (errors shrink near the bounds), and how noisy each row and each
    column is, a_i(M) = a_i exp(d_i (M - c_i)) and b_j likewise, drawn towards 1 the more the less was seen: some
    people are hard to predict in what they like, others in what they dislike. While s and the curve are learnt, the
    factors of a cell leave its own residual out. Counts enter through v and through the shrinkage.

    From 20,000 cells on, and up to half a million, v_ij is joined by powers of its two parts, what the uncertainty of
    the row and of the column add to it, and a_i and b_j are drawn towards curves of how high and how often the row or
    the column was seen (:class:`surefill.risk.line_curves.LineCurves`) instead of 1.

    A chance, such as that of an error beyond a distance, saturates: it follows from the expected absolute error by
    :class:`surefill.risk.chance.ChanceOfLargeError`, learnt from the same cells.

    The cost is that of the folds' completions, and O(cells) for the rest. Nothing is promised: the risk is an estimate,
    for entries that are to be predicted as the observed cells were. Of blocks of the matrix in which no cell was seen
    random folds teach nothing beyond what v says of them; what they lack is measured on blocks hidden on purpose, where
    a confidence tells which entries are like that.

    Examples
    --------
    >>> from surefill.completion import BayesianFactorModel
    >>> from surefill.datasets import make_low_rank
    >>> from surefill.risk import CrossFit
    >>> seen = make_low_rank((60, 50), rank=2, n_draws=1500, noise=0.2, random_state=0).observations
    >>> algorithm = BayesianFactorModel(rank=2)
    >>> risk = RiskModel().fit(seen, algorithm.fit(seen), CrossFit(seen, algorithm))
    >>> noise = 0.2**2 / 3  # the variance of a number drawn evenly from [-0.2, 0.2]
    >>> bool(noise < risk.at([0], [0])[0] < 1.5 * noise)
    True
    """

    def fit(
        self,
        observations: Observations,
        completion: Completion,
        cross_fit: CrossFit,
        confidence: ExtendableConfidence | None = None,
        floor: float | None = None,
        progress: ProgressCallback | None = None,
    ) -> FittedRisk:
        """The risk of ``completion``, fitted on all of ``observations``; ``cross_fit`` has it without one fold each.

        With a ``confidence`` and its ``floor``, how much larger errors are without support is measured as well, by one
        more completion.
        """
        loss, evidence = cross_fit.loss.size_loss, cross_fit.evidence(completion)
        least = (LEAST_ERROR * observations.unit.half_width) ** loss.degree
        cells = cross_fit.residuals(loss)
        learnt, left_out = _learnt(observations, cells, evidence, loss, least, progress)
        counts = cells.counts
        del cells  # of very many cells they take much memory, which the completion of blocks needs too
        if confidence is not None and floor is not None and (blocks := cross_fit.without_blocks()) is not None:
            learnt = replace(learnt, support=SupportFactor(confidence, floor, unsupported_factor(learnt, blocks, loss)))
        if loss is cross_fit.loss:
            return learnt
        missed, weight = cross_fit.residuals().loss, counts.astype(np.float64)
        return replace(learnt, chance=ChanceOfLargeError.fit(left_out, missed, weight))


def unsupported_factor(risk: FittedRisk, blocks: HiddenBlocks, loss: Loss) -> float:
    """Mean of loss over risk where nothing ties, relative to that of held-out cells inside; at least 1."""
    there = replace(risk, evidence=blocks.evidence)
    ratios = []
    for cells in (blocks.crossing, blocks.inside):
        predicted = blocks.evidence.completion.at(cells.rows, cells.cols)
        expected = there.given(cells.rows, cells.cols, predicted, np.ones(len(cells)))
        ratios.append(float(np.average(loss.at(cells, predicted) / expected, weights=cells.counts)))
    return max(1.0, ratios[0] / max(ratios[1], TINY))


def _learnt(
    observations: Observations,
    cells: Residuals,
    evidence: Evidence,
    loss: Loss,
    least: float,
    progress: ProgressCallback | None,
) -> tuple[FittedRisk, Array]:
    """The model that fits the losses of ``cells``, each made ``least`` larger, for use with ``evidence``.

    With it the risks of the cells, each by factors without its own loss.
    """
    learnt = learn_losses(cells, loss, least, progress)
    rows, cols = learnt.rows, learnt.cols
    if learnt.line_curves is not None:
        rows, cols = learnt.line_curves.applied(rows, cols, LineSummaries.of(observations))
    fitted = FittedRisk(evidence, rows, cols, learnt.slope, learnt.knots, learnt.heights)
    return replace(fitted, part_powers=learnt.part_powers), learnt.left_out


@dataclass(frozen=True, eq=False)
class LearntLosses:
    """What the losses of cells teach: slope, curve, factors of rows and columns, the prior that those of rows were
    shrunk by, and the risks of the cells, each by factors without its own loss; where cells were looked at in detail,
    powers of the parts of the variance, and curves of summaries of rows and columns, which are not in the factors."""

    slope: float
    knots: Array
    heights: Array
    rows: NoiseFactors
    cols: NoiseFactors
    row_prior: NoisePrior
    left_out: Array
    part_powers: tuple[float, float] = (0.0, 0.0)
    line_curves: LineCurves | None = None


def learn_losses(cells: Residuals, loss: Loss, least: float, progress: ProgressCallback | None) -> LearntLosses:
    """The model that fits the losses of ``cells``, each made ``least`` larger."""
    most = MOST_KNOTS if cells.lines is None else DETAILED_KNOTS
    n_knots = min(most, 2 + len(cells.rows) // ENTRIES_PER_KNOT)
    knots = knots_for(cells.predicted, n_knots)
    rows = NoiseSide.of(cells.rows, cells.counts, cells.predicted)
    sides = rows, NoiseSide.of(cells.cols, rows.weight, cells.predicted)
    slopes, curves = _slopes_of(cells), None if cells.lines is None else LineCurves.flat(cells.lines)
    centres = np.array([mean_by_counts(each, cells.counts) for each in slopes])
    features, sizes = _features(cells, slopes, centres, knots), [len(knots)]
    if curves is not None and cells.lines is not None:
        features, sizes = np.column_stack([features, curves.features(cells.lines)]), [*sizes, *curves.sizes]
    solver = Backfitting(features, len(slopes), cells.loss + least, sides, TOL, loss.degree / 2, tuple(sizes))
    with one_blas_thread(), part(progress, "risk"):
        fit = run(solver, max_steps=MAX_STEPS, progress=progress).state
    powers, heights, more = np.split(fit.coefficients, [len(slopes), len(slopes) + len(knots)])
    heights = heights - powers @ centres
    left_out = np.exp(solver.log_expected(fit.coefficients)) * fit.left_out
    learnt = LearntLosses(float(powers[0]), knots, heights, fit.rows, fit.cols, fit.row_prior, left_out)
    if curves is None or cells.lines is None:
        return learnt
    curves, level = curves.learnt(more, cells.lines, cells.counts.astype(np.float64))
    of_parts = float(powers[1]), float(powers[2])
    return replace(learnt, heights=heights + level, part_powers=of_parts, line_curves=curves)


def _slopes_of(cells: Residuals) -> list[Array]:
    """log v, and the logs of its parts where they are known."""
    return [cells.log_variance, *(() if cells.log_parts is None else cells.log_parts.T)]


def _features(cells: Residuals, slopes: list[Array], centres: Array, knots: Array) -> Floats:
    """``slopes`` around their means, and the hat functions of the prediction; single precision where cells are many."""
    n_cells, k = len(cells.predicted), len(slopes)
    features = np.empty((n_cells, k + len(knots)), dtype=np.float32 if n_cells >= COMPACT_CELLS else np.float64)
    for first in range(0, n_cells, PIECE):
        here = slice(first, first + PIECE)
        for column, (slope, centre) in enumerate(zip(slopes, centres, strict=True)):
            features[here, column] = slope[here] - centre
        features[here, k:] = hats(cells.predicted[here], knots)
    return features
