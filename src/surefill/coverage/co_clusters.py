"""Groups of rows and columns that go together, so that a matrix can be shown in an order in which structure shows.

With A >= 0, sparse or dense, and d, e its row and column sums, rows and columns are placed by the leading singular
vectors of (D + s)^-1/2 A (E + t)^-1/2, s and t the mean sums, which keep a few cells that hang together with nothing
else from being a group. k blocks with little between them give k large singular values and small ones after, so the
number of groups is where the singular values after the first, always large, fall most.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.cluster import KMeans
from sklearn.utils.extmath import randomized_svd

Order = NDArray[np.int64]
Array = NDArray[np.float64]

MOST_GROUPS, LEAST_FALL = 8, 0.08
POWER_STEPS = 12


def co_cluster(A: Array | sparse.coo_array) -> tuple[Order, Order]:
    """The group of each row and of each column, largest group first; all 0 where none stand out."""
    m, n = A.shape
    left, values, right = randomized_svd(_scaled(A), min(MOST_GROUPS + 1, m, n), n_iter=POWER_STEPS, random_state=0)
    falls = -np.diff(values, append=0.0)[1:MOST_GROUPS]
    if falls.max(initial=0.0) < LEAST_FALL:
        return np.zeros(m, np.int64), np.zeros(n, np.int64)
    n_groups = int(np.argmax(falls)) + 2
    places = _directions(np.vstack([left[:, :n_groups], right[:n_groups].T]))
    groups = KMeans(n_groups, n_init=4, random_state=0).fit_predict(places)
    by_size = np.argsort(np.argsort(-np.bincount(groups, minlength=n_groups), kind="stable"))
    ranked = by_size[groups].astype(np.int64)
    return ranked[:m], ranked[m:]


def ordered(groups: Order, weight: Array) -> Order:
    """Positions by group, within a group those of the largest weight first."""
    return np.lexsort((-weight, groups))


def _scaled(A: Array | sparse.coo_array) -> sparse.csr_array:
    stored = sparse.coo_array(A)
    d, e = np.asarray(stored.sum(axis=1)), np.asarray(stored.sum(axis=0))
    scale = np.sqrt((d[stored.row] + d.mean()) * (e[stored.col] + e.mean()))
    return sparse.csr_array((stored.data / scale, (stored.row, stored.col)), shape=stored.shape)


def _directions(places: Array) -> Array:
    """Scaled to length 1: a row of little weight lies in its group's direction, nearer to the origin."""
    lengths = np.linalg.norm(places, axis=1, keepdims=True)
    return np.asarray(np.divide(places, lengths, out=np.zeros_like(places), where=lengths > 1e-12))
