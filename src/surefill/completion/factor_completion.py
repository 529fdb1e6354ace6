"""What :class:`FactorModel` returns: the factors of both sides."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

from surefill.completion.biased_product import StoredProduct
from surefill.completion.factored import Factored
from surefill.completion.ridge import RidgeSide
from surefill.completion.side import Array, overlaid
from surefill.data import Observations, UnitMap
from surefill.loop import Status


@dataclass(frozen=True, eq=False)
class FactorCompletion(StoredProduct, Factored):
    """u_ij = mean + b_i + c_j + p_i . q_j on [-1, 1], cut to it and given in the user's units.

    ``row_solution`` holds (b_i, p_i) for the rows ``row_ids`` and a last row of zeros for all others, and
    ``col_solution`` the same for columns: an entry of an unseen row is predicted from its column alone.

    Examples
    --------
    >>> import surefill as sf
    >>> sim = sf.datasets.make_low_rank((30, 20), rank=2, n_draws=400, noise=0.1, random_state=0)
    >>> completion = sf.FactorModel(rank=3).fit(sim.observations)
    >>> type(completion).__name__, completion.dense().shape
    ('FactorCompletion', (30, 20))
    """

    unit: UnitMap
    mean: float
    penalty: float
    status: Status

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
