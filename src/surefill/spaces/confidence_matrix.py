"""The confidence matrix C in [0, 1]: how far each entry of a completion may be relied on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefill.errors import InputError


class Confidence(Protocol):
    """C in [0, 1]^(m x n), asked entry by entry or block by block; ``coverage`` is |C| = sum_x C_x.

    Examples
    --------
    >>> import numpy as np
    >>> confidence: Confidence = DenseConfidence(np.array([[1.0, 0.5]]))
    >>> confidence.shape, confidence.coverage
    ((1, 2), 1.5)
    """

    @property
    def shape(self) -> tuple[int, int]:
        """(m, n)."""
        ...

    @property
    def coverage(self) -> float:
        """|C|, the sum of all confidences."""
        ...

    def at(self, rows: ArrayLike, cols: ArrayLike) -> NDArray[np.float64]:
        """C at the cells (rows[t], cols[t])."""
        ...

    def block(self, rows: ArrayLike, cols: ArrayLike) -> NDArray[np.float64]:
        """C at every pair of the given rows and columns, len(rows) x len(cols)."""
        ...

    def dense(self) -> NDArray[np.float64]:
        """All m x n of it; only for matrices small enough to hold."""
        ...


@dataclass(frozen=True, eq=False)
class DenseConfidence:
    """A confidence matrix held whole.

    >>> sure = DenseConfidence([[1.0, 0.5], [0.0, 0.25]])
    >>> sure.coverage
    1.75
    >>> sure.at([0, 1], [1, 1])
    array([0.5 , 0.25])
    """

    matrix: NDArray[np.float64]

    def __post_init__(self) -> None:
        array = np.array(self.matrix, dtype=np.float64)
        if array.ndim != 2:
            raise InputError(f"a confidence must be a matrix; got {array.ndim} dimensions.")
        if not ((array >= 0) & (array <= 1)).all():
            raise InputError("confidences must lie in [0, 1].")
        array.flags.writeable = False
        object.__setattr__(self, "matrix", array)

    @property
    def shape(self) -> tuple[int, int]:
        """(m, n)."""
        return self.matrix.shape[0], self.matrix.shape[1]

    @property
    def coverage(self) -> float:
        """|C|, the sum of all confidences."""
        return float(self.matrix.sum())

    def at(self, rows: ArrayLike, cols: ArrayLike) -> NDArray[np.float64]:
        """C at the cells (rows[t], cols[t])."""
        values: NDArray[np.float64] = self.matrix[np.asarray(rows), np.asarray(cols)]
        return values

    def block(self, rows: ArrayLike, cols: ArrayLike) -> NDArray[np.float64]:
        """C at every pair of the given rows and columns, len(rows) x len(cols)."""
        values: NDArray[np.float64] = self.matrix[np.ix_(np.asarray(rows), np.asarray(cols))]
        return values

    def dense(self) -> NDArray[np.float64]:
        """The matrix itself, read-only."""
        return self.matrix

    def __repr__(self) -> str:
        m, n = self.shape
        return f"DenseConfidence({m} x {n}, coverage {self.coverage:.6g} of {m * n})"


def some_cells(shape: tuple[int, int], most: int, random_state: int = 0) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows and columns of all cells where there are at most ``most``, else of that many drawn uniformly."""
    m, n = shape
    cells = np.arange(m * n) if m * n <= most else np.random.default_rng(random_state).integers(m * n, size=most)
    return cells // n, cells % n
