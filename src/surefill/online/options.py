"""What a game is played with: every parameter resolved, so that a game can be built, saved and built again."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from surefill.errors import invalid_parameter, is_number
from surefill.online.parameters import SETTINGS, game_weights

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
