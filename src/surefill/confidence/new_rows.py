"""A factored confidence asked about rows that were not there when it was found."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefill.coverage.linear.factored_confidence import FactoredConfidence
from surefill.data import Observations
from surefill.errors import InputError
from surefill.registry import storable


@storable
@dataclass(frozen=True, eq=False)
class FittedRows:
    """The coverage program's C for the rows it was solved for, and for rows that were seen exactly alike.

    C depends on locations and counts only, so a new row seen like a fitted one gets its confidence. Of any other the
    program says nothing, and the confidence is 0. (Playing on against the adversaries' columns is no way out: they are
    fitted to the rows that were there, and would leave a row of which nothing was seen full of confidence.)

    Attributes
    ----------
    fitted : the confidence that was solved for.
    alike : for each row the fitted one it was seen like, -1 for none.
    """

    fitted: FactoredConfidence
    alike: NDArray[np.int64]

    @classmethod
    def of(cls, fitted: FactoredConfidence) -> FittedRows:
        """The fitted rows themselves."""
        return cls(fitted, np.arange(fitted.shape[0]))

    @property
    def shape(self) -> tuple[int, int]:
        """(m, n)."""
        return len(self.alike), self.fitted.shape[1]

    @property
    def coverage(self) -> float:
        """|C|, the sum of all confidences."""
        known = self.alike[self.alike >= 0]
        return float(self.fitted.row_means()[known].sum() * self.shape[1])

    def at(self, rows: ArrayLike, cols: ArrayLike) -> NDArray[np.float64]:
        """C at the cells (rows[t], cols[t])."""
        like = self.alike[np.asarray(rows)]
        return np.where(like >= 0, self.fitted.at(like, cols), 0.0)

    def block(self, rows: ArrayLike, cols: ArrayLike) -> NDArray[np.float64]:
        """C at every pair of the given rows and columns, len(rows) x len(cols)."""
        like = self.alike[np.asarray(rows)]
        return np.where(like[:, None] >= 0, self.fitted.block(like, cols), 0.0)

    def dense(self) -> NDArray[np.float64]:
        """All m x n of it; only for matrices small enough to hold."""
        return self.block(np.arange(self.shape[0]), np.arange(self.shape[1]))

    def fold_in(self, observations: Observations) -> Self:
        """The confidence for other rows, seen at ``observations``."""
        if observations.shape[1] != self.shape[1]:
            raise InputError(f"new rows must have {self.shape[1]} columns; got {observations.shape[1]}.")
        known = {pattern: row for row, pattern in reversed(list(enumerate(_patterns(self.fitted.observations))))}
        alike = [known.get(pattern, -1) for pattern in _patterns(observations)]
        return replace(self, alike=np.array(alike, dtype=np.int64))


def _patterns(observations: Observations) -> list[bytes]:
    """Of each row, its columns in order and how often each was seen, as bytes that can be compared."""
    patterns = [b""] * observations.shape[0]
    groups = observations.by_row
    for g, row in enumerate(groups.ids.tolist()):
        entries = groups.order[groups.starts[g] : groups.starts[g + 1]]
        cols = observations.cols[entries].astype(np.int64)
        order = np.argsort(cols)
        patterns[row] = cols[order].tobytes() + observations.counts[entries][order].tobytes()
    return patterns
