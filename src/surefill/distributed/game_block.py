"""The rows' part in the coverage game and in its null: best responses where rows are, sums for each column."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surefill.arrays import Array, Floats, Indices, IntArray
from surefill.confidence.alternating_play import BURN_IN, SNAPSHOTS, Across, Lines, responses, start_of
from surefill.confidence.null_support import STRAY_LEAST, STRAY_SHARE, average_products
from surefill.distributed.merging import ColumnComponents, Histogram, Least
from surefill.distributed.parts_block import PartsBlock
from surefill.kernels.best_response import add_grams

GAME = "game"
"""The part with the snapshots, counts and components of rows."""

NULL_HALVES, NULL_STRAYS, NULL_COINS = 121, 122, 123
"""Streams of random numbers: which half of the null a line is in, which lines keep a stray, and which cell that is."""


@dataclass(eq=False)
class RowPlay:
    """The rows of a play: their cells, factors and snapshots."""

    rows: Indices
    cols: IntArray
    lines: Lines | None = None
    factors: Floats | None = None
    slots: Floats | None = None


class GameBlock(PartsBlock):
    """A block whose rows play."""

    def __init__(self, *place: Any) -> None:
        super().__init__(*place)
        self._plays: dict[str, RowPlay] = {}
        self._shown: NDArray[np.bool_] = np.zeros(0, dtype=bool)

    def show_all(self, name: str, table: str) -> None:
        """Begin a play on all cells of a table."""
        cells = self._cells[table]
        self._plays[name] = RowPlay(self._rows(cells), cells.cols)

    def hide_crossing(self, table: str, stream: int, col_half: Array) -> tuple[Indices]:
        """Hide what crosses the halves of rows and columns; how many cells of each column are left."""
        cells = self._cells[table]
        half = self._row_coins(NULL_HALVES + stream, 0) < 0.5
        self._shown = half[self._rows(cells)] == col_half[cells.cols]
        return (np.bincount(cells.cols[self._shown], minlength=self._n),)

    def crossing_coins(self, table: str, stream: int, cols: Indices) -> tuple[Least]:
        """The least coin among the hidden cells of each of these columns, 2 where there are none."""
        cells, coins = self._cells[table], np.where(self._shown, 2.0, self._coins(NULL_COINS + stream, table))
        least = np.full(self._n, 2.0)
        np.minimum.at(least, cells.cols, coins)
        return (Least(least[cols]),)

    def show_strays(self, name: str, table: str, stream: int, cols: Indices, least: Array) -> None:
        """Show one hidden cell of some rows and of the columns ``cols``, the one of the least coin; begin the play."""
        cells, coins = self._cells[table], self._coins(NULL_COINS + stream, table)
        rows, hidden = self._rows(cells), ~self._shown
        own = np.bincount(rows[self._shown], minlength=self._m)
        stray = (own >= STRAY_LEAST) & (self._row_coins(NULL_STRAYS + stream, 0) < STRAY_SHARE)
        of_row, of_col = np.full(self._m, 2.0), np.full(self._n, -1.0)
        np.minimum.at(of_row, rows[hidden], coins[hidden])
        of_col[cols] = least
        shown = self._shown | (hidden & ((stray[rows] & (coins == of_row[rows])) | (coins == of_col[cells.cols])))
        self._plays[name] = RowPlay(rows[shown], cells.cols[shown])

    def lines_seen(self, name: str) -> tuple[Histogram, Indices, int]:
        """How many rows of the play have how many cells, cells of each column, and all."""
        play = self._plays[name]
        counts = np.bincount(play.rows, minlength=self._m)
        return Histogram.of(counts), np.bincount(play.cols, minlength=self._n), len(play.rows)

    def start_play(self, name: str, seed: int, rank: int, weight: float) -> int:
        """Rows near the constant matrix 1; how many have cells."""
        play = self._plays[name]
        counts = np.bincount(play.rows, minlength=self._m)
        play.lines = Lines(np.append(0, np.cumsum(counts)), play.cols.astype(np.int32), weight)
        play.factors = start_of(self._m, rank, seed, 0, self._first)
        play.slots = np.zeros((self._m, 1 + SNAPSHOTS, rank), np.float32)
        return int(np.count_nonzero(counts))

    def play_rows(self, name: str, sweep: int, across: Across, rates: Array, key: np.uint64) -> tuple[Array, Array]:
        """The rows' best responses; the sum of their factors, and what each column sees of them."""
        play, taken = self._plays[name], max(sweep - BURN_IN, 0)
        assert play.lines is not None
        assert play.factors is not None
        assert play.slots is not None
        play.factors = responses(play.lines, play.factors, play.slots[:, 1 : 1 + taken], across, self._first)
        if sweep + 1 >= BURN_IN:
            play.slots[:, sweep + 1 - BURN_IN] = play.factors
        rank = play.factors.shape[1]
        grams = np.zeros((self._n, rank * (rank + 1) // 2 + 1))
        add_grams(play.rows, play.cols, play.factors, rates, key, self._first, self._n, grams)
        return play.factors[play.lines.counts > 0].sum(axis=0, dtype=np.float64), grams

    def rows_of_play(self, name: str, taken: int, places: Indices) -> tuple[Floats, Floats]:
        """Factors and snapshots of the rows at these places among those that have cells."""
        play = self._plays[name]
        assert play.lines is not None
        assert play.factors is not None
        assert play.slots is not None
        rows = np.flatnonzero(play.lines.counts)[places]
        return play.factors[rows], play.slots[rows, 1 : 1 + taken]

    def averages(self, name: str, rows: Indices, cols: Indices, stream: int, col_slots: Floats) -> tuple[Any, ...]:
        """Of those of these cells whose row is here: which, the play's average, the row's half and its cells."""
        play = self._plays[name]
        assert play.lines is not None
        assert play.slots is not None
        here = np.flatnonzero((rows >= self._first) & (rows < self._first + self._m))
        i = rows[here] - self._first
        half = self._row_coins(NULL_HALVES + stream, 0) < 0.5
        return here, average_products(play.slots, col_slots, i, cols[here]), half[i], play.lines.counts[i]

    def column_components(self, table: str) -> tuple[ColumnComponents]:
        """Columns that the block's cells tie together."""
        cells = self._cells[table]
        rows = np.ascontiguousarray(self._rows(cells))
        return (ColumnComponents.of(rows, cells.cols.astype(np.int64), self._m, self._n),)

    def end_play(self, name: str, table: str, col_components: Indices) -> None:
        """Keep the play of all cells as the part of the game, and forget the others."""
        play, cells = self._plays[name], self._cells[table]
        assert play.lines is not None
        assert play.slots is not None
        components = np.full(self._m, -1, dtype=np.int64)
        components[self._rows(cells)] = col_components[cells.cols]
        self._parts[GAME] = {"slots": play.slots, "counts": play.lines.counts, "components": components}
        self._plays, self._shown = {}, self._shown[:0].copy()
