"""The confidence of a stream at one moment: a few snapshots of thin factors, asked cell by cell."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefill.arrays import row_blocks
from surefill.errors import InputError
from surefill.kernels.game_play import COLS, ROWS, GameRules, GameState, averages_at
from surefill.spaces.confidence_matrix import some_cells

MOST_EXACT = 20_000_000
DRAWN_CELLS = 4_000_000


@dataclass(frozen=True, eq=False)
class StreamConfidence:
    """C_x = exp(-alpha max(Mbar_x, 0)), or max(0, 1 - alpha Mbar_x) cut at 1: relative to a cell known for certain.

    Mbar_x is the mean, recent ones weighing more, of the adversary's snapshots since row and column appeared.
    """

    _state: GameState
    _rules: GameRules

    @property
    def shape(self) -> tuple[int, int]:
        """(m, n)."""
        return int(self._state.clock[ROWS]), int(self._state.clock[COLS])

    def adversary_at(self, rows: ArrayLike, cols: ArrayLike) -> NDArray[np.float64]:
        """Mbar at the cells (rows[t], cols[t])."""
        i, j = (np.ascontiguousarray(np.atleast_1d(index), dtype=np.int64) for index in (rows, cols))
        for name, index, size in (("rows", i, self.shape[0]), ("cols", j, self.shape[1])):
            if index.size and not (index.min() >= 0 and index.max() < size):
                raise InputError(f"{name} must be from 0 to {size - 1}.")
        out = np.empty(len(i))
        averages_at(i, j, self._state, self._rules, out)
        return out

    def at(self, rows: ArrayLike, cols: ArrayLike) -> NDArray[np.float64]:
        """C at the cells (rows[t], cols[t])."""
        return self._confidence(self.adversary_at(rows, cols))

    def block(self, rows: ArrayLike, cols: ArrayLike) -> NDArray[np.float64]:
        """C at every pair of the given rows and columns, len(rows) x len(cols)."""
        i, j = np.asarray(rows), np.asarray(cols)
        return self.at(np.repeat(i, len(j)), np.tile(j, len(i))).reshape(len(i), len(j))

    def dense(self) -> NDArray[np.float64]:
        """All m x n of it; only for matrices small enough to hold."""
        return self.block(np.arange(self.shape[0]), np.arange(self.shape[1]))

    @property
    def coverage(self) -> float:
        """|C|, the sum of all confidences; from four million drawn cells where there are more than 20 million."""
        m, n = self.shape
        if m * n > MOST_EXACT:
            return float(m) * n * float(self.at(*some_cells(self.shape, DRAWN_CELLS)).mean())
        return float(sum(self.block(np.arange(m)[rows], np.arange(n)).sum() for rows in row_blocks(m, n)))

    def _confidence(self, M: NDArray[np.float64]) -> NDArray[np.float64]:
        above = self._rules.alpha * np.maximum(M, 0.0)
        return np.asarray(np.exp(-above) if self._rules.entropic else np.maximum(0.0, 1.0 - above))

    def __repr__(self) -> str:
        m, n = self.shape
        return f"StreamConfidence({m} x {n})"


def payoff(confidence: StreamConfidence, rows: NDArray[Any], cols: NDArray[Any]) -> float:
    """F(Mbar) = mean_x max_c [H(c) - alpha c Mbar_x] + alpha theta mean over the given cells of Mbar_x^2."""
    (m, n), rules = confidence.shape, confidence._rules
    total = 0.0
    for block in row_blocks(m, n):
        i, j = (index.ravel() for index in np.meshgrid(np.arange(m)[block], np.arange(n), indexing="ij"))
        M = confidence.adversary_at(i, j)
        c = confidence._confidence(M)
        above, below = np.maximum(M, 0.0), np.minimum(M, 0.0)
        best = np.exp(-rules.alpha * above) if rules.entropic else c * (1.0 - c / 2 - rules.alpha * above)
        total += float((best - rules.alpha * below).sum())
    deviation = float((confidence.adversary_at(rows, cols) ** 2).mean())
    return total / (float(m) * n) + rules.alpha * rules.theta * deviation
