"""How wrong a prediction will be, learnt from residuals that the completion had no part in."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefill.arrays import Array
from surefill.completion import Completion
from surefill.confidence import ConfidenceAlgorithm
from surefill.data import Observations
from surefill.errors import InputError
from surefill.loop import ProgressCallback, run
from surefill.registry import storable
from surefill.risk.backfitting import Backfitting, hats, knots_for
from surefill.risk.cross_fitting import CrossFit, Evidence, Residuals
from surefill.risk.noise_factors import NoiseFactors, NoiseSide


@storable
@dataclass(frozen=True, eq=False)
class FittedRisk:
    """risk_ij = v_ij^slopes[0] exp(slopes[1] (1 - C_ij)) exp(curve(M_ij)) a_i(M_ij) b_j(M_ij), in squared units:

    the expected squared difference between a new draw at (i, j) and its prediction M_ij, noise included. v is the
    completion's variance, or a count of draws where it has none, C the confidence where one was given, a and b say
    how noisy the row and the column are, and whether more so where predictions are high. The curve is linear between
    its knots and flat beyond. Slopes are at least 0, so that risk rises with v and falls with C. It is always above 0.
    A row or column never seen has factor 1, as if it were like most, and the variance of the prior.

    Examples
    --------
    >>> import surefill as sf
    >>> sim = sf.datasets.make_low_rank((60, 50), rank=2, n_draws=2000, noise=0.1, random_state=0)
    >>> completer = sf.PartialCompleter(tolerance=0.05, confidence="posterior").fit(sim.observations)
    >>> risk = completer.result_.risk
    >>> type(risk).__name__, risk.shape
    ('FittedRisk', (60, 50))
    >>> bool((risk.at([0, 1], [3, 4]) > 0).all())
    True
    """

    evidence: Evidence
    rows: NoiseFactors
    cols: NoiseFactors
    slopes: Array
    knots: Array
    heights: Array

    def __post_init__(self) -> None:
        n_slopes = 1 if self.evidence.confidence is None else 2
        fits = self.slopes.shape == (n_slopes,) and bool((self.slopes >= 0).all())
        fits = fits and self.knots.shape == self.heights.shape and bool((np.diff(self.knots) > 0).all())
        if not (fits and np.isfinite(self.slopes).all() and np.isfinite(self.heights).all()):
            raise InputError("a risk needs slopes of at least 0, one per feature, and one finite height per knot.")

    @property
    def shape(self) -> tuple[int, int]:
        """(m, n)."""
        return self.evidence.completion.shape

    def at(self, rows: ArrayLike, cols: ArrayLike) -> NDArray[np.float64]:
        """Expected squared error at the pairs (rows[t], cols[t]), at the cost of one prediction and variance each."""
        return self._of(rows, cols, self.evidence.completion.at(rows, cols))

    def given(self, rows: ArrayLike, cols: ArrayLike, predicted: Array, confidence: Array) -> NDArray[np.float64]:
        """The same where the completion's values at these pairs are known already."""
        return self._of(rows, cols, predicted)

    def _of(self, rows: ArrayLike, cols: ArrayLike, predicted: Array) -> NDArray[np.float64]:
        curve = np.interp(predicted, self.knots, self.heights)
        level = np.exp(self.evidence.monotone(rows, cols) @ self.slopes + curve)
        return np.asarray(level * self.rows.at(rows, predicted) * self.cols.at(cols, predicted))

    def fold_in(self, observations: Observations, completion: Completion | None = None) -> Self:
        """The risk of other rows, seen at ``observations``: they have factor 1, as if they were like most."""
        ids = observations.by_row.ids
        return replace(self, evidence=self.evidence.fold_in(observations, completion), rows=NoiseFactors.none(ids))


MOST_KNOTS, ENTRIES_PER_KNOT = 10, 20
"""Knots of the curve of the prediction, and entries for each: about as many as a smooth curve can be learnt from."""

LEAST_RISK = 1e-10
"""Added to squared residuals, as a share of the squared half-width of the bounds: the log of an exact fit is finite."""

TOL, MAX_STEPS = 1e-4, 50
"""Convergence: steps end once the loss per draw changes by less than ``TOL``, far below its sampling error."""


@storable
@dataclass(frozen=True)
class RiskModel:
    """E (y - M_ij)^2 = v_ij^s exp(curve(M_ij)) a_i(M_ij) b_j(M_ij) for a new draw y, in the user's squared units.

    Each fold of the observed cells is predicted by a completion of the others. The squared errors of these
    predictions, never of cells a completion was fitted on, teach the model: the slope s >= 0 of the completion's own
    variance v, a smooth curve of the prediction M (errors shrink near the bounds), and how noisy each row and each
    column is, a_i(M) = a_i exp(d_i (M - c_i)) and b_j likewise, drawn towards 1 the more the less was seen: some
    people are hard to foretell in what they like, others in what they dislike. While s and the curve are learnt, the
    factors of a cell leave its own residual out. Counts enter through v and through the shrinkage.

    The cost is that of the folds' completions, and O(cells) for the rest. Nothing is promised: the risk is an estimate,
    for entries that are to be predicted as the observed cells were, and from random folds it learns nothing of blocks
    of the matrix in which no cell was seen beyond what v says of them.

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
        confidence: ConfidenceAlgorithm | None = None,
        progress: ProgressCallback | None = None,
    ) -> FittedRisk:
        """The risk of ``completion``, fitted on all of ``observations``; ``cross_fit`` has it without one fold each.

        A ``confidence`` is given as an algorithm with every parameter chosen: it is fitted anew for each fold, as
        a cell's own confidence is high just because the cell was seen, and then on all observations.
        """
        evidence = Evidence.of(observations, completion, confidence, progress)
        least = LEAST_RISK * observations.unit.half_width**2
        return _learnt(cross_fit.residuals(confidence), evidence, least, progress)


def _learnt(cells: Residuals, evidence: Evidence, least: float, progress: ProgressCallback | None) -> FittedRisk:
    """The model that fits the residuals of ``cells``, each made ``least`` larger, for use with ``evidence``."""
    n_slopes, n_knots = cells.monotone.shape[1], min(MOST_KNOTS, 2 + len(cells.rows) // ENTRIES_PER_KNOT)
    knots = knots_for(cells.predicted, n_knots)
    sides = (
        NoiseSide.of(cells.rows, cells.counts, cells.predicted),
        NoiseSide.of(cells.cols, cells.counts, cells.predicted),
    )
    centre = np.average(cells.monotone, axis=0, weights=cells.counts)
    features = np.column_stack([cells.monotone - centre, hats(cells.predicted, knots)])
    solver = Backfitting(features, n_slopes, cells.squared + least, sides, TOL)
    fit = run(solver, max_steps=MAX_STEPS, progress=progress).state
    slopes, heights = fit.coefficients[:n_slopes], fit.coefficients[n_slopes:]
    return FittedRisk(
        evidence=evidence,
        rows=fit.rows,
        cols=fit.cols,
        slopes=slopes,
        knots=knots,
        heights=heights - slopes @ centre,
    )
