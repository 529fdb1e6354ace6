"""The squared loss on the observed cells, after the common part is taken off: its values, residuals and products."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.sparse import csr_array

from surefill.arrays import Array
from surefill.completion.effects import Effects, positions
from surefill.completion.grouped_regression import GroupedRegression
from surefill.data import Observations
from surefill.kernels.sparse_residuals import residual_products, residuals


@dataclass(frozen=True, eq=False)
class SquaredLoss:
    """f(M) = (1/2) sum_S c_x (r_x - M_x)^2 over present rows and columns, r_x = (y_x - common part) / scale.

    Its gradient is -E, sparse on S, and Lipschitz with constant L = max c. Memory O(nnz).
    """

    observations: Observations
    effects: Effects
    scale: float = 1.0

    @cached_property
    def target(self) -> Array:
        """r in the observations' order."""
        seen = self.observations
        common = self.effects.at(*positions(seen))
        return np.asarray((seen.values - common) / self.scale)

    @cached_property
    def rows(self) -> GroupedRegression:
        """Entries by row."""
        return GroupedRegression.of_rows(self.observations, self.observations.by_col.ids, self.target)

    @cached_property
    def cols(self) -> GroupedRegression:
        """Entries by column."""
        return GroupedRegression.of_cols(self.observations, self.observations.by_row.ids, self.target)

    @property
    def shape(self) -> tuple[int, int]:
        """Present rows and columns."""
        return len(self.observations.by_row), len(self.observations.by_col)

    @cached_property
    def lipschitz(self) -> float:
        """L = max c."""
        return float(self.observations.counts.max())

    @cached_property
    def value_at_zero(self) -> float:
        """f(0)."""
        return 0.5 * float(np.sum(self.rows.weight * self.rows.target**2))

    def residual(self, left: Array, right: Array) -> Array:
        """E of M = left right', one number per entry in row order."""
        result = np.empty(len(self.rows.target))
        self.rows.over(residuals, self.rows.target, self.rows.weight, left, right, result)
        return result

    def value(self, residual: Array) -> float:
        """f(M) from E."""
        return 0.5 * float(np.sum(residual**2 / self.rows.weight))

    def matrix(self, residual: Array) -> csr_array:
        """E as a sparse matrix."""
        return csr_array((residual, self.rows.other, self.rows.groups.starts), shape=self.shape)

    def residual_times_right(self, left: Array, right: Array) -> Array:
        """E B for M = A B', E never stored."""
        product = np.empty((self.shape[0], right.shape[1]))
        self.rows.over(residual_products, self.rows.target, self.rows.weight, left, right, product)
        return product

    def residual_times_left(self, left: Array, right: Array) -> Array:
        """E' A for M = A B'."""
        product = np.empty((self.shape[1], left.shape[1]))
        self.cols.over(residual_products, self.cols.target, self.cols.weight, right, left, product)
        return product
