"""How well a stream is predicted, every observation scored before it is learnt."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surefill.kernels.running_sums import add_errors

BANDS = 20


@dataclass(frozen=True, eq=False)
class StreamMetrics:
    """Counts and summed squared errors by confidence, in ``BANDS`` bands of equal width: band b is [b, b + 1) / BANDS.

    Each observation counts with the prediction and the confidence it had before it was learnt. An observation
    that could not be predicted (the first, where no bounds were given) is in ``unscored`` alone.

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
    squared_errors: NDArray[np.float64]
    unscored: int = 0

    @classmethod
    def empty(cls) -> StreamMetrics:
        """Nothing scored yet."""
        return cls(np.zeros(BANDS, np.int64), np.zeros(BANDS))

    def plus(
        self, values: NDArray[np.float64], predicted: NDArray[np.float64], confidence: NDArray[np.float64]
    ) -> StreamMetrics:
        """These and further observations, added up in order."""
        counts, sums = self.counts.copy(), self.squared_errors.copy()
        unscored = add_errors(values, predicted, confidence, counts, sums)
        return StreamMetrics(counts, sums, self.unscored + unscored)

    def since(self, earlier: StreamMetrics) -> StreamMetrics:
        """What was scored after ``earlier`` was."""
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
        """Root of the mean squared error over all of them, NaN where there are none."""
        return _root_mean(self.squared_errors.sum(), self.count)

    def rmse_between(self, low: float, high: float) -> float:
        """The same over confidences in [low, high), both cut to whole bands; ``high`` = 1 takes 1 in."""
        bands = slice(round(low * BANDS), round(high * BANDS))
        return _root_mean(self.squared_errors[bands].sum(), int(self.counts[bands].sum()))

    def kept(self, threshold: float) -> tuple[float, float]:
        """(share, RMSE) of the observations whose confidence was at least ``threshold``, cut to whole bands."""
        n_kept = int(self.counts[round(threshold * BANDS) :].sum())
        return (n_kept / self.count if self.count else 0.0), self.rmse_between(threshold, 1.0)

    def by_confidence(self) -> list[dict[str, float]]:
        """One line for each band that holds observations: low, high, count, rmse."""
        return [
            {"low": b / BANDS, "high": (b + 1) / BANDS, "count": int(self.counts[b]), "rmse": float(rmse)}
            for b in range(BANDS)
            if self.counts[b] and (rmse := _root_mean(self.squared_errors[b], int(self.counts[b]))) >= 0
        ]

    def state(self) -> dict[str, Any]:
        """The sums as arrays."""
        return {"counts": self.counts, "squared_errors": self.squared_errors, "unscored": self.unscored}


def _root_mean(total: float, count: int) -> float:
    return float(np.sqrt(total / count)) if count else float("nan")
