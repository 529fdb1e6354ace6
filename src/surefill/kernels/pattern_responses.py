"""Working responses of a logistic model of which cells are observed: a Newton step as weighted least squares.

For entry t of a line with vector x and another with vector z, eta = base_t + x_0 + z_0 + sum_{a >= 1} x_a z_a is the
log odds of being observed, e = exp(eta). The entry is one found with odds o = v e / (1 + (1 - s) e) over its rate:

    slope = 1 / (1 + (1 - s) e),   pi = o / (o + rate),   weight = max(pi (1 - pi) slope^2, least)
    target = x_0 + sum_{a >= 1} x_a z_a + (found - pi) slope / weight
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from surefill.arrays import Array
from surefill.kernels.compile import compiled


@compiled
def pattern_responses(
    first: int,
    last: int,
    line: NDArray[np.int64],
    other: NDArray[np.int64],
    found: Array,
    rates: Array,
    base: Array,
    own: Array,
    fixed: Array,
    looked_at: float,
    share: float,
    least: float,
    target: Array,
    weight: Array,
) -> None:
    """Write target and weight of the entries first <= t < last."""
    k = own.shape[1]
    for t in range(first, last):
        x, z = own[line[t]], fixed[other[t]]
        interaction = x[0]
        for a in range(1, k):
            interaction += x[a] * z[a]
        e = np.exp(base[t] + interaction + z[0])
        slope = 1 / (1 + (1 - share) * e)
        odds = looked_at * e * slope
        chance = odds / (odds + rates[t])
        weight[t] = max(chance * (1 - chance) * slope * slope, least)
        target[t] = interaction + (found[t] - chance) * slope / weight[t]


def pattern_responses_reference(
    first: int,
    last: int,
    line: NDArray[np.int64],
    other: NDArray[np.int64],
    found: Array,
    rates: Array,
    base: Array,
    own: Array,
    fixed: Array,
    looked_at: float,
    share: float,
    least: float,
    target: Array,
    weight: Array,
) -> None:
    """The readable twin of :func:`pattern_responses`."""
    t = slice(first, last)
    x, z = own[line[t]], fixed[other[t]]
    interaction = x[:, 0] + (x[:, 1:] * z[:, 1:]).sum(axis=1)
    e = np.exp(base[t] + interaction + z[:, 0])
    slope = 1 / (1 + (1 - share) * e)
    odds = looked_at * e * slope
    chance = odds / (odds + rates[t])
    weight[t] = np.maximum(chance * (1 - chance) * slope**2, least)
    target[t] = interaction + (found[t] - chance) * slope / weight[t]
