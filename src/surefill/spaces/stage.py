"""One smooth problem over T factored members, and the stage of L-BFGS that every factored solver repeats."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from threadpoolctl import threadpool_limits

from surefill.arrays import Floats, row_blocks
from surefill.spaces.augmented_lagrangian import Limits
from surefill.spaces.lbfgs import descend
from surefill.spaces.spheres import Point, Spheres

HELD_CELLS = 50_000_000
"""Cells up to which a confidence is held as one array; beyond, it is made again in blocks of rows."""

SERIAL_WORK = 500_000_000
"""Multiplications per product up to which one core is faster than the wait for several."""


class Payoff(Protocol):
    """What the T matrices are chosen for: its value (to be made small) and gradient in the stacked factors."""

    def __call__(self, left: Floats, right: Floats) -> tuple[float, Floats, Floats]:
        """Value, and gradients in ``left`` and ``right``."""
        ...

    def of_matrix(self, M: Floats) -> tuple[float, Floats]:
        """Value, and gradient in M, of a single matrix held whole."""
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

    def of_matrix(self, M: Floats) -> tuple[float, Floats]:
        """-(pull) <C, M> and -(pull) C, for T = 1."""
        return -self.factor * float(np.einsum("ij,ij->", self.C, M, dtype=np.float64)), -self.dtype(
            self.factor
        ) * self.C


@dataclass
class Stage:
    """Minimise payoff + limits over the spheres, by L-BFGS; one call is one stage of the method of multipliers."""

    spheres: Spheres
    limits: Limits
    deadline: float = np.inf

    def run(self, variables: Floats, payoff: Payoff, iterations: int) -> tuple[Floats, Point]:
        """Variables of unit length after ``iterations``, the point there, and multipliers moved accordingly."""
        cells, count = self.limits.cells, self.spheres.count
        evaluate = self._of_one if count == 1 and cells <= HELD_CELLS else self._of_many

        def objective(x: Floats) -> tuple[float, Floats]:
            point = self.spheres.point(x)
            value, d_left, d_right = evaluate(payoff, point)
            return value / cells, point.pull_back(d_left, d_right) / self.spheres.dtype(cells)

        with one_core_if(cells * count * self.spheres.width < SERIAL_WORK):
            point = self.spheres.point(descend(objective, variables, iterations, self.deadline))
            self.limits.update(point)
        return (point.on_sphere / self.spheres.dtype(np.sqrt(self.spheres.K))).ravel(), point

    def _of_one(self, payoff: Payoff, point: Point) -> tuple[float, Floats, Floats]:
        """Three products in all: M, and the gradient in M times either factor."""
        M = point.left @ point.right.T
        value, G = payoff.of_matrix(M)
        value += self.limits.add_to_matrix(M, G)
        return value, G @ point.right, G.T @ point.left

    def _of_many(self, payoff: Payoff, point: Point) -> tuple[float, Floats, Floats]:
        value, d_left, d_right = payoff(point.left, point.right)
        value += self.limits.add(point, d_left, d_right)
        return value, d_left, d_right


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
