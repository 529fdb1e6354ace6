"""The kept cells of a grid, most others never looked at where few are kept.

A cell costs the more the more is asked: the bound of its row or column nothing, its value a short product, the bound
that follows from its value one pass (:mod:`surefill.risk.least_risk`), its variance, confidence and weight the rest.
Rows and columns that cannot hold a kept cell cost the first alone, rows with few that may be kept the first three.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from surefill.arrays import Array, Indices
from surefill.estimators.result import Answer, PartialCompletion, tiles
from surefill.guarantee.plan import ROUNDING
from surefill.risk.least_risk import LeastRisk

ALONE = 0.03
"""Share of a row's cells that may be kept below which they are asked one by one: a cell alone takes some twenty times
as long as one of a grid (measured)."""

LOOKED_AT = 16
"""One column in so many is looked at to learn that share."""


@dataclass(frozen=True, eq=False)
class KeptCells:
    """Answers about the kept cells of grids, and about cells that are asked for in any case."""

    result: PartialCompletion

    def block(self, rows: Indices, cols: Indices, also: NDArray[np.bool_]) -> Answer:
        """As :meth:`PartialCompletion.answer_block`; numbers count only at kept cells and at those of ``also``."""
        if self.result.selection.empty:
            return _Grid.of(self.result, rows, cols).answered(also)
        least = self._least
        if least is None:
            return self.result.answer_block(rows, cols)
        lines, places = self._possible(least, rows, cols)
        few = self._share(least, rows[lines], cols[places]) < ALONE
        if len(lines) == len(rows) and len(places) == len(cols) and not few.any():
            return self.result.answer_block(rows, cols)
        grid = _Grid.of(self.result, rows, cols)
        most, rest = lines[~few], lines[few]
        for i, j in tiles(len(most), len(places)):
            grid.ask(most[i], places[j])
        for i, j in tiles(len(rest), len(places)):
            grid.note(least, rest[i], places[j])
        return grid.answered(also)

    def values(self, rows: Indices, cols: Indices) -> Array:
        """Values on a grid, -inf where they rule out that a cell is kept."""
        least = self._least
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
    def _least(self) -> LeastRisk | None:
        """Bounds of the risk; they are about seen rows and columns, and others are kept only without a floor."""
        return self.result.least_risk if self.result.selection.floor > ROUNDING else None

    def _possible(self, least: LeastRisk, rows: Indices, cols: Indices) -> tuple[Indices, Indices]:
        """Rows and columns that may hold a kept cell: seen, and not too risky as a whole."""
        of_rows = (least.of_rows(rows) <= least.log_limit) & self.result.prior.row_seen(rows)
        of_cols = (least.of_cols(cols) <= least.log_limit) & self.result.prior.col_seen(cols)
        return np.flatnonzero(of_rows), np.flatnonzero(of_cols)

    def _share(self, least: LeastRisk, rows: Indices, cols: Indices) -> Array:
        """About which share of each row's cells may be kept."""
        some = cols[::LOOKED_AT]
        if not len(some) or not len(rows):
            return np.zeros(len(rows))
        return np.asarray(least.candidates(rows, some, self.result.completion.block(rows, some)).mean(axis=1))


class _Grid(NamedTuple):
    """What is known so far of a grid: answers, which cells have one, and which are to be asked alone."""

    result: PartialCompletion
    rows: Indices
    cols: Indices
    answer: Answer
    asked: NDArray[np.bool_]
    alone: NDArray[np.bool_]

    @classmethod
    def of(cls, result: PartialCompletion, rows: Indices, cols: Indices) -> Self:
        """Nothing is known, nothing is kept."""
        shape = len(rows), len(cols)
        keep, asked, alone = np.zeros((3, *shape), dtype=np.bool_)
        value, confidence, risk = np.empty((3, *shape))
        return cls(result, rows, cols, Answer(value, confidence, risk, keep), asked, alone)

    def ask(self, lines: Indices, places: Indices) -> None:
        """Answer about a part of the rows and columns, by matrix products."""
        at = _part(lines, places)
        found, self.alone[at] = self.result._on_tile(self.rows[lines], self.cols[places])
        for name, table in vars(found).items():
            getattr(self.answer, name)[at] = table
        self.asked[at] = True

    def note(self, least: LeastRisk, lines: Indices, places: Indices) -> None:
        """Leave those of a part of the rows and columns to be asked alone that their values do not rule out."""
        rows, cols = self.rows[lines], self.cols[places]
        found = least.candidates(rows, cols, self.result.completion.block(rows, cols))
        self.alone[_part(lines, places)] = found

    def answered(self, also: NDArray[np.bool_]) -> Answer:
        """The answer, with that about single cells."""
        line, place = np.nonzero(self.alone | (also & ~self.asked))
        if len(line):
            for name, alone in vars(self.result.answer(self.rows[line], self.cols[place])).items():
                getattr(self.answer, name)[line, place] = alone
        return self.answer


def _part(lines: Indices, places: Indices) -> tuple[Any, ...]:
    """An index of a part of a grid; of consecutive rows and columns by slices, which is faster."""
    if lines[-1] - lines[0] == len(lines) - 1 and places[-1] - places[0] == len(places) - 1:
        return slice(lines[0], lines[-1] + 1), slice(places[0], places[-1] + 1)
    return np.ix_(lines, places)
