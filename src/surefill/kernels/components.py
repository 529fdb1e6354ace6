"""Connected components of a bipartite graph by union-find."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from surefill.arrays import IntArray
from surefill.kernels.compile import compiled


@compiled
def component_labels(rows: IntArray, cols: IntArray, m: int, n: int) -> NDArray[np.int64]:
    """The component of each of m rows, then n columns, in the graph of edges (rows[t], cols[t]), numbered from 0.

    Every node points to a node of its component with no larger index; paths are halved on the way (Tarjan 1975).
    """
    parent = np.arange(m + n)
    for t in range(len(rows)):
        a, b = np.int64(rows[t]), m + np.int64(cols[t])
        while parent[a] != a:
            parent[a] = parent[parent[a]]
            a = parent[a]
        while parent[b] != b:
            parent[b] = parent[parent[b]]
            b = parent[b]
        parent[max(a, b)] = min(a, b)
    count = 0
    for node in range(m + n):
        if parent[node] == node:
            parent[node] = count
            count += 1
        else:
            parent[node] = parent[parent[node]]  # its root has a smaller index, and its number already
    return parent


def component_labels_reference(rows: IntArray, cols: IntArray, m: int, n: int) -> NDArray[np.int64]:
    """The readable twin of :func:`component_labels`."""
    graph = coo_array((np.ones(len(rows), np.int8), (rows, m + cols.astype(np.int64))), shape=(m + n, m + n))
    return connected_components(graph, directed=False)[1].astype(np.int64)
