"""One stage of the method of multipliers: L-BFGS on a smooth objective of T factored matrices, constraints added."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from threadpoolctl import threadpool_limits

from surefill.arrays import Floats, row_blocks
from surefill.spaces.augmented_lagrangian import AugmentedLagrangian, Multipliers
from surefill.spaces.lbfgs import minimize_lbfgs
from surefill.spaces.spheres import Point, Spheres

HELD_CELLS = 50_000_000
"""Cells up to which an m x n matrix is held as one array, 200 MB in single precision; beyond, by blocks of rows."""

SERIAL_WORK = 500_000_000
"""Multiplications per product up to which one core is faster than the wait for several (measured on two)."""


class FactoredObjective(Protocol):
    """A smooth function of T matrices, to be made small: its value and gradient in the stacked factors."""

    def __call__(self, left: Floats, right: Floats) -> tuple[float, Floats, Floats]:
        """Value, and gradients in ``left`` and ``right``."""
        ...

    def of_matrix(self, M: Floats) -> tuple[float, Floats]:
        """Value, and gradient in M, of a single matrix held whole."""
        ...


class LinearObjective:
    """-(weight / T) sum_t <C, M^t>: best responses to a fixed C, a matrix or anything with ``block(rows, cols)``."""

    def __init__(self, C: Any, shape: tuple[int, int], weight: float, count: int, dtype: type) -> None:
        self.shape, self.weight, self.factor = shape, weight, weight / count
        self.C, self.dtype = as_array_if_small(C, shape, dtype), dtype

    def __call__(self, left: Floats, right: Floats) -> tuple[float, Floats, Floats]:
        """The value, and -(weight / T) C V and -(weight / T) C' U."""
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
        """-weight <C, M> and -weight C, for T = 1."""
        value = float(np.einsum("ij,ij->", self.C, M, dtype=np.float64))
        return -self.factor * value, -self.dtype(self.factor) * self.C


@dataclass(frozen=True)
class Stage:
    """Minimise an objective plus the constraints' terms over the spheres; nothing in it changes from stage to stage."""

    spheres: Spheres
    lagrangian: AugmentedLagrangian
    deadline: float = np.inf

    def run(
        self, variables: Floats, multipliers: Multipliers, objective: FactoredObjective, iterations: int
    ) -> tuple[Floats, Multipliers, Point]:
        """Variables of unit length after ``iterations`` of L-BFGS, the multipliers updated there, and the point."""
        cells, count = self.lagrangian.cells, self.spheres.count
        evaluate = self.value_of_one if count == 1 and cells <= HELD_CELLS else self.value_of_many

        def mean_over_cells(x: Floats) -> tuple[float, Floats]:
            point = self.spheres.point(x)
            value, d_left, d_right = evaluate(multipliers, objective, point)
            return value / cells, point.pull_back(d_left, d_right) / self.spheres.dtype(cells)

        with one_core_if(cells * count * self.spheres.width < SERIAL_WORK):
            point = self.spheres.point(minimize_lbfgs(mean_over_cells, variables, iterations, self.deadline))
            multipliers = self.lagrangian.update(multipliers, point)
        # Lengths mean nothing on the sphere; at length 1 the next stage starts with well-scaled variables.
        unit = (point.on_sphere / self.spheres.dtype(np.sqrt(self.spheres.K))).ravel()
        return unit, multipliers, point

    def value_of_one(
        self, multipliers: Multipliers, objective: FactoredObjective, point: Point
    ) -> tuple[float, Floats, Floats]:
        """Value and gradients for T = 1 in three products: M, and the gradient in M times either factor."""
        M = point.left @ point.right.T
        value, G = objective.of_matrix(M)
        value += self.lagrangian.add_to_matrix(multipliers, M, G)
        return value, G @ point.right, G.T @ point.left

    def value_of_many(
        self, multipliers: Multipliers, objective: FactoredObjective, point: Point
    ) -> tuple[float, Floats, Floats]:
        """Value and gradients for any T."""
        value, d_left, d_right = objective(point.left, point.right)
        value += self.lagrangian.add(multipliers, point, d_left, d_right)
        return value, d_left, d_right


def one_core_if(small: bool) -> Any:
    """BLAS on one core while products are small: waiting for a second, busy one costs more than it saves."""
    return threadpool_limits(limits=1 if small else None, user_api="blas")


def as_array_if_small(C: Any, shape: tuple[int, int], dtype: type) -> Any:
    """``C`` as one array if it is one or has at most ``HELD_CELLS`` cells, or else as it is."""
    if isinstance(C, np.ndarray):
        return np.ascontiguousarray(C, dtype=dtype)
    if shape[0] * shape[1] > HELD_CELLS:
        return C
    whole: Floats = np.empty(shape, dtype=dtype)
    for rows in row_blocks(*shape):
        whole[rows] = rows_of(C, rows, shape[1], dtype)
    return whole


def rows_of(C: Any, rows: slice, n: int, dtype: type) -> Floats:
    """The rows of ``C`` in a range, as an array."""
    if isinstance(C, np.ndarray):
        return C[rows]
    return np.asarray(C.block(np.arange(rows.start, rows.stop), np.arange(n)), dtype=dtype)
