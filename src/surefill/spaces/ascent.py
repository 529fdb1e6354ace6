"""One smooth problem over T factored members, and the stage of L-BFGS that every factored solver repeats."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from threadpoolctl import threadpool_limits

from surefill.spaces.limits import Limits, row_blocks
from surefill.spaces.sphere import Floats, Point, Spheres

HELD_CELLS = 50_000_000
"""Cells up to which a confidence is held as one array; beyond, it is made again in blocks of rows."""

SERIAL_WORK = 500_000_000
"""Multiplications per product up to which one core is faster than the wait for several."""


class Payoff(Protocol):
    """What the T matrices are chosen for: its value (to be made small) and gradient in the stacked factors."""

    def __call__(self, left: Floats, right: Floats) -> tuple[float, Floats, Floats]:
        """Value, and gradients in ``left`` and ``right``."""
        ...


class LinearPayoff:
    """-(pull / T) sum_t <C, M^t>: best responses to a fixed C, a matrix or anything with ``block(rows, cols)``."""

    def __init__(self, C: Any, shape: tuple[int, int], pull: float, count: int, dtype: type) -> None:
        self.shape, self.pull, self.factor = shape, pull, pull / count
        self.C, self.dtype = hold(C, shape, dtype), dtype

    def __call__(self, left: Floats, right: Floats) -> tuple[float, Floats, Floats]:
        """The value, and -(pull / T) C V and -(pull / T) C' U."""
        d_left, d_right = np.empty_like(left), np.zeros_like(right)
        for rows in row_blocks(*self.shape):
            block = rows_of(self.C, rows, self.shape[1], self.dtype)
            d_left[rows] = block @ right
            d_right += block.T @ left[rows]
        value = float(np.einsum("ik,ik->", d_left, left, dtype=np.float64))
        d_left *= -self.factor
        d_right *= -self.factor
        return -self.factor * value, d_left, d_right


@dataclass
class Stage:
    """Minimise payoff + limits over the spheres, by L-BFGS; one call is one stage of the method of multipliers."""

    spheres: Spheres
    limits: Limits
    deadline: float = np.inf

    def run(self, variables: NDArray[np.float64], payoff: Payoff, iterations: int) -> tuple[NDArray[np.float64], Point]:
        """Variables of unit length after ``iterations``, the point there, and multipliers moved accordingly."""
        cells = self.limits.cells

        def objective(x: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
            point = self.spheres.point(x)
            value, d_left, d_right = payoff(point.left, point.right)
            value += self.limits.add(point, d_left, d_right)
            return value / cells, point.pull_back(d_left, d_right) / cells

        with one_core_if(cells * self.spheres.count * self.spheres.width < SERIAL_WORK):
            point = self.spheres.point(descend(objective, variables, iterations, self.deadline))
            self.limits.update(point)
        return (point.on_sphere / np.sqrt(self.spheres.K)).ravel(), point


def descend(
    objective: Callable[[NDArray[np.float64]], tuple[float, NDArray[np.float64]]],
    variables: NDArray[np.float64],
    iterations: int,
    deadline: float = np.inf,
) -> NDArray[np.float64]:
    """Where ``iterations`` of L-BFGS lead, or as many as fit before ``deadline``; it stops early only where stuck."""

    def watch(intermediate_result: Any) -> None:
        if time.perf_counter() > deadline:
            raise StopIteration

    options: Any = {"maxiter": iterations, "maxcor": 5, "ftol": 0.0, "gtol": 0.0, "maxfun": 10 * iterations}
    found = minimize(objective, variables, jac=True, method="L-BFGS-B", options=options, callback=watch)
    return np.asarray(found.x)


def one_core_if(small: bool) -> Any:
    """BLAS on one core while products are small: waiting for a second, busy one costs more than it saves."""
    return threadpool_limits(limits=1 if small else None, user_api="blas")


def hold(C: Any, shape: tuple[int, int], dtype: type) -> Any:
    """``C`` as one array if it is one or is small enough to be, or else as it is."""
    if isinstance(C, np.ndarray):
        return np.ascontiguousarray(C, dtype=dtype)
    if shape[0] * shape[1] > HELD_CELLS:
        return C
    held: Floats = np.empty(shape, dtype=dtype)
    for rows in row_blocks(*shape):
        held[rows] = rows_of(C, rows, shape[1], dtype)
    return held


def rows_of(C: Any, rows: slice, n: int, dtype: type) -> Floats:
    """The rows of ``C`` in a range, as an array."""
    if isinstance(C, np.ndarray):
        return C[rows]
    return np.asarray(C.block(np.arange(rows.start, rows.stop), np.arange(n)), dtype=dtype)
