"""A completion of low rank: an additive part and a product of factors."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from surefill.arrays import Array
from surefill.completion.base import OptimalityGap
from surefill.completion.effects import Effects, subtract_effects
from surefill.completion.factored_completion import StoredProduct
from surefill.completion.grouped_regression import GroupedRegression
from surefill.data import Observations
from surefill.errors import InputError
from surefill.loop import Status
from surefill.registry import storable

SMALLEST_RIDGE = 1e-9
"""Least ridge of a folded-in row, as a share of the largest sum of squares of a factor: without one, a row of fewer
entries than factors would have no unique solution."""


@storable
@dataclass(frozen=True, eq=False)
class LowRankCompletion(StoredProduct):
    """offset + b_i + c_j + p_i . q_j, clipped to the bounds, all in the user's units.

    ``row_solution`` holds (b_i, p_i) for the rows ``row_ids`` and a last row of zeros for all others, and
    ``col_solution`` the same for columns: an entry of an unseen row is predicted from its column alone. The factors are
    balanced, p'p = q'q = the singular values of the product.

    Attributes
    ----------
    penalty : of the ridge regressions that fold rows in; the multiplier of the trace norm at the solution.
    chosen : the parameter the fit used, by name, given or found on held-out cells.
    gap : how far from optimal the product is at most; it speaks of the values before they are clipped.
    status : why the solver stopped.

    Examples
    --------
    >>> import surefill as sf
    >>> sim = sf.datasets.make_low_rank((30, 20), rank=2, n_draws=400, noise=0.1, random_state=0)
    >>> completion = sf.completion.SoftImpute(penalty=1.0).fit(sim.observations)
    >>> type(completion).__name__, completion.penalty
    ('LowRankCompletion', 1.0)
    """

    kind: ClassVar[str] = "low-rank matrix"

    bounds: tuple[float, float]
    offset: float
    has_effects: bool
    penalty: float
    chosen: dict[str, float]
    gap: OptimalityGap
    status: Status

    def _in_units(self, centred: Array) -> NDArray[np.float64]:
        return np.clip(self.offset + centred, *self.bounds)

    def fold_in(self, observations: Observations) -> Self:
        """The completion of other rows, seen at ``observations``, the columns as learnt.

        min_p  (1/2) sum c_x (y_x - offset - b_i - c_j - p . q_j)^2 + (penalty / 2) |p|^2  for each row: at an optimum
        of the trace-norm problem every fitted row solves this, so folding one in changes nothing.
        """
        if observations.shape[1] != self.shape[1]:
            raise InputError(f"new rows must have {self.shape[1]} columns; got {observations.shape[1]}.")
        rows = GroupedRegression.of_rows(observations, self.col_ids, self._centred(observations))
        solution = self._regressed(rows, self.col_solution)
        return replace(self, shape=observations.shape, row_ids=rows.groups.ids, row_solution=solution)

    def fold_in_columns(self, observations: Observations) -> Self:
        """The completion of other columns, seen at ``observations``, the rows as learnt."""
        if observations.shape[0] != self.shape[0]:
            raise InputError(f"new columns must have {self.shape[0]} rows; got {observations.shape[0]}.")
        cols = GroupedRegression.of_cols(observations, self.row_ids, self._centred(observations))
        solution = self._regressed(cols, self.row_solution)
        return replace(self, shape=observations.shape, col_ids=cols.groups.ids, col_solution=solution)

    def _centred(self, observations: Observations) -> Array:
        return np.subtract(observations.values, self.offset, dtype=np.float64)

    def _regressed(self, regression: GroupedRegression, fixed: Array) -> Array:
        """(effect, factors) of each group by ridge regression on the others' factors, and a last row of zeros."""
        effects, target = subtract_effects(regression, fixed, self.has_effects)
        factors = np.ascontiguousarray(fixed[:, 1:])
        largest = float((factors**2).sum(axis=0).max(initial=0.0))
        ridge = np.full((len(regression.groups), self.rank), max(self.penalty, SMALLEST_RIDGE * largest))
        no_prior = np.zeros((self.rank, self.rank))
        found, _ = regression.least_squares(factors, target, ridge, no_prior, np.zeros_like(ridge))
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
        """From the additive part and the factors of the present rows and columns."""
        row_solution, col_solution = effects.with_factors(*factors)
        return cls(
            shape=observations.shape,
            row_ids=observations.by_row.ids,
            col_ids=observations.by_col.ids,
            row_solution=row_solution,
            col_solution=col_solution,
            bounds=observations.bounds,
            offset=effects.offset,
            has_effects=has_effects,
            penalty=penalty,
            chosen=chosen,
            gap=gap,
            status=status,
        )


def effects_alone(observations: Observations) -> LowRankCompletion:
    """A mean and shrunken row and column effects: the completion of rank 0."""
    no_factors = np.zeros((len(observations.by_row), 0)), np.zeros((len(observations.by_col), 0))
    return LowRankCompletion.of(
        observations,
        Effects.of(observations, "effects", "effects_alone"),
        no_factors,
        has_effects=True,
        penalty=0.0,
        chosen={},
        gap=OptimalityGap(0.0, 0.0, "searched"),
        status=Status.CONVERGED,
    )
