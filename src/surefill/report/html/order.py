"""An order of rows and columns in which structure shows: groups that see the same, in each the most trusted first.

With A the pattern of observed cells, D and E the diagonals of its row and column sums, and s, t their means, rows and
columns are placed by the leading singular vectors of (D + s)^-1/2 A (E + t)^-1/2: rows that see the same columns come
to lie together, and with the columns they see. k groups that see nothing of one another give k large singular values
and small ones after them, so the number of groups is where the singular values fall most. The means keep a few cells
that hang together with nothing else from being groups.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.cluster import KMeans
from sklearn.utils.extmath import randomized_svd

from surefill.data import Observations

Order = NDArray[np.int64]
Array = NDArray[np.float64]

MOST_GROUPS = 8


def order_of(observations: Observations, by_row: Array, by_col: Array) -> tuple[Order, Order]:
    """Rows and columns in the order to show them, given the mean confidence of each."""
    row_groups, col_groups = co_cluster(observations)
    return _ordered(row_groups, by_row), _ordered(col_groups, by_col)


def co_cluster(observations: Observations) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The group of each row and of each column, numbered by size, largest first; all 0 where none stand out."""
    m, n = observations.shape
    n_vectors = min(MOST_GROUPS + 1, m, n)
    left, values, right = randomized_svd(_scaled_pattern(observations), n_vectors, n_iter=12, random_state=0)
    n_groups = int(np.argmax(values[:-1] - values[1:])) + 1 if n_vectors > 1 else 1
    if n_groups == 1:
        return np.zeros(m, np.int64), np.zeros(n, np.int64)
    places = _directions(np.vstack([left[:, :n_groups], right[:n_groups].T]))
    groups = KMeans(n_groups, n_init=4, random_state=0).fit_predict(places)
    by_size = np.argsort(np.argsort(-np.bincount(groups, minlength=n_groups), kind="stable"))
    ranked = by_size[groups].astype(np.int64)
    return ranked[:m], ranked[m:]


def _scaled_pattern(observations: Observations) -> sparse.csr_array:
    rows, cols, (m, n) = observations.rows, observations.cols, observations.shape
    of_row, of_col = np.bincount(rows, minlength=m), np.bincount(cols, minlength=n)
    scale = np.sqrt((of_row[rows] + of_row.mean()) * (of_col[cols] + of_col.mean()))
    return sparse.csr_array((1 / scale, (rows, cols)), shape=(m, n))


def _directions(places: Array) -> Array:
    """Rows scaled to length 1: a row seen little lies in the same direction as its group, nearer to the origin."""
    lengths = np.linalg.norm(places, axis=1, keepdims=True)
    return np.asarray(np.divide(places, lengths, out=np.zeros_like(places), where=lengths > 1e-12))


def _ordered(groups: NDArray[np.int64], confidence: Array) -> Order:
    return np.lexsort((-confidence, groups))
