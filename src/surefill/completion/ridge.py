"""The ridge regressions of one side of a factor model, the other side held fixed.

A side's *solution* has one row per present group, x_g = (bias, factors), and a last row of zeros that stands
for every group without entries: :meth:`Groups.locate` gives those position -1, which is that row.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from surefill.data import Groups, Observations
from surefill.data.groups import IntArray, locate
from surefill.kernels.compile import over_ranges
from surefill.kernels.least_squares import invert_groups, solve_groups

Array = NDArray[np.float64]

BIAS_PENALTY = 5.0


@dataclass(frozen=True, eq=False)
class RidgeSide:
    """min_x  sum_t c_t (r_t - bias_t - f_t . x)^2 + penalty (5 x_0^2 + sqrt(N_g) |x_1..|^2)  for each group g.

    Entries are in the groups' order: ``residual`` r_t is the unit value less the mean, ``weight`` c_t its count,
    ``other`` the position of its column (or row) on the fixed side, N_g the draws of the group. The square root
    lies between a prior that is the same for all (N_g^0) and one that grows with the data (N_g^1).
    """

    groups: Groups
    other: NDArray[np.int64]
    residual: Array
    weight: Array

    @classmethod
    def of_rows(cls, observations: Observations, col_ids: IntArray, residual: Array) -> RidgeSide:
        """The regressions of the rows on columns ``col_ids``."""
        return cls._of(observations.by_row, observations.cols, col_ids, observations.counts, residual)

    @classmethod
    def of_cols(cls, observations: Observations, row_ids: IntArray, residual: Array) -> RidgeSide:
        """The regressions of the columns on rows ``row_ids``."""
        return cls._of(observations.by_col, observations.rows, row_ids, observations.counts, residual)

    @classmethod
    def _of(
        cls, groups: Groups, other: IntArray, other_ids: IntArray, counts: NDArray[np.int64], residual: Array
    ) -> RidgeSide:
        order = groups.order
        return cls(groups, locate(other_ids, other[order]), residual[order], counts[order].astype(np.float64))

    def solve(self, fixed: Array, penalty: float) -> tuple[Array, float]:
        """The solution of this side given the other side's, and the sum of the groups' problems at it."""
        starts, features = self.groups.starts, as_features(fixed)
        target, ridge = self.residual - fixed[self.other, 0], self.ridge(fixed.shape[1], penalty)
        solution, value = np.zeros((len(self.groups) + 1, fixed.shape[1])), np.empty(len(self.groups))
        over_ranges(
            lambda first, last: solve_groups(
                first, last, starts, self.other, target, self.weight, features, ridge, solution, value
            ),
            starts,
        )
        return solution, float(value.sum())

    def inverses(self, fixed: Array, penalty: float) -> Array:
        """(sum_t c_t f_t f_t' + P)^-1 of each group, P the prior of :func:`prior_ridge`; last P^-1, of no entries.

        The prior is the same for every group, so that only observations lower a variance: with the ridge of the
        regressions, which grows with the draws, a busy row would seem well known even in directions it never saw.
        """
        starts, features = self.groups.starts, as_features(fixed)
        prior = prior_ridge(fixed.shape[1], penalty)
        ridge = np.tile(prior, (len(self.groups), 1))
        inverse = np.empty((len(self.groups) + 1, fixed.shape[1], fixed.shape[1]))
        over_ranges(
            lambda first, last: invert_groups(first, last, starts, self.other, self.weight, features, ridge, inverse),
            starts,
        )
        inverse[-1] = np.diag(1.0 / prior)
        return inverse

    def penalised(self, solution: Array, penalty: float) -> float:
        """What the penalties of all groups add up to."""
        return float(np.sum(self.ridge(solution.shape[1], penalty) * solution[:-1] ** 2))

    def ridge(self, width: int, penalty: float) -> Array:
        """The diagonal added to each group's normal equations."""
        draws = np.add.reduceat(self.weight, self.groups.starts[:-1])
        ridge: Array = np.outer(np.sqrt(draws), np.full(width, penalty))
        ridge[:, 0] = BIAS_PENALTY * penalty
        return ridge


def prior_ridge(width: int, penalty: float) -> Array:
    """The diagonal of a group with a single draw, taken as the prior before any."""
    return np.append(BIAS_PENALTY * penalty, np.full(width - 1, penalty))


def as_features(solution: Array) -> Array:
    """What the other side's regressions see of a solution: its factors, and a one in place of the bias."""
    features = solution.copy()
    features[:, 0] = 1.0
    return features
