"""Partial completion of a stream: values and confidences at any time, one observation after the other."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from threading import RLock
from typing import Any, NamedTuple, Self, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefill.arrays import Array
from surefill.data.checks import as_values
from surefill.errors import InputError, invalid_parameter, is_number, is_seed
from surefill.inputs import check_seed
from surefill.io.archive import read_archive, write_archive
from surefill.online.factored_game import FactoredGame
from surefill.stream.kalman_factors import MOST_FACTORS, KalmanFactors
from surefill.stream.label_encoder import LabelEncoder
from surefill.stream.stream_metrics import StreamMetrics

FORMAT, VERSION = "surefill stream", 4
"""Name and version of the saved format; a renamed array is a new version."""

PARAMETERS = ("bounds", "rank", "adversary_rank", "random_state")
"""Constructor arguments, which are saved with the state."""


Method = TypeVar("Method", bound=Callable[..., Any])


def _one_at_a_time(method: Method) -> Method:
    """Let threads that share a completer wait for each other: learning moves the arrays that others would read."""

    @wraps(method)
    def alone(self: Any, *given: Any, **named: Any) -> Any:
        with self._lock:
            return method(self, *given, **named)

    return cast(Method, alone)


class Scores(NamedTuple):
    """Predictions and confidences of observations before they were learnt."""

    predictions: Array
    confidences: Array


class StreamingCompleter:
    """Partial completion of a stream: predict each observation (row, column, value) with a confidence, then learn it.

    Completion: a factor model with biases, a Kalman filter for each row and column (:class:`KalmanFactors`).
    Confidence: the online game of the paper with a factored adversary (:class:`FactoredGame`), which looks at
    where values were observed and not at the values; 1 stands for a cell known for certain, 0 for a row or column never
    seen. It ranks cells by how far the observations determine them. It carries no certificate, and no promise
    about errors; :attr:`metrics` says how large the errors were at each confidence.

    Observations may come in any order and from a distribution that changes. Rows and columns never seen before are
    added. How a stream is split into batches makes no difference, to the bit. Predicting leaves the state unchanged.
    Threads may share a completer: they take turns.

    Parameters
    ----------
    bounds : (low, high), the range values may take; a value outside is refused. When None the range is learnt:
        predictions are clipped to the range seen so far.
    rank : number of factors of the completion.
    adversary_rank : rank of the adversary; higher is more cautious.
    random_state : same seed, same result.

    Examples
    --------
    >>> stream = StreamingCompleter(bounds=(1, 5))
    >>> stream.learn_one("ann", "Alien", 5.0)
    Scores(predictions=array([3.]), confidences=array([0.]))
    >>> stream.predict(["ann"], ["Alien"]) > 3
    array([ True])
    >>> stream.confidence(["bob"], ["Alien"])
    array([0.])
    >>> stream.shape
    (1, 1)
    """

    def __init__(
        self,
        *,
        bounds: tuple[float, float] | None = None,
        rank: int = 10,
        adversary_rank: int = 8,
        random_state: int = 0,
    ) -> None:
        self.bounds, self.rank, self.adversary_rank, self.random_state = bounds, rank, adversary_rank, random_state
        for name in ("rank", "adversary_rank"):
            given = getattr(self, name)
            if not (is_seed(given) and 1 <= given <= MOST_FACTORS):
                raise invalid_parameter("StreamingCompleter", name, f"a whole number from 1 to {MOST_FACTORS}", given)
        check_seed("StreamingCompleter", "random_state", random_state)
        if bounds is not None and not (len(np.atleast_1d(bounds)) == 2 and all(map(is_number, bounds))):
            raise invalid_parameter("StreamingCompleter", "bounds", "two numbers, low and high, or None", bounds)
        self._rows, self._cols = LabelEncoder("row"), LabelEncoder("column")
        self._factors = KalmanFactors(bounds, rank, random_state)
        self._game = FactoredGame(rank=adversary_rank, random_state=random_state)
        self._metrics = StreamMetrics.empty()
        self._lock = RLock()

    def __getstate__(self) -> dict[str, Any]:
        """What is copied and pickled: all but the lock, which belongs to this object."""
        with self._lock:
            return {name: value for name, value in vars(self).items() if name != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """A copy has a lock of its own."""
        vars(self).update(state)
        self._lock = RLock()

    def learn_one(self, row: str | int, col: str | int, value: float) -> Scores:
        """Learn one observation; returns what was predicted before."""
        return self.learn_many([row], [col], [value])

    @_one_at_a_time
    def learn_many(self, rows: ArrayLike, cols: ArrayLike, values: ArrayLike) -> Scores:
        """Learn observations in order; returns what was predicted for each before it was learnt.

        ``rows`` and ``cols`` are labels, all text or all whole numbers. Nothing is learnt if anything is refused.
        """
        y = as_values(values)
        self._rows.check(rows)
        self._cols.check(cols)
        if not np.shape(rows) == np.shape(cols) == y.shape:
            raise InputError("rows, cols and values must have one item per observation.")
        self._check_bounds(y)
        i, j = self._rows.learn(rows), self._cols.learn(cols)
        scores = Scores(self._factors.learn(i, j, y), self._game.learn(i, j))
        self._metrics = self._metrics.updated(y, *scores)
        return scores

    def _check_bounds(self, y: Array) -> None:
        if self.bounds is not None:
            outside = np.flatnonzero((y < self.bounds[0]) | (y > self.bounds[1]))
            if outside.size:
                low, high, first = *self.bounds, int(outside[0])
                raise InputError(f"values must lie within bounds ({low:g}, {high:g}); item {first} is {y[first]:g}.")

    @_one_at_a_time
    def predict(self, rows: ArrayLike, cols: ArrayLike) -> Array:
        """Values at the pairs of labels; a row never seen is predicted from its column alone, and vice versa."""
        i, j = self._codes(rows, cols)
        return self._factors.predict(i, j)

    @_one_at_a_time
    def confidence(self, rows: ArrayLike, cols: ArrayLike) -> Array:
        """Confidence in [0, 1] at the pairs of labels, 0 where the row or the column was never seen."""
        i, j = self._codes(rows, cols)
        known, out = (i >= 0) & (j >= 0), np.zeros(len(i))
        out[known] = self._game.confidence_at(i[known], j[known])
        return out

    def _codes(self, rows: ArrayLike, cols: ArrayLike) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        if np.shape(rows) != np.shape(cols):
            raise InputError("rows and cols must have one item per pair.")
        return self._rows.find(rows), self._cols.find(cols)

    @property
    def metrics(self) -> StreamMetrics:
        """Errors so far, every observation scored before it was learnt."""
        return self._metrics

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns seen so far."""
        return len(self._rows), len(self._cols)

    @property
    def n_observed(self) -> int:
        """How many observations were learnt."""
        return self._game.n_observed

    @property
    def range(self) -> tuple[float, float]:
        """(low, high): the bounds given, or the range of the values seen so far."""
        return self._factors.range

    @property
    def row_labels(self) -> list[str | int]:
        """Labels of the rows, in the order in which they first appeared."""
        return self._rows.labels

    @property
    def col_labels(self) -> list[str | int]:
        """Labels of the columns, in the order in which they first appeared."""
        return self._cols.labels

    @_one_at_a_time
    def state(self) -> dict[str, Any]:
        """Parameters and everything learnt, as nested dictionaries of arrays and numbers."""
        return {
            "parameters": {name: getattr(self, name) for name in PARAMETERS},
            "rows": self._rows.state(),
            "cols": self._cols.state(),
            "factors": self._factors.state(),
            "game": self._game.state(),
            "metrics": self._metrics.state(),
        }

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        """The completer that had this :meth:`state`, to the bit."""
        stream = cls(**state["parameters"])
        stream._rows.restore(state["rows"])
        stream._cols.restore(state["cols"])
        stream._factors.restore(state["factors"])
        stream._game.restore(state["game"])
        stream._metrics = StreamMetrics.from_state(state["metrics"])
        if not stream._game.current_shape == stream._factors.shape == stream.shape:
            raise InputError("the labels do not match the factors.")
        if not stream._factors.n_learnt == stream._game.n_observed == stream.metrics.count + stream.metrics.unscored:
            raise InputError("values and cells were not learnt together.")
        return stream

    def save(self, path: str | Path, note: dict[str, Any] | None = None) -> None:
        """Write the state to ``path``, atomically and without pickle; ``note`` is stored with it."""
        write_archive(Path(path), FORMAT, VERSION, {"stream": self.state(), "note": note})

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read what :meth:`save` wrote; it goes on to the bit as if it had never stopped."""
        return cls.load_with_note(path)[0]

    @classmethod
    def load_with_note(cls, path: str | Path) -> tuple[Self, dict[str, Any] | None]:
        """As :meth:`load`, and the note that was saved beside it."""
        return read_archive(Path(path), FORMAT, VERSION, lambda found: (cls.from_state(found["stream"]), found["note"]))
