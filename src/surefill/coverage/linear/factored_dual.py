"""The smoothed dual of MP 2 over T factored adversaries, and the stage that both factored solvers repeat."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from surefill.arrays import Array, Floats, row_blocks
from surefill.coverage.closed_form import cover_against
from surefill.coverage.linear.factored_confidence import FactoredConfidence
from surefill.kernels.factored_sums import smooth_hinge
from surefill.registry import storable
from surefill.spaces.augmented_lagrangian import AugmentedLagrangian, Multipliers
from surefill.spaces.separation_oracle import FACTORED_SOLVER, factored_space, full_width
from surefill.spaces.spheres import Point, Spheres
from surefill.spaces.stage import HELD_CELLS, LinearObjective, Stage
from surefill.spaces.version_space import VersionSpace

MAX_SWEEPS = 60
"""Newton steps for lambda at most; bisection alone narrows a bracket to rounding in about as many."""

START_STAGES, START_ITERATIONS = 4, 20
"""Stages, and iterations of L-BFGS in each, of the best responses to C = 1 that a cold start begins with."""

ITERATIONS = 100
"""Iterations of L-BFGS per stage."""

DOUBLE_CELLS = 30_000
"""Cells up to which the convex class is solved in double precision; single halves the time and reaches 0.1%."""

WARM_MU = 0.1
"""Smoothing at which a solved neighbour is taken up: from a sharper one the adversary moves too slowly."""

SHARPEN = 0.4
"""Factor by which the smoothing mu falls from one stage to the next."""


class SmoothedDual:
    """min over lambda >= 0 of sum_x phi_mu(1 + lambda (gamma - M_x)), M = (1/T) sum_t M^t, and its gradient -lambda C.

    phi_mu is the hinge max(0, s) smoothed by mu (:func:`smooth_hinge`). ``scale`` is the last lambda, where the next
    search for it starts. Up to ``HELD_CELLS`` cells M and C are held; beyond, each sweep computes them again.
    """

    def __init__(
        self, shape: tuple[int, int], gamma: float, count: int, dtype: type, mu: float = 1.0, scale: float = 1.0
    ) -> None:
        self.shape, self.gamma, self.count = shape, gamma, count
        self.mu, self.scale = mu, scale
        self.blocks = row_blocks(*shape)
        self.holds_all = shape[0] * shape[1] <= HELD_CELLS
        rows = shape[0] if self.holds_all else self.blocks[0].stop
        self.M, self.C = np.empty((rows, shape[1]), dtype), np.empty((rows, shape[1]), dtype)
        # Accuracy of the mean slope in lambda, relative to gamma: above what sums in this precision can reach.
        self.accuracy = 1e-9 if dtype is np.float64 else 1e-7

    def __call__(self, left: Floats, right: Floats) -> tuple[float, Floats, Floats]:
        """The value at the best lambda, and its gradient."""
        value = self.solve_scale(left, right)
        weight = self.scale / self.count
        d_left, d_right = np.empty_like(left), np.zeros_like(right)
        for rows in self.blocks:
            C = self.C[rows] if self.holds_all else self._sweep_block(left, right, rows)[1]
            d_left[rows] = C @ right
            d_right += C.T @ left[rows]
        d_left *= -weight
        d_right *= -weight
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
        """Value, slope and curvature in lambda over all cells; M is computed only where the factors are ``fresh``."""
        totals = np.zeros(3)
        if self.holds_all:
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


@storable
@dataclass(frozen=True, eq=False)
class DualIterate:
    """All that a stage of the factored dual starts from.

    Attributes
    ----------
    variables : those of the T adversaries on their spheres.
    multipliers : of the adversaries' balls and boxes.
    scale, mu : lambda and the smoothing.
    """

    variables: Floats
    multipliers: Multipliers
    scale: float = 1.0
    mu: float = 1.0

    @property
    def count(self) -> int:
        """T, the number of adversaries."""
        return len(self.multipliers.ball)


class DualStage(NamedTuple):
    """What a stage leads to: the next iterate, its factors, the confidence they leave, and that as a matrix if held."""

    iterate: DualIterate
    point: Point
    confidence: FactoredConfidence
    C: Floats | None


@dataclass(frozen=True, eq=False)
class WarmStart:
    """Adversaries, multipliers, lambda and smoothing of a solved neighbouring problem."""

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


class FactoredDual:
    """min over lambda >= 0, M^t in V of sum_x phi_mu(1 + lambda (gamma - (1/T) sum_t M^t_x)), stage by stage.

    The common part of the two factored solvers. It holds the problem; where a solver stands is in a ``DualIterate``.
    ``needs`` lists what a solver requires of the version space.
    """

    needs = FACTORED_SOLVER

    def __init__(self, space: VersionSpace, gamma: float, deadline: float, warm: WarmStart | None) -> None:
        self.needs.check(space)
        space, matrix_class = factored_space(space)
        self.space, self.gamma, self.K = space, gamma, matrix_class.K
        double = matrix_class.rank is None and space.shape[0] * space.shape[1] <= DOUBLE_CELLS
        self.dtype: type = np.float64 if double else np.float32
        self.width = matrix_class.rank or full_width(space.shape)
        self.deadline, self.warm = deadline, warm
        self.lagrangian = AugmentedLagrangian(space)

    def stage(self, count: int) -> Stage:
        """The stage of L-BFGS for ``count`` adversaries."""
        spheres = Spheres(self.space.shape, self.K, count, self.width, self.dtype)
        return Stage(spheres, self.lagrangian, self.deadline)

    def dual(self, iterate: DualIterate, gamma: float | None = None) -> SmoothedDual:
        """The objective at an iterate's lambda and smoothing, for the problem's gamma if no other is given."""
        gamma = self.gamma if gamma is None else gamma
        return SmoothedDual(self.space.shape, gamma, iterate.count, self.dtype, iterate.mu, iterate.scale)

    def initialise(self, count: int, rng: np.random.Generator) -> DualIterate:
        """Where to start: the solved neighbour's adversaries if they still bind, or best responses to C = 1."""
        return self.take_up_neighbour() or self.start_cold(count, rng)

    def take_up_neighbour(self) -> DualIterate | None:
        """The adversaries of the solved neighbour; None without one, or where they constrain nothing (lambda = 0)."""
        if self.warm is None:
            return None
        count = self.warm.count
        variables = self.stage(count).spheres.variables(*fit_width(self.warm, self.width))
        start = DualIterate(variables, Multipliers(self.warm.multipliers), self.warm.scale)
        point, dual = self.stage(count).spheres.point(variables), self.dual(start)
        dual.solve_scale(point.left, point.right)
        return replace(start, scale=dual.scale, mu=max(self.warm.mu, WARM_MU)) if dual.scale > 1e-6 else None

    def start_cold(self, count: int, rng: np.random.Generator) -> DualIterate:
        """Best responses to C = 1, by a few short stages."""
        iterate = DualIterate(self.stage(count).spheres.random(rng), Multipliers.zeros(count))
        for _ in range(START_STAGES):
            iterate = self.respond_to_ones(iterate, START_ITERATIONS)
        return iterate

    def respond_to_ones(self, iterate: DualIterate, iterations: int) -> DualIterate:
        """One stage towards the best responses to C = 1."""
        shape, count = self.space.shape, iterate.count
        ones = LinearObjective(Ones(shape), shape, 1.0, count, self.dtype)
        variables, multipliers, _ = self.stage(count).run(iterate.variables, iterate.multipliers, ones, iterations)
        return replace(iterate, variables=variables, multipliers=multipliers)

    def run_stage(self, iterate: DualIterate, iterations: int = ITERATIONS) -> DualStage:
        """One stage on the smoothed dual, at the iterate's smoothing."""
        dual = self.dual(iterate)
        stage = self.stage(iterate.count)
        variables, multipliers, point = stage.run(iterate.variables, iterate.multipliers, dual, iterations)
        return self.reach(replace(iterate, variables=variables, multipliers=multipliers), point, dual)

    def reach(self, iterate: DualIterate, point: Point, dual: SmoothedDual) -> DualStage:
        """What a stage led to, at the best lambda."""
        dual.solve_scale(point.left, point.right)
        confidence = FactoredConfidence(
            point.left, point.right, iterate.count, dual.scale, dual.gamma, iterate.mu, 0.0, self.space.observations
        )
        reached = replace(iterate, scale=dual.scale)
        return DualStage(reached, point, confidence, dual.C if dual.holds_all else None)

    def upper_bound(self, left: Floats, right: Floats, count: int, scale: float) -> float:
        """At least the optimum: what could be covered if the mixture of these members were the only adversary.

        Exact where the mixture can be held, else the value of the unsmoothed dual at lambda = ``scale``.
        """
        m, n = self.space.shape
        if m * n <= HELD_CELLS:
            return cover_against(left.astype(np.float64) @ right.T.astype(np.float64) / count, self.gamma)
        hinge = 0.0
        for rows in row_blocks(m, n):
            M = (left[rows] @ right.T).astype(np.float64) / count
            hinge += float(np.maximum(0.0, 1 + scale * (self.gamma - M)).sum())
        return min(hinge, float(m) * n)


@dataclass(frozen=True)
class Ones:
    """C = 1 everywhere, by blocks."""

    shape: tuple[int, int]

    @property
    def coverage(self) -> float:
        """|C| = m n."""
        return float(self.shape[0]) * self.shape[1]

    def block(self, rows: Any, cols: Any) -> Array:
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
