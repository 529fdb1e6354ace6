"""Expected loss as a falling function of confidence."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.isotonic import IsotonicRegression

from surefill.arrays import Array
from surefill.completion import Completion
from surefill.confidence import ExtendableConfidence
from surefill.data import Observations
from surefill.errors import InputError
from surefill.registry import storable


@storable
@dataclass(frozen=True, eq=False)
class RiskCurve:
    """risk(c) = the non-increasing fit of held-out losses, squared errors by default, on confidence.

    Linear between its knots, flat beyond them. The errors are against observed values, so the noise of an
    observation is part of the risk.

    Examples
    --------
    >>> import numpy as np
    >>> curve = RiskCurve(np.array([0.2, 0.8]), np.array([1.0, 0.4]))
    >>> curve.at(np.array([0.0, 0.5, 1.0]))
    array([1. , 0.7, 0.4])
    """

    confidence: Array
    risk: Array

    def __post_init__(self) -> None:
        if self.confidence.shape != self.risk.shape or not np.isfinite(self.risk).all():
            raise InputError("a risk curve needs one finite risk per confidence.")

    @classmethod
    def fit(cls, confidence: Array, loss: Array, weight: ArrayLike) -> RiskCurve:
        """Isotonic regression on held-out entries."""
        isotonic = IsotonicRegression(increasing=False, y_min=0.0)
        isotonic.fit(confidence, loss, sample_weight=np.asarray(weight, dtype=np.float64))
        return cls(np.asarray(isotonic.X_thresholds_), np.asarray(isotonic.y_thresholds_))

    def at(self, confidence: ArrayLike) -> Array:
        """Expected loss at the given confidences."""
        return np.interp(np.asarray(confidence, dtype=np.float64), self.confidence, self.risk)


@storable
@dataclass(frozen=True, eq=False)
class ConfidenceRisk:
    """risk_x = curve(C_x): an expected loss for every entry, from its confidence alone.

    Examples
    --------
    >>> import surefill as sf
    >>> sim = sf.datasets.make_low_rank((30, 20), rank=2, n_draws=400, noise=0.1, random_state=0)
    >>> completer = sf.PartialCompleter(tolerance=0.2, confidence="posterior", risk="confidence").fit(sim.observations)
    >>> type(completer.result_.risk).__name__
    'ConfidenceRisk'
    >>> bool((completer.predict_risk([0, 1], [2, 3]) >= 0).all())
    True
    """

    curve: RiskCurve
    confidence: ExtendableConfidence

    def at(self, rows: ArrayLike, cols: ArrayLike) -> Array:
        """Expected losses at the pairs (rows[t], cols[t])."""
        return self.curve.at(self.confidence.at(rows, cols))

    def given(self, rows: ArrayLike, cols: ArrayLike, predicted: Array, confidence: Array) -> Array:
        """The same where the confidences at these pairs are known already."""
        return self.curve.at(confidence)

    def fold_in(
        self,
        observations: Observations,
        completion: Completion | None = None,
        confidence: ExtendableConfidence | None = None,
    ) -> Self:
        """The risk of other rows, seen at ``observations``; their confidence, if known already."""
        return replace(self, confidence=self.confidence.fold_in(observations) if confidence is None else confidence)
