"""The coverage program's confidence as a function of which cells of a row were observed, so that new rows have one."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefill.confidence.algorithm import require_columns
from surefill.coverage.linear.factored_confidence import FactoredConfidence
from surefill.data import Observations
from surefill.registry import storable
from surefill.spaces.confidence_matrix import DenseConfidence


@storable
@dataclass(frozen=True, eq=False)
class DensePatterns(DenseConfidence):
    """The coverage program's C as a function of what was seen of a row, so that it can be asked about other rows.

    C depends on locations and counts only, so the program is unchanged when rows seen alike change places, and the
    mean of C over them is as good: feasible, and of the same coverage. A new row seen like a fitted one gets its
    confidence. Any other gets, for each column, the largest confidence among the fitted rows seen at no column that
    it was not seen at, and 0 where there is none; that is a rule of thumb, which the certificate does not cover.

    Examples
    --------
    >>> import numpy as np
    >>> confidence = DensePatterns(np.array([[0.9, 0.1], [0.2, 0.8]]), np.array([[3, 0], [0, 2]]))
    >>> confidence.fold_in(Observations([0], [1], [1.0], shape=(1, 2))).dense()
    array([[0.2, 0.8]])
    """

    counts: NDArray[np.int64]

    @classmethod
    def of(cls, C: NDArray[np.float64], observations: Observations) -> DensePatterns:
        """C with rows that were seen alike made equal."""
        counts = _dense_counts(observations)
        _, kind = np.unique(counts, axis=0, return_inverse=True)
        mean = np.zeros((kind.max() + 1, C.shape[1]))
        np.add.at(mean, kind, C)
        return cls(np.clip(mean / np.bincount(kind)[:, None], 0.0, 1.0)[kind], counts)

    def fold_in(self, observations: Observations) -> Self:
        """The confidence for other rows, seen at ``observations``."""
        require_columns(observations, self.shape[1])
        counts = _dense_counts(observations)
        fitted = {row.tobytes(): confidence for row, confidence in zip(self.counts, self.matrix, strict=True)}
        extended = [fitted.get(row.tobytes(), self._bounded_by(row > 0)) for row in counts]
        return replace(self, matrix=np.array(extended), counts=counts)

    def _bounded_by(self, seen: NDArray[np.bool_]) -> NDArray[np.float64]:
        less_seen = ~((self.counts > 0) & ~seen).any(axis=1)
        return np.asarray(self.matrix[less_seen].max(axis=0, initial=0.0))


def _dense_counts(observations: Observations) -> NDArray[np.int64]:
    counts = np.zeros(observations.shape, dtype=np.int64)
    counts[observations.rows, observations.cols] = observations.counts
    return counts


@storable
@dataclass(frozen=True, eq=False)
class FactoredPatterns:
    """The coverage program's C for the rows it was solved for, and for rows that were seen exactly alike.

    C depends on locations and counts only, so a new row seen like a fitted one gets its confidence. Of any other the
    program says nothing, and the confidence is 0. (Playing on against the adversaries' columns is no way out: they are
    fitted to the rows that were there, and would leave a row of which nothing was seen full of confidence.)

    Attributes
    ----------
    fitted : the confidence that was solved for.
    alike : for each row the fitted one it was seen like, -1 for none.

    Examples
    --------
    >>> import surefill as sf
    >>> seen = sf.datasets.make_blocks((5, 5), n_groups=2, n_draws=200, random_state=0).observations
    >>> found = sf.solve_coverage(seen, K=1, gamma=0.16, method="factored")
    >>> confidence = FactoredPatterns.of(found.confidence)
    >>> float(confidence.fold_in(sf.Observations([0], [0], [1.0], shape=(1, 10))).dense().max())
    0.0
    """

    fitted: FactoredConfidence
    alike: NDArray[np.int64]

    @classmethod
    def of(cls, fitted: FactoredConfidence) -> FactoredPatterns:
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
        require_columns(observations, self.shape[1])
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
