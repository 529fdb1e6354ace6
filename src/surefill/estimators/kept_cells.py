"""The kept cells of a grid, found without computing most of the others where few are kept.

Three tests of growing cost rule cells out (:mod:`surefill.risk.lower_bounds`): the bound of a whole row or column,
which is free; the bound that follows from a cell's value, a short product and one pass; and its variance, confidence
and weight, which cost the most. Rows and columns that cannot hold a kept cell stop at the first, rows with few
candidates at the second, and their candidates are then computed one by one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from surefill.arrays import Array, Indices, tiles
from surefill.estimators.result import Answer, PartialCompletion
from surefill.guarantee.plan import ROUNDING
from surefill.risk.lower_bounds import RiskLowerBounds

FEW_CANDIDATES = 0.03
"""Share of candidates in a row below which they are computed one by one: that takes some twenty times as long per cell
as by matrix products (measured)."""

COLUMN_STEP = 16
"""That share is estimated from one column in so many."""


@dataclass(frozen=True, eq=False)
class KeptCells:
    """Answers about the kept cells of grids, and about other cells that are needed in any case."""

    result: PartialCompletion

    def block(self, rows: Indices, cols: Indices, also: NDArray[np.bool_]) -> Answer:
        """As :meth:`PartialCompletion.answer_block`, but values are computed only at kept cells and where ``also``."""
        if self.result.selection.empty:
            return _Grid.of(self.result, rows, cols).finished(also)
        least = self._lower_bounds
        if least is None:
            return self.result.answer_block(rows, cols)
        lines, places = self._possible(least, rows, cols)
        few = self._share(least, rows[lines], cols[places]) < FEW_CANDIDATES
        if len(lines) == len(rows) and len(places) == len(cols) and not few.any():
            return self.result.answer_block(rows, cols)
        grid = _Grid.of(self.result, rows, cols)
        most, rest = lines[~few], lines[few]
        for i, j in tiles(len(most), len(places)):
            grid.answer_part(most[i], places[j])
        for i, j in tiles(len(rest), len(places)):
            grid.mark_candidates(least, rest[i], places[j])
        return grid.finished(also)

    def values(self, rows: Indices, cols: Indices) -> Array:
        """Values on a grid, -inf where a cell cannot be kept."""
        least = self._lower_bounds
        if least is None:
            return np.clip(self.result.completion.block(rows, cols), *self.result.predicted_range)
        lines, places = self._possible(least, rows, cols)
        found = np.full((len(rows), len(cols)), -np.inf)
        for i, j in tiles(len(lines), len(places)):
            at = rows[lines[i]], cols[places[j]]
            predicted = self.result.completion.block(*at)
            value = np.clip(predicted, *self.result.predicted_range)
            value[~least.candidates(*at, predicted)] = -np.inf
            found[_part(lines[i], places[j])] = value
        return found

    @property
    def _lower_bounds(self) -> RiskLowerBounds | None:
        """The bounds of the risk, which hold for observed rows and columns: without a floor others are kept too."""
        return self.result.risk_lower_bounds if self.result.selection.floor > ROUNDING else None

    def _possible(self, least: RiskLowerBounds, rows: Indices, cols: Indices) -> tuple[Indices, Indices]:
        """Rows and columns that may hold a kept cell: observed, and with a bound below the limit."""
        of_rows = (least.of_rows(rows) <= least.log_limit) & self.result.prior.row_seen(rows)
        of_cols = (least.of_cols(cols) <= least.log_limit) & self.result.prior.col_seen(cols)
        return np.flatnonzero(of_rows), np.flatnonzero(of_cols)

    def _share(self, least: RiskLowerBounds, rows: Indices, cols: Indices) -> Array:
        """The estimated share of candidates in each row."""
        some = cols[::COLUMN_STEP]
        if not len(some) or not len(rows):
            return np.zeros(len(rows))
        return np.asarray(least.candidates(rows, some, self.result.completion.block(rows, some)).mean(axis=1))


class _Grid(NamedTuple):
    """A grid in the making: answers, which cells are answered, and which are to be computed one by one."""

    result: PartialCompletion
    rows: Indices
    cols: Indices
    answer: Answer
    answered: NDArray[np.bool_]
    single: NDArray[np.bool_]

    @classmethod
    def of(cls, result: PartialCompletion, rows: Indices, cols: Indices) -> Self:
        """An empty one, with nothing kept."""
        shape = len(rows), len(cols)
        keep, answered, single = np.zeros((3, *shape), dtype=np.bool_)
        value, confidence, risk = np.empty((3, *shape))
        return cls(result, rows, cols, Answer(value, confidence, risk, keep), answered, single)

    def answer_part(self, lines: Indices, places: Indices) -> None:
        """Answer a part of the rows and columns by matrix products."""
        at = _part(lines, places)
        found, self.single[at] = self.result._on_tile(self.rows[lines], self.cols[places])
        for name, table in vars(found).items():
            getattr(self.answer, name)[at] = table
        self.answered[at] = True

    def mark_candidates(self, least: RiskLowerBounds, lines: Indices, places: Indices) -> None:
        """Mark the candidates in a part of the rows and columns, to be computed one by one."""
        rows, cols = self.rows[lines], self.cols[places]
        found = least.candidates(rows, cols, self.result.completion.block(rows, cols))
        self.single[_part(lines, places)] = found

    def finished(self, also: NDArray[np.bool_]) -> Answer:
        """The answer, once the marked cells and those of ``also`` are computed one by one."""
        line, place = np.nonzero(self.single | (also & ~self.answered))
        if len(line):
            for name, computed in vars(self.result.answer(self.rows[line], self.cols[place])).items():
                getattr(self.answer, name)[line, place] = computed
        return self.answer


def _part(lines: Indices, places: Indices) -> tuple[Any, ...]:
    """An index of a part of a grid, by slices where rows and columns are consecutive, which is faster."""
    if lines[-1] - lines[0] == len(lines) - 1 and places[-1] - places[0] == len(places) - 1:
        return slice(lines[0], lines[-1] + 1), slice(places[0], places[-1] + 1)
    return np.ix_(lines, places)
