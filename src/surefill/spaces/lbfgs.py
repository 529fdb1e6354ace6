"""L-BFGS for smooth functions of very many variables whose values cost little more than a pass over them.

SciPy's L-BFGS-B spent as long on its bookkeeping for bounds as the functions here took to evaluate; without bounds
two passes over the last few steps are all that is needed, in the variables' own precision.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable

import numpy as np

from surefill.arrays import Floats

Tried = tuple[float, float, float]
"""A point along a direction: the step, the value and the slope there."""

Objective = Callable[[Floats], tuple[float, Floats]]
"""x -> value and gradient."""

MEMORY = 8
"""Pairs (s, y) kept; 3 to 20 are usual (Nocedal and Wright, Numerical Optimization, section 7.2)."""

DECREASE, CURVATURE = 1e-4, 0.9
"""Weak Wolfe conditions: f falls by this share of what the slope promises, and the slope rises to this share.

The values that Nocedal and Wright (section 3.1) give for quasi-Newton methods.
"""

MAX_TRIES = 20
"""Points tried along one direction before the lowest of them is taken."""


class LBFGSMemory:
    """The last steps s and changes of gradient y, and the product of the inverse Hessian they imply with a vector."""

    def __init__(self) -> None:
        self.pairs: deque[tuple[Floats, Floats, float]] = deque(maxlen=MEMORY)

    def add(self, s: Floats, y: Floats) -> None:
        """Remember a step along which the function curves upwards, unless it is too short to be squared."""
        curving, least = float(s @ y), 1e-10 * float(np.sqrt((s @ s) * (y @ y)))
        if 0 < least < curving:
            self.pairs.append((s, y, curving))

    def times(self, gradient: Floats) -> Floats:
        """H g by the two-loop recursion, the first H being s.y / y.y times the identity."""
        q = gradient.copy()
        shares = []
        for s, y, curving in reversed(self.pairs):
            shares.append(float(s @ q) / curving)
            q -= q.dtype.type(shares[-1]) * y
        if self.pairs:
            _, y, curving = self.pairs[-1]
            q *= q.dtype.type(curving / float(y @ y))
        for (s, y, curving), share in zip(self.pairs, reversed(shares), strict=True):
            q += q.dtype.type(share - float(y @ q) / curving) * s
        return q


def minimize_lbfgs(objective: Objective, x: Floats, iterations: int, deadline: float = np.inf) -> Floats:
    """x after ``iterations`` steps of L-BFGS, each lowering f; fewer where none does or past ``deadline``."""
    memory = LBFGSMemory()
    value, gradient = objective(x)
    for _ in range(iterations):
        direction = -memory.times(gradient)
        slope = float(direction @ gradient)
        if not slope < 0 or time.perf_counter() > deadline:
            break
        first = 1.0 if memory.pairs else 1 / float(np.sqrt(gradient @ gradient))
        found = _line_search(objective, x, value, slope, direction, first)
        if found is None:
            break
        x_next, value, next_gradient = found
        memory.add(x_next - x, next_gradient - gradient)
        x, gradient = x_next, next_gradient
    return x


def _line_search(
    objective: Objective, x: Floats, value: float, slope: float, direction: Floats, step: float
) -> tuple[Floats, float, Floats] | None:
    """The first point found that meets the weak Wolfe conditions, by cubic interpolation, or else the lowest tried."""
    low, high, best = (0.0, value, slope), None, None
    for _ in range(MAX_TRIES):
        candidate = x + direction.dtype.type(step) * direction
        reached, gradient = objective(candidate)
        tried = step, reached, float(direction @ gradient)
        if not reached <= value + DECREASE * step * slope:
            high = tried
        else:
            best = candidate, reached, gradient
            if tried[2] >= CURVATURE * slope:
                break
            low = tried
        step = _cubic_minimum(low, high) if high else 4 * step
        if high and not low[0] < step < high[0]:  # no number is left between the ends
            break
    return best


def _cubic_minimum(low: Tried, high: Tried) -> float:
    """The minimum of the cubic through two values and slopes, kept a tenth of the way from either end.

    The middle where the numbers are not finite or the cubic is a line.
    """
    (a, f_a, d_a), (b, f_b, d_b) = low, high
    with np.errstate(all="ignore"):
        middle = d_a + d_b - 3 * np.float64(f_b - f_a) / (b - a)
        root = np.sqrt(max(0.0, middle**2 - d_a * d_b))
        share = (root + d_b - middle) / (d_b - d_a + 2 * root)
    return float(a + min(max(1 - share, 0.1), 0.9) * (b - a)) if np.isfinite(share) else (a + b) / 2
