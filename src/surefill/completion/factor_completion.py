"""What :class:`FactorModel` returns: the factors of both sides."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from surefill.completion.factored import Factored
from surefill.completion.ridge import RidgeSide
from surefill.completion.side import Array, overlaid
from surefill.data import Observations, UnitMap
from surefill.data.groups import IntArray
from surefill.errors import InputError
from surefill.loop import Status


@dataclass(frozen=True, eq=False)
class FactorCompletion(Factored):
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

    def row_table(self) -> tuple[IntArray, Array]:
        """``row_ids`` and ``row_solution``."""
        return self.row_ids, self.row_solution

    def col_table(self) -> tuple[IntArray, Array]:
        """``col_ids`` and ``col_solution``."""
        return self.col_ids, self.col_solution

    def _with_rows(self, observations: Observations, keep: bool) -> Self:
        side = self.row_side(observations)
        table = side.groups.ids, side.solve(self.col_solution, self.penalty)[0]
        ids, solution = overlaid(*self.row_table(), *table) if keep else table
        return replace(self, shape=observations.shape, row_ids=ids, row_solution=solution)

    def _with_cols(self, observations: Observations, keep: bool) -> Self:
        side = self.col_side(observations)
        table = side.groups.ids, side.solve(self.row_solution, self.penalty)[0]
        ids, solution = overlaid(*self.col_table(), *table) if keep else table
        return replace(self, shape=observations.shape, col_ids=ids, col_solution=solution)

    def row_posterior(self, observations: Observations) -> Array:
        """A_i^-1 of each row, in units of the noise; last the prior's."""
        return self.row_side(observations).inverses(self.col_solution, self.penalty)

    def col_posterior(self, observations: Observations) -> Array:
        """B_j^-1 of each column, in units of the noise; last the prior's."""
        return self.col_side(observations).inverses(self.row_solution, self.penalty)

    def row_side(self, observations: Observations) -> RidgeSide:
        """The regressions of the rows of ``observations`` on this completion's columns."""
        return RidgeSide.of_rows(observations, self.col_ids, self.residual(observations))

    def col_side(self, observations: Observations) -> RidgeSide:
        """The regressions of the columns of ``observations`` on this completion's rows."""
        return RidgeSide.of_cols(observations, self.row_ids, self.residual(observations))
