"""The sample as the low-rank solvers see it: residuals of the common part, by row and by column."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from surefill.completion.effects import Array, Effects, positions
from surefill.data import Groups, Observations
from surefill.kernels.compile import over_ranges
from surefill.kernels.low_rank import residual_products, residuals


@dataclass(frozen=True, eq=False)
class Side:
    """Entries in the order of their row (or column): the position across, the target r and the weight c of each."""

    groups: Groups
    other: NDArray[np.int64]
    target: Array
    weight: Array

    def over(self, kernel: Callable[..., None], *arrays: Any) -> None:
        """Run a kernel on all groups, on all cores."""
        starts = self.groups.starts
        over_ranges(
            lambda first, last: kernel(first, last, starts, self.other, self.target, self.weight, *arrays), starts
        )


@dataclass(frozen=True, eq=False)
class Sample:
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
        common = self.effects.at(*positions(seen, seen.by_row.ids, seen.by_col.ids))
        return np.asarray((seen.values - common) / self.scale)

    @cached_property
    def rows(self) -> Side:
        """Entries by row."""
        return self._side(self.observations.by_row, 1)

    @cached_property
    def cols(self) -> Side:
        """Entries by column."""
        return self._side(self.observations.by_col, 0)

    def _side(self, groups: Groups, across: int) -> Side:
        seen, order = self.observations, groups.order
        other = positions(seen, seen.by_row.ids, seen.by_col.ids)[across]
        return Side(groups, other[order], self.target[order], seen.counts[order].astype(np.float64))

    @property
    def shape(self) -> tuple[int, int]:
        """Present rows and columns."""
        return len(self.observations.by_row), len(self.observations.by_col)

    @cached_property
    def lipschitz(self) -> float:
        """L = max c."""
        return float(self.observations.counts.max())

    @cached_property
    def null_loss(self) -> float:
        """f(0)."""
        return 0.5 * float(np.sum(self.rows.weight * self.rows.target**2))

    def residual(self, left: Array, right: Array) -> Array:
        """E of M = left right', one number per entry in row order."""
        result = np.empty(len(self.rows.target))
        self.rows.over(residuals, left, right, result)
        return result

    def loss(self, residual: Array) -> float:
        """f(M) from E."""
        return 0.5 * float(np.sum(residual**2 / self.rows.weight))

    def matrix(self, residual: Array) -> csr_array:
        """E as a sparse matrix."""
        return csr_array((residual, self.rows.other, self.rows.groups.starts), shape=self.shape)

    def residual_times_right(self, left: Array, right: Array) -> Array:
        """E B for M = A B', E never stored."""
        product = np.empty((self.shape[0], right.shape[1]))
        self.rows.over(residual_products, left, right, product)
        return product

    def residual_times_left(self, left: Array, right: Array) -> Array:
        """E' A for M = A B'."""
        product = np.empty((self.shape[1], left.shape[1]))
        self.cols.over(residual_products, right, left, product)
        return product
