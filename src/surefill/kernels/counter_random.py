"""Counter-based random numbers: the k-th number of a stream is a hash of its key and k, in whichever batch it is drawn.

The hash is SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014), whose state is a
counter.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from surefill.arrays import Array, IntArray
from surefill.kernels.compile import compiled

GOLDEN_GAMMA, MULTIPLIER_1, MULTIPLIER_2 = (
    np.uint64(0x9E3779B97F4A7C15),
    np.uint64(0xBF58476D1CE4E5B9),
    np.uint64(0x94D049BB133111EB),
)
"""SplitMix64's increment (2^64 over the golden ratio, odd) and the multipliers of its mixing function."""

SHIFT_1, SHIFT_2, SHIFT_3 = np.uint64(30), np.uint64(27), np.uint64(31)
"""SplitMix64's shifts."""

HALF_WORD, UNUSED_BITS = np.uint64(32), np.uint64(11)
"""Half of 64 bits, and those beyond the 53 of a double; unsigned, since numba makes int64 and uint64 a float."""


@compiled
def random_bits(key: Any, k: int) -> Any:
    """The k-th 64 bits of the SplitMix64 stream that starts at ``key`` (both unsigned 64-bit numbers)."""
    z = np.uint64(key) + (np.uint64(k) + np.uint64(1)) * GOLDEN_GAMMA
    z = (z ^ (z >> SHIFT_1)) * MULTIPLIER_1
    z = (z ^ (z >> SHIFT_2)) * MULTIPLIER_2
    return z ^ (z >> SHIFT_3)


def random_bits_reference(key: int, k: int) -> int:
    """Readable twin of `random_bits`, in Python's integers."""
    mask = (1 << 64) - 1
    z = (int(key) + (int(k) + 1) * int(GOLDEN_GAMMA)) & mask
    z = ((z ^ (z >> 30)) * int(MULTIPLIER_1)) & mask
    z = ((z ^ (z >> 27)) * int(MULTIPLIER_2)) & mask
    return z ^ (z >> 31)


@compiled
def random_below(key: Any, k: int, n: int) -> Any:
    """A whole number from 0 to n - 1, for n up to 2^31; its bias is n / 2^32."""
    return np.int64(((random_bits(key, k) >> HALF_WORD) * np.uint64(n)) >> HALF_WORD)


@compiled
def random_uniform(key: Any, k: int) -> float:
    """A number uniform on [-1, 1)."""
    return float(random_bits(key, k) >> UNUSED_BITS) * 2.0**-52 - 1.0


@compiled
def cell_uniforms(key: Any, first_row: int, n_cols: int, rows: IntArray, cols: IntArray) -> Array:
    """A number uniform on [0, 1) for each cell (first_row + rows[t], cols[t]) of a table with ``n_cols`` columns."""
    out = np.empty(len(rows))
    for t in range(len(rows)):
        cell = (first_row + np.int64(rows[t])) * n_cols + np.int64(cols[t])
        out[t] = float(random_bits(key, cell) >> UNUSED_BITS) * 2.0**-53  # type: ignore[arg-type]
    return out


def cell_uniforms_reference(key: Any, first_row: int, n_cols: int, rows: IntArray, cols: IntArray) -> Array:
    """Readable twin of `cell_uniforms`."""
    cells = [(first_row + int(i)) * n_cols + int(j) for i, j in zip(rows, cols, strict=True)]
    return np.array([(random_bits_reference(key, cell) >> 11) / 2**53 for cell in cells])


def stream_key(seed: int, stream: int) -> np.uint64:
    """The key of the stream numbered ``stream`` of a seed; streams of one seed do not overlap in practice."""
    return np.uint64(random_bits_reference(random_bits_reference(seed, 0), stream))
