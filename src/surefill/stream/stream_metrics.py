"""Prequential errors of a stream: every observation is predicted, scored, and only then learnt."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surefill.arrays import Array, as_stored
from surefill.errors import is_seed

N_BINS = 20
"""Bins of confidence, of width 0.05: thresholds in steps of 5% are exact, and 20 numbers still read as a table."""


@dataclass(frozen=True, eq=False)
class StreamMetrics:
    """Counts and summed squared errors by confidence, in ``N_BINS`` bins of equal width: bin b is [b, b + 1) / N_BINS.

    Each observation counts with the prediction and the confidence it had before it was learnt (test, then train). An
    observation that could not be predicted (the first, where no bounds were given) is in ``unscored`` alone.

    Examples
    --------
    >>> import surefill as sf
    >>> stream = sf.StreamingCompleter(bounds=(1, 5))
    >>> scores = stream.learn_many(["ann", "bob", "ann"], ["Alien", "Alien", "Brazil"], [5, 4, 2])
    >>> stream.metrics.count
    3
    >>> stream.metrics.rmse < 4
    True
    """

    counts: NDArray[np.int64]
    squared_errors: Array
    unscored: int = 0

    @classmethod
    def empty(cls) -> StreamMetrics:
        """Nothing scored yet."""
        return cls(np.zeros(N_BINS, np.int64), np.zeros(N_BINS))

    def updated(self, values: Array, predicted: Array, confidence: Array) -> StreamMetrics:
        """These metrics with further observations, NaN standing for no prediction."""
        counts, sums = self.counts.copy(), self.squared_errors.copy()
        scored = ~np.isnan(predicted)
        bins = np.minimum((confidence[scored] * N_BINS).astype(np.int64), N_BINS - 1)
        # np.add.at adds one by one in order, so that batches of any size give the same sums to the bit
        np.add.at(counts, bins, 1)
        np.add.at(sums, bins, (predicted[scored] - values[scored]) ** 2)
        return StreamMetrics(counts, sums, self.unscored + int(np.count_nonzero(~scored)))

    def since(self, earlier: StreamMetrics) -> StreamMetrics:
        """What was scored after ``earlier``."""
        return StreamMetrics(
            self.counts - earlier.counts,
            np.maximum(self.squared_errors - earlier.squared_errors, 0.0),
            self.unscored - earlier.unscored,
        )

    @property
    def count(self) -> int:
        """How many observations were scored."""
        return int(self.counts.sum())

    @property
    def rmse(self) -> float:
        """Root mean squared error over all of them, NaN where there are none."""
        return _root_mean(self.squared_errors.sum(), self.count)

    def rmse_between(self, low: float, high: float) -> float:
        """The same over confidences in [low, high), both rounded to whole bins; ``high`` = 1 includes 1."""
        bins = slice(round(low * N_BINS), round(high * N_BINS))
        return _root_mean(self.squared_errors[bins].sum(), int(self.counts[bins].sum()))

    def kept(self, threshold: float) -> tuple[float, float]:
        """(share, RMSE) of the observations whose confidence was at least ``threshold``, rounded to whole bins."""
        n_kept = int(self.counts[round(threshold * N_BINS) :].sum())
        return (n_kept / self.count if self.count else 0.0), self.rmse_between(threshold, 1.0)

    def by_confidence(self) -> list[dict[str, float]]:
        """One line for each bin that holds observations: low, high, count, rmse."""
        return [
            {
                "low": b / N_BINS,
                "high": (b + 1) / N_BINS,
                "count": int(self.counts[b]),
                "rmse": _root_mean(self.squared_errors[b], int(self.counts[b])),
            }
            for b in range(N_BINS)
            if self.counts[b]
        ]

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> StreamMetrics:
        """The metrics that had this :meth:`state`, which came from a file; ValueError where none had it."""
        counts = as_stored(state["counts"], np.dtype(np.int64))
        sums, unscored = as_stored(state["squared_errors"], np.dtype(np.float64)), state["unscored"]
        if counts.shape != (N_BINS,) or sums.shape != (N_BINS,) or not is_seed(unscored):
            raise ValueError("metrics have twenty bins, and a number of what was not scored")
        if counts.min() < 0 or not (np.isfinite(sums).all() and sums.min() >= 0):
            raise ValueError("metrics are counts and sums of squares")
        return cls(counts, sums, unscored)

    def state(self) -> dict[str, Any]:
        """The fields by name."""
        return {"counts": self.counts, "squared_errors": self.squared_errors, "unscored": self.unscored}


def _root_mean(total: float, count: int) -> float:
    return float(np.sqrt(total / count)) if count else float("nan")
