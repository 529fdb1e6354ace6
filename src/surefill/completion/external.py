"""ExternalCompletion: somebody else's predictions in place of a completion algorithm of our own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from surefill.completion.base import Completion
from surefill.completion.effects import Effects
from surefill.completion.gap import OptimalityGap
from surefill.completion.low_rank import LowRankCompletion
from surefill.completion.outside import Features, ImputedCompletion, OutsideCompletion, Predict, TableCompletion
from surefill.data import Observations
from surefill.errors import InputError, invalid_parameter
from surefill.loop import ProgressCallback, Status

Kind = Literal["auto", "predict", "fit", "regressor", "imputer", "predictions"]
KINDS = ("auto", "predict", "fit", "regressor", "imputer", "predictions")


@dataclass(frozen=True)
class ExternalCompletion:
    """A completion from outside: a function, a scikit-learn estimator, or a table of predictions.

    Whatever it is, values are cut to the observations' bounds. Other rows (``fold_in``) and cells that a table leaves
    out are predicted by a mean and shrunken row and column effects; only an imputer transforms other rows itself.

    Parameters
    ----------
    source : what predicts; see ``kind``.
    kind : "predict": a function (rows, cols) -> values, both arrays of 0-based indices.
        "fit": a function of :class:`Observations` that returns such a function.
        "regressor": a scikit-learn regressor, cloned and fitted on ``features`` of the seen cells, counts as weights
        where it takes any.
        "imputer": a scikit-learn imputer, cloned and fitted on the m x n array with NaN in its holes. It must be asked
        for by name, because it holds the whole matrix; it must keep every column.
        "predictions": :class:`Observations` that hold predictions, matched by labels where both have them.
        "auto" takes Observations for predictions, an object with ``predict`` for a regressor, a function for "predict".
    features : of a regressor: "one-hot" (sparse, a column per row and per column), "ids" (the two indices, for trees),
        or a function (rows, cols) -> array with one line per cell.

    Examples
    --------
    >>> seen = Observations([0, 0, 1], [0, 1, 0], [1.0, 2.0, 3.0])
    >>> ExternalCompletion(lambda rows, cols: 1.0 + rows + cols).fit(seen).dense()
    array([[1., 2.],
           [2., 3.]])
    """

    source: Any
    kind: Kind = "auto"
    features: Literal["one-hot", "ids"] | Callable[..., Any] = "one-hot"

    def fit(self, observations: Observations, progress: ProgressCallback | None = None) -> Completion:
        """The predictions of the source, as a completion."""
        kind = self._resolved()
        fallback = _effects_alone(observations)
        if kind == "predictions":
            return TableCompletion.of(self.source, observations, fallback)
        if kind == "imputer":
            from sklearn.base import clone

            return ImputedCompletion.of(clone(self.source), observations, fallback)
        if kind == "regressor":
            return OutsideCompletion(self._regression(observations), fallback)
        predict = self.source if kind == "predict" else self.source(observations)
        if not callable(predict):
            raise InputError(
                f"ExternalCompletion: fitting must return a function (rows, cols) -> values; got {predict!r}."
            )
        return OutsideCompletion(predict, fallback)

    def _resolved(self) -> str:
        if self.kind not in KINDS:
            raise invalid_parameter("ExternalCompletion", "kind", f"one of {', '.join(map(repr, KINDS))}", self.kind)
        kind = self._guessed() if self.kind == "auto" else self.kind
        needs = {"predictions": "Observations", "regressor": "an object with fit and predict",
                 "imputer": "an object with fit and transform"}.get(kind, "a function")  # fmt: skip
        has = {
            "predictions": isinstance(self.source, Observations),
            "regressor": hasattr(self.source, "fit") and hasattr(self.source, "predict"),
            "imputer": hasattr(self.source, "fit") and hasattr(self.source, "transform"),
        }.get(kind, callable(self.source))
        if not has:
            raise invalid_parameter("ExternalCompletion", "source", f"{needs} for kind {kind!r}", self.source)
        if not (callable(self.features) or self.features in ("one-hot", "ids")):
            raise invalid_parameter("ExternalCompletion", "features", "'one-hot', 'ids' or a function", self.features)
        return kind

    def _guessed(self) -> str:
        if isinstance(self.source, Observations):
            return "predictions"
        if hasattr(self.source, "fit") and hasattr(self.source, "predict"):
            return "regressor"
        if hasattr(self.source, "fit") and hasattr(self.source, "transform"):
            raise InputError(
                "ExternalCompletion: an imputer holds the whole m x n matrix in memory; say kind='imputer' to allow it."
            )
        return "predict"

    def _regression(self, observations: Observations) -> Predict:
        from sklearn.base import clone

        features = Features(self.features, observations.shape)
        model, X = clone(self.source), features(observations.rows, observations.cols)
        try:
            model.fit(X, observations.values, sample_weight=observations.counts.astype(np.float64))
        except TypeError:
            if (observations.counts > 1).any():
                raise InputError(
                    f"ExternalCompletion: {type(model).__name__} takes no sample_weight, "
                    "and some cells were drawn more than once."
                ) from None
            model.fit(X, observations.values)
        return lambda rows, cols: model.predict(features(rows, cols))


def _effects_alone(observations: Observations) -> LowRankCompletion:
    """A mean and shrunken row and column effects: the completion of rank 0."""
    nothing = tuple(np.zeros((len(groups), 0)) for groups in (observations.by_row, observations.by_col))
    return LowRankCompletion.of(
        observations,
        Effects.of(observations, "effects", "ExternalCompletion"),
        (nothing[0], nothing[1]),
        has_effects=True,
        penalty=0.0,
        chosen={},
        gap=OptimalityGap(0.0, 0.0, "searched"),
        status=Status.CONVERGED,
    )
