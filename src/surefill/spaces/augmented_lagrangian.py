"""The ball and the box of a version space as terms of an augmented Lagrangian, for T factored matrices at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from surefill.arrays import Array, Floats, row_blocks
from surefill.kernels.factored_sums import add_box, add_sparse_products, products_at
from surefill.registry import storable
from surefill.spaces.spheres import Point
from surefill.spaces.version_space import VersionSpace

BALL_STIFFNESS = 3.0
"""Penalty per cell of a ball exceeded by 100%, above the 1 per cell that an objective can gain by it.

Like ``BOX_STIFFNESS`` it decides how fast the multipliers converge, not what they converge to.
"""

BOX_STIFFNESS = 30.0
"""rho of the box's terms, the growth of an entry's multiplier per unit beyond 1."""


@storable
@dataclass(frozen=True, eq=False)
class Multipliers:
    """Lagrange multipliers of the constraints of T matrices, all at least 0.

    Attributes
    ----------
    ball : sigma_t of sum_S w_x (M^t_x)^2 <= beta, length T.
    box : those of |M^t_x| <= 1, T x m x n; None while no entry has been seen beyond 1.
    """

    ball: Array
    box: Floats | None = None

    @classmethod
    def zeros(cls, count: int) -> Multipliers:
        """Of ``count`` matrices, before any constraint was exceeded."""
        return cls(np.zeros(count))


class AugmentedLagrangian:
    """sum_t [max(0, sigma_t + rho (q_t - beta))^2 - sigma_t^2] / (2 rho), q_t = sum_S w_x (M^t_x)^2, and the box alike.

    The method of multipliers: after each stage sigma_t becomes max(0, sigma_t + rho (q_t - beta)), and tends to
    the multiplier of the ball. The box |M_x| <= 1 joins once an entry has been seen beyond it, never if K <= 1, which
    implies it. The object holds the constraints alone; the multipliers are given to every method.
    """

    def __init__(self, space: VersionSpace) -> None:
        seen = space.observations
        order = np.lexsort((seen.cols, seen.rows))  # by rows, so that the kernels read the left factor in order
        self.rows, self.cols, self.weights = seen.rows[order], seen.cols[order], seen.weights[order]
        self.space = space
        self.cells = float(space.shape[0]) * space.shape[1]

    def ball_stiffness(self, count: int) -> float:
        """rho of the balls of ``count`` matrices that share one objective, 1/T of it each."""
        return BALL_STIFFNESS * self.cells / (self.space.beta**2 * count)

    def mean_squares(self, point: Point) -> tuple[Floats, Array]:
        """The entries of every matrix at the observed cells, and their mean squares q_t."""
        entries = np.empty((len(self.rows), point.spheres.count), dtype=point.left.dtype)
        products_at(point.left, point.right, self.rows, self.cols, entries)
        return entries, self.weights @ entries.astype(np.float64) ** 2

    def add(self, multipliers: Multipliers, point: Point, d_left: Floats, d_right: Floats) -> float:
        """The terms' value; their gradient is added to ``d_left`` and ``d_right``."""
        entries, q = self.mean_squares(point)
        value, weights = self._ball_terms(multipliers.ball, entries, q)
        add_sparse_products(point.left, point.right, self.rows, self.cols, weights, d_left, d_right)
        return value + self._add_box(multipliers, point, d_left, d_right)

    def add_to_matrix(self, multipliers: Multipliers, M: Floats, G: Floats) -> float:
        """The terms' value for a single matrix held whole; their gradient in M is added to ``G``."""
        entries = M[self.rows, self.cols][:, None]
        value, weights = self._ball_terms(multipliers.ball, entries, self.weights @ entries.astype(np.float64) ** 2)
        G[self.rows, self.cols] += weights[:, 0]
        if multipliers.box is None:
            return value
        return value + add_box(M, multipliers.box[0], BOX_STIFFNESS, G)

    def _ball_terms(self, ball: Array, entries: Floats, q: Array) -> tuple[float, Floats]:
        """The balls' value, and its derivative in every entry."""
        stiffness = self.ball_stiffness(len(ball))
        updated = np.maximum(0.0, ball + stiffness * (q - self.space.beta))
        value = float(np.sum(updated**2 - ball**2)) / (2 * stiffness)
        return value, (2 * self.weights[:, None] * entries * updated).astype(entries.dtype)

    def _add_box(self, multipliers: Multipliers, point: Point, d_left: Floats, d_right: Floats) -> float:
        if multipliers.box is None:
            return 0.0
        value, count = 0.0, point.spheres.count
        for t, box in enumerate(multipliers.box):
            (U, V), columns = point.factors(t), point.spheres.columns(t)
            M = U @ V.T
            G = np.zeros_like(M)
            value += add_box(M, box, BOX_STIFFNESS / count, G)
            d_left[:, columns] += G @ V
            d_right[:, columns] += G.T @ U
        return value

    def update(self, multipliers: Multipliers, point: Point) -> Multipliers:
        """The multipliers moved by how far each constraint is exceeded at ``point``."""
        _, q = self.mean_squares(point)
        count, box = point.spheres.count, multipliers.box
        ball = np.maximum(0.0, multipliers.ball + self.ball_stiffness(count) * (q - self.space.beta))
        if self.space.matrix_class.radius <= 1:
            return Multipliers(ball)
        if box is None and largest_entries(point).max() > 1:
            box = np.zeros((count, *self.space.shape), dtype=point.left.dtype)
        if box is not None:
            moved = np.empty_like(box)
            for t in range(count):
                U, V = point.factors(t)
                np.maximum(0.0, box[t] + BOX_STIFFNESS / count * (np.abs(U @ V.T) - 1), out=moved[t])
            box = moved
        return Multipliers(ball, box)

    def excess(self, point: Point) -> Array:
        """The smallest number, at least 1, by which every M^t must be divided to be in the version space."""
        _, q = self.mean_squares(point)
        excess = np.maximum(1.0, np.sqrt(q / self.space.beta))
        if self.space.matrix_class.radius > 1:
            excess = np.maximum(excess, largest_entries(point))
        return excess

    def members(self, point: Point) -> tuple[Floats, Floats]:
        """The factors at ``point``, scaled so that every M^t is exactly in the version space."""
        # A few units of rounding more, for the products of the scaled factors are rounded again.
        rounding = 1 + 8 * float(np.finfo(point.left.dtype).eps)
        root = np.repeat(np.sqrt(self.excess(point) * rounding), point.spheres.width).astype(point.left.dtype)
        return point.left / root, point.right / root


def largest_entries(point: Point) -> Array:
    """max_x |M^t_x| for every t, by blocks of rows."""
    largest = np.zeros(point.spheres.count)
    for t in range(point.spheres.count):
        U, V = point.factors(t)
        for block in row_blocks(len(U), len(V)):
            largest[t] = max(largest[t], float(np.abs(U[block] @ V.T).max()))
    return largest
