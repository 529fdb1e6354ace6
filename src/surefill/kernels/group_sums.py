"""Sums of features over the entries of each group: a sparse matrix times a thin one, spread over cores."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from surefill.kernels.compile import compiled

Array = NDArray[np.float64]


@compiled
def sum_groups(
    first: int,
    last: int,
    starts: NDArray[np.int64],
    other: NDArray[np.int64],
    weight: Array,
    features: Array,
    total: Array,
) -> None:
    """Write sum_t c_t f_t over the entries t of each group first <= g < last into ``total``; nnz k multiply-adds."""
    k = features.shape[1]
    for g in range(first, last):
        for a in range(k):
            total[g, a] = 0.0
        for t in range(starts[g], starts[g + 1]):
            f, c = features[other[t]], weight[t]
            for a in range(k):
                total[g, a] += c * f[a]


def sum_groups_reference(
    first: int,
    last: int,
    starts: NDArray[np.int64],
    other: NDArray[np.int64],
    weight: Array,
    features: Array,
    total: Array,
) -> None:
    """The readable twin of :func:`sum_groups`."""
    for g in range(first, last):
        entries = slice(starts[g], starts[g + 1])
        total[g] = weight[entries] @ features[other[entries]]
