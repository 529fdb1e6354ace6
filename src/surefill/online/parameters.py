"""Parameters of the online game: the paper's weights and step sizes, its regret bounds, and the checked options.

The paper states its regret bounds up to O(.). Both players are mirror descent, for which one derivation
(docs/mathematics.md, "The online game") gives every constant: with a Bregman divergence of at most D from the start
and a squared local norm of the gradients of at most G,

    regret(T) <= D / eta + eta G T    for eta <= max_step,

so that eta = sqrt(D / (G T)), the paper's step size, gives 2 sqrt(D G T). Constants differ from the
paper's where a smaller one is proved; docs/mathematics.md, "Where this differs from the paper", lists them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from surefill.errors import invalid_parameter, is_number

SETTINGS = ("entropy", "cube")
"""The paper's two settings: H(C) = -sum C log C on the simplex, and H(C) = |C|_1 on [0, (m + n)^(-3/2)]^X."""

OBSERVATIONS = ("zero", "values")
"""What a round compares the matrices with: zero (then one matrix is enough), or the observed value."""

OWNER = "OnlineDualDescent"
"""The class whose parameters :class:`GameOptions` checks, for error messages."""

SMALLEST_LOG_CELLS = 1e-9
"""Lower limit of log(mn), which is 0 for a 1 x 1 matrix, where a step size would be 0 / 0."""

ROUNDING = 1e-12
"""Relative rounding error by which a step size computed as max_step may exceed it."""


USUAL_ALPHA = 2.0
"""alpha without a ``delta``: C falls by a factor of e^(4 M_x) where the adversary reaches M_x (docs/mathematics.md)."""

USUAL_THETA = 1.0
"""theta / D without a ``delta``: the misfit of a cell weighs as much as the whole disagreement, |C|_1 <= D."""


@dataclass(frozen=True)
class RegretConstants:
    """regret(T) <= divergence / eta + eta squared_gradient T, if eta <= max_step.

    ``longest_step`` is the longest that is worth taking, whether the bound covers it or not.
    """

    divergence: float
    squared_gradient: float
    max_step: float
    longest_step: float

    def step(self, horizon: float) -> float:
        """sqrt(divergence / (squared_gradient T)), the step size that makes the bound smallest after T rounds."""
        return math.sqrt(self.divergence / (self.squared_gradient * horizon))

    def bound(self, rounds: int, eta: float) -> float:
        """The bound after ``rounds`` rounds with step size ``eta``; infinite where eta is too large for the proof."""
        if rounds == 0:
            return 0.0
        if eta > self.max_step * (1 + ROUNDING):
            return math.inf
        return self.divergence / eta + eta * self.squared_gradient * rounds

    @property
    def shortest_horizon(self) -> float:
        """The smallest T for which :meth:`step` is at most ``max_step``."""
        return self.divergence / (self.squared_gradient * self.max_step**2)


def entropy_constants(shape: tuple[int, int], alpha: float) -> RegretConstants:
    """D_R^2 = log(mn), G_R = 4 alpha, for step sizes up to 1 / (4 alpha) and 1, the longest taken."""
    log_cells = max(math.log(shape[0] * shape[1]), SMALLEST_LOG_CELLS)
    longest = min(1.0, 1 / (4 * alpha))
    return RegretConstants(log_cells, (4 * alpha) ** 2, longest, longest)


def cube_constants(shape: tuple[int, int], alpha: float) -> RegretConstants:
    """D_R^2 = mn / (2 (m + n)^3), G_R^2 = (1 + 2 alpha)^2 mn, for every step size.

    The longest taken lets the largest gradient, 1 + 2 alpha, cross the cube in one round.
    """
    cells, cap, gradient = shape[0] * shape[1], sum(shape) ** -1.5, 1 + 2 * alpha
    return RegretConstants(cells * cap**2 / 2, gradient**2 * cells, math.inf, cap / gradient)


def matrix_constants(shape: tuple[int, int], K: float, theta: float, observations: str) -> RegretConstants:
    """D = K (m + n) log(m + n), G = 2 K (1 + b theta)^2, for step sizes up to 1 / (1 + b theta).

    b theta bounds the gradient 2 theta |M_x - o| of the misfit: b = 4 with values, 2 with zero observations. The
    longest step taken, 1 / (theta K), is the longest with which visits to one cell, over and over, do not diverge: at
    P = (K / 2) I one visit multiplies M_x - o by 1 - 2 eta theta K. No bound covers it.
    """
    size = sum(shape)
    largest = 1 + (4 if observations == "values" else 2) * theta
    return RegretConstants(K * size * max(1.0, math.log(size)), 2 * K * largest**2, 1 / largest, 1 / (theta * K))


@dataclass(frozen=True)
class GameWeights:
    """alpha and theta in h_t(C, M) = H(C) - alpha G(C, M) + alpha theta f_t(M).

    >>> GameWeights(alpha=2.0, theta=1.0).theta
    1.0
    """

    alpha: float
    theta: float


def game_weights(delta: float, shape: tuple[int, int], setting: str) -> GameWeights:
    """alpha = delta^(-1/6), theta = 4 delta^(-2/3) D, D the largest |C|_1 (Theorem "Offline implications").

    >>> weights = game_weights(0.001, (20, 20), "entropy")
    >>> round(weights.alpha, 3), round(weights.theta, 3)
    (3.162, 400.0)
    """
    require_positive("game_weights", delta=delta)
    return GameWeights(delta ** (-1 / 6), 4 * delta ** (-2 / 3) * largest_confidence(shape, setting))


def usual_weights(shape: tuple[int, int], setting: str) -> GameWeights:
    """alpha = 2, theta = D: weights that show a confidence after one pass (docs/mathematics.md, "Usual weights").

    >>> usual_weights((20, 20), "entropy")
    GameWeights(alpha=2.0, theta=1.0)
    """
    return GameWeights(USUAL_ALPHA, USUAL_THETA * largest_confidence(shape, setting))


def largest_confidence(shape: tuple[int, int], setting: str) -> float:
    """D, the largest |C|_1: 1 on the simplex, mn (m + n)^(-3/2) <= sqrt(m + n) / 4 on the cube.

    >>> largest_confidence((8, 8), "cube")
    1.0
    """
    require_one_of("largest_confidence", "confidence", SETTINGS, setting)
    return 1.0 if setting == "entropy" else shape[0] * shape[1] * sum(shape) ** -1.5


def rounds_needed(delta: float, shape: tuple[int, int], K: float, setting: str, observations: str = "zero") -> int:
    """The smallest T whose bounds meet (regret of C + alpha regret of M) / T <= alpha theta delta.

    The theorem's T = O~(delta^-2 K^2 (m + n)), with its step sizes and the sum of both regrets, which the proof uses.

    >>> rounds_needed(0.01, (20, 20), 1.0, "entropy")
    48081768
    """
    weights = game_weights(delta, shape, setting)
    confidence = (entropy_constants if setting == "entropy" else cube_constants)(shape, weights.alpha)
    matrix = matrix_constants(shape, K, weights.theta, observations)
    allowed = weights.alpha * weights.theta * delta
    # the bounds are 2 sqrt(D G T), and sum <= allowed T  <=>  T >= (sum / sqrt(T))^2 / allowed^2
    roots = [2 * math.sqrt(player.divergence * player.squared_gradient) for player in (confidence, matrix)]
    enough = ((roots[0] + weights.alpha * roots[1]) / allowed) ** 2
    return math.ceil(max(enough, confidence.shortest_horizon, matrix.shortest_horizon))


@dataclass(frozen=True)
class GameOptions:
    """The parameters of :class:`OnlineDualDescent`, checked, with alpha and theta filled in."""

    shape: tuple[int, int]
    K: float
    alpha: float
    theta: float
    confidence: str = "entropy"
    observations: str = "zero"
    delta: float | None = None
    horizon: int | None = None
    eta_confidence: float | None = None
    eta_matrix: float | None = None
    tol: float = 1e-6

    @classmethod
    def resolve(
        cls, shape: tuple[int, int], K: float, alpha: float | None, theta: float | None, **others: Any
    ) -> GameOptions:
        """Checked options; where alpha or theta is None, the theorem's for delta, or the usual ones without it."""
        require_shape(OWNER, shape)
        require_one_of(OWNER, "confidence", SETTINGS, others["confidence"])
        require_one_of(OWNER, "observations", OBSERVATIONS, others["observations"])
        optional = {name: others[name] for name in ("delta", "horizon", "eta_confidence", "eta_matrix")}
        require_positive(OWNER, **{name: number for name, number in optional.items() if number is not None})
        delta, setting = others["delta"], others["confidence"]
        weights = usual_weights(shape, setting) if delta is None else game_weights(delta, shape, setting)
        alpha = weights.alpha if alpha is None else alpha
        theta = weights.theta if theta is None else theta
        require_positive(OWNER, K=K, alpha=alpha, theta=theta, tol=others["tol"])
        return cls((int(shape[0]), int(shape[1])), float(K), float(alpha), float(theta), **others)

    def as_scalars(self) -> dict[str, Any]:
        """Every parameter by name, those that are None left out."""
        return {name: value for name, value in asdict(self).items() if value is not None}

    @classmethod
    def from_scalars(cls, scalars: Mapping[str, Any]) -> GameOptions:
        """The options that :meth:`as_scalars` described, also as 0-dimensional arrays; other names are ignored."""
        known = {name: np.asarray(scalars[name]).tolist() for name in cls.__dataclass_fields__ if name in scalars}
        return cls(**{**known, "shape": tuple(known["shape"])})


def require_shape(owner: str, shape: tuple[int, int]) -> None:
    """Refuse a shape that is not two whole numbers of at least 1."""
    if len(shape) != 2 or min(shape) < 1:
        raise invalid_parameter(owner, "shape", "two whole numbers of at least 1", shape)


def require_positive(owner: str, **numbers: Any) -> None:
    """Refuse the first of the named parameters of ``owner`` that is not a positive finite number."""
    for name, number in numbers.items():
        if not is_number(number) or not 0 < number < math.inf:
            raise invalid_parameter(owner, name, "a positive finite number", number)


def require_one_of(owner: str, name: str, choices: tuple[str, ...], given: str) -> None:
    """Refuse a parameter of ``owner`` that is none of the choices."""
    if given not in choices:
        raise invalid_parameter(owner, name, " or ".join(map(repr, choices)), given)
