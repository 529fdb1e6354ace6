"""The affine map between a user's own units and the paper's [-1, 1]."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefill.inputs import check_range
from surefill.registry import storable


@storable
@dataclass(frozen=True)
class UnitMap:
    """u = (2 v - low - high) / (high - low): values v in [low, high] to u in [-1, 1], and back.

    Errors scale by the half-width s = (high - low) / 2, squared errors by s^2.

    >>> stars = UnitMap(1.0, 5.0)
    >>> stars.to_unit([1.0, 3.0, 5.0])
    array([-1.,  0.,  1.])
    >>> float(stars.squared_error_to_unit(0.5))
    0.125
    """

    low: float
    high: float

    def __post_init__(self) -> None:
        check_range(self.low, self.high)

    @property
    def half_width(self) -> float:
        """s = (high - low) / 2, the size of one unit of [-1, 1] in the user's units."""
        return (self.high - self.low) / 2

    @property
    def centre(self) -> float:
        """The value that maps to 0."""
        return (self.high + self.low) / 2

    def to_unit(self, values: ArrayLike) -> NDArray[np.float64]:
        """Values in the user's units to [-1, 1]."""
        return (np.asarray(values, dtype=np.float64) - self.centre) / self.half_width

    def from_unit(self, unit_values: ArrayLike) -> NDArray[np.float64]:
        """Values in [-1, 1] to the user's units."""
        return np.asarray(unit_values, dtype=np.float64) * self.half_width + self.centre

    def squared_error_to_unit(self, squared_error: ArrayLike) -> NDArray[np.float64]:
        """A squared error in the user's units, measured on [-1, 1]."""
        return np.asarray(squared_error, dtype=np.float64) / self.half_width**2

    def squared_error_from_unit(self, squared_error: ArrayLike) -> NDArray[np.float64]:
        """A squared error measured on [-1, 1], in the user's units."""
        return np.asarray(squared_error, dtype=np.float64) * self.half_width**2
