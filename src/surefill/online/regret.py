"""The best fixed matrix in hindsight: a concave quadratic over a max-norm class, bracketed from both sides.

    Q(M) = <A, M> - sum_x w_x (M_x - o_x)^2    over   max-norm(M) <= K,  |M_x| <= 1.

From below, Q at a member found by factored ascent (the method of multipliers of ``surefill.spaces``). From above, Q is
concave, so Q(M) <= Q(M_0) + <B, M - M_0> with B = A - 2 w (M_0 - o), and <B, M> is at most the certified bound of
``surefill.spaces.certificate``, read off the same ascent. Both meet at the optimum.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from surefill.arrays import Array, Floats
from surefill.data.observations import Observations
from surefill.spaces.augmented_lagrangian import Limits
from surefill.spaces.certificate import bound_from_response
from surefill.spaces.classes import MaxNorm
from surefill.spaces.separation_oracle import full_width
from surefill.spaces.spheres import Point, Spheres
from surefill.spaces.stage import Stage
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


@dataclass(frozen=True)
class GameRegret:
    """Regret after ``rounds`` rounds, as the paper defines it.

    Attributes
    ----------
    confidence : max over C of sum_t r_t(C) - sum_t r_t(C_t), r_t(C) = H(C) - alpha G(C, M_t); exact.
    matrix_lower, matrix_upper : a bracket of max over M of sum_t gamma_t(M) - sum_t gamma_t(M_t), M ranging over pairs
        of matrices of max-norm at most K with entries in [-1, 1].
    confidence_bound, matrix_bound : what the theorem promises for the steps taken; infinite where they are too long.
    alpha : the game's regret is max(confidence, alpha matrix).

    Examples
    --------
    >>> import surefill as sf
    >>> game = sf.OnlineDualDescent((3, 2), K=1.0, alpha=1.0, theta=0.5)
    >>> game = game.learn_many([0, 1, 2], [0, 1, 0], [0.0, 0.0, 0.0])
    >>> regret = game.regret()
    >>> regret.rounds, bool(regret.matrix_lower <= regret.matrix_upper)
    (3, True)
    """

    rounds: int
    alpha: float
    confidence: float
    confidence_bound: float
    matrix_lower: float
    matrix_upper: float
    matrix_bound: float

    @property
    def lower(self) -> float:
        """At most the game's regret."""
        return max(self.confidence, self.alpha * self.matrix_lower)

    @property
    def upper(self) -> float:
        """At least the game's regret."""
        return max(self.confidence, self.alpha * self.matrix_upper)

    @property
    def bound(self) -> float:
        """B_T, the theorem's bound on the game's regret."""
        return max(self.confidence_bound, self.alpha * self.matrix_bound)

    @property
    def sentence(self) -> str:
        """The figures in words."""
        if self.rounds == 0:
            return "No round has been played."
        players = (
            f"After {self.rounds} rounds the confidence player's regret is {self.confidence:.4g} "
            f"({_against(self.confidence_bound)}), the matrix player's between {self.matrix_lower:.4g} and "
            f"{self.matrix_upper:.4g} ({_against(self.matrix_bound)})"
        )
        return f"{players}; the game's is at most {self.upper:.4g} ({_against(self.bound)})."


@dataclass(frozen=True, eq=False)
class MatrixRecord:
    """What the rounds left for the matrix player's comparator.

    sum_t gamma_t(M) = <sum C_t, M^1 - M^2> - theta sum_x n_x [(M^1_x - o_x)^2 + (M^2_x - o_x)^2] - 2 theta scatter,
    with o_x the mean of the n_x values seen at x and scatter their squared deviations. ``earned`` = sum_t gamma_t(M_t).
    """

    K: float
    theta: float
    zero: bool
    confidence: Array
    counts: Array
    values: Array
    squares: float
    earned: float

    @property
    def means(self) -> Array:
        """o_x where x was seen, 0 elsewhere."""
        return self.values / np.maximum(self.counts, 1)

    def best(self, gap: float = 1e-3) -> tuple[float, float]:
        """A bracket of max over M of sum_t gamma_t(M); the two completions are chosen independently."""
        scatter = self.squares - float(np.vdot(self.counts, self.means**2))
        sides = (1.0,) if self.zero else (1.0, -1.0)
        found = [
            maximize_over_class(
                ConcaveQuadratic(side * self.confidence, self.theta * self.counts, self.means), self.K, gap
            )
            for side in sides
        ]
        times = 2 / len(sides)
        lower, upper = times * sum(b.lower for b in found), times * sum(b.upper for b in found)
        return lower - 2 * self.theta * scatter, upper - 2 * self.theta * scatter


def measure_regret(
    rounds: int, alpha: float, confidence: float, record: MatrixRecord, bounds: tuple[float, float]
) -> GameRegret:
    """The regret of a game from its sums; ``bounds`` are the theorem's, for the two players."""
    if rounds == 0:
        return GameRegret(0, alpha, 0.0, 0.0, 0.0, 0.0, 0.0)
    lower, upper = record.best()
    return GameRegret(rounds, alpha, confidence, bounds[0], lower - record.earned, upper - record.earned, bounds[1])


def _against(bound: float) -> str:
    return f"bound {bound:.4g}" if math.isfinite(bound) else "no bound: the steps are longer than the theorem allows"
