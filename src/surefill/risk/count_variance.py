"""How unsure a completion is, for those that do not say so themselves."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefill.data import Observations
from surefill.data.groups import Groups, IntArray, locate

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class CountVariance:
    """1 + 1 / (1 + n_i) + 1 / (1 + n_j) with n_i and n_j the draws in row i and column j:

    the variance of a draw, in units of the noise, where rows and columns have an effect each, as varied as the noise,
    and nothing else. The tables end with a 0 for rows and columns without draws.
    """

    row_ids: IntArray
    row_draws: Array
    col_ids: IntArray
    col_draws: Array

    @classmethod
    def of(cls, observations: Observations) -> CountVariance:
        """Count the draws."""
        by_row, by_col = observations.by_row, observations.by_col
        return cls(by_row.ids, _draws(by_row, observations.counts), by_col.ids, _draws(by_col, observations.counts))

    def variance(self, rows: ArrayLike, cols: ArrayLike) -> NDArray[np.float64]:
        """At the pairs (rows[t], cols[t])."""
        of_row = self.row_draws[locate(self.row_ids, np.asarray(rows))]
        of_col = self.col_draws[locate(self.col_ids, np.asarray(cols))]
        return np.asarray(1.0 + 1.0 / (1.0 + of_row) + 1.0 / (1.0 + of_col))

    def fold_in(self, observations: Observations) -> Self:
        """The same for other rows, seen at ``observations``."""
        by_row = observations.by_row
        return replace(self, row_ids=by_row.ids, row_draws=_draws(by_row, observations.counts))


def _draws(groups: Groups, counts: NDArray[np.int64]) -> Array:
    return np.append(np.add.reduceat(counts[groups.order], groups.starts[:-1]), 0).astype(np.float64)
