"""The k-th largest number of each row: one comparison for nearly every entry, where a partition moves them all."""

from __future__ import annotations

import numpy as np

from surefill.arrays import Array
from surefill.kernels.compile import compiled


@compiled
def kth_largest(table: Array, k: int) -> Array:
    """The k-th largest of each row, -inf where it has fewer entries, from a heap of the k largest so far."""
    out, heap = np.empty(len(table)), np.empty(k)
    for i in range(len(table)):
        heap[:] = -np.inf
        for entry in table[i]:
            if entry > heap[0]:
                _replace_least(heap, entry)
        out[i] = heap[0]
    return out


@compiled
def _replace_least(heap: Array, entry: float) -> None:
    """Put ``entry`` in the place of heap[0], the least, and sift it down."""
    at, child = 0, 1
    while child < len(heap):
        if child + 1 < len(heap) and heap[child + 1] < heap[child]:
            child += 1
        if entry <= heap[child]:
            break
        heap[at] = heap[child]
        at, child = child, 2 * child + 1
    heap[at] = entry


def kth_largest_reference(table: Array, k: int) -> Array:
    """The readable twin of :func:`kth_largest`."""
    padded = np.pad(table, ((0, 0), (0, k)), constant_values=-np.inf)
    return np.sort(padded, axis=1)[:, -k]
