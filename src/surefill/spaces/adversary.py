"""A factored member of the version space, as the separation oracles give it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from surefill.arrays import Floats
from surefill.registry import storable


@storable
@dataclass(frozen=True, eq=False)
class FactoredAdversary:
    """A member M = left right' of the version space played against a confidence C; memory per row and column.

    ``value`` = <C, M> and ``mean`` = <C, M> / |C|; no member exceeds ``bound``, which is infinite where none is known.
    """

    left: Floats
    right: Floats
    value: float
    mean: float
    bound: float = math.inf

    @property
    def matrix(self) -> NDArray[np.float64]:
        """All m x n of it; only for matrices small enough to hold."""
        return self.left.astype(np.float64) @ self.right.T.astype(np.float64)

    def __repr__(self) -> str:
        return f"FactoredAdversary(value {self.value:.6g}, bound {self.bound:.6g}, mean {self.mean:.6g})"
