"""Random numbers without state: the k-th of a stream is a hash of the seed and k, whichever batch asks for it."""

from __future__ import annotations

from typing import Any

import numpy as np

from surefill.kernels.compile import compiled

GOLDEN, FIRST, SECOND = (
    np.uint64(0x9E3779B97F4A7C15),
    np.uint64(0xBF58476D1CE4E5B9),
    np.uint64(0x94D049BB133111EB),
)
FAR, MIDDLE, NEAR, HALF, MANTISSA = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(32), np.uint64(11)


@compiled
def random_bits(key: Any, k: int) -> Any:
    """The k-th 64 bits of the SplitMix64 stream that starts at ``key`` (both unsigned 64-bit numbers)."""
    z = np.uint64(key) + (np.uint64(k) + np.uint64(1)) * GOLDEN
    z = (z ^ (z >> FAR)) * FIRST
    z = (z ^ (z >> MIDDLE)) * SECOND
    return z ^ (z >> NEAR)


def random_bits_reference(key: int, k: int) -> int:
    """Readable twin of `random_bits`, in Python's whole numbers."""
    mask = (1 << 64) - 1
    z = (int(key) + (int(k) + 1) * int(GOLDEN)) & mask
    z = ((z ^ (z >> 30)) * int(FIRST)) & mask
    z = ((z ^ (z >> 27)) * int(SECOND)) & mask
    return z ^ (z >> 31)


@compiled
def random_below(key: Any, k: int, n: int) -> Any:
    """A whole number from 0 to n - 1, for n up to 2^31; its bias is n / 2^32."""
    return np.int64(((random_bits(key, k) >> HALF) * np.uint64(n)) >> HALF)


@compiled
def random_sign(key: Any, k: int) -> float:
    """A number uniform on [-1, 1)."""
    return float(random_bits(key, k) >> MANTISSA) * 2.0**-52 - 1.0


def stream_key(seed: int, stream: int) -> np.uint64:
    """Where the stream numbered ``stream`` of a seed starts; streams of one seed do not meet in practice."""
    return np.uint64(random_bits_reference(random_bits_reference(seed, 0), stream))
