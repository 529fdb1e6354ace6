"""Regret of the online game, and the best fixed matrices in hindsight that the matrix player is compared with.

The comparator maximises a concave quadratic over a max-norm class,

    Q(M) = <A, M> - sum_x w_x (M_x - o_x)^2    over   max-norm(M) <= K,  |M_x| <= 1.

Lower bound: Q at a member found by the factored augmented Lagrangian of ``surefill.spaces``. Upper bound: Q is concave,
so Q(M) <= Q(M_0) + <B, M - M_0> with B = A - 2 w (M_0 - o), and <B, M> is at most the certified bound of
``surefill.spaces.certificates``, from the same factors. Both meet at the optimum. The confidence player's comparator
has a closed form (``ConfidencePlayer.best_reward``).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from surefill.arrays import Array, Floats
from surefill.data.observations import Observations
from surefill.spaces.augmented_lagrangian import AugmentedLagrangian, Multipliers
from surefill.spaces.certificates import bound_from_response
from surefill.spaces.classes import MaxNorm
from surefill.spaces.separation_oracle import full_width
from surefill.spaces.spheres import Point, Spheres
from surefill.spaces.stage import Stage
from surefill.spaces.version_space import VersionSpace

STAGE_ITERATIONS = 60
"""L-BFGS iterations between two updates of the multipliers, after each of which both bounds are computed."""

MAX_STAGES = 25
"""Updates of the multipliers at most; the bounds are valid wherever it stops."""

NEGLIGIBLE = 1e-9
"""Share of the scale of Q below which a gradient need not be bounded better than by the sum of its entries."""

UNREACHABLE_MEAN_SQUARE = 4.0
"""A mean square that no matrix with entries in [-1, 1] reaches: the version space is then the whole class."""


@dataclass(frozen=True, eq=False)
class QuadraticMaximum:
    """lower_bound = Q(matrix) <= max Q <= upper_bound; ``matrix`` is a member of the class."""

    lower_bound: float
    upper_bound: float
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
        """|linear|_1 + |weights|_1, the order of magnitude of Q and of its changes on [-1, 1]."""
        return float(np.abs(self.linear).sum() + self.weights.sum())


class QuadraticObjective:
    """-factor Q(U V'), what the factored solver minimises."""

    def __init__(self, quadratic: ConcaveQuadratic, factor: float) -> None:
        self.quadratic, self.factor = quadratic, factor

    def __call__(self, left: Floats, right: Floats) -> tuple[float, Floats, Floats]:
        """The value, and its gradients in U and V."""
        value, gradient = self.of_matrix(left @ right.T)
        return value, gradient @ right, gradient.T @ left

    def of_matrix(self, M: Floats) -> tuple[float, Floats]:
        """The value, and its gradient in M."""
        return -self.factor * self.quadratic.value(M), -self.factor * self.quadratic.gradient(M)


def maximize_over_class(
    quadratic: ConcaveQuadratic, K: float, gap: float = 1e-3, random_state: int = 0
) -> QuadraticMaximum:
    """max Q over the class, to within ``gap`` times the scale of Q where the solver gets so far."""
    shape = (quadratic.linear.shape[0], quadratic.linear.shape[1])
    scale = quadratic.scale
    if scale == 0:
        return QuadraticMaximum(0.0, 0.0, np.zeros(shape))
    whole_class = VersionSpace(Observations([0], [0], [0.0], shape, (-1.0, 1.0)), UNREACHABLE_MEAN_SQUARE, MaxNorm(K))
    spheres = Spheres(shape, K, 1, full_width(shape))
    stage, multipliers = Stage(spheres, AugmentedLagrangian(whole_class)), Multipliers.zeros(1)
    objective = QuadraticObjective(quadratic, shape[0] * shape[1] / scale)
    variables = spheres.random(np.random.default_rng(random_state))
    lower_bound, upper_bound, best = -np.inf, np.inf, np.zeros(shape)
    for _ in range(MAX_STAGES):
        variables, multipliers, point = stage.run(variables, multipliers, objective, STAGE_ITERATIONS)
        left, right = stage.lagrangian.members(point)
        M = left @ right.T
        if quadratic.value(M) > lower_bound:
            lower_bound, best = quadratic.value(M), M
        upper_bound = min(upper_bound, _upper_bound(quadratic, whole_class, multipliers, objective.factor, point))
        if upper_bound - lower_bound <= gap * scale:
            break
    return QuadraticMaximum(lower_bound, max(lower_bound, upper_bound), best)


def _upper_bound(
    quadratic: ConcaveQuadratic, space: VersionSpace, multipliers: Multipliers, factor: float, point: Point
) -> float:
    """Q(M_0) - <B, M_0> + a bound on <B, M>; M_0 = U V' need not be a member."""
    U, V = point.left, point.right
    M = U @ V.T
    B = quadratic.gradient(M)
    constant, trivial = quadratic.value(M) - float(np.vdot(B, M)), float(np.abs(B).sum())
    if trivial <= NEGLIGIBLE * quadratic.scale:
        return constant + trivial
    box = None if multipliers.box is None else np.sign(M) * multipliers.box[0] / factor
    return constant + min(trivial, bound_from_response(space, B, U, V, 0.0, box).value)


@dataclass(frozen=True, eq=False)
class MatrixRewardSum:
    """sum_t gamma_t(M) as a function of M, from sums over the rounds.

    sum_t gamma_t(M) = <sum C_t, M^1 - M^2> - theta sum_x n_x [(M^1_x - o_x)^2 + (M^2_x - o_x)^2] - 2 theta scatter,
    with o_x the mean of the n_x values observed at x and scatter the sum of their squared deviations from it.

    Attributes
    ----------
    confidence, counts, values : sum C_t; how often each cell was observed, and the sum of its values.
    squares : sum o_t^2.
    zero : whether all observations count as zero, so that M^2 = -M^1.
    """

    K: float
    theta: float
    zero: bool
    confidence: Array
    counts: Array
    values: Array
    squares: float

    @property
    def means(self) -> Array:
        """o_x where x was observed, 0 elsewhere."""
        return self.values / np.maximum(self.counts, 1)

    @property
    def scatter(self) -> float:
        """Sum of the squared deviations of the values from their cell's mean."""
        return self.squares - float(np.vdot(self.counts, self.means**2))

    def best(self, gap: float = 1e-3) -> tuple[float, float]:
        """Lower and upper bound of max over M of sum_t gamma_t(M); the two matrices are chosen independently."""
        # with zero observations both matrices have the same maximum
        signs = (1.0,) if self.zero else (1.0, -1.0)
        found = [
            maximize_over_class(
                ConcaveQuadratic(sign * self.confidence, self.theta * self.counts, self.means), self.K, gap
            )
            for sign in signs
        ]
        times, constant = 2 / len(signs), 2 * self.theta * self.scatter
        lower = times * sum(maximum.lower_bound for maximum in found)
        upper = times * sum(maximum.upper_bound for maximum in found)
        return lower - constant, upper - constant


@dataclass(frozen=True)
class GameRegret:
    """Regret after ``rounds`` rounds against the best fixed decisions in hindsight, as the paper defines it.

    Attributes
    ----------
    confidence : max over C of sum_t r_t(C) - sum_t r_t(C_t), r_t(C) = H(C) - alpha G(C, M_t); exact.
    matrix_lower_bound, matrix_upper_bound : bounds of max over M of sum_t gamma_t(M) - sum_t gamma_t(M_t), M ranging
        over pairs of matrices of max-norm at most K with entries in [-1, 1].
    confidence_theorem_bound, matrix_theorem_bound : the theorem's bounds for the step sizes taken; infinite where these
        are larger than the theorem allows.
    alpha : the game's regret is max(confidence, alpha matrix).

    Examples
    --------
    >>> import surefill as sf
    >>> game = sf.OnlineDualDescent((3, 2), K=1.0, alpha=1.0, theta=0.5)
    >>> game = game.learn_many([0, 1, 2], [0, 1, 0], [0.0, 0.0, 0.0])
    >>> regret = game.regret()
    >>> regret.rounds, bool(regret.matrix_lower_bound <= regret.matrix_upper_bound)
    (3, True)
    """

    rounds: int
    alpha: float
    confidence: float
    confidence_theorem_bound: float
    matrix_lower_bound: float
    matrix_upper_bound: float
    matrix_theorem_bound: float

    @property
    def lower_bound(self) -> float:
        """A lower bound of the game's regret."""
        return max(self.confidence, self.alpha * self.matrix_lower_bound)

    @property
    def upper_bound(self) -> float:
        """An upper bound of the game's regret."""
        return max(self.confidence, self.alpha * self.matrix_upper_bound)

    @property
    def theorem_bound(self) -> float:
        """B_T, the theorem's bound of the game's regret."""
        return max(self.confidence_theorem_bound, self.alpha * self.matrix_theorem_bound)

    @property
    def sentence(self) -> str:
        """The figures in words."""
        if self.rounds == 0:
            return "No round has been played."
        players = (
            f"After {self.rounds} rounds the confidence player's regret is {self.confidence:.4g} "
            f"({_in_words(self.confidence_theorem_bound)}), the matrix player's between "
            f"{self.matrix_lower_bound:.4g} and {self.matrix_upper_bound:.4g} ({_in_words(self.matrix_theorem_bound)})"
        )
        return f"{players}; the game's is at most {self.upper_bound:.4g} ({_in_words(self.theorem_bound)})."


def _in_words(bound: float) -> str:
    if math.isfinite(bound):
        return f"bound {bound:.4g}"
    return "no bound: the steps are longer than the theorem allows"
