"""Confidences of larger tables: 0 in rows and columns that were never seen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefill.confidence.algorithm import ExtendableConfidence
from surefill.data import Observations
from surefill.registry import storable


@storable
@dataclass(frozen=True, eq=False)
class ExtendedConfidence:
    """C inside the table that it was found for, and 0 in the rows and columns that came after.

    Examples
    --------
    >>> import numpy as np
    >>> from surefill.confidence import DensePatterns
    >>> C = DensePatterns(np.array([[0.9, 0.1], [0.2, 0.8]]), np.array([[3, 0], [0, 2]]))
    >>> ExtendedConfidence(C, (2, 3)).dense()
    array([[0.9, 0.1, 0. ],
           [0.2, 0.8, 0. ]])
    """

    inner: ExtendableConfidence
    shape: tuple[int, int]

    @classmethod
    def of(cls, confidence: ExtendableConfidence, shape: tuple[int, int]) -> Self:
        """``confidence`` for a larger table."""
        return cls(confidence.inner if isinstance(confidence, ExtendedConfidence) else confidence, shape)

    @property
    def coverage(self) -> float:
        """|C|, the sum of all confidences."""
        return self.inner.coverage

    def at(self, rows: ArrayLike, cols: ArrayLike) -> NDArray[np.float64]:
        """C at the cells (rows[t], cols[t])."""
        i, j = np.asarray(rows), np.asarray(cols)
        (m, n), values = self.inner.shape, np.zeros(i.shape)
        inside = (i < m) & (j < n)
        values[inside] = self.inner.at(i[inside], j[inside])
        return values

    def block(self, rows: ArrayLike, cols: ArrayLike) -> NDArray[np.float64]:
        """C at every pair of the given rows and columns, len(rows) x len(cols)."""
        i, j = np.asarray(rows), np.asarray(cols)
        return self.at(np.repeat(i, len(j)), np.tile(j, len(i))).reshape(len(i), len(j))

    def dense(self) -> NDArray[np.float64]:
        """All m x n of it; only for matrices small enough to hold."""
        return self.block(np.arange(self.shape[0]), np.arange(self.shape[1]))

    def fold_in(self, observations: Observations) -> Self:
        """The confidence for other rows, seen at ``observations``: what their cells in the first columns support."""
        m, n = observations.shape[0], self.inner.shape[1]
        return type(self)(self.inner.fold_in(observations.in_shape((m, n))), (m, self.shape[1]))
