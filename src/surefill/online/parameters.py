"""The online game's parameters: the paper's weights and steps, and its regret bounds with every constant in sight.

The paper bounds regrets up to O(.). Both players are mirror descent, for which one derivation (docs/mathematics.md,
"The online game") gives, with a divergence of at most D from the start and a local gradient norm of at most sqrt(G),

    regret(T) <= D / eta + eta G T + drift T    as long as eta <= largest_step,

so that eta = sqrt(D / (G T)) gives 2 sqrt(D G T): the paper's steps.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from surefill.errors import invalid_parameter, is_number

SETTINGS = ("entropy", "cube")
"""H(C) = -sum C log C on the simplex, and H(C) = |C| on the cube [0, (m + n)^(-3/2)]."""


@dataclass(frozen=True)
class RegretConstants:
    """regret(T) <= diameter / eta + eta gradient T + drift T, if eta <= largest_step."""

    diameter: float
    gradient: float
    drift: float
    largest_step: float

    def step(self, horizon: float) -> float:
        """sqrt(diameter / (gradient T)), the step that makes the bound smallest after T rounds."""
        return math.sqrt(self.diameter / (self.gradient * horizon))

    def bound(self, rounds: int, eta: float) -> float:
        """The bound after ``rounds`` rounds with steps ``eta``; infinite where eta is too long for the proof."""
        if rounds == 0:
            return 0.0
        if eta > self.largest_step * (1 + 1e-12):
            return math.inf
        return self.diameter / eta + (eta * self.gradient + self.drift) * rounds

    @property
    def shortest_horizon(self) -> float:
        """The rounds from which :meth:`step` is short enough for the proof."""
        return self.diameter / (self.gradient * self.largest_step**2)


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
    if not 0 < delta < math.inf:
        raise invalid_parameter("game_weights", "delta", "a positive finite number", delta)
    return GameWeights(delta ** (-1 / 6), 4 * delta ** (-2 / 3) * largest_confidence(shape, setting))


def largest_confidence(shape: tuple[int, int], setting: str) -> float:
    """The paper's D, a bound on |C|: 1 on the simplex, sqrt(m + n) on the cube."""
    require_setting("largest_confidence", setting)
    return 1.0 if setting == "entropy" else math.sqrt(sum(shape))


def entropy_constants(shape: tuple[int, int], alpha: float) -> RegretConstants:
    """D_R^2 = log(mn), G_R = beta + 2 alpha with beta = 2 log(mn), and 4 alpha e / (mn) for the floor on C."""
    cells = shape[0] * shape[1]
    size = max(math.log(cells), 1e-9)
    G = 2 * size + 2 * alpha
    return RegretConstants(size, G**2, 4 * alpha * math.e / cells, 1 / G)


def cube_constants(shape: tuple[int, int], alpha: float) -> RegretConstants:
    """D_R^2 = mn / (2 (m + n)^3), G_R^2 = (1 + 2 alpha)^2 mn; any step will do."""
    cells = shape[0] * shape[1]
    return RegretConstants(cells / (2 * sum(shape) ** 3), (1 + 2 * alpha) ** 2 * cells, 0.0, math.inf)


def matrix_constants(shape: tuple[int, int], K: float, theta: float) -> RegretConstants:
    """D = K (m + n) log(2p), G = 4 K (1 + 8 theta)^2, p = 2 (m + n), for steps of at most 1 / (1 + 4 theta)."""
    size = sum(shape)
    return RegretConstants(K * size * math.log(4 * size), 4 * K * (1 + 8 * theta) ** 2, 0.0, 1 / (1 + 4 * theta))


def rounds_needed(delta: float, shape: tuple[int, int], K: float, setting: str) -> int:
    """The rounds T from which B_T / T <= alpha theta delta, the theorem's T = O~(delta^-2 K^2 (m + n)).

    B_T is the larger of the confidence player's bound and alpha times the matrix player's, at their best steps.
    """
    weights = game_weights(delta, shape, setting)
    alpha, theta = weights.alpha, weights.theta
    target = alpha * theta * delta
    confidence = (entropy_constants if setting == "entropy" else cube_constants)(shape, alpha)
    matrix = matrix_constants(shape, K, theta)
    needed = 4 * alpha**2 * matrix.diameter * matrix.gradient / target**2
    room = target - confidence.drift
    if room <= 0:
        raise invalid_parameter("rounds_needed", "delta", "larger: the floor on C alone exceeds it", delta)
    return math.ceil(max(needed, 4 * confidence.diameter * confidence.gradient / room**2, matrix.shortest_horizon))


def require_setting(owner: str, setting: str) -> None:
    """Refuse what is neither of the two settings."""
    if setting not in SETTINGS:
        raise invalid_parameter(owner, "confidence", " or ".join(map(repr, SETTINGS)), setting)


OBSERVATIONS = ("values", "zero")
"""What a round compares the matrices with: the observed value, or zero (then one matrix is enough)."""

OWNER = "OnlineDualDescent"


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
    tolerance: float = 1e-8

    @classmethod
    def resolve(
        cls, shape: tuple[int, int], K: float, alpha: float | None, theta: float | None, delta: float, **others: Any
    ) -> GameOptions:
        """Checked options; where alpha or theta is None, the paper's for ``delta``."""
        if len(shape) != 2 or min(shape) < 1:
            raise invalid_parameter(OWNER, "shape", "two whole numbers of at least 1", shape)
        if others["confidence"] not in SETTINGS:
            raise invalid_parameter(OWNER, "confidence", " or ".join(map(repr, SETTINGS)), others["confidence"])
        if others["observations"] not in OBSERVATIONS:
            raise invalid_parameter(OWNER, "observations", " or ".join(map(repr, OBSERVATIONS)), others["observations"])
        _require_positive(delta=delta)
        paper = game_weights(delta, shape, others["confidence"])
        alpha = paper.alpha if alpha is None else alpha
        theta = paper.theta if theta is None else theta
        _require_positive(K=K, alpha=alpha, theta=theta, tolerance=others["tolerance"])
        for name in ("horizon", "eta_confidence", "eta_matrix"):
            if others[name] is not None:
                _require_positive(**{name: others[name]})
        return cls((int(shape[0]), int(shape[1])), float(K), float(alpha), float(theta), **others)

    def as_scalars(self) -> dict[str, Any]:
        """Every parameter by name, those that are None left out."""
        return {name: value for name, value in asdict(self).items() if value is not None}

    @classmethod
    def from_scalars(cls, scalars: Mapping[str, Any]) -> GameOptions:
        """The options that :meth:`as_scalars` described, also as arrays without axes; other names are passed over."""
        known = {name: np.asarray(scalars[name]).tolist() for name in cls.__dataclass_fields__ if name in scalars}
        return cls(**{**known, "shape": tuple(known["shape"])})


def _require_positive(**numbers: Any) -> None:
    for name, number in numbers.items():
        if not is_number(number) or not 0 < number < math.inf:
            raise invalid_parameter(OWNER, name, "a positive finite number", number)
