"""The best fixed matrix in hindsight: a concave quadratic over a max-norm class, bracketed from both sides.

    Q(M) = <A, M> - sum_x w_x (M_x - o_x)^2    over   max-norm(M) <= K,  |M_x| <= 1.

From below, Q at a member found by factored ascent (the method of multipliers of ``surefill.spaces``). From above, Q is
concave, so Q(M) <= Q(M_0) + <B, M - M_0> with B = A - 2 w (M_0 - o), and <B, M> is at most the certified bound of
``surefill.spaces.certificate``, read off the same ascent. Both meet at the optimum.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from surefill.data.observations import Observations
from surefill.online.simplex import Array
from surefill.spaces.ascent import Stage
from surefill.spaces.certificate import bound_from_response
from surefill.spaces.classes import MaxNorm
from surefill.spaces.factored import full_width
from surefill.spaces.limits import Limits
from surefill.spaces.sphere import Floats, Point, Spheres
from surefill.spaces.version_space import VersionSpace

STAGE_ITERATIONS = 60
MAX_STAGES = 25
NEGLIGIBLE = 1e-9
"""Share of the scale of Q below which a gradient need not be bounded better than by the sum of its entries."""

NO_BALL = 4.0
"""A mean square that no matrix with entries in [-1, 1] reaches."""


@dataclass(frozen=True, eq=False)
class Bracket:
    """lower = Q(matrix) <= max Q <= upper; ``matrix`` is a member of the class."""

    lower: float
    upper: float
    matrix: Array


@dataclass(frozen=True, eq=False)
class ConcaveQuadratic:
    """Q(M) = <linear, M> - sum_x weights_x (M_x - targets_x)^2, all m x n, weights at least 0."""

    linear: Array
    weights: Array
    targets: Array

    def value(self, M: Array) -> float:
        """Q(M)."""
        return float(np.vdot(self.linear, M) - np.vdot(self.weights, (M - self.targets) ** 2))

    def gradient(self, M: Array) -> Array:
        """linear - 2 weights (M - targets)."""
        return self.linear - 2 * self.weights * (M - self.targets)

    @property
    def scale(self) -> float:
        """About the largest value and the largest change of Q."""
        return float(np.abs(self.linear).sum() + self.weights.sum())


class QuadraticPayoff:
    """-pull Q(U V'), a payoff for the factored ascent."""

    def __init__(self, quadratic: ConcaveQuadratic, pull: float) -> None:
        self.quadratic, self.pull = quadratic, pull

    def __call__(self, left: Floats, right: Floats) -> tuple[float, Floats, Floats]:
        """The value, and -pull grad V and -pull grad' U."""
        value, gradient = self.of_matrix(left @ right.T)
        return value, gradient @ right, gradient.T @ left

    def of_matrix(self, M: Floats) -> tuple[float, Floats]:
        """The value, and -pull grad."""
        return -self.pull * self.quadratic.value(M), -self.pull * self.quadratic.gradient(M)


def maximize_over_class(quadratic: ConcaveQuadratic, K: float, gap: float = 1e-3, random_state: int = 0) -> Bracket:
    """max Q over the class, to within ``gap`` times the scale of Q where the ascent gets so far."""
    shape = (quadratic.linear.shape[0], quadratic.linear.shape[1])
    scale = quadratic.scale
    if scale == 0:
        return Bracket(0.0, 0.0, np.zeros(shape))
    space = VersionSpace(Observations([0], [0], [0.0], shape, (-1.0, 1.0)), NO_BALL, MaxNorm(K))
    spheres = Spheres(shape, K, 1, full_width(shape))
    stage = Stage(spheres, Limits(space, 1))
    payoff = QuadraticPayoff(quadratic, shape[0] * shape[1] / scale)
    variables = spheres.random(np.random.default_rng(random_state))
    lower, upper, best = -np.inf, np.inf, np.zeros(shape)
    for _ in range(MAX_STAGES):
        variables, point = stage.run(variables, payoff, STAGE_ITERATIONS)
        left, right = stage.limits.members(point)
        M = left @ right.T
        if quadratic.value(M) > lower:
            lower, best = quadratic.value(M), M
        upper = min(upper, _upper_bound(quadratic, space, stage.limits, payoff.pull, point))
        if upper - lower <= gap * scale:
            break
    return Bracket(lower, max(lower, upper), best)


def _upper_bound(quadratic: ConcaveQuadratic, space: VersionSpace, limits: Limits, pull: float, point: Point) -> float:
    """Q(M_0) - <B, M_0> + a bound on <B, M>; M_0 = U V' need not be a member."""
    U, V = point.left, point.right
    M = U @ V.T
    B = quadratic.gradient(M)
    base, trivial = quadratic.value(M) - float(np.vdot(B, M)), float(np.abs(B).sum())
    if trivial <= NEGLIGIBLE * quadratic.scale:
        return base + trivial
    box = None if limits.box is None else np.sign(M) * limits.box[0] / pull
    return base + min(trivial, bound_from_response(space, B, U, V, 0.0, box).value)
