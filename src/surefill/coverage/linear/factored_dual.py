"""What the factored coverage solvers share: T adversaries moved together against the confidence they leave."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surefill.arrays import Floats, row_blocks
from surefill.coverage.linear.conic_dual import cover_against
from surefill.coverage.linear.factored_confidence import FactoredConfidence
from surefill.kernels.mixtures import smooth_hinge
from surefill.spaces.augmented_lagrangian import Limits
from surefill.spaces.separation_oracle import factored_space, full_width
from surefill.spaces.spheres import Point, Spheres
from surefill.spaces.stage import HELD_CELLS, LinearPayoff, Stage
from surefill.spaces.version_space import VersionSpace

MAX_SWEEPS = 60


class CoveragePayoff:
    """min over lambda >= 0 of sum_x phi_mu(1 + lambda (gamma - M_x)), M = (1/T) sum_t M^t, and its gradient -lambda C.

    Up to 5 10^7 cells M and C are held; beyond, each sweep makes them again. ``scale`` is the last lambda, where
    the next search for it starts.
    """

    def __init__(self, shape: tuple[int, int], gamma: float, count: int, dtype: type) -> None:
        self.shape, self.gamma, self.count = shape, gamma, count
        self.mu, self.scale = 1.0, 1.0
        self.blocks = row_blocks(*shape)
        self.held = shape[0] * shape[1] <= HELD_CELLS
        rows = shape[0] if self.held else self.blocks[0].stop
        self.M, self.C = np.empty((rows, shape[1]), dtype), np.empty((rows, shape[1]), dtype)
        self.accuracy = 1e-9 if dtype is np.float64 else 1e-7

    def __call__(self, left: Floats, right: Floats) -> tuple[float, Floats, Floats]:
        """The value at the best lambda, and its gradient."""
        value = self.solve_scale(left, right)
        pull = self.scale / self.count
        d_left, d_right = np.empty_like(left), np.zeros_like(right)
        for rows in self.blocks:
            C = self.C[rows] if self.held else self._sweep_block(left, right, rows)[1]
            d_left[rows] = C @ right
            d_right += C.T @ left[rows]
        d_left *= -pull
        d_right *= -pull
        return value, d_left, d_right

    def of_matrix(self, M: Floats) -> tuple[float, Floats]:
        """The value at the best lambda for one matrix held whole, and its gradient -lambda C."""
        self.M = M
        value = self._newton(lambda fresh: smooth_hinge(M, self.scale, self.gamma, self.mu, self.C))
        return value, self.C * self.C.dtype.type(-self.scale)

    def solve_scale(self, left: Floats, right: Floats) -> float:
        """The best lambda, kept in ``scale``; the value there."""
        return self._newton(lambda fresh: self._sweep(left, right, fresh))

    def _newton(self, sweep: Callable[[bool], Any]) -> float:
        """A safeguarded Newton search for the lambda at which the slope vanishes."""
        low, high, scale = 0.0, np.inf, max(self.scale, 1e-3)
        enough = self.accuracy * self.gamma * self.shape[0] * self.shape[1]
        for tried in range(MAX_SWEEPS):
            self.scale = scale
            value, slope, curvature = sweep(tried == 0)
            if slope > 0:
                high = scale
            else:
                low = scale
            if abs(slope) <= enough or high * (1 - 1e-12) <= low or high < 1e-9:
                break
            scale = scale - slope / curvature if curvature > 0 else np.inf
            if not low < scale < high:
                scale = (low + high) / 2 if high < np.inf else 2 * low
        return float(value)

    def _sweep(self, left: Floats, right: Floats, fresh: bool) -> Any:
        """Value, slope and curvature in lambda over all cells."""
        totals = np.zeros(3)
        if self.held:
            if fresh:
                np.matmul(left / left.dtype.type(self.count), right.T, out=self.M)
            totals += smooth_hinge(self.M, self.scale, self.gamma, self.mu, self.C)
        else:
            for rows in self.blocks:
                totals += self._sweep_block(left, right, rows)[0]
        return totals

    def _sweep_block(self, left: Floats, right: Floats, rows: slice) -> tuple[Any, Floats]:
        """The sums over some rows, and C there, in memory that the next block reuses."""
        M, C = self.M[: rows.stop - rows.start], self.C[: rows.stop - rows.start]
        np.matmul(left[rows] / left.dtype.type(self.count), right.T, out=M)
        return np.array(smooth_hinge(M, self.scale, self.gamma, self.mu, C)), C


OPENING_STAGES, OPENING_ITERATIONS = 4, 20
ITERATIONS = 100
"""Iterations of L-BFGS per round."""

DOUBLE_CELLS = 30_000
"""Cells up to which the convex class is solved in double precision; single halves the time and reaches 0.1%."""

WARM_MU = 0.1
"""Smoothing at which a solved neighbour is taken up: from a sharper one the adversary moves too slowly."""

SHARPEN = 0.4
"""Factor by which the smoothing falls."""


@dataclass(frozen=True, eq=False)
class WarmStart:
    """Adversaries and multipliers of a solved neighbour."""

    left: Floats
    right: Floats
    count: int
    multipliers: NDArray[np.float64]
    scale: float
    mu: float

    def merged(self) -> WarmStart:
        """The mean of the T adversaries as one: (1/T) sum_t U^t V^t' has rows no longer than theirs."""
        root = self.left.dtype.type(np.sqrt(self.count))
        return WarmStart(
            self.left / root, self.right / root, 1, np.array([self.multipliers.sum()]), self.scale, self.mu
        )


class Game:
    """min over lambda >= 0, M^t in V of sum_x phi_mu(1 + lambda (gamma - (1/T) sum_t M^t_x)), stage by stage."""

    def __init__(self, space: VersionSpace, gamma: float, count: int, deadline: float, warm: WarmStart | None) -> None:
        space, matrix_class = factored_space(space)
        self.space, self.gamma, self.K = space, gamma, matrix_class.K
        double = matrix_class.rank is None and space.shape[0] * space.shape[1] <= DOUBLE_CELLS
        self.dtype: type = np.float64 if double else np.float32
        self.deadline, self.warm = deadline, warm
        self.width = matrix_class.rank or full_width(space.shape)
        self.seat(warm.count if warm else count, None if warm is None else warm.multipliers)
        if warm is not None:
            self.payoff.scale = warm.scale

    def seat(self, count: int, multipliers: NDArray[np.float64] | None) -> None:
        """Make room for ``count`` adversaries."""
        spheres = Spheres(self.space.shape, self.K, count, self.width, self.dtype)
        self.stage = Stage(spheres, Limits(self.space, count, multipliers), self.deadline)
        self.payoff = CoveragePayoff(self.space.shape, self.gamma, count, self.dtype)

    def open(self, rng: np.random.Generator) -> tuple[NDArray[np.float64], float]:
        """Variables to start from and the first smoothing: best responses to C = 1, or the solved neighbour's."""
        spheres = self.stage.spheres
        if self.warm is not None:
            variables = spheres.variables(*fit_width(self.warm, self.width))
            point = spheres.point(variables)
            self.payoff.solve_scale(point.left, point.right)
            if self.payoff.scale > 1e-6:  # or else the neighbour's adversaries no longer hold anything back
                return variables, max(self.warm.mu, WARM_MU)
            self.seat(spheres.count, None)
        variables = spheres.random(rng)
        ones = self.ones()
        for _ in range(OPENING_STAGES):
            variables, _ = self.stage.run(variables, ones, OPENING_ITERATIONS)
        return variables, 1.0

    def ones(self) -> LinearPayoff:
        """The payoff against C = 1."""
        shape = self.space.shape
        return LinearPayoff(Ones(shape), shape, 1.0, self.stage.spheres.count, self.dtype)

    def play(
        self, variables: NDArray[np.float64], mu: float, iterations: int = ITERATIONS
    ) -> tuple[NDArray[np.float64], Point, FactoredConfidence]:
        """One stage at smoothing ``mu``: the variables, the point, and the confidence it leaves."""
        self.payoff.mu = mu
        variables, point = self.stage.run(variables, self.payoff, iterations)
        self.payoff.solve_scale(point.left, point.right)
        confidence = FactoredConfidence(
            point.left,
            point.right,
            point.spheres.count,
            self.payoff.scale,
            self.gamma,
            mu,
            0.0,
            self.space.observations,
        )
        return variables, point, confidence

    def upper_bound(self, left: Floats, right: Floats) -> float:
        """At least the optimum: what could be covered if the mixture of these members were the only adversary."""
        m, n = self.space.shape
        count = self.stage.spheres.count
        if m * n <= HELD_CELLS:
            return cover_against(left.astype(np.float64) @ right.T.astype(np.float64) / count, self.gamma)
        hinge = 0.0
        for rows in row_blocks(m, n):
            M = (left[rows] @ right.T).astype(np.float64) / count
            hinge += float(np.maximum(0.0, 1 + self.payoff.scale * (self.gamma - M)).sum())
        return min(hinge, float(m) * n)


@dataclass(frozen=True)
class Ones:
    """C = 1 everywhere, by blocks."""

    shape: tuple[int, int]

    def block(self, rows: Any, cols: Any) -> NDArray[np.float64]:
        """Ones at every pair."""
        return np.ones((len(rows), len(cols)))


def fit_width(warm: WarmStart, width: int) -> tuple[Floats, Floats]:
    """The neighbour's factors with ``width`` columns each: widened by zeros, or their leading directions kept."""
    m, old = len(warm.left), warm.left.shape[1] // warm.count
    stacked = np.concatenate([warm.left, warm.right]).astype(np.float64).reshape(-1, warm.count, old)
    if width >= old:
        fitted = np.concatenate([stacked, np.zeros((*stacked.shape[:2], width - old))], axis=2)
    else:
        fitted = np.empty((*stacked.shape[:2], width))
        for t in range(warm.count):
            _, _, turn = np.linalg.svd(stacked[:, t], full_matrices=False)
            fitted[:, t] = stacked[:, t] @ turn[:width].T
    flat = fitted.reshape(len(stacked), -1)
    return flat[:m], flat[m:]


def deadline_after(seconds: float | None) -> float:
    """The clock's reading in ``seconds``, or never."""
    return math.inf if seconds is None else time.perf_counter() + seconds
