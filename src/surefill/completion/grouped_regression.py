"""Grouped regression: one least-squares problem per row (or per column), on the factors of the columns (or rows).

Groups are the rows that were seen, or the columns. A table about them has one line per group and a last line, the
fallback, that stands for every group without entries: :meth:`Groups.locate` gives those position -1, which is that
line.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from surefill.arrays import Array, IntArray
from surefill.data import Groups, Observations
from surefill.data.groups import locate
from surefill.kernels.least_squares import invert_groups, solve_groups
from surefill.parallel import over_ranges


@dataclass(frozen=True, eq=False)
class GroupedRegression:
    """The entries of all rows (or all columns), and the regressions on what is known of the columns (or rows).

    Entries are in the groups' order: ``target`` r_t is the value less what is common to all, ``weight`` c_t its count,
    ``other`` the position of its column (or row) in the table of those.
    """

    groups: Groups
    other: NDArray[np.int64]
    target: Array
    weight: Array

    @classmethod
    def of_rows(cls, observations: Observations, col_ids: IntArray, target: Array) -> Self:
        """One regression per row, on the columns ``col_ids``."""
        return cls._of(observations, observations.by_row, observations.cols, col_ids, target)

    @classmethod
    def of_cols(cls, observations: Observations, row_ids: IntArray, target: Array) -> Self:
        """One regression per column, on the rows ``row_ids``."""
        return cls._of(observations, observations.by_col, observations.rows, row_ids, target)

    @classmethod
    def _of(
        cls, observations: Observations, groups: Groups, other: IntArray, other_ids: IntArray, target: Array
    ) -> Self:
        order = groups.order
        counts = observations.counts[order].astype(np.float64)
        return cls(groups, locate(other_ids, other[order]), target[order], counts)

    def over(self, kernel: Callable[..., None], *arrays: Any) -> None:
        """Run ``kernel(first, last, starts, other, *arrays)`` over all groups, on all cores."""
        starts = self.groups.starts
        over_ranges(lambda first, last: kernel(first, last, starts, self.other, *arrays), starts)

    def least_squares(
        self, features: Array, target: Array, penalty: Array, prior: Array, pull: Array
    ) -> tuple[Array, float]:
        """The regressions of :mod:`surefill.kernels.least_squares` on ``features`` of the others.

        Gives the groups' solutions, with a last line of zeros, and the sum of their problems' values.
        """
        solution, value = np.zeros((len(self.groups) + 1, features.shape[1])), np.empty(len(self.groups))
        self.over(solve_groups, target, self.weight, features, penalty, prior, pull, solution, value)
        return solution, float(value.sum())

    def regress(self, fixed: Array, penalty: Array, prior: Array, pull: Array) -> tuple[Array, float]:
        """Biases and factors together, given the others' biases and factors ``fixed``."""
        target = self.target - fixed[self.other, 0]
        return self.least_squares(as_features(fixed), target, penalty, prior, pull)

    def inverses_of(self, fixed: Array, penalty: Array, prior: Array) -> Array:
        """(sum_t c_t f_t f_t' + diag(penalty_g) + P)^-1 of each group g, and last P^-1, of no entries."""
        inverse = np.empty((len(self.groups) + 1, *prior.shape))
        self.over(invert_groups, self.weight, as_features(fixed), penalty, prior, inverse)
        inverse[-1] = np.linalg.inv(prior)
        return inverse


def as_features(solution: Array) -> Array:
    """(1, factors) of each line (bias, factors): what the regressions of the others see of it."""
    features = solution.copy()
    features[:, 0] = 1.0
    return features


def reindexed(ids: IntArray, table: Array, new_ids: IntArray) -> Array:
    """``table`` of the groups ``ids`` for the groups ``new_ids``: unknown ids get the fallback line."""
    lines: Array = table[np.append(locate(ids, new_ids), -1)]
    return lines


def merged(ids: IntArray, table: Array, new_ids: IntArray, new_table: Array) -> tuple[IntArray, Array]:
    """The union of the ids, and both tables in one: the new line where both have one, the old fallback line."""
    union = np.union1d(ids, new_ids)
    result, position = reindexed(ids, table, union), locate(new_ids, union)
    found = np.flatnonzero(position >= 0)
    result[found] = new_table[position[found]]
    return union, result
