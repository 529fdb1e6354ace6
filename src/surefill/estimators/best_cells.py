"""The cells of largest value in each row of a grid, among all cells or among the kept ones.

    value_ij = clip(b_i + c_j + <p_i, q_j>),   ranked before anything else is computed.

Risk, confidence and weight cost many times what a value does. They are computed for a row's largest values first, and
for smaller ones only while fewer than ``n`` of these are kept.
"""

from __future__ import annotations

from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from surefill.arrays import Array, Indices
from surefill.estimators.kept_cells import FEW_CANDIDATES, KeptCells
from surefill.estimators.result import Answer, PartialCompletion
from surefill.kernels.largest import kth_largest

BLOCK_CELLS = 1 << 22
"""Cells of the rows that are ranked at a time: enough rows to make the look-ups per column cheap, in some sixty
megabytes per core."""

FIRST_ASKED, MORE_ASKED = 4, 4
"""Candidates computed first for each wanted cell, and the factor by which each further round has more."""


LOWEST = np.finfo(np.float64).min
"""The smallest score that counts: anything but -inf."""


class BestCells(NamedTuple):
    """Positions in a grid, line by line and the largest value first, and the answers there."""

    line: Indices
    place: Indices
    answer: Answer

    @classmethod
    def none(cls) -> Self:
        """No cells."""
        nowhere = np.zeros(0, dtype=np.int64)
        value, confidence, risk = np.zeros((3, 0))
        return cls(nowhere, nowhere, Answer(value, confidence, risk, np.zeros(0, dtype=np.bool_)))

    def first(self, n: int) -> BestCells:
        """The ``n`` largest values of each line; of equal ones those of least risk."""
        order = np.lexsort((self.place, self.answer.risk, -self.answer.value, self.line))
        line = self.line[order]
        return self._at(order[np.arange(len(line)) - np.searchsorted(line, line) < n])

    def and_kept(self, others: BestCells) -> BestCells:
        """These cells, and those of ``others`` that are kept."""
        kept = others._at(np.flatnonzero(others.answer.keep))
        answers = zip(vars(self.answer).values(), vars(kept.answer).values(), strict=True)
        line, place = np.append(self.line, kept.line), np.append(self.place, kept.place)
        return BestCells(line, place, Answer(*(np.append(a, b) for a, b in answers)))

    def _at(self, chosen: Indices) -> BestCells:
        answer = Answer(*(column[chosen] for column in vars(self.answer).values()))
        return BestCells(self.line[chosen], self.place[chosen], answer)


def best_cells(
    result: PartialCompletion, rows: Indices, cols: Indices, allowed: NDArray[np.bool_], n: int, kept: bool = True
) -> BestCells:
    """The ``n`` largest values of each row on the grid rows x cols among cells allowed, of kept ones where ``kept``.

    >>> import surefill as sf
    >>> sim = sf.datasets.make_low_rank((60, 50), rank=2, n_draws=2000, noise=0.1, random_state=0)
    >>> result = sf.PartialCompleter(tolerance=0.1, confidence="posterior").fit(sim.observations).result_
    >>> best = best_cells(result, np.arange(2), np.arange(50), np.ones((2, 50), bool), 3)
    >>> best.line.tolist(), bool(best.answer.keep.all())
    ([0, 0, 0, 1, 1, 1], True)
    """
    if not kept:
        value = np.clip(result.completion.block(rows, cols), *result.predicted_range)
        return _asked(result, rows, cols, *_largest(np.where(allowed, value, -np.inf), n)).first(n)
    if result.selection.empty:
        return BestCells.none()
    return _best_kept(result, rows, cols, np.where(allowed, KeptCells(result).values(rows, cols), -np.inf), n)


def _best_kept(result: PartialCompletion, rows: Indices, cols: Indices, score: Array, n: int) -> BestCells:
    """The same of kept cells alone; ``score`` is -inf where a cell is known not to count."""
    found, count = BestCells.none(), FIRST_ASKED * n
    missing = np.arange(len(rows))
    while len(missing):
        # By then a grid costs less than its cells one by one.
        whole = count >= FEW_CANDIDATES * len(cols)
        line, place = np.nonzero(score[missing] > -np.inf) if whole else _largest(score[missing], count)
        line = missing[line]
        ask = _asked_on_grid if whole else _asked
        found = found.and_kept(ask(result, rows, cols, line, place))
        score[line, place] = -np.inf
        left = np.bincount(found.line, minlength=len(rows)) < n
        missing = np.flatnonzero(left & (score > -np.inf).any(axis=1))
        count *= MORE_ASKED
    return found.first(n)


def _largest(score: Array, n: int) -> tuple[Indices, Indices]:
    """Where the ``n`` largest scores of each line are, with all that equal the last of them; never those of -inf."""
    least = np.maximum(kth_largest(score, n), LOWEST)
    line, place = np.nonzero(score >= least[:, None])
    return line, place


def _asked(result: PartialCompletion, rows: Indices, cols: Indices, line: Indices, place: Indices) -> BestCells:
    """Answers about cells of the grid, one by one."""
    return BestCells(line, place, result.answer(rows[line], cols[place]))


def _asked_on_grid(result: PartialCompletion, rows: Indices, cols: Indices, line: Indices, place: Indices) -> BestCells:
    """Answers about cells of the grid from those about all of the lines that they lie in."""
    lines, at = np.unique(line, return_inverse=True)
    grid = KeptCells(result).block(rows[lines], cols, np.zeros((len(lines), len(cols)), dtype=np.bool_))
    return BestCells(line, place, Answer(*(column[at, place] for column in vars(grid).values())))
