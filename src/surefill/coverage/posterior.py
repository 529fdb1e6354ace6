"""Confidence from a factor model's own posterior: how much the observations narrowed each entry down."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefill.completion.factor_completion import FactorCompletion
from surefill.completion.ridge import Array, prior_ridge
from surefill.data import Observations
from surefill.data.groups import locate
from surefill.errors import InputError
from surefill.kernels.least_squares import quadratic_forms


@dataclass(frozen=True, eq=False)
class PosteriorConfidence:
    """C_ij = 1 - (f_j' A_i^-1 f_j + g_i' B_j^-1 g_i) / (f_j' P^-1 f_j + g_i' P^-1 g_i)

    with f_j = (1, q_j), g_i = (1, p_i), P the prior precision of a row or column, and A_i = P + sum of c f f' over
    row i's entries, B_j likewise: the share of the prior variance of an entry that its row's and column's
    observations removed. 0 where neither was seen, towards 1 where both were seen much. A heuristic of location,
    with no guarantee of its own; memory O((m + n) rank^2), any size of matrix.
    """

    completion: FactorCompletion
    row_inverses: Array
    col_inverses: Array

    def __post_init__(self) -> None:
        fitted = self.completion
        for solution, inverses in ((fitted.row_solution, self.row_inverses), (fitted.col_solution, self.col_inverses)):
            if inverses.shape != (*solution.shape, solution.shape[1]) or not np.isfinite(inverses).all():
                raise InputError("a posterior needs one finite square matrix per row of the completion's factors.")

    @classmethod
    def of(cls, completion: FactorCompletion, observations: Observations) -> PosteriorConfidence:
        """The posterior of ``completion``, fitted on ``observations``."""
        penalty = completion.penalty
        rows = completion.row_side(observations).inverses(completion.col_solution, penalty)
        cols = completion.col_side(observations).inverses(completion.row_solution, penalty)
        return cls(completion, rows, cols)

    @cached_property
    def _sides(self) -> tuple[Array, Array, Array, Array]:
        """f, g, and the prior variances f' P^-1 f and g' P^-1 g."""
        f, g = self.completion.col_features, self.completion.row_features
        prior = 1.0 / prior_ridge(f.shape[1], self.completion.penalty)
        return f, g, f**2 @ prior, g**2 @ prior

    @property
    def shape(self) -> tuple[int, int]:
        """(m, n)."""
        return self.completion.shape

    def at(self, rows: ArrayLike, cols: ArrayLike) -> NDArray[np.float64]:
        """C at the cells (rows[t], cols[t])."""
        fitted = self.completion
        i, j = locate(fitted.row_ids, np.asarray(rows)), locate(fitted.col_ids, np.asarray(cols))
        f, g, f_prior, g_prior = self._sides
        left = quadratic_forms(f, self.row_inverses, j, i) + quadratic_forms(g, self.col_inverses, i, j)
        before = f_prior[j] + g_prior[i]
        return np.clip(1.0 - left / before, 0.0, 1.0)

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

    def fold_in(self, observations: Observations) -> Self:
        """The confidence for other rows, seen at ``observations``, with the columns as they were."""
        completion = self.completion.fold_in(observations)
        side = completion.row_side(observations)
        return replace(
            self,
            completion=completion,
            row_inverses=side.inverses(completion.col_solution, completion.penalty),
        )
