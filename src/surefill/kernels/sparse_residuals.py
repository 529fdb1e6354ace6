"""Residuals of a low-rank matrix on the observed cells, and their products with its factors, in one pass each.

With E the sparse matrix of weighted residuals of M = A B' on the sample,

    E_x = c_x (r_x - a_i . b_j)  at the cells x = (i, j) seen,  0 elsewhere,

its products with the factors and the loss (1/2) sum_x c_x (r_x - M_x)^2 cost 2 nnz k multiply-adds.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from surefill.arrays import Array, IntArray
from surefill.kernels.compile import compiled, compiled_sums


@compiled_sums
def _dot(x: Array, y: Array) -> float:
    """x . y, several terms at a time."""
    total = 0.0
    for a in range(len(x)):
        total += x[a] * y[a]
    return total


@compiled
def residual_products(
    first: int,
    last: int,
    starts: NDArray[np.int64],
    other: IntArray,
    target: Array,
    weight: Array,
    own: Array,
    fixed: Array,
    product: Array,
) -> None:
    """Write (E B)_g = sum_t c_t (r_t - own_g . f_t) f_t into ``product`` for the groups first <= g < last.

    Groups are rows and ``fixed`` is B, or groups are columns and ``fixed`` is A.
    """
    for g in range(first, last):
        x, out = own[g], product[g]
        out[:] = 0.0
        for t in range(starts[g], starts[g + 1]):
            f = fixed[other[t]]
            e = weight[t] * (target[t] - _dot(x, f))
            for a in range(len(f)):
                out[a] += e * f[a]


def residual_products_reference(
    first: int,
    last: int,
    starts: NDArray[np.int64],
    other: IntArray,
    target: Array,
    weight: Array,
    own: Array,
    fixed: Array,
    product: Array,
) -> None:
    """The readable twin of :func:`residual_products`."""
    for g in range(first, last):
        entries = slice(starts[g], starts[g + 1])
        f = fixed[other[entries]]
        product[g] = (weight[entries] * (target[entries] - f @ own[g])) @ f


@compiled
def residuals(
    first: int,
    last: int,
    starts: NDArray[np.int64],
    other: IntArray,
    target: Array,
    weight: Array,
    own: Array,
    fixed: Array,
    result: Array,
) -> None:
    """Write E_x = c_t (r_t - own_g . f_t), in the groups' order, for the groups first <= g < last."""
    for g in range(first, last):
        x = own[g]
        for t in range(starts[g], starts[g + 1]):
            result[t] = weight[t] * (target[t] - _dot(x, fixed[other[t]]))


def residuals_reference(
    first: int,
    last: int,
    starts: NDArray[np.int64],
    other: IntArray,
    target: Array,
    weight: Array,
    own: Array,
    fixed: Array,
    result: Array,
) -> None:
    """The readable twin of :func:`residuals`."""
    for g in range(first, last):
        entries = slice(starts[g], starts[g + 1])
        result[entries] = weight[entries] * (target[entries] - fixed[other[entries]] @ own[g])
