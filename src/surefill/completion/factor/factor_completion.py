"""What :class:`FactorModel` returns: biases and factors of all rows and columns."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from surefill.arrays import Array
from surefill.completion.factored_completion import FactoredCompletion, StoredProduct
from surefill.completion.grouped_regression import GroupedRegression, merged
from surefill.data import Observations, UnitMap
from surefill.loop import Status
from surefill.registry import storable

BIAS_PENALTY = 5.0
"""Penalty of a bias, in units of ``penalty``: at penalty 1 a row of five draws keeps half of its own mean, as with the
effects of :mod:`surefill.completion.effects`. A convention."""


@dataclass(frozen=True, eq=False)
class RidgeRegressions(GroupedRegression):
    """min_x  sum_t c_t (r_t - bias_t - f_t . x)^2 + penalty (5 x_0^2 + sqrt(N_g) |x_1..|^2)  for each group g.

    A group's solution is x_g = (bias, factors); N_g is the number of its draws. The square root lies between a prior
    that is the same for all (N_g^0) and one that grows with the data (N_g^1).
    """

    def solve(self, fixed: Array, penalty: float) -> tuple[Array, float]:
        """The groups' solutions given those of the others, and the sum of their problems' values."""
        width = fixed.shape[1]
        ridge = self.ridge(width, penalty)
        return self.regress(fixed, ridge, np.zeros((width, width)), np.zeros_like(ridge))

    def inverses(self, fixed: Array, penalty: float) -> Array:
        """(sum_t c_t f_t f_t' + P)^-1 of each group, P the ridge of a single draw; last P^-1, of no entries.

        The prior is the same for every group, so that only observations lower a variance: with the ridge of the
        regressions, which grows with the draws, a busy row would seem well known even in directions it never saw.
        """
        width = fixed.shape[1]
        prior = np.diag(np.append(BIAS_PENALTY * penalty, np.full(width - 1, penalty)))
        return self.inverses_of(fixed, np.zeros((len(self.groups), width)), prior)

    def penalty_value(self, solution: Array, penalty: float) -> float:
        """The sum of all groups' penalty terms."""
        return float(np.sum(self.ridge(solution.shape[1], penalty) * solution[:-1] ** 2))

    def ridge(self, width: int, penalty: float) -> Array:
        """The diagonal added to each group's normal equations."""
        draws = np.add.reduceat(self.weight, self.groups.starts[:-1])
        ridge: Array = np.outer(np.sqrt(draws), np.full(width, penalty))
        ridge[:, 0] = BIAS_PENALTY * penalty
        return ridge


@storable
@dataclass(frozen=True, eq=False)
class FactorCompletion(StoredProduct, FactoredCompletion):
    """u_ij = mean + b_i + c_j + p_i . q_j on [-1, 1], clipped to it and given in the user's units.

    ``row_solution`` holds (b_i, p_i) for the rows ``row_ids`` and a last row of zeros for all others, and
    ``col_solution`` the same for columns: an entry of an unseen row is predicted from its column alone.

    Examples
    --------
    >>> import surefill as sf
    >>> sim = sf.datasets.make_low_rank((30, 20), rank=2, n_draws=400, noise=0.1, random_state=0)
    >>> completion = sf.completion.FactorModel(rank=3).fit(sim.observations)
    >>> type(completion).__name__, completion.dense().shape
    ('FactorCompletion', (30, 20))
    """

    unit: UnitMap
    mean: float
    penalty: float
    status: Status

    def _with_rows(self, observations: Observations, keep: bool) -> Self:
        regressions = self.row_regressions(observations)
        table = regressions.groups.ids, regressions.solve(self.col_solution, self.penalty)[0]
        ids, solution = merged(*self.row_table(), *table) if keep else table
        return replace(self, shape=observations.shape, row_ids=ids, row_solution=solution)

    def _with_cols(self, observations: Observations, keep: bool) -> Self:
        regressions = self.col_regressions(observations)
        table = regressions.groups.ids, regressions.solve(self.row_solution, self.penalty)[0]
        ids, solution = merged(*self.col_table(), *table) if keep else table
        return replace(self, shape=observations.shape, col_ids=ids, col_solution=solution)

    def row_posterior(self, observations: Observations) -> Array:
        """A_i^-1 of each row, in units of the noise; last the prior's."""
        return self.row_regressions(observations).inverses(self.col_solution, self.penalty)

    def col_posterior(self, observations: Observations) -> Array:
        """B_j^-1 of each column, in units of the noise; last the prior's."""
        return self.col_regressions(observations).inverses(self.row_solution, self.penalty)

    def row_regressions(self, observations: Observations) -> RidgeRegressions:
        """The regressions of the rows of ``observations`` on this completion's columns."""
        return RidgeRegressions.of_rows(observations, self.col_ids, self.residual(observations))

    def col_regressions(self, observations: Observations) -> RidgeRegressions:
        """The regressions of the columns of ``observations`` on this completion's rows."""
        return RidgeRegressions.of_cols(observations, self.row_ids, self.residual(observations))
