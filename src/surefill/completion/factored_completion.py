"""What all completions in factored form share: biases and factors of rows and columns, and the values they give."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefill.arrays import Array, IntArray
from surefill.completion.base import completion_card
from surefill.completion.grouped_regression import as_features
from surefill.data import Observations, UnitMap
from surefill.data.groups import locate
from surefill.errors import InputError
from surefill.kernels.least_squares import biased_products


class BiasedProduct(ABC):
    """b_i + c_j + p_i . q_j, to which a subclass adds what is common to all before it clips it to the bounds.

    A subclass says where (b_i, p_i) and (c_j, q_j) are kept; an entry of an unseen row is predicted from its column
    alone, one of an unseen column from its row alone.
    """

    shape: tuple[int, int]

    @abstractmethod
    def row_table(self) -> tuple[IntArray, Array]:
        """Sorted ids of the rows and (b_i, p_i) of each, with a last line of zeros for all others."""

    @abstractmethod
    def col_table(self) -> tuple[IntArray, Array]:
        """Sorted ids of the columns and (c_j, q_j) of each, with a last line of zeros for all others."""

    @abstractmethod
    def _in_units(self, centred: Array) -> NDArray[np.float64]:
        """Predictions in the user's units from b_i + c_j + p_i . q_j."""

    @property
    def rank(self) -> int:
        """Number of factors."""
        return int(self.row_table()[1].shape[1]) - 1

    @property
    def scale(self) -> float:
        """How many of the user's units a unit of b_i + c_j + p_i . q_j is."""
        return 1.0

    def locate(self, rows: ArrayLike, cols: ArrayLike) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Positions of rows and columns in their tables, -1 where unseen."""
        return locate(self.row_table()[0], np.asarray(rows)), locate(self.col_table()[0], np.asarray(cols))

    def at(self, rows: ArrayLike, cols: ArrayLike) -> NDArray[np.float64]:
        """Values at the pairs (rows[t], cols[t])."""
        return self._in_units(biased_products(self.row_table()[1], self.col_table()[1], *self.locate(rows, cols)))

    def block(self, rows: ArrayLike, cols: ArrayLike) -> NDArray[np.float64]:
        """Values on the grid rows x cols."""
        i, j = self.locate(rows, cols)
        x, y = self.row_table()[1][i], self.col_table()[1][j]
        return self._in_units(x[:, :1] + y[:, 0] + x[:, 1:] @ y[:, 1:].T)

    def dense(self) -> NDArray[np.float64]:
        """The whole m x n matrix; only for matrices small enough to hold."""
        return self.block(np.arange(self.shape[0]), np.arange(self.shape[1]))

    def extended(self, shape: tuple[int, int]) -> Self:
        """The same in a larger table: of the rows and columns beyond the old shape nothing was seen."""
        return replace(self, shape=shape)  # type: ignore[type-var]

    def _repr_html_(self) -> str:
        return completion_card(self, self.shape)


@dataclass(frozen=True, eq=False)
class StoredProduct(BiasedProduct):
    """A biased product held as two tables.

    ``row_solution`` holds (b_i, p_i) for the rows ``row_ids`` and a last row of zeros for all others, and
    ``col_solution`` the same for columns.
    """

    shape: tuple[int, int]
    row_ids: IntArray
    col_ids: IntArray
    row_solution: Array
    col_solution: Array

    def __post_init__(self) -> None:
        tables = self.row_table(), self.col_table()
        fits = all(len(solution) == len(ids) + 1 and np.isfinite(solution).all() for ids, solution in tables)
        widths = {solution.shape[1] for _, solution in tables}
        if not fits or len(widths) != 1 or any((np.diff(ids) <= 0).any() for ids, _ in tables):
            raise InputError("each table of a completion needs sorted ids and one finite row more than them.")

    def row_table(self) -> tuple[IntArray, Array]:
        """``row_ids`` and ``row_solution``."""
        return self.row_ids, self.row_solution

    def col_table(self) -> tuple[IntArray, Array]:
        """``col_ids`` and ``col_solution``."""
        return self.col_ids, self.col_solution


class FactoredCompletion(BiasedProduct):
    """u_ij = mean + b_i + c_j + p_i . q_j on [-1, 1], clipped to it and given in the user's units, with posteriors.

    Examples
    --------
    >>> import surefill as sf
    >>> sim = sf.datasets.make_low_rank((30, 20), rank=2, n_draws=400, noise=0.1, random_state=0)
    >>> completion = sf.completion.FactorModel(rank=3).fit(sim.observations)
    >>> isinstance(completion, FactoredCompletion)
    True
    >>> completion.fold_in(sf.Observations([0, 0], [3, 7], [0.2, -0.1], shape=(1, 20))).shape
    (1, 20)
    """

    unit: UnitMap
    mean: float

    @abstractmethod
    def row_posterior(self, observations: Observations) -> Array:
        """The posterior covariance of (b_i, p_i) of each row of ``observations``, the columns as they are.

        Up to one common factor; the last one is the prior's.
        """

    @abstractmethod
    def col_posterior(self, observations: Observations) -> Array:
        """The same for the columns."""

    # Completions are immutable, so each of these makes a new one.

    @abstractmethod
    def _with_rows(self, observations: Observations, keep: bool) -> Self:
        """The rows of ``observations`` solved given the columns, the other rows kept or left out."""

    @abstractmethod
    def _with_cols(self, observations: Observations, keep: bool) -> Self:
        """The same for the columns."""

    def fold_in(self, observations: Observations) -> Self:
        """The completion of other rows, seen at ``observations``, the columns as learnt: one regression per row."""
        return self._with_rows(observations, keep=False)

    def fold_in_columns(self, observations: Observations) -> Self:
        """The completion of other columns, seen at ``observations``, the rows as learnt."""
        return self._with_cols(observations, keep=False)

    def update(self, seen: Observations, new: Observations) -> Self:
        """The completion after ``new``, a part of all that is now ``seen``, without fitting again.

        The rows of ``new`` are solved again, its columns, and the rows once more, each on all its entries; the rest
        stays as learnt. The cost is that of the entries of these rows and columns.
        """
        in_rows, in_cols = (seen.select(np.isin(*ids)) for ids in ((seen.rows, new.rows), (seen.cols, new.cols)))
        return self._with_rows(in_rows, keep=True)._with_cols(in_cols, keep=True)._with_rows(in_rows, keep=True)

    @property
    def row_features(self) -> Array:
        """(1, p_i) of each present row."""
        return as_features(self.row_table()[1])

    @property
    def col_features(self) -> Array:
        """(1, q_j) of each present column."""
        return as_features(self.col_table()[1])

    @property
    def scale(self) -> float:
        """Half the width of the bounds: values lie on [-1, 1]."""
        return self.unit.half_width

    def residual(self, observations: Observations) -> Array:
        """The values on [-1, 1], less the mean."""
        return self.unit.to_unit(observations.values) - self.mean

    def _in_units(self, centred: Array) -> NDArray[np.float64]:
        return self.unit.from_unit(np.clip(self.mean + centred, -1.0, 1.0))
