"""Whether a few outliers dominate the squared error: k of n cells that hold half of all squared deviations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

MOST_SHARE = 0.01
"""Share of the cells that count as few. Half of the squared deviations lie in 12% of normal values, in 7% of Laplace's
and in 4% of exponential ones (a million drawn of each); one in a hundred holds them where tails are heavier than those
of a lognormal law, or values are mistaken."""

FEW, FAR = 3, 20.0
"""In small tables up to three cells count as few as well, if each is twenty median deviations from the median: the
largest of a thousand exponential values is 14 of them away."""

LEAST_CELLS = 50
"""Smaller tables are not judged: three of fewer cells are many."""


@dataclass(frozen=True)
class Dominance:
    """The k cells farthest from the median that hold half of sum_x (y_x - median)^2, where k is at most n / 100,
    or 3 if they are far away.

    Attributes
    ----------
    n_dominating, n_cells : k, and all observed cells n.
    median, farthest, usual : the median, the value farthest from it, and the deviation that half of the cells exceed.

    Examples
    --------
    >>> import numpy as np
    >>> from surefill import Observations
    >>> values = np.r_[np.sin(np.arange(500)), 1e6]
    >>> Observations(np.arange(501), np.zeros(501, dtype=int), values).dominance.n_dominating
    1
    """

    n_dominating: int
    n_cells: int
    median: float
    farthest: float
    usual: float

    @property
    def sentence(self) -> str:
        """What that means, and what can be done."""
        one = self.n_dominating == 1
        return (
            f"A few values dominate: {self.n_dominating:,} of {self.n_cells:,} observed cells, such as one of "
            f"{self.farthest:g}, {'holds' if one else 'hold'} half of all squared deviations from the median "
            f"{self.median:g}, where usual cells are {self.usual:.3g} away. Values and errors of all cells follow "
            "them: if they are mistakes, bounds (--bounds LOW HIGH on the command line) name the line of the first, "
            "so that it can be left out; if they are meant, completing logarithms or ranks of values is robust to them."
        )


def find_dominance(values: NDArray[Any]) -> Dominance | None:
    """The few cells that dominate; None where none do."""
    n = len(values)
    if n < LEAST_CELLS:
        return None
    median = float(np.median(values))
    size = np.abs(values.astype(np.float64) - median)
    few = max(int(MOST_SHARE * n), FEW)
    farthest = np.sort(np.partition(size, n - few)[n - few :])[::-1]
    largest = farthest[0] if farthest[0] > 0 else 1.0
    held = np.cumsum((farthest / largest) ** 2)
    half = 0.5 * float(np.sum((size / largest) ** 2))
    if half == 0 or held[-1] < half:
        return None
    k, usual = int(np.searchsorted(held, half)) + 1, float(np.median(size))
    if k > MOST_SHARE * n and farthest[k - 1] < FAR * usual:
        return None
    return Dominance(k, n, median, float(values[np.argmax(size)]), usual)
