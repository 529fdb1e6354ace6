"""A completion in factored form: a common part and a product of low rank."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefill.completion.effects import Effects, take_off
from surefill.completion.gap import OptimalityGap
from surefill.completion.side import Array, Side
from surefill.data import Observations
from surefill.data.groups import IntArray, locate
from surefill.errors import InputError
from surefill.kernels.least_squares import biased_products
from surefill.loop import Status

SMALLEST_RIDGE = 1e-9


@dataclass(frozen=True, eq=False)
class LowRankCompletion:
    """offset + b_i + c_j + p_i . q_j, cut to the bounds, all in the user's units.

    ``row_solution`` holds (b_i, p_i) for the rows ``row_ids`` and a last row of zeros for all others, and
    ``col_solution`` the same for columns: an entry of an unseen row is predicted from its column alone. The factors are
    balanced, p'p = q'q = the singular values of the product.

    Attributes
    ----------
    penalty : of the ridge regressions that fold rows in; the multiplier of the trace norm at the solution.
    chosen : the parameter the fit used, by name, given or found on held-out cells.
    gap : how far from optimal the product is at most; it speaks of the values before they are cut.
    status : why the solver stopped.
    """

    shape: tuple[int, int]
    bounds: tuple[float, float]
    offset: float
    has_effects: bool
    penalty: float
    chosen: dict[str, float]
    gap: OptimalityGap
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
            raise InputError("each side of a low-rank completion needs sorted ids and one finite row more than them.")

    @property
    def rank(self) -> int:
        """Rank of the product."""
        return int(self.row_solution.shape[1]) - 1

    def at(self, rows: ArrayLike, cols: ArrayLike) -> NDArray[np.float64]:
        """Values at the pairs (rows[t], cols[t])."""
        i, j = locate(self.row_ids, np.asarray(rows)), locate(self.col_ids, np.asarray(cols))
        return self._cut(biased_products(self.row_solution, self.col_solution, i, j))

    def block(self, rows: ArrayLike, cols: ArrayLike) -> NDArray[np.float64]:
        """Values on the grid rows x cols."""
        x = self.row_solution[locate(self.row_ids, np.asarray(rows))]
        y = self.col_solution[locate(self.col_ids, np.asarray(cols))]
        return self._cut(x[:, :1] + y[:, 0] + x[:, 1:] @ y[:, 1:].T)

    def dense(self) -> NDArray[np.float64]:
        """The whole m x n matrix; only for matrices small enough to hold."""
        return self.block(np.arange(self.shape[0]), np.arange(self.shape[1]))

    def _cut(self, centred: Array) -> NDArray[np.float64]:
        return np.clip(self.offset + centred, *self.bounds)

    def fold_in(self, observations: Observations) -> Self:
        """The completion of other rows, seen at ``observations``, the columns as learnt.

        min_p  (1/2) sum c_x (y_x - offset - b_i - c_j - p . q_j)^2 + (penalty / 2) |p|^2  for each row: at an optimum
        of the trace-norm problem every fitted row solves this, so folding one in changes nothing.
        """
        if observations.shape[1] != self.shape[1]:
            raise InputError(f"new rows must have {self.shape[1]} columns; got {observations.shape[1]}.")
        side = Side.of_rows(observations, self.col_ids, observations.values - self.offset)
        solution = self._regressed(side, self.col_solution)
        return replace(self, shape=observations.shape, row_ids=side.groups.ids, row_solution=solution)

    def fold_in_columns(self, observations: Observations) -> Self:
        """The completion of other columns, seen at ``observations``, the rows as learnt."""
        if observations.shape[0] != self.shape[0]:
            raise InputError(f"new columns must have {self.shape[0]} rows; got {observations.shape[0]}.")
        side = Side.of_cols(observations, self.row_ids, observations.values - self.offset)
        solution = self._regressed(side, self.row_solution)
        return replace(self, shape=observations.shape, col_ids=side.groups.ids, col_solution=solution)

    def _regressed(self, side: Side, fixed: Array) -> Array:
        """(effect, factors) of each group by ridge on the other side's factors, and a last row of zeros."""
        effects, target = take_off(side, fixed, self.has_effects)
        factors = np.ascontiguousarray(fixed[:, 1:])
        largest = float((factors**2).sum(axis=0).max(initial=0.0))
        ridge = np.full((len(side.groups), self.rank), max(self.penalty, SMALLEST_RIDGE * largest))
        nothing = np.zeros((self.rank, self.rank))
        found, _ = side.least_squares(factors, target, ridge, nothing, np.zeros_like(ridge))
        return np.column_stack([effects, found])

    @classmethod
    def of(
        cls,
        observations: Observations,
        effects: Effects,
        factors: tuple[Array, Array],
        *,
        has_effects: bool,
        penalty: float,
        chosen: dict[str, float],
        gap: OptimalityGap,
        status: Status,
    ) -> Self:
        """From the common part and the factors of the present rows and columns."""
        ids = observations.by_row.ids, observations.by_col.ids
        return cls(
            observations.shape, observations.bounds, effects.offset, has_effects, penalty, chosen, gap, status,
            *ids, *effects.beside(*factors),
        )  # fmt: skip
