"""The strongest adversaries of MP 1: a convex function maximised over the version space, by search."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from surefill.arrays import Array, Floats
from surefill.loop import Status, run
from surefill.spaces.augmented_lagrangian import Limits
from surefill.spaces.classes import MaxNorm, TraceNorm
from surefill.spaces.separation_oracle import full_width
from surefill.spaces.spheres import Point, Spheres, WholeSpheres
from surefill.spaces.stage import Stage
from surefill.spaces.version_space import VersionSpace

STAGE_ITERATIONS = 25
"""Iterations of L-BFGS per linearisation."""

MAX_STAGES = 30


class LinearisedSquares:
    """-(2 pull / T) sum_t <C o M0^t, M^t>: what sum_x C_x (M^t_x)^2 gains near M0^t, to first order and at least.

    The square is convex, so M'M >= 2 M0'M - M0'M0 entry by entry: a step that raises this raises the square.
    """

    def __init__(self, C: Array, count: int, pull: float) -> None:
        self.C, self.count, self.factor = C, count, 2 * pull / count
        self.slopes = np.zeros((count, *C.shape))

    def linearise_at(self, matrices: NDArray[np.float64]) -> None:
        """Take ``matrices`` (T x m x n) for the M0^t."""
        self.slopes = self.C * matrices

    def __call__(self, left: Floats, right: Floats) -> tuple[float, Floats, Floats]:
        """The value, and its gradients in the stacked factors."""
        U, V = by_matrix(left, self.count), by_matrix(right, self.count)
        d_left, d_right = self.slopes @ V, self.slopes.transpose(0, 2, 1) @ U
        value = float(np.einsum("tik,tik->", d_left, U))
        return -self.factor * value, -self.factor * stacked(d_left), -self.factor * stacked(d_right)

    def of_matrix(self, M: Floats) -> tuple[float, Floats]:
        """The value, and its gradient in M, for T = 1."""
        return -self.factor * float(np.sum(self.slopes[0] * M)), -self.factor * self.slopes[0]


def by_matrix(factors: Floats, count: int) -> Floats:
    """T x rows x width, from factors side by side."""
    return factors.reshape(len(factors), count, -1).transpose(1, 0, 2)


def stacked(factors: Floats) -> Floats:
    """Factors side by side, from T x rows x width."""
    return np.ascontiguousarray(factors.transpose(1, 0, 2)).reshape(factors.shape[1], -1)


@dataclass(frozen=True, eq=False)
class Ascent:
    """Members found so far (T x m x n), their mean squares under C, what the last stage gained and what it shrank."""

    variables: NDArray[np.float64]
    members: NDArray[np.float64]
    means: NDArray[np.float64]
    gained: float = math.inf
    shrunk: float = math.inf


class SquareSearch:
    """max over V of sum_x C_x M_x^2 / |C| by the convex-concave procedure from T starts; a solver for ``loop.run``.

    Each step replaces the square by its tangent at the present members and moves towards the best response to that
    linear payoff, in factored form with the ball (and the box) kept by the method of multipliers. Members are exact:
    what is over a limit is shrunk. The values are lower bounds on the maximum, nothing more.
    """

    task = "looking for the strongest adversary of MP 1"

    def __init__(
        self, space: VersionSpace, C: Array, starts: int, rng: np.random.Generator, tolerance: float = 1e-4
    ) -> None:
        self.C, self.total, self.rng, self.tolerance = C, float(C.sum()), rng, tolerance
        self.stage = Stage(spheres_for(space, starts), Limits(space, starts))
        self.payoff = LinearisedSquares(C, starts, C.size / self.total)

    def init(self) -> Ascent:
        """Random directions."""
        variables = self.stage.spheres.random(self.rng)
        return self._ascent(variables, self.stage.spheres.point(variables))

    def step(self, state: Ascent) -> Ascent:
        """Linearise at the present members, move towards the best response."""
        point = self.stage.spheres.point(state.variables)
        self.payoff.linearise_at(self._products(point.left, point.right))
        variables, point = self.stage.run(state.variables, self.payoff, STAGE_ITERATIONS)
        new = self._ascent(variables, point)
        gained = float(np.max(new.means) - np.max(state.means)) / max(float(np.max(new.means)), 1e-300)
        shrunk = float(self.stage.limits.excess(point)[np.argmax(new.means)])
        return Ascent(variables, new.members, new.means, gained, shrunk)

    def measure(self, state: Ascent) -> float:
        """The largest mean square found."""
        return float(np.max(state.means))

    def terminate(self, state: Ascent) -> Status | None:
        """Converged when the best start neither gains nor leaves the version space."""
        settled = abs(state.gained) <= self.tolerance and state.shrunk <= 1 + 10 * self.tolerance
        return Status.CONVERGED if settled else None

    def _products(self, left: Floats, right: Floats) -> NDArray[np.float64]:
        count = self.stage.spheres.count
        return np.asarray(by_matrix(left, count) @ by_matrix(right, count).transpose(0, 2, 1))

    def _ascent(self, variables: NDArray[np.float64], point: Point) -> Ascent:
        members = self._products(*self.stage.limits.members(point))
        return Ascent(variables, members, np.einsum("ij,tij->t", self.C, members**2) / self.total)


def spheres_for(space: VersionSpace, count: int) -> Spheres:
    """The factors that reach all of the class: rows of limited length, or both factors of limited norm."""
    (m, n), width = space.shape, full_width(space.shape)
    if isinstance(space.matrix_class, TraceNorm):
        return WholeSpheres(space.shape, min(space.matrix_class.tau, math.sqrt(min(m, n) * m * n)), count, width)
    return Spheres(space.shape, MaxNorm(space.matrix_class.K).within_box(space.shape).K, count, width)


def strongest_squares(
    space: VersionSpace, C: Array, *, starts: int, rng: np.random.Generator, max_stages: int = MAX_STAGES
) -> NDArray[np.float64]:
    """Members of V (T x m x n) with large sum_x C_x M_x^2, the strongest found first; ``C`` must not be zero."""
    found = run(SquareSearch(space, C, starts, rng), max_steps=max_stages).state
    return np.asarray(found.members[np.argsort(-found.means, kind="stable")])
