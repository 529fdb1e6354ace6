"""What :class:`RiskModel` returns: the expected squared error of any entry."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefill.data import Observations
from surefill.errors import InputError
from surefill.risk.cross_fitting import Evidence
from surefill.risk.noise_factors import NoiseFactors

Array = NDArray[np.float64]


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
        predicted = self.evidence.completion.at(rows, cols)
        curve = np.interp(predicted, self.knots, self.heights)
        level = np.exp(self.evidence.monotone(rows, cols) @ self.slopes + curve)
        return np.asarray(level * self.rows.at(rows, predicted) * self.cols.at(cols, predicted))

    def fold_in(self, observations: Observations) -> Self:
        """The risk of other rows, seen at ``observations``: they have factor 1, as if they were like most."""
        ids = observations.by_row.ids
        return replace(self, evidence=self.evidence.fold_in(observations), rows=NoiseFactors.none(ids))
