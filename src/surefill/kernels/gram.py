"""Sums of outer products of many short vectors (Gram matrices), in tiles that stay in registers."""

from __future__ import annotations

import numpy as np

from surefill.arrays import Array, Floats
from surefill.kernels.compile import compiled
from surefill.kernels.registers import LANES, fill, load, multiply_add, store, zeros

CHUNK = 128
"""Vectors summed at once, in their own precision: with 48 numbers each they take 24 KB in float32, within the first
cache. Sums of chunks are added in double precision, so that rounding does not grow with the number of vectors."""


def whole_lanes(k: int) -> int:
    """k rounded up to a multiple of the register's lanes.

    >>> whole_lanes(21)
    24
    """
    return -(-k // LANES) * LANES


@compiled
def add_gram(vectors: Floats, stride: int, size: int, tile: Floats, total: Array) -> None:
    """Add sum_t v_t v_t' to the lower triangle of ``total``, where v_t begins at ``vectors[t * stride]``, t < ``size``.

    ``total`` has whole lanes of rows and columns, ``tile`` is room for 64 numbers. Sums of 8 x 8 products stay in
    registers: 9 loads for 8 fused multiply-adds of 8 numbers each.
    """
    k = total.shape[0]
    for a in range(0, k, LANES):
        for d in range(0, a + LANES, LANES):
            s0, s1, s2, s3 = zeros(vectors), zeros(vectors), zeros(vectors), zeros(vectors)
            s4, s5, s6, s7 = zeros(vectors), zeros(vectors), zeros(vectors), zeros(vectors)
            for t in range(size):
                i, v = t * stride + a, load(vectors, t * stride + d)
                s0 = multiply_add(fill(vectors, i), v, s0)
                s1 = multiply_add(fill(vectors, i + 1), v, s1)
                s2 = multiply_add(fill(vectors, i + 2), v, s2)
                s3 = multiply_add(fill(vectors, i + 3), v, s3)
                s4 = multiply_add(fill(vectors, i + 4), v, s4)
                s5 = multiply_add(fill(vectors, i + 5), v, s5)
                s6 = multiply_add(fill(vectors, i + 6), v, s6)
                s7 = multiply_add(fill(vectors, i + 7), v, s7)
            store(tile, 0, s0), store(tile, 8, s1), store(tile, 16, s2), store(tile, 24, s3)
            store(tile, 32, s4), store(tile, 40, s5), store(tile, 48, s6), store(tile, 56, s7)
            for e in range(LANES):
                line = total[a + e]
                for f in range(LANES):
                    line[d + f] += tile[e * LANES + f]


def add_gram_reference(vectors: Floats, stride: int, size: int, tile: Floats, total: Array) -> None:
    """The readable twin of :func:`add_gram`, on the tiles that it fills."""
    k = total.shape[0]
    v = vectors[: size * stride].reshape(size, stride)[:, :k].astype(np.float64)
    tiles = np.arange(k) // LANES
    total += np.where(tiles[:, None] >= tiles, v.T @ v, 0.0)
