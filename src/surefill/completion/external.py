"""Completions that external predictors give: by a function, by a table, or by an imputer."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal, Self, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from surefill.completion.base import Completion, completion_card
from surefill.completion.low_rank_completion import LowRankCompletion, effects_alone
from surefill.data import Observations
from surefill.errors import InputError, invalid_parameter
from surefill.loop import ProgressCallback
from surefill.registry import storable

Predictor = Callable[[NDArray[Any], NDArray[Any]], Any]


@dataclass(frozen=True)
class CellFeatures:
    """The features of a cell that a regressor is given."""

    kind: Any
    shape: tuple[int, int]

    def __call__(self, rows: NDArray[Any], cols: NDArray[Any]) -> Any:
        """One line per cell: the user's own, the two ids, or one-hot, a one for its row and a one for its column."""
        if callable(self.kind):
            return self.kind(rows, cols)
        if self.kind == "ids":
            return np.column_stack([rows, cols]).astype(np.float64)
        (m, n), size = self.shape, len(rows)
        where = np.column_stack([rows, m + np.asarray(cols, dtype=np.int64)]).ravel()
        return sparse.csr_matrix((np.ones(2 * size), where, np.arange(0, 2 * size + 1, 2)), shape=(size, m + n))


class CellwiseCompletion(ABC):
    """A completion that is asked one cell at a time: ``block`` and ``dense`` from ``at``."""

    fallback: LowRankCompletion

    @property
    def shape(self) -> tuple[int, int]:
        """(m, n)."""
        return self.fallback.shape

    @abstractmethod
    def at(self, rows: ArrayLike, cols: ArrayLike) -> NDArray[np.float64]:
        """Values at the pairs (rows[t], cols[t])."""

    def block(self, rows: ArrayLike, cols: ArrayLike) -> NDArray[np.float64]:
        """Values on the grid rows x cols."""
        i, j = _indices(rows), _indices(cols)
        return self.at(np.repeat(i, len(j)), np.tile(j, len(i))).reshape(len(i), len(j))

    def dense(self) -> NDArray[np.float64]:
        """The whole m x n matrix; only for matrices small enough to hold."""
        return self.block(np.arange(self.shape[0]), np.arange(self.shape[1]))

    def _repr_html_(self) -> str:
        return completion_card(self, self.shape)


@dataclass(frozen=True, eq=False)
class FunctionCompletion(CellwiseCompletion):
    """The values of a function, clipped to the bounds; other rows by ``fallback``.

    Not storable: it holds a function.
    """

    predict: Predictor
    fallback: LowRankCompletion

    def at(self, rows: ArrayLike, cols: ArrayLike) -> NDArray[np.float64]:
        """Values at the pairs (rows[t], cols[t])."""
        i, j = _indices(rows), _indices(cols)
        if not i.size:
            return np.zeros(0)
        values = np.asarray(self.predict(i, j), dtype=np.float64)
        if values.shape != i.shape or not np.isfinite(values).all():
            raise InputError("the external predictor must return one finite number per cell.")
        return np.clip(values, *self.fallback.bounds)

    def fold_in(self, observations: Observations) -> LowRankCompletion:
        """Other rows, of which the function knows nothing: their own effect and the columns'."""
        return self.fallback.fold_in(observations)


@storable
@dataclass(frozen=True, eq=False)
class TableCompletion(CellwiseCompletion):
    """A table of predictions, clipped to the bounds; cells not in it, and other rows, by ``fallback``.

    Examples
    --------
    >>> import surefill as sf
    >>> sim = sf.datasets.make_low_rank((30, 20), rank=2, n_draws=400, noise=0.1, random_state=0)
    >>> theirs = sf.Observations([0, 1], [0, 0], [0.3, -0.2], shape=(30, 20))
    >>> completion = sf.completion.ExternalCompletion(theirs).fit(sim.observations)
    >>> completion.at([0, 1], [0, 0])
    array([ 0.3, -0.2])
    """

    predictions: Observations
    fallback: LowRankCompletion

    @classmethod
    def of(cls, predictions: Observations, observations: Observations, fallback: LowRankCompletion) -> TableCompletion:
        """Match ``predictions`` to ``observations`` by labels where both have them, else by index."""
        rows = _matched(predictions.rows, predictions.row_labels, observations.row_labels)
        cols = _matched(predictions.cols, predictions.col_labels, observations.col_labels)
        inside = (rows >= 0) & (cols >= 0) & (rows < observations.shape[0]) & (cols < observations.shape[1])
        if not inside.any():
            raise InputError("no prediction in the table belongs to a row and a column of the observations.")
        table = Observations(rows[inside], cols[inside], predictions.values[inside], observations.shape)
        return cls(table, fallback)

    def at(self, rows: ArrayLike, cols: ArrayLike) -> NDArray[np.float64]:
        """Values at the pairs (rows[t], cols[t])."""
        i, j = _indices(rows), _indices(cols)
        where = self.predictions.find(i, j)
        given = np.clip(self.predictions.values[where], *self.fallback.bounds)
        return np.where(where >= 0, given, self.fallback.at(i, j))

    def fold_in(self, observations: Observations) -> LowRankCompletion:
        """Other rows, which the table does not hold: their own effect and the columns'."""
        return self.fallback.fold_in(observations)


@dataclass(frozen=True, eq=False)
class ImputedCompletion(CellwiseCompletion):
    """What an imputer returned, clipped to the bounds; observed cells keep their values.

    Its error on observed cells therefore says nothing. Not storable: it holds the imputer, to transform other rows.
    """

    matrix: NDArray[np.float64]
    imputer: Any
    fallback: LowRankCompletion

    @classmethod
    def of(cls, imputer: Any, observations: Observations, fallback: LowRankCompletion) -> ImputedCompletion:
        """Fit ``imputer`` on the dense matrix and keep what it returns."""
        imputer.fit(observations.dense())
        return cls(_transformed(imputer, observations, fallback), imputer, fallback)

    def at(self, rows: ArrayLike, cols: ArrayLike) -> NDArray[np.float64]:
        """Values at the pairs (rows[t], cols[t])."""
        return np.asarray(self.matrix[_indices(rows), _indices(cols)])

    def fold_in(self, observations: Observations) -> Self:
        """Other rows, transformed by the fitted imputer."""
        fallback = self.fallback.fold_in(observations)
        return replace(self, matrix=_transformed(self.imputer, observations, fallback), fallback=fallback)


def _indices(given: ArrayLike) -> NDArray[np.int64]:
    return np.asarray(given, dtype=np.int64)


def _transformed(imputer: Any, observations: Observations, fallback: LowRankCompletion) -> NDArray[np.float64]:
    filled = np.asarray(imputer.transform(observations.dense()), dtype=np.float64)
    if filled.shape != observations.shape or not np.isfinite(filled).all():
        raise InputError(
            f"the imputer must return all {observations.shape[1]} columns, finite; give it keep_empty_features=True."
        )
    return np.clip(filled, *fallback.bounds)


def _matched(index: NDArray[Any], labels: NDArray[Any] | None, target: NDArray[Any] | None) -> NDArray[np.int64]:
    """Each item's index among the target's labels, -1 where it has none; the index itself without labels."""
    if labels is None or target is None:
        return index.astype(np.int64)
    place = {label: k for k, label in enumerate(target.astype(str).tolist())}
    matched = np.array([place.get(label, -1) for label in labels.astype(str).tolist()], dtype=np.int64)
    return np.asarray(matched[index])


Kind = Literal["auto", "predict", "fit", "regressor", "imputer", "predictions"]
KINDS = get_args(Kind)
"""The same as values, for the error sentence."""


@storable
@dataclass(frozen=True)
class ExternalCompletion:
    """A completion by an external predictor: a function, a scikit-learn estimator, or a table of predictions.

    Whatever it is, values are clipped to the observations' bounds. Other rows (``fold_in``) and cells that a table
    leaves out are predicted by a mean and shrunken row and column effects; only an imputer transforms other rows.

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
    held_out : whether the predictions of a function or a table were made without the observed cells that a promise
        will be tested on; since that cannot be known, nothing is promised of them unless this says so. What "fit",
        "regressor" and "imputer" predict is fitted on the training cells alone, and needs no such word.
    features : of a regressor: "one-hot" (sparse, a column per row and per column), "ids" (the two indices, for trees),
        or a function (rows, cols) -> array with one line per cell.

    Examples
    --------
    >>> seen = Observations([0, 0, 1], [0, 1, 0], [1.0, 2.0, 3.0])
    >>> mine = ExternalCompletion(lambda rows, cols: 1.0 + rows + cols)
    >>> mine.fit(seen).dense()
    array([[1., 2.],
           [2., 3.]])
    >>> mine.may_have_seen_all, ExternalCompletion(mine.source, held_out=True).may_have_seen_all
    (True, False)
    """

    source: Any
    kind: Kind = "auto"
    features: Literal["one-hot", "ids"] | Callable[..., Any] = "one-hot"
    held_out: bool = False

    @property
    def may_have_seen_all(self) -> bool:
        """Whether the predictions may rest on cells that were to be held out from them."""
        return not self.held_out and self._resolved() in ("predict", "predictions")

    def fit(self, observations: Observations, progress: ProgressCallback | None = None) -> Completion:
        """The predictions of the source, as a completion."""
        kind = self._resolved()
        fallback = effects_alone(observations)
        if kind == "predictions":
            return TableCompletion.of(self.source, observations, fallback)
        if kind == "imputer":
            from sklearn.base import clone

            return ImputedCompletion.of(clone(self.source), observations, fallback)
        if kind == "regressor":
            return FunctionCompletion(self._regression(observations), fallback)
        predict = self.source if kind == "predict" else self.source(observations)
        if not callable(predict):
            raise InputError(
                f"ExternalCompletion: fitting must return a function (rows, cols) -> values; got {predict!r}."
            )
        return FunctionCompletion(predict, fallback)

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
        if not isinstance(self.held_out, bool):
            raise invalid_parameter("ExternalCompletion", "held_out", "True or False", self.held_out)
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

    def _regression(self, observations: Observations) -> Predictor:
        from sklearn.base import clone

        features = CellFeatures(self.features, observations.shape)
        model, X = clone(self.source), features(observations.rows, observations.cols)
        values = observations.values.astype(np.float64)
        try:
            model.fit(X, values, sample_weight=observations.counts.astype(np.float64))
        except TypeError:
            if (observations.counts > 1).any():
                raise InputError(
                    f"ExternalCompletion: {type(model).__name__} takes no sample_weight, "
                    "and some cells were drawn more than once."
                ) from None
            model.fit(X, values)
        return lambda rows, cols: model.predict(features(rows, cols))
