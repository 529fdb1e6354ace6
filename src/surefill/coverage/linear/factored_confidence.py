"""The confidence of MP 2 in closed form from thin factors: memory per row and column, every entry a short product."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefill.arrays import row_blocks
from surefill.data.observations import Observations
from surefill.registry import storable

EXACT_CELLS = 200_000_000
"""Cells up to which sums over all of C are exact, seconds of work; beyond, they are estimated from drawn cells."""

DRAWN_CELLS = 4_000_000
"""Cells drawn for such an estimate: its standard error is at most 1/4000 of the cells."""

PIECE = 100_000
"""Cells whose factors are gathered at once."""


@storable
@dataclass(frozen=True, eq=False)
class FactoredConfidence:
    """C_x = (1 - t) clip((1 + lambda (gamma - M_x)) / mu, 0, 1) + t counts_x / max(counts),  M = left right' / T.

    Attributes
    ----------
    left, right : the factors of T adversaries side by side, m and n rows.
    count : T; the mixture M gives all of them the same weight.
    scale, gamma, mu : lambda, the largest mean allowed, and the smoothing.
    share : t, how much of the counts' confidence is mixed in (0 unless a certificate needed it).
    observations : where the counts are.

    Examples
    --------
    >>> import surefill as sf
    >>> sim = sf.datasets.make_blocks((5, 5), n_groups=2, n_draws=200, random_state=0)
    >>> found = sf.solve_coverage(sim.observations, K=1, gamma=0.16, method="factored")
    >>> type(found.confidence).__name__, found.confidence.shape
    ('FactoredConfidence', (10, 10))
    >>> bool(found.confidence.at([0], [0])[0] <= 1)
    True
    """

    left: NDArray[Any]
    right: NDArray[Any]
    count: int
    scale: float
    gamma: float
    mu: float
    share: float
    observations: Observations

    @property
    def shape(self) -> tuple[int, int]:
        """(m, n)."""
        return self.observations.shape

    def at(self, rows: ArrayLike, cols: ArrayLike) -> NDArray[np.float64]:
        """C at the cells (rows[t], cols[t])."""
        i, j = np.atleast_1d(rows), np.atleast_1d(cols)
        M = np.einsum("xk,xk->x", self.left[i], self.right[j], dtype=np.float64)
        C = self._smooth(M)
        if self.share > 0:
            C += self._counted(self.observations.find(i, j))
        return C

    def block(self, rows: ArrayLike, cols: ArrayLike) -> NDArray[np.float64]:
        """C at every pair of the given rows and columns, len(rows) x len(cols)."""
        i, j = np.asarray(rows), np.asarray(cols)
        C = self._smooth((self.left[i] @ self.right[j].T).astype(np.float64))
        if self.share > 0:
            found = self.observations.find(np.repeat(i, len(j)), np.tile(j, len(i)))
            C += self._counted(found).reshape(C.shape)
        return C

    def dense(self) -> NDArray[np.float64]:
        """All m x n of it; only for matrices small enough to hold."""
        C = self._smooth((self.left @ self.right.T).astype(np.float64))
        if self.share > 0:
            seen = self.observations
            C[seen.rows, seen.cols] += self.share * seen.counts / seen.counts.max()
        return C

    @property
    def coverage(self) -> float:
        """|C|, the sum of all confidences; from drawn cells where there are more than 200 million."""
        return self.coverage_and_error()[0]

    def coverage_and_error(self) -> tuple[float, float]:
        """|C| and the standard error of it, 0 where the sum is exact."""
        m, n = self.shape
        if m * n <= EXACT_CELLS:
            return float(self.row_means().sum() * n), 0.0
        rng = np.random.default_rng(0)
        drawn = self._smooth(self._products(rng.integers(m, size=DRAWN_CELLS), rng.integers(n, size=DRAWN_CELLS)))
        cells = float(m) * n
        counted = self.share * float(self.observations.counts.sum() / self.observations.counts.max())
        return cells * float(drawn.mean()) + counted, cells * float(drawn.std()) / DRAWN_CELLS**0.5

    def row_means(self) -> NDArray[np.float64]:
        """The mean confidence of every row, by blocks of rows."""
        return self._means()[0]

    def col_means(self) -> NDArray[np.float64]:
        """The mean confidence of every column, by blocks of rows."""
        return self._means()[1]

    def _means(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        (m, n), seen = self.shape, self.observations
        rows, cols = np.zeros(m), np.zeros(n)
        for block in row_blocks(m, n):
            C = self._smooth((self.left[block] @ self.right.T).astype(np.float64))
            rows[block] = C.sum(axis=1)
            cols += C.sum(axis=0)
        counted = self.share * seen.counts / seen.counts.max()
        rows += np.bincount(seen.rows, counted, m)
        cols += np.bincount(seen.cols, counted, n)
        return rows / n, cols / m

    def _products(self, i: NDArray[Any], j: NDArray[Any]) -> NDArray[np.float64]:
        """left_i . right_j at many cells, in pieces."""
        pieces = [
            np.einsum("xk,xk->x", self.left[i[a : a + PIECE]], self.right[j[a : a + PIECE]], dtype=np.float64)
            for a in range(0, len(i), PIECE)
        ]
        return np.concatenate(pieces)

    def _smooth(self, products: NDArray[np.float64]) -> NDArray[np.float64]:
        """(1 - t) clip((1 + lambda (gamma - products / T)) / mu, 0, 1)."""
        # in place, for the blocks are large
        products *= -self.scale / self.count
        products += 1 + self.scale * self.gamma
        products /= self.mu
        np.clip(products, 0.0, 1.0, out=products)
        products *= 1 - self.share
        return products

    def _counted(self, found: NDArray[np.int64]) -> NDArray[np.float64]:
        """t counts / max(counts) at positions among the observations, 0 where there is none."""
        counts = self.observations.counts
        return np.asarray(np.where(found >= 0, self.share * counts[found] / counts.max(), 0.0))

    def __repr__(self) -> str:
        m, n = self.shape
        return f"FactoredConfidence({m} x {n}, {self.count} adversaries of width {self.left.shape[1] // self.count})"
