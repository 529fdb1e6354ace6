"""An order of rows and columns in which structure shows: groups that go together, within them the largest first.

With A >= 0 and d, e its row and column sums, rows and columns are placed by the leading singular vectors of
(D + tau)^-1/2 A (E + tau)^-1/2, tau the mean sum. k blocks with little between them give k large singular values and
small ones after, so the number of groups is where the singular values after the first, always large, fall most.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefill.coverage.confidence import Confidence
from surefill.plots import plot_matrix

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Order = NDArray[np.int64]
Array = NDArray[np.float64]

MOST_GROUPS, LEAST_FALL = 8, 0.08
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
    return np.lexsort((-A.sum(axis=1), row_groups)), np.lexsort((-A.sum(axis=0), col_groups))


def co_cluster(A: Array) -> tuple[Order, Order]:
    """The group of each row and of each column, largest group first; all 0 where none stand out."""
    from sklearn.cluster import KMeans

    m, n = A.shape
    d, e = A.sum(axis=1), A.sum(axis=0)
    scale = np.sqrt(np.multiply.outer(d + d.mean(), e + e.mean()))
    left, values, right = np.linalg.svd(np.divide(A, scale, out=np.zeros(A.shape), where=scale > 0), False)
    falls = -np.diff(values, append=0.0)[1:MOST_GROUPS]
    if falls.max(initial=0.0) < LEAST_FALL:
        return np.zeros(m, np.int64), np.zeros(n, np.int64)
    n_groups = int(np.argmax(falls)) + 2
    places = _directions(np.vstack([left[:, :n_groups], right[:n_groups].T]))
    groups = KMeans(n_groups, n_init=4, random_state=0).fit_predict(places)
    by_size = np.argsort(np.argsort(-np.bincount(groups, minlength=n_groups), kind="stable"))
    ranked = by_size[groups].astype(np.int64)
    return ranked[:m], ranked[m:]


def _directions(places: Array) -> Array:
    """Scaled to length 1: a row of little weight lies in its group's direction, nearer to the origin."""
    lengths = np.linalg.norm(places, axis=1, keepdims=True)
    return np.asarray(np.divide(places, lengths, out=np.zeros_like(places), where=lengths > 1e-12))
