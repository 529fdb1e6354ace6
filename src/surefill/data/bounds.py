"""The range that values may take, and how it is known: given, a scale that was recognised, or only the range seen."""

from __future__ import annotations

import enum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surefill.data.units import UnitMap
from surefill.errors import InputError
from surefill.registry import storable

STEPS = (1.0, 0.5)
"""Steps of the scales that are recognised: whole numbers and halves, as people rate."""

MOST_STEPS = 20
"""Steps between the ends of a scale: from 0 to 10 in halves, the longest in use, takes 20."""

ENDS_SEEN, SHARE_AT_ENDS = 5, 0.005
"""How often each end of a scale must have been seen, and as which share of the cells: one star in 200 ratings is rare,
while the largest of many counts without a bound is seen once or twice."""


@storable
class BoundsSource(enum.Enum):
    """How the range of values is known, in words that follow the range.

    Examples
    --------
    >>> import surefill as sf
    >>> sf.Observations([0, 1], [0, 1], [1.2, 3.4], bounds=(1, 5)).bounds_from
    <BoundsSource.GIVEN: 'as given'>
    """

    GIVEN = "as given"
    SCALE = "the scale they were seen on"
    SEEN = "the range seen"


def recognised_step(values: NDArray[np.float64], counts: NDArray[Any] | None = None) -> float | None:
    """The step of the scale that all ``values`` lie on and that ends where they end; None where there is none.

    ``counts`` says how many cells have each value, one when not given. A scale has at most 20 steps, and each of its
    ends was seen five times or more and in one of 200 cells or more: values without a bound seldom pile up at the
    largest.

    >>> recognised_step(np.repeat([1.0, 2.0, 3.0, 4.0, 5.0], 10))
    1.0
    >>> recognised_step(np.repeat([0.5, 2.0, 5.0], 10))
    0.5
    >>> recognised_step(np.array([0.0, 0.0, 1.0, 0.0, 2.0, 1.0, 7.0])) is None
    True
    """
    if values.size == 0:
        return None
    low, high = values.min(), values.max()
    if not 0 < high - low <= MOST_STEPS * max(STEPS):
        return None
    step = next((step for step in STEPS if np.equal(np.round(values / step) * step, values).all()), None)
    if step is None or high - low > MOST_STEPS * step:
        return None
    times = np.ones(len(values), np.int64) if counts is None else counts
    enough = max(ENDS_SEEN, SHARE_AT_ENDS * float(times.sum()))
    return step if min(times[values == low].sum(), times[values == high].sum()) >= enough else None


def resolve_bounds(
    bounds: tuple[float, float] | None, y: NDArray[np.float64], scatter: NDArray[np.float64]
) -> tuple[tuple[float, float], BoundsSource]:
    """The bounds given, checked against the values; else the range seen, as a scale where the values lie on one.

    A mean of draws that differ, which has scatter, need not lie on their scale: such values are not asked.
    """
    seen = float(y.min()), float(y.max())
    if bounds is None:
        agreed = y[scatter == 0]
        step = recognised_step(agreed)
        on_scale = step is not None and (float(agreed.min()), float(agreed.max())) == seen
        return seen, BoundsSource.SCALE if on_scale else BoundsSource.SEEN
    if len(np.atleast_1d(bounds)) != 2:
        raise InputError(f"bounds must be two numbers, low and high; got {bounds}.")
    low, high = float(bounds[0]), float(bounds[1])
    if (low, high) != seen:  # a single value has a range of width 0, which is no fault until a unit is asked for
        UnitMap(low, high)
    outside = np.flatnonzero((y < low) | (y > high))
    if outside.size:
        first = int(outside[0])
        raise InputError(f"values must lie within bounds ({low:g}, {high:g}); item {first} is {y[first]:g}.")
    return (low, high), BoundsSource.GIVEN


def describe_bounds(bounds: tuple[float, float], source: BoundsSource, values: NDArray[np.float64]) -> str:
    """One sentence on the range and how it is known; ``values`` are those that lie on the scale, where there is one."""
    low, high = bounds
    if source is BoundsSource.GIVEN:
        return f"Values lie in [{low:g}, {high:g}], as given."
    if source is BoundsSource.SCALE:
        step = STEPS[0] if np.equal(np.round(values), values).all() else STEPS[1]
        return f"Values lie on the scale {low:g} to {high:g} in steps of {step:g}, taken as the range."
    return f"Values from {low:g} to {high:g} were seen; bounds were not given."
