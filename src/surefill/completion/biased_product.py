"""What all completions in factored form share: a table of rows, one of columns, and the values they give."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefill.completion.display import completion_card
from surefill.completion.side import Array
from surefill.data.groups import IntArray, locate
from surefill.errors import InputError
from surefill.kernels.least_squares import biased_products


class BiasedProduct(ABC):
    """b_i + c_j + p_i . q_j, to which a subclass adds what is common to all before it cuts it to the bounds.

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

    def _repr_html_(self) -> str:
        return completion_card(self, self.shape)


@dataclass(frozen=True, eq=False)
class StoredProduct(BiasedProduct):
    """``row_solution`` holds (b_i, p_i) for the rows ``row_ids`` and a last row of zeros for all others, and
    ``col_solution`` the same for columns.
    """

    shape: tuple[int, int]
    row_ids: IntArray
    col_ids: IntArray
    row_solution: Array
    col_solution: Array

    def __post_init__(self) -> None:
        sides = self.row_table(), self.col_table()
        fits = all(len(solution) == len(ids) + 1 and np.isfinite(solution).all() for ids, solution in sides)
        widths = {solution.shape[1] for _, solution in sides}
        if not fits or len(widths) != 1 or any((np.diff(ids) <= 0).any() for ids, _ in sides):
            raise InputError("each side of a completion needs sorted ids and one finite row more than them.")

    def row_table(self) -> tuple[IntArray, Array]:
        """``row_ids`` and ``row_solution``."""
        return self.row_ids, self.row_solution

    def col_table(self) -> tuple[IntArray, Array]:
        """``col_ids`` and ``col_solution``."""
        return self.col_ids, self.col_solution
