"""The separation problem of MP 1 by local search: maximise the convex sum_x C_x M_x^2 over the version space."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from surefill.arrays import Array, Floats
from surefill.loop import Status, run
from surefill.registry import storable
from surefill.spaces.augmented_lagrangian import AugmentedLagrangian, Multipliers
from surefill.spaces.classes import MaxNorm, TraceNorm
from surefill.spaces.separation_oracle import full_width
from surefill.spaces.spheres import FrobeniusSphere, Point, Spheres
from surefill.spaces.stage import Stage
from surefill.spaces.version_space import VersionSpace

STAGE_ITERATIONS = 25
"""Iterations of L-BFGS per linearisation."""

MAX_STAGES = 30
"""Linearisations after which a search gives what it has."""


class LinearisedSquares:
    """-(2 weight / T) sum_t <C o M0^t, M^t>: the tangent at M0, less a constant, of -(weight/T) sum_t <C, M^t o M^t>.

    The square is convex, so M_x^2 >= 2 M0_x M_x - M0_x^2: a step that lowers the tangent raises the squares by as much
    or more. ``matrices`` (T x m x n) are the M0^t.
    """

    def __init__(self, C: Array, matrices: Array, weight: float) -> None:
        self.count, self.factor = len(matrices), 2 * weight / len(matrices)
        self.slopes = C * matrices

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


@storable
@dataclass(frozen=True, eq=False)
class SquareState:
    """The state of a :class:`SquareSolver`: where it goes on from, members (T x m x n), their mean squares under C.

    ``gained`` is the share by which the last stage raised the largest mean square, ``excess`` what that member had to
    be divided by to be in the version space.
    """

    variables: Array
    multipliers: Multipliers
    members: Array
    means: Array
    gained: float = math.inf
    excess: float = math.inf


class SquareSolver:
    """max over V of sum_x C_x M_x^2 / |C| by the convex-concave procedure from T starts; a solver for ``loop.run``.

    Each step replaces the square by its tangent at the present members and moves towards the best response to that
    linear function, in factored form with the ball (and the box) kept by the method of multipliers. Members are exact:
    what is over a limit is scaled down. The values are lower bounds on the maximum, nothing more.
    """

    task = "looking for the strongest adversary of MP 1"

    def __init__(self, space: VersionSpace, C: Array, starts: int, rng: np.random.Generator, tol: float = 1e-4) -> None:
        self.C, self.total, self.starts, self.rng, self.tol = C, float(C.sum()), starts, rng, tol
        self.stage = Stage(spheres_for(space, starts), AugmentedLagrangian(space))

    def init(self) -> SquareState:
        """Random directions."""
        variables = self.stage.spheres.random(self.rng)
        members, means = self._members(self.stage.spheres.point(variables))
        return SquareState(variables, Multipliers.zeros(self.starts), members, means)

    def step(self, state: SquareState) -> SquareState:
        """Linearise at the present matrices, move towards the best response."""
        point = self.stage.spheres.point(state.variables)
        tangent = LinearisedSquares(self.C, self._products(point.left, point.right), self.C.size / self.total)
        variables, multipliers, point = self.stage.run(state.variables, state.multipliers, tangent, STAGE_ITERATIONS)
        members, means = self._members(point)
        gained = float(np.max(means) - np.max(state.means)) / max(float(np.max(means)), 1e-300)
        excess = float(self.stage.lagrangian.excess(point)[np.argmax(means)])
        return SquareState(variables, multipliers, members, means, gained, excess)

    def measure(self, state: SquareState) -> float:
        """The largest mean square found."""
        return float(np.max(state.means))

    def terminate(self, state: SquareState) -> Status | None:
        """Converged when the best start neither gains nor leaves the version space."""
        settled = abs(state.gained) <= self.tol and state.excess <= 1 + 10 * self.tol
        return Status.CONVERGED if settled else None

    def _products(self, left: Floats, right: Floats) -> Array:
        """U^t V^t' for every t, T x m x n."""
        return np.asarray(by_matrix(left, self.starts) @ by_matrix(right, self.starts).transpose(0, 2, 1))

    def _members(self, point: Point) -> tuple[Array, Array]:
        """The matrices at ``point`` scaled into the version space, and their mean squares under C."""
        members = self._products(*self.stage.lagrangian.members(point))
        return members, np.einsum("ij,tij->t", self.C, members**2) / self.total


def spheres_for(space: VersionSpace, count: int) -> Spheres:
    """The factors that reach all of the class: rows of limited length, or both factors of limited norm."""
    (m, n), width = space.shape, full_width(space.shape)
    if isinstance(space.matrix_class, TraceNorm):
        return FrobeniusSphere(space.shape, min(space.matrix_class.tau, math.sqrt(min(m, n) * m * n)), count, width)
    return Spheres(space.shape, MaxNorm(space.matrix_class.K).within_box(space.shape).K, count, width)


def strongest_squares(
    space: VersionSpace, C: Array, *, starts: int, rng: np.random.Generator, max_stages: int = MAX_STAGES
) -> Array:
    """Members of V (T x m x n) with large sum_x C_x M_x^2, the strongest found first; ``C`` must not be zero."""
    found = run(SquareSolver(space, C, starts, rng), max_steps=max_stages).state
    return np.asarray(found.members[np.argsort(-found.means, kind="stable")])
