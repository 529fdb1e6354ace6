"""One side of a factor model: its rows (or its columns), each with the entries seen in it.

A side's tables have one line per present group and a last line that stands for every group without entries:
:meth:`Groups.locate` gives those position -1, which is that line.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from surefill.data import Groups, Observations
from surefill.data.groups import IntArray, locate
from surefill.kernels.compile import over_ranges
from surefill.kernels.group_sums import sum_groups
from surefill.kernels.least_squares import invert_groups, solve_groups

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Side:
    """Entries in the groups' order: ``residual`` r_t is the unit value less the mean, ``weight`` c_t its count,
    ``other`` the position of its column (or row) on the other side.
    """

    groups: Groups
    other: NDArray[np.int64]
    residual: Array
    weight: Array

    @classmethod
    def of_rows(cls, observations: Observations, col_ids: IntArray, residual: Array) -> Self:
        """The rows, seen at columns ``col_ids``."""
        return cls._of(observations.by_row, observations.cols, col_ids, observations.counts, residual)

    @classmethod
    def of_cols(cls, observations: Observations, row_ids: IntArray, residual: Array) -> Self:
        """The columns, seen at rows ``row_ids``."""
        return cls._of(observations.by_col, observations.rows, row_ids, observations.counts, residual)

    @classmethod
    def _of(
        cls, groups: Groups, other: IntArray, other_ids: IntArray, counts: NDArray[np.int64], residual: Array
    ) -> Self:
        order = groups.order
        return cls(groups, locate(other_ids, other[order]), residual[order], counts[order].astype(np.float64))

    def regress(self, fixed: Array, penalty: Array, prior: Array, pull: Array) -> tuple[Array, float]:
        """The regressions of :mod:`surefill.kernels.least_squares` on the other side's solution ``fixed``.

        Gives the solution of this side, with a last line of zeros, and the sum of the groups' problems at it.
        """
        features, target = as_features(fixed), self.residual - fixed[self.other, 0]
        solution, value = np.zeros((len(self.groups) + 1, fixed.shape[1])), np.empty(len(self.groups))
        starts, entries = self.groups.starts, (self.groups.starts, self.other, target, self.weight)
        over_ranges(
            lambda first, last: solve_groups(first, last, *entries, features, penalty, prior, pull, solution, value),
            starts,
        )
        return solution, float(value.sum())

    def inverses_of(self, fixed: Array, penalty: Array, prior: Array) -> Array:
        """(sum_t c_t f_t f_t' + diag(penalty_g) + P)^-1 of each group g, and last P^-1, of no entries."""
        features, inverse = as_features(fixed), np.empty((len(self.groups) + 1, *prior.shape))
        starts, entries = self.groups.starts, (self.groups.starts, self.other, self.weight)
        over_ranges(lambda first, last: invert_groups(first, last, *entries, features, penalty, prior, inverse), starts)
        inverse[-1] = np.linalg.inv(prior)
        return inverse

    def totals(self, table: Array, weight: Array) -> Array:
        """sum_t weight_t table[other_t] over the entries t of each group."""
        total = np.empty((len(self.groups), table.shape[1]))
        starts, other = self.groups.starts, self.other
        over_ranges(lambda first, last: sum_groups(first, last, starts, other, weight, table, total), starts)
        return total


def as_features(solution: Array) -> Array:
    """What the other side's regressions see of a solution: its factors, and a one in place of the bias."""
    features = solution.copy()
    features[:, 0] = 1.0
    return features


def lent(ids: IntArray, table: Array, new_ids: IntArray) -> Array:
    """``table`` of the groups ``ids`` for the groups ``new_ids``: theirs where known, else the last line."""
    lines: Array = table[np.append(locate(ids, new_ids), -1)]
    return lines


def overlaid(ids: IntArray, table: Array, new_ids: IntArray, new_table: Array) -> tuple[IntArray, Array]:
    """Both tables in one, the new one's lines where both have some; the last line is the old one's."""
    union = np.union1d(ids, new_ids)
    result, position = lent(ids, table, union), locate(new_ids, union)
    found = np.flatnonzero(position >= 0)
    result[found] = new_table[position[found]]
    return union, result
