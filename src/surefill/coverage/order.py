"""Confidences in an order of rows and columns in which structure shows."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefill.coverage.co_clusters import Order, co_cluster, ordered
from surefill.coverage.confidence import Confidence
from surefill.plots import plot_matrix

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Array = NDArray[np.float64]

MOST_SHOWN = 600
"""Rows and columns of a view; beyond that many they are drawn at random, so that nothing m x n is formed."""


@dataclass(frozen=True, eq=False)
class View:
    """Which rows and columns to show, in the order to show them, and the confidences there."""

    rows: Order
    cols: Order
    confidence: Array
    shape: tuple[int, int]

    @classmethod
    def of(cls, confidence: Confidence, order: bool = True, most: int = MOST_SHOWN) -> View:
        """All rows and columns, or ``most`` of each drawn at random; as they come unless ``order``."""
        rows, cols = (some_indices(size, most) for size in confidence.shape)
        C = confidence.block(rows, cols)
        if order:
            by_row, by_col = block_order(C)
            rows, cols, C = rows[by_row], cols[by_col], C[np.ix_(by_row, by_col)]
        return cls(rows, cols, C, confidence.shape)


def plot_confidence(confidence: Confidence, ax: Axes | None = None, order: bool = True) -> Axes:
    """A heat map of confidences; see :meth:`View.of`."""
    view = View.of(confidence, order)
    return plot_matrix(view.confidence, view.shape, "confidence", (0.0, 1.0), ax=ax)


def some_indices(size: int, most: int) -> Order:
    """0 .. size - 1, or ``most`` of them drawn at random, rising; memory grows with ``most`` alone."""
    if size <= most:
        return np.arange(size)
    return np.array(sorted(random.Random(0).sample(range(size), most)), dtype=np.int64)


def block_order(matrix: ArrayLike) -> tuple[Order, Order]:
    """Orders of the rows and the columns of a matrix of numbers >= 0, such as confidences.

    >>> two_blocks = np.array([[1, 0, 1, 0], [0, 1, 0, 1], [1, 0, 1, 0]])
    >>> rows, cols = block_order(two_blocks)
    >>> two_blocks[np.ix_(rows, cols)]
    array([[1, 1, 0, 0],
           [1, 1, 0, 0],
           [0, 0, 1, 1]])
    """
    A = np.asarray(matrix, dtype=np.float64)
    row_groups, col_groups = co_cluster(A)
    return ordered(row_groups, A.sum(axis=1)), ordered(col_groups, A.sum(axis=0))
