"""Parameters of the online game: the paper's weights and step sizes, its regret bounds, and the checked options.

The paper states its regret bounds up to O(.). Both players are mirror descent, for which one derivation
(docs/mathematics.md, "The online game") gives every constant: with a Bregman divergence of at most D from the start
and a squared local norm of the gradients of at most G,

    regret(T) <= D / eta + eta G T + floor_cost T    for eta <= max_step,

so that eta = sqrt(D / (G T)), the paper's step size, gives 2 sqrt(D G T) + floor_cost T.
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

OBSERVATIONS = ("values", "zero")
"""What a round compares the matrices with: the observed value, or zero (then one matrix is enough)."""

OWNER = "OnlineDualDescent"
"""The class whose parameters :class:`GameOptions` checks, for error messages."""

SMALLEST_LOG_CELLS = 1e-9
"""Lower limit of log(mn), which is 0 for a 1 x 1 matrix, where a step size would be 0 / 0."""

ROUNDING = 1e-12
"""Relative rounding error by which a step size computed as max_step may exceed it."""


@dataclass(frozen=True)
class RegretConstants:
    """regret(T) <= divergence / eta + eta squared_gradient T + floor_cost T, if eta <= max_step."""

    divergence: float
    squared_gradient: float
    floor_cost: float
    max_step: float

    def step(self, horizon: float) -> float:
        """sqrt(divergence / (squared_gradient T)), the step size that makes the bound smallest after T rounds."""
        return math.sqrt(self.divergence / (self.squared_gradient * horizon))

    def bound(self, rounds: int, eta: float) -> float:
        """The bound after ``rounds`` rounds with step size ``eta``; infinite where eta is too large for the proof."""
        if rounds == 0:
            return 0.0
        if eta > self.max_step * (1 + ROUNDING):
            return math.inf
        return self.divergence / eta + (eta * self.squared_gradient + self.floor_cost) * rounds

    @property
    def shortest_horizon(self) -> float:
        """The smallest T for which :meth:`step` is at most ``max_step``."""
        return self.divergence / (self.squared_gradient * self.max_step**2)


def entropy_constants(shape: tuple[int, int], alpha: float) -> RegretConstants:
    """D_R^2 = log(mn), G_R = beta + 2 alpha with beta = 2 log(mn), and 4 alpha e / (mn) a round for the floor on C."""
    cells = shape[0] * shape[1]
    log_cells = max(math.log(cells), SMALLEST_LOG_CELLS)
    G = 2 * log_cells + 2 * alpha
    return RegretConstants(log_cells, G**2, 4 * alpha * math.e / cells, 1 / G)


def cube_constants(shape: tuple[int, int], alpha: float) -> RegretConstants:
    """D_R^2 = mn / (2 (m + n)^3), G_R^2 = (1 + 2 alpha)^2 mn, for every step size."""
    cells = shape[0] * shape[1]
    return RegretConstants(cells / (2 * sum(shape) ** 3), (1 + 2 * alpha) ** 2 * cells, 0.0, math.inf)


def matrix_constants(shape: tuple[int, int], K: float, theta: float) -> RegretConstants:
    """D = K (m + n) log(2p), G = 4 K (1 + 8 theta)^2, p = 2 (m + n), for step sizes up to 1 / (1 + 4 theta)."""
    size = sum(shape)
    return RegretConstants(K * size * math.log(4 * size), 4 * K * (1 + 8 * theta) ** 2, 0.0, 1 / (1 + 4 * theta))


@dataclass(frozen=True)
class GameWeights:
    """alpha and theta in h_t(C, M) = H(C) - alpha G(C, M) + alpha theta f_t(M)."""

    alpha: float
    theta: float


def game_weights(delta: float, shape: tuple[int, int], setting: str) -> GameWeights:
    """alpha = delta^(-1/6), theta = 4 delta^(-2/3), times sqrt(m + n) on the cube (Theorem "Offline implications").

    >>> weights = game_weights(0.001, (20, 20), "entropy")
    >>> round(weights.alpha, 3), round(weights.theta, 3)
    (3.162, 400.0)
    """
    require_positive("game_weights", delta=delta)
    return GameWeights(delta ** (-1 / 6), 4 * delta ** (-2 / 3) * largest_confidence(shape, setting))


def largest_confidence(shape: tuple[int, int], setting: str) -> float:
    """The paper's D, a bound on |C|_1: 1 on the simplex, sqrt(m + n) on the cube."""
    require_one_of("largest_confidence", "confidence", SETTINGS, setting)
    return 1.0 if setting == "entropy" else math.sqrt(sum(shape))


def rounds_needed(delta: float, shape: tuple[int, int], K: float, setting: str) -> int:
    """The smallest T with B_T / T <= alpha theta delta, the theorem's T = O~(delta^-2 K^2 (m + n)).

    B_T is the larger of the confidence player's bound and alpha times the matrix player's, at their best step sizes.
    """
    weights = game_weights(delta, shape, setting)
    alpha, theta = weights.alpha, weights.theta
    target = alpha * theta * delta
    confidence = (entropy_constants if setting == "entropy" else cube_constants)(shape, alpha)
    matrix = matrix_constants(shape, K, theta)
    allowed = target - confidence.floor_cost
    if allowed <= 0:
        raise invalid_parameter("rounds_needed", "delta", "larger: the floor on C alone exceeds it", delta)
    # 2 sqrt(D G T) <= target T  <=>  T >= 4 D G / target^2, for each player
    for_matrix = 4 * alpha**2 * matrix.divergence * matrix.squared_gradient / target**2
    for_confidence = 4 * confidence.divergence * confidence.squared_gradient / allowed**2
    return math.ceil(max(for_matrix, for_confidence, matrix.shortest_horizon))


@dataclass(frozen=True)
class GameOptions:
    """The parameters of :class:`OnlineDualDescent`, checked, with alpha and theta filled in from delta."""

    shape: tuple[int, int]
    K: float
    alpha: float
    theta: float
    confidence: str = "entropy"
    observations: str = "values"
    horizon: int | None = None
    eta_confidence: float | None = None
    eta_matrix: float | None = None
    tol: float = 1e-8

    @classmethod
    def resolve(
        cls, shape: tuple[int, int], K: float, alpha: float | None, theta: float | None, delta: float, **others: Any
    ) -> GameOptions:
        """Checked options; where alpha or theta is None, the paper's for ``delta``."""
        require_shape(OWNER, shape)
        require_one_of(OWNER, "confidence", SETTINGS, others["confidence"])
        require_one_of(OWNER, "observations", OBSERVATIONS, others["observations"])
        require_positive(OWNER, delta=delta)
        paper = game_weights(delta, shape, others["confidence"])
        alpha = paper.alpha if alpha is None else alpha
        theta = paper.theta if theta is None else theta
        optional = {name: others[name] for name in ("horizon", "eta_confidence", "eta_matrix")}
        given = {name: number for name, number in optional.items() if number is not None}
        require_positive(OWNER, K=K, alpha=alpha, theta=theta, tol=others["tol"], **given)
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
