"""What the factored coverage solvers share: T adversaries moved together against the confidence they leave."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surefill.coverage.conic import cover_against
from surefill.coverage.factored_confidence import FactoredConfidence
from surefill.coverage.payoff import CoveragePayoff
from surefill.spaces.ascent import HELD_CELLS, LinearPayoff, Stage
from surefill.spaces.factored import factored_space, full_width
from surefill.spaces.limits import Limits, row_blocks
from surefill.spaces.sphere import Floats, Point, Spheres
from surefill.spaces.version_space import VersionSpace

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
