"""Calibration cells and candidates, as the ways to choose a kept set take them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from surefill.arrays import Array

Kept = NDArray[np.bool_]
"""Which candidates are kept."""


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Calibration cells that have what support asks for: their risks, losses and weights.

    Examples
    --------
    >>> import numpy as np
    >>> len(HeldOut(np.array([0.1, 0.4]), np.array([0.0, 1.2]), np.ones(2)))
    2
    """

    risk: Array
    loss: Array
    weight: Array

    def __len__(self) -> int:
        return len(self.risk)


@dataclass(frozen=True, eq=False)
class Candidates:
    """Cells that may be kept: their risks, and their weights on the scale of the calibration cells' weights.

    Examples
    --------
    >>> import numpy as np
    >>> len(Candidates(np.array([0.1, 0.4]), np.ones(2)))
    2
    """

    risk: Array
    weight: Array

    def __len__(self) -> int:
        return len(self.risk)


def running(combine: np.ufunc, risk: Array, amounts: Array, thresholds: Array) -> Array:
    """Sum or largest of the amounts at risks up to each threshold; 0 where there are none."""
    order = np.argsort(risk, kind="stable")
    combined = np.append(0.0, combine.accumulate(amounts[order]))
    return np.asarray(combined[np.searchsorted(risk[order], thresholds, side="right")])
