"""How far each row and each column can be trusted."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from surefill.arrays import Array
from surefill.data import Observations
from surefill.estimators import PartialCompletion

MOST_OTHERS, FEWEST_OTHERS = 200, 8
"""Cells of each row (column) that its trust is estimated from: 200 give a share with a standard error of at most 3.5%;
of very many rows 8 are looked at, a rough share."""

MOST_CELLS = 4_000_000
"""Cells asked about for the trust in all rows, which bounds the time it takes; beyond it fewer are asked per row."""

CELLS_AT_ONCE = 1 << 18
"""Cells asked about in one call: a few arrays of 2 MB."""


@dataclass(frozen=True, eq=False)
class Trust:
    """For each row (or column): its mean confidence, the share of it that is kept, how many cells were observed.

    Means are over ``n_looked_at`` columns (rows): all where there are at most 200, else drawn once for all rows.
    """

    confidence: Array
    kept: Array
    observed: NDArray[np.int64]
    n_looked_at: int

    def ranked(self) -> NDArray[np.int64]:
        """Most trusted first: by the share kept, then by confidence."""
        return np.lexsort((-self.confidence, -self.kept))


def trust_by_row(result: PartialCompletion, observations: Observations) -> Trust:
    """The trust in each row."""
    return _trust(result, observations, axis=0)


def trust_by_column(result: PartialCompletion, observations: Observations) -> Trust:
    """The trust in each column."""
    return _trust(result, observations, axis=1)


def _trust(result: PartialCompletion, observations: Observations, axis: int) -> Trust:
    size, n_others = observations.shape[axis], observations.shape[1 - axis]
    others = _drawn(n_others, min(n_others, max(FEWEST_OTHERS, min(MOST_OTHERS, MOST_CELLS // size))))
    confidence, kept = np.empty(size), np.empty(size)
    step = max(1, CELLS_AT_ONCE // len(others))
    for start in range(0, size, step):
        lines = np.arange(start, min(size, start + step))
        cells = np.repeat(lines, len(others)), np.tile(others, len(lines))
        rows, cols = cells if axis == 0 else cells[::-1]
        answer = result.answer(rows, cols)
        means = (each.reshape(len(lines), -1).mean(axis=1) for each in (answer.confidence, answer.keep))
        confidence[lines], kept[lines] = means
    observed = np.bincount(observations.rows if axis == 0 else observations.cols, minlength=size)
    return Trust(confidence, kept, observed, len(others))


def _drawn(size: int, wanted: int) -> NDArray[np.int64]:
    return np.sort(np.random.default_rng(0).choice(size, wanted, replace=False))
