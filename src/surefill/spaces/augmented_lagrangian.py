"""The ball and the box of a version space as augmented Lagrangian terms on factored matrices."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from surefill.arrays import Floats, row_blocks
from surefill.kernels.mixtures import add_box, add_sparse_products, products_at
from surefill.spaces.spheres import Point
from surefill.spaces.version_space import VersionSpace

BALL_STIFFNESS = 3.0
"""Penalty per cell of a ball exceeded by 100%; coverage gains at most 1 per cell by it."""

BOX_STIFFNESS = 30.0
"""Penalty's growth per entry beyond 1."""


class Limits:
    """sum_t [max(0, sigma_t + rho (q_t - beta))^2 - sigma_t^2] / (2 rho), q_t = sum_S w_x (M^t_x)^2, and the box alike.

    The method of multipliers: after each stage sigma_t becomes max(0, sigma_t + rho (q_t - beta)), and tends to
    the multiplier of the ball. The box |M_x| <= 1 joins once an entry has been seen beyond it, never if K <= 1.
    """

    def __init__(self, space: VersionSpace, count: int, multipliers: NDArray[np.float64] | None = None) -> None:
        seen = space.observations
        order = np.lexsort((seen.cols, seen.rows))
        self.rows, self.cols, self.weights = seen.rows[order], seen.cols[order], seen.weights[order]
        self.space, self.count = space, count
        self.cells = float(space.shape[0]) * space.shape[1]
        self.stiffness = BALL_STIFFNESS * self.cells / (space.beta**2 * count)
        self.ball = np.zeros(count) if multipliers is None else np.array(multipliers)
        self.box: list[Floats] | None = None

    def squares(self, point: Point) -> tuple[Floats, NDArray[np.float64]]:
        """The entries of every matrix at the observed cells, and their mean squares q_t."""
        entries = np.empty((len(self.rows), self.count), dtype=point.left.dtype)
        products_at(point.left, point.right, self.rows, self.cols, entries)
        return entries, self.weights @ entries.astype(np.float64) ** 2

    def add(self, point: Point, d_left: Floats, d_right: Floats) -> float:
        """The terms' value; their gradient is added to ``d_left`` and ``d_right``."""
        entries, q = self.squares(point)
        value, weights = self._ball_terms(entries, q)
        add_sparse_products(point.left, point.right, self.rows, self.cols, weights, d_left, d_right)
        return value + self._add_box(point, d_left, d_right)

    def add_to_matrix(self, M: Floats, G: Floats) -> float:
        """The terms' value for a single matrix held whole; their gradient in M is added to ``G``."""
        entries = M[self.rows, self.cols][:, None]
        value, weights = self._ball_terms(entries, self.weights @ entries.astype(np.float64) ** 2)
        G[self.rows, self.cols] += weights[:, 0]
        if self.box is None:
            return value
        return value + add_box(M, self.box[0], BOX_STIFFNESS, G)

    def _ball_terms(self, entries: Floats, q: NDArray[np.float64]) -> tuple[float, Floats]:
        """The balls' value, and its slope in every entry."""
        pull = np.maximum(0.0, self.ball + self.stiffness * (q - self.space.beta))
        value = float(np.sum(pull**2 - self.ball**2)) / (2 * self.stiffness)
        return value, (2 * self.weights[:, None] * entries * pull).astype(entries.dtype)

    def _add_box(self, point: Point, d_left: Floats, d_right: Floats) -> float:
        if self.box is None:
            return 0.0
        value, stiffness = 0.0, BOX_STIFFNESS / self.count
        for t, held in enumerate(self.box):
            U, V, part = split(point, t)
            M = U @ V.T
            G = np.zeros_like(M)
            value += add_box(M, held, stiffness, G)
            d_left[:, part] += G @ V
            d_right[:, part] += G.T @ U
        return value

    def update(self, point: Point) -> None:
        """Move the multipliers by how far each limit is exceeded at ``point``."""
        _, q = self.squares(point)
        self.ball = np.maximum(0.0, self.ball + self.stiffness * (q - self.space.beta))
        if self.space.matrix_class.radius <= 1:
            return
        if self.box is None and largest_entries(point).max() > 1:
            self.box = [np.zeros(self.space.shape, dtype=point.left.dtype) for _ in range(self.count)]
        if self.box is not None:
            for t, held in enumerate(self.box):
                U, V, _ = split(point, t)
                np.maximum(0.0, held + BOX_STIFFNESS / self.count * (np.abs(U @ V.T) - 1), out=held)

    def excess(self, point: Point) -> NDArray[np.float64]:
        """The smallest number, at least 1, by which every M^t must be divided to be in the version space."""
        _, q = self.squares(point)
        excess = np.maximum(1.0, np.sqrt(q / self.space.beta))
        if self.space.matrix_class.radius > 1:
            excess = np.maximum(excess, largest_entries(point))
        return excess

    def members(self, point: Point) -> tuple[Floats, Floats]:
        """The factors at ``point``, scaled so that every M^t is exactly in the version space."""
        tiny = 1 + 8 * float(np.finfo(point.left.dtype).eps)
        root = np.repeat(np.sqrt(self.excess(point) * tiny), point.spheres.width).astype(point.left.dtype)
        return point.left / root, point.right / root


def split(point: Point, t: int) -> tuple[Floats, Floats, Any]:
    """U^t, V^t and the columns they occupy in the stacked factors."""
    part = slice(t * point.spheres.width, (t + 1) * point.spheres.width)
    return point.left[:, part], point.right[:, part], part


def largest_entries(point: Point) -> NDArray[np.float64]:
    """max_x |M^t_x| for every t, by blocks of rows."""
    largest = np.zeros(point.spheres.count)
    for t in range(point.spheres.count):
        U, V, _ = split(point, t)
        for block in row_blocks(len(U), len(V)):
            largest[t] = max(largest[t], float(np.abs(U[block] @ V.T).max()))
    return largest
