"""Shrunken row and column means, taken off before a completion and added back after it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from surefill.data import Observations, UnitMap

Array = NDArray[np.float64]

PRIOR_DRAWS = 5.0
"""Draws of value 0 that every row's and column's mean is shrunk by."""

SWEEPS = 10


@dataclass(frozen=True, eq=False)
class Offsets:
    """o_ij = mean + b_i + c_j on [-1, 1]; the last of ``rows``, and of ``cols``, is 0, for all without entries."""

    mean: float
    rows: Array
    cols: Array

    @classmethod
    def none(cls, n_rows: int, n_cols: int) -> Self:
        """No offset."""
        return cls(0.0, np.zeros(n_rows + 1), np.zeros(n_cols + 1))

    @classmethod
    def fit(cls, observations: Observations) -> Self:
        """min sum_x c_x (u_x - mean - b_i - c_j)^2 + 5 |b|^2 + 5 |c|^2, the mean that of the draws, by ten sweeps."""
        by_row, by_col, counts = observations.by_row, observations.by_col, observations.counts.astype(np.float64)
        i, j = by_row.locate(observations.rows), by_col.locate(observations.cols)
        u = observations.unit.to_unit(observations.values)
        found = replace(cls.none(len(by_row), len(by_col)), mean=float(np.average(u, weights=counts)))
        for _ in range(SWEEPS):
            found = replace(found, cols=_shrunken(j, u - found.mean - found.rows[i], counts, len(by_col)))
            found = replace(found, rows=_shrunken(i, u - found.mean - found.cols[j], counts, len(by_row)))
        return found

    def at(self, i: NDArray[np.int64], j: NDArray[np.int64]) -> Array:
        """Offsets at positions among the present rows and columns, -1 for all others."""
        return np.asarray(self.mean + self.rows[i] + self.cols[j])

    def for_rows(self, observations: Observations, unit: UnitMap, cols: NDArray[np.int64]) -> Self:
        """The offsets of other rows, the columns' as they are; ``cols`` are the cells' positions among them."""
        by_row = observations.by_row
        if self.mean == 0 and not self.cols.any():
            return replace(self, rows=np.zeros(len(by_row) + 1))
        i = by_row.locate(observations.rows)
        rest = unit.to_unit(observations.values) - self.mean - self.cols[cols]
        return replace(self, rows=_shrunken(i, rest, observations.counts.astype(np.float64), len(by_row)))


def _shrunken(index: NDArray[np.int64], values: Array, counts: Array, size: int) -> Array:
    total = np.bincount(index, counts * values, minlength=size + 1)
    return np.asarray(total / (np.bincount(index, counts, minlength=size + 1) + PRIOR_DRAWS))
