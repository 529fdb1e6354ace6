"""Confidence from a factor model's posterior: the share of an entry's prior variance that the observations removed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefill.arrays import Array
from surefill.completion import BayesianFactorCompletion, BayesianFactorModel, Completion, FactoredCompletion
from surefill.confidence.algorithm import Certificate, require_columns
from surefill.data import Observations
from surefill.errors import InputError, invalid_parameter, is_seed
from surefill.kernels.least_squares import quadratic_forms
from surefill.loop import ProgressCallback
from surefill.parallel import current_map
from surefill.registry import storable

NAME = "the posterior variance"
"""What sentences call it."""

OTHER_SEEDS = 1000
"""Added to the seeds of the restarts: far from those people give, since a start given twice agrees with itself."""


@storable
@dataclass(frozen=True)
class PosteriorVariance:
    """The share of each entry's prior variance that the observations removed, under the Bayesian factor model.

    The model is fitted ``n_restarts`` times more, from other random starts, and where the fits disagree confidence is
    low: see :class:`PosteriorConfidence`. With 0 restarts the posterior of any factor model is taken as it is.

    Examples
    --------
    >>> import surefill as sf
    >>> sim = sf.datasets.make_blocks((30, 20), n_groups=2, rank=2, n_draws=2000, noise=0.1, random_state=0)
    >>> completion = sf.completion.BayesianFactorModel().fit(sim.observations)
    >>> confidence, certificate = sf.confidence.PosteriorVariance().fit(sim.observations, completion)
    >>> certificate.standing
    'heuristic'
    >>> C = confidence.dense()
    >>> bool(C[sim.support].mean() > C[~sim.support].mean() + 0.2)
    True
    """

    n_restarts: int = 7
    random_state: int = 0

    def chosen_for(
        self, observations: Observations, completion: Completion, tolerance: float, held_out_error: float
    ) -> Self:
        """No parameter to choose; returns self."""
        return self

    def fit(
        self, observations: Observations, completion: Completion, progress: ProgressCallback | None = None
    ) -> tuple[PosteriorConfidence, Certificate]:
        """Read the posterior off ``completion``, or off a factor model fitted for it where that is none itself."""
        self._validate()
        own = FactoredCompletion if self.n_restarts == 0 else BayesianFactorCompletion
        if isinstance(completion, own):
            model, whose = completion, "the factor model's"
        else:
            separate = BayesianFactorModel(random_state=self.random_state)
            model, whose = separate.fit(observations, progress), "a separate factor model's"
        seeds = [self.random_state + OTHER_SEEDS + restart for restart in range(self.n_restarts)]
        restarts = [BayesianFactorModel(model.rank, random_state=seed) for seed in seeds]
        others = tuple(current_map().map(lambda restart: restart.fit(observations).values_only(), restarts))
        agree = f", and how far {len(others)} fits from other starts agree with it" if others else ""
        sentence = f"A heuristic: how far {whose} posterior variance fell below its prior{agree}; no bound is known."
        certificate = Certificate("heuristic", None, None, None, sentence, NAME)
        return PosteriorConfidence.of(model, observations, others), certificate

    def _validate(self) -> None:
        for name, given in (("n_restarts", self.n_restarts), ("random_state", self.random_state)):
            if not is_seed(given):
                raise invalid_parameter("PosteriorVariance", name, "a whole number of at least 0", given)


@storable
@dataclass(frozen=True, eq=False)
class PosteriorConfidence:
    """C_ij = 1 - (f_j' A_i^-1 f_j + g_i' B_j^-1 g_i + d_ij) / (f_j' P^-1 f_j + g_i' P^-1 g_i)

    with f_j = (1, q_j), g_i = (1, p_i), P the prior precision of a row or column, and A_i = P + sum of c f f' over
    row i's entries, B_j likewise, as the factor model has them: the share of an entry's prior variance that its row's
    and column's observations removed. d_ij is the variance among this completion and ``others``, fitted from other
    random starts: where nothing ties a row's group to a column's, any rotation of one against the other fits what was
    seen as well, each start finds its own, and only their disagreement tells. 0 where neither was seen, towards 1 where
    both were seen much and together. A heuristic with no guarantee of its own; memory O((m + n) rank^2), any size.

    Examples
    --------
    >>> import surefill as sf
    >>> sim = sf.datasets.make_low_rank((30, 20), rank=2, n_draws=400, noise=0.1, random_state=0)
    >>> confidence = PosteriorConfidence.of(sf.completion.FactorModel().fit(sim.observations), sim.observations)
    >>> confidence.shape
    (30, 20)
    >>> bool((confidence.dense() >= 0).all())
    True
    """

    completion: FactoredCompletion
    row_inverses: Array
    col_inverses: Array
    others: tuple[FactoredCompletion, ...] = ()

    def __post_init__(self) -> None:
        tables = self.completion.row_table(), self.completion.col_table()
        for (_, solution), inverses in zip(tables, (self.row_inverses, self.col_inverses), strict=True):
            if inverses.shape != (*solution.shape, solution.shape[1]) or not np.isfinite(inverses).all():
                raise InputError("a posterior needs one finite square matrix per row of the completion's factors.")

    @classmethod
    def of(
        cls, completion: FactoredCompletion, observations: Observations, others: tuple[FactoredCompletion, ...] = ()
    ) -> PosteriorConfidence:
        """The posterior of ``completion``, fitted on ``observations`` as ``others`` were."""
        return cls(completion, completion.row_posterior(observations), completion.col_posterior(observations), others)

    @cached_property
    def _sides(self) -> tuple[Array, Array, Array, Array]:
        """f, g, and the prior variances f' P^-1 f and g' P^-1 g."""
        f, g = self.completion.col_features, self.completion.row_features
        of_row, of_col = self.row_inverses[-1], self.col_inverses[-1]
        return f, g, np.sum(f @ of_row * f, axis=1), np.sum(g @ of_col * g, axis=1)

    @property
    def shape(self) -> tuple[int, int]:
        """(m, n)."""
        return self.completion.shape

    def at(self, rows: ArrayLike, cols: ArrayLike) -> NDArray[np.float64]:
        """C at the cells (rows[t], cols[t])."""
        return self.given(rows, cols, self.completion.at(rows, cols) if self.others else np.zeros(np.shape(rows)))

    def given(self, rows: ArrayLike, cols: ArrayLike, predicted: Array) -> NDArray[np.float64]:
        """The same where the completion's own values at these cells are known already."""
        i, j = self.completion.locate(rows, cols)
        f, g, f_prior, g_prior = self._sides
        left = quadratic_forms(f, self.row_inverses, j, i) + quadratic_forms(g, self.col_inverses, i, j)
        before = f_prior[j] + g_prior[i]
        return np.clip(1.0 - (left + self._disagreement(rows, cols, predicted)) / before, 0.0, 1.0)

    def _disagreement(self, rows: ArrayLike, cols: ArrayLike, own: Array) -> NDArray[np.float64]:
        """d at the cells, on [-1, 1]: the variance among this completion's values ``own`` and the others'."""
        n = 1 + len(self.others)
        total, squares = np.zeros_like(own), np.zeros_like(own)
        for other in self.others:
            away = other.at(rows, cols) - own
            total += away
            squares += away**2
        variance = np.maximum(squares - total**2 / n, 0.0) / max(n - 1, 1)
        return self.completion.unit.squared_error_to_unit(variance)

    def block(self, rows: ArrayLike, cols: ArrayLike) -> NDArray[np.float64]:
        """C at every pair of the given rows and columns, len(rows) x len(cols)."""
        i, j = np.asarray(rows), np.asarray(cols)
        return self.at(np.repeat(i, len(j)), np.tile(j, len(i))).reshape(len(i), len(j))

    def dense(self) -> NDArray[np.float64]:
        """All m x n of it; only for matrices small enough to hold."""
        return self.block(np.arange(self.shape[0]), np.arange(self.shape[1]))

    @property
    def coverage(self) -> float:
        """|C|, the sum of all confidences, row by row."""
        cols = np.arange(self.shape[1])
        return float(sum(self.block([row], cols).sum() for row in range(self.shape[0])))

    def fold_in(self, observations: Observations, completion: FactoredCompletion | None = None) -> Self:
        """The confidence for other rows, seen at ``observations``, with the columns as they were.

        ``completion`` is this completion folded in, where that was done already.
        """
        require_columns(observations, self.shape[1])
        completion = self.completion.fold_in(observations) if completion is None else completion
        others = tuple(other.fold_in(observations) for other in self.others)
        return replace(self, completion=completion, row_inverses=completion.row_posterior(observations), others=others)
