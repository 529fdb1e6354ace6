"""A completion in factored form: a mean, two biases and an inner product."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefill.completion.ridge import Array, RidgeSide, as_features
from surefill.data import Observations, UnitMap
from surefill.data.groups import IntArray, locate
from surefill.errors import InputError
from surefill.kernels.least_squares import biased_products
from surefill.loop import Status


@dataclass(frozen=True, eq=False)
class FactorCompletion:
    """u_ij = mean + b_i + c_j + p_i . q_j on [-1, 1], cut to it and given in the user's units.

    ``row_solution`` holds (b_i, p_i) for the rows ``row_ids`` and a last row of zeros for all others, and
    ``col_solution`` the same for columns: an entry of an unseen row is predicted from its column alone.
    """

    shape: tuple[int, int]
    unit: UnitMap
    mean: float
    penalty: float
    status: Status
    row_ids: IntArray
    col_ids: IntArray
    row_solution: Array
    col_solution: Array

    def __post_init__(self) -> None:
        sides = (self.row_ids, self.row_solution), (self.col_ids, self.col_solution)
        widths = {solution.shape[1] for _, solution in sides}
        fits = all(solution.shape[0] == len(ids) + 1 and np.isfinite(solution).all() for ids, solution in sides)
        if not fits or len(widths) != 1 or any((np.diff(ids) <= 0).any() for ids, _ in sides):
            raise InputError("each side of a factor completion needs sorted ids and one finite row more than them.")

    @property
    def rank(self) -> int:
        """Number of factors."""
        return int(self.row_solution.shape[1]) - 1

    def at(self, rows: ArrayLike, cols: ArrayLike) -> NDArray[np.float64]:
        """Values at the pairs (rows[t], cols[t])."""
        i, j = locate(self.row_ids, np.asarray(rows)), locate(self.col_ids, np.asarray(cols))
        return self._in_units(biased_products(self.row_solution, self.col_solution, i, j))

    def block(self, rows: ArrayLike, cols: ArrayLike) -> NDArray[np.float64]:
        """Values on the grid rows x cols."""
        x = self.row_solution[locate(self.row_ids, np.asarray(rows))]
        y = self.col_solution[locate(self.col_ids, np.asarray(cols))]
        return self._in_units(x[:, :1] + y[:, 0] + x[:, 1:] @ y[:, 1:].T)

    def dense(self) -> NDArray[np.float64]:
        """The whole m x n matrix; only for matrices small enough to hold."""
        return self.block(np.arange(self.shape[0]), np.arange(self.shape[1]))

    def _in_units(self, centred: Array) -> NDArray[np.float64]:
        return self.unit.from_unit(np.clip(self.mean + centred, -1.0, 1.0))

    def fold_in(self, observations: Observations) -> Self:
        """The completion of other rows, seen at ``observations``, the columns as learnt: one regression per row."""
        side = self.row_side(observations)
        return replace(
            self,
            shape=observations.shape,
            row_ids=side.groups.ids,
            row_solution=side.solve(self.col_solution, self.penalty)[0],
        )

    def row_side(self, observations: Observations) -> RidgeSide:
        """The regressions of the rows of ``observations`` on this completion's columns."""
        return RidgeSide.of_rows(observations, self.col_ids, self._residual(observations))

    def col_side(self, observations: Observations) -> RidgeSide:
        """The regressions of the columns of ``observations`` on this completion's rows."""
        return RidgeSide.of_cols(observations, self.row_ids, self._residual(observations))

    def _residual(self, observations: Observations) -> Array:
        return self.unit.to_unit(observations.values) - self.mean

    @property
    def row_features(self) -> Array:
        """(1, p_i) of each present row."""
        return as_features(self.row_solution)

    @property
    def col_features(self) -> Array:
        """(1, q_j) of each present column."""
        return as_features(self.col_solution)
