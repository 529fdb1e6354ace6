"""Values with as many digits as mean something."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from surefill.arrays import Array
from surefill.estimators import PartialCompletion
from surefill.estimators.long_table import Columns

MOST_DIGITS = 15
"""Decimals that a double holds of a number near 1."""

MORE_DIGITS = 2
"""Digits written beyond those of the data, or of a typical error: what rounding adds to an error is below 1% of it."""

PRECISE, HALF = 0.1, 0.5
"""The typical error is the median of those cells whose expected error is at the lowest tenth: most are larger."""

LOOKED_AT = 10_000
"""Values in which digits are counted."""


def choose_digits(values: Array, result: PartialCompletion) -> int:
    """Two digits more than the observed values have after the point, but none far below the errors to expect.

    >>> import surefill as sf
    >>> sim = sf.datasets.make_low_rank((60, 50), rank=2, n_draws=2000, noise=0.1, random_state=0)
    >>> completer = sf.PartialCompleter(tolerance=0.1, confidence="posterior").fit(sim.observations)
    >>> choose_digits(sim.observations.values, completer.result_)
    4
    """
    scale, weight = result.loss.loss.error_scale(result.calibration.risk), np.ones(1)
    typical = result.scores.half_widths(np.quantile(scale, [PRECISE]), weight, HALF)[0] if len(scale) else np.inf
    needed = MOST_DIGITS
    if 0 < typical < np.inf:
        needed = max(0, MORE_DIGITS - int(np.floor(np.log10(typical))))
    return min(decimals(values) + MORE_DIGITS, needed, MOST_DIGITS)


def decimals(values: ArrayLike) -> int:
    """The fewest digits after the point with which all values are written as they are; of many, some are looked at.

    >>> decimals([4.0, 3.5]), decimals([0.29, 1e5]), decimals([1 / 3])
    (1, 2, 15)
    """
    given = np.asarray(values, dtype=np.float64)
    looked_at = given[:: max(1, len(given) // LOOKED_AT)]
    fits = (digits for digits in range(MOST_DIGITS) if np.equal(np.round(looked_at, digits), looked_at).all())
    return next(fits, MOST_DIGITS)


def rounded(block: Columns, digits: int, bounds: tuple[float, float]) -> Columns:
    """A block whose completed values are rounded, within the bounds, and whose intervals are rounded outwards.

    Observed values stay as they are.
    """
    low, high = bounds
    value = np.where(block["observed"], block["value"], np.clip(np.round(block["value"], digits), low, high))
    new = block | {"value": value}
    if "low" in block:
        unit = 10.0**-digits
        # Ends that were clipped to the bounds stay there.
        new["low"] = np.maximum(np.round(block["low"] - unit / 2, digits), np.minimum(block["low"], low))
        new["high"] = np.minimum(np.round(block["high"] + unit / 2, digits), np.maximum(block["high"], high))
    return new
