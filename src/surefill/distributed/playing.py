"""The coverage game and its null on row blocks: the columns' part.

The game of :mod:`surefill.confidence.alternating_play`: rows answer where they are, given all columns; a column needs
of the rows only sum u_i u_i' over those it was seen in, of which about 64 are drawn by coins, and a block of 64 rows
with their snapshots. So a sweep sends the columns' factors out and gets rank (rank + 1) / 2 + 1 numbers a column back.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from surefill.arrays import Array, Floats, Indices
from surefill.blocks import Blocks
from surefill.confidence import Certificate, CoverageGame, GameConfidence
from surefill.confidence.alternating_play import (
    BURN_IN,
    CAP,
    SNAPSHOTS,
    THETA,
    Across,
    draw_block,
    responses_to_grams,
    start_of,
    sweep_key,
)
from surefill.confidence.coverage_game import LEAST_RANK, MOST_RANK, NULL_SEED, OBSERVATIONS_PER_RANK
from surefill.confidence.null_support import (
    NULL_CELLS,
    STRAY_LEAST,
    STRAY_SHARE,
    Floors,
    NullCells,
    class_edges,
    n_draws,
)
from surefill.distributed.game_block import NULL_HALVES, NULL_STRAYS
from surefill.distributed.merging import Histogram
from surefill.distributed.parts_block import Part
from surefill.kernels.counter_random import cell_uniforms, stream_key
from surefill.loop import Outcome, ProgressCallback, Status, run
from surefill.registry import storable


@storable
@dataclass(frozen=True, eq=False)
class GameColumns:
    """What the confidence needs of columns: with a row's own part it gives the confidences of the row's cells."""

    ids: Indices
    slots: Floats
    counts: Indices
    components: Indices
    floors: Floors
    row_weight: float
    random_state: int

    def confidence(self, rows: Part, shape: tuple[int, int]) -> GameConfidence:
        """The confidences of the cells of these rows."""
        seen = np.flatnonzero(rows["counts"])
        return GameConfidence(
            shape=shape,
            row_ids=seen,
            col_ids=self.ids,
            row_slots=rows["slots"][seen],
            col_slots=self.slots,
            row_counts=rows["counts"][seen],
            col_counts=self.counts,
            row_components=rows["components"][seen],
            col_components=self.components,
            floors=self.floors,
            new_row_floors=self.floors,
            row_weight=self.row_weight,
            random_state=self.random_state,
        )


@dataclass(frozen=True, eq=False)
class ColumnState:
    """Where a play stands: the sweep, the columns' factors, and their snapshots."""

    sweep: int
    cols: Floats
    slots: Floats


@dataclass(frozen=True, eq=False)
class BlockedPlay:
    """One play of the game on cells that blocks have chosen; a solver for :func:`surefill.loop.run`."""

    blocks: Blocks
    name: str
    rank: int
    seed: int
    row_counts: Histogram
    col_counts: Indices
    row_weight: float
    col_weight: float
    rows_of_blocks: Indices
    task: str = "playing the coverage game"

    @classmethod
    def of(cls, blocks: Blocks, name: str, rank: int, seed: int) -> BlockedPlay:
        """The play of the cells that blocks have under the ``name``."""
        rows, cols, n_cells = blocks.total("lines_seen", name)
        seen_rows, seen_cols = int(rows.counts[rows.values > 0].sum()), int(np.count_nonzero(cols))
        of_row, of_col = (THETA * max(lines, 1) / max(n_cells, 1) for lines in (seen_rows, seen_cols))
        per_block = np.array(blocks.each("start_play", name, seed, rank, of_row))
        return cls(blocks, name, rank, seed, rows, cols, of_row, of_col, per_block)

    def play(self, progress: ProgressCallback | None = None) -> ColumnState:
        """All sweeps."""
        outcome: Outcome[ColumnState] = run(self, max_steps=BURN_IN + SNAPSHOTS, progress=progress)
        return outcome.state

    def init(self) -> ColumnState:
        """Near the constant matrix 1."""
        n = len(self.col_counts)
        return ColumnState(0, start_of(n, self.rank, self.seed, 1), np.zeros((n, 1 + SNAPSHOTS, self.rank), np.float32))

    def step(self, state: ColumnState) -> ColumnState:
        """All rows given the columns, then all columns given the rows."""
        t, taken = state.sweep, max(state.sweep - BURN_IN, 0)
        slots, seen = state.slots[:, 1 : 1 + taken], np.flatnonzero(self.col_counts)
        across = Across.drawn(state.cols, slots, seen, self.seed, t, side=0)
        key = sweep_key(self.seed, t, side=1)
        rates = np.minimum(CAP / np.maximum(self.col_counts, 1), 1.0)
        total, grams = self.blocks.total("play_rows", self.name, t, across, rates, key)
        across = self._rows_across(total, taken, key)
        cols = responses_to_grams(grams, self.col_counts, self.col_weight, state.cols, slots, across)
        if t + 1 >= BURN_IN:
            state.slots[:, t + 1 - BURN_IN] = cols
        return ColumnState(t + 1, cols, state.slots)

    def _rows_across(self, total: Array, taken: int, key: np.uint64) -> Across:
        """What columns see of the rows but for their observations: the mean, and a block with its snapshots."""
        n_rows, ends = int(self.rows_of_blocks.sum()), np.cumsum(self.rows_of_blocks)
        drawn = draw_block(key, n_rows) if taken else np.zeros(0, dtype=np.int64)
        block = np.searchsorted(ends, drawn, side="right")
        first = ends - self.rows_of_blocks
        own = [drawn[block == index] - first[index] for index in range(len(ends))]
        nothing = np.zeros((0, self.rank), np.float32), np.zeros((0, taken, self.rank), np.float32)
        found = self.blocks.each("rows_of_play", self.name, taken, own=own) if taken else [nothing]
        factors, slots = (np.concatenate([each[part] for each in found]) for part in range(2))
        return Across.of(nothing[0], total / max(n_rows, 1), factors, slots, key)

    def measure(self, state: ColumnState) -> float:
        """Sweeps still to come."""
        return float(BURN_IN + SNAPSHOTS - state.sweep)

    def terminate(self, state: ColumnState) -> Status | None:
        """Done once all snapshots are taken."""
        return Status.CONVERGED if state.sweep == BURN_IN + SNAPSHOTS else None


def play_game(
    blocks: Blocks, table: str, shape: tuple[int, int], game: CoverageGame, progress: ProgressCallback | None = None
) -> tuple[GameColumns, Certificate]:
    """Play on the cells of a table and on its null; the columns' part of the confidence, and what is known of it."""
    seed = game.random_state
    blocks.each("show_all", "cells", table)
    rows, cols, n_cells = blocks.total("lines_seen", "cells")
    lines = int(rows.counts[rows.values > 0].sum()), int(np.count_nonzero(cols))
    rank = game.rank or int(np.clip(n_cells / max(lines) / OBSERVATIONS_PER_RANK, LEAST_RANK, MOST_RANK))
    play = BlockedPlay.of(blocks, "cells", rank, seed)
    state = play.play(progress)
    draws = n_draws(lines)
    nulls = [_null(blocks, table, shape, rank, seed, k, NULL_CELLS // draws, progress) for k in range(draws)]
    edges = class_edges(rows.values, rows.counts), class_edges(cols)
    floors = Floors.between(NullCells.joined(nulls), game.false_support, *edges)
    (components,) = blocks.total("column_components", table)
    ids = np.flatnonzero(cols)
    blocks.each("end_play", "cells", table, components.first)
    of_columns = ids, state.slots[ids], cols[ids], components.first[ids].astype(np.int64)
    return GameColumns(*of_columns, floors, play.row_weight, seed), game.certificate(floors)


def _null(
    blocks: Blocks,
    table: str,
    shape: tuple[int, int],
    rank: int,
    seed: int,
    draw: int,
    n_cells: int,
    progress: ProgressCallback | None,
) -> NullCells:
    """A random split into halves, played with what crosses hidden, and the averages at cells that cross."""
    stream, name, every = 10 * (draw + 1), f"null-{draw}", np.arange(shape[1])
    coins = [cell_uniforms(stream_key(seed, each + stream + 5), 0, 1, every, 0 * every)
             for each in (NULL_HALVES, NULL_STRAYS)]  # fmt: skip
    col_half = coins[0] < 0.5
    (own,) = blocks.total("hide_crossing", table, stream, col_half)
    strays = np.flatnonzero((own >= STRAY_LEAST) & (coins[1] < STRAY_SHARE))
    (least,) = blocks.total("crossing_coins", table, stream, strays)
    blocks.each("show_strays", name, table, stream, strays, least.numbers)
    play = BlockedPlay.of(blocks, name, rank, seed + NULL_SEED * (draw + 1))
    state = play.play(progress)
    rows, cols = _cells_of_null(shape, n_cells, seed + NULL_SEED * (draw + 1))
    found = blocks.each("averages", name, rows, cols, stream, state.slots)
    here, average, half, counts = (np.concatenate([each[part] for each in found]) for part in range(4))
    j = cols[here]
    crosses = (half != col_half[j]) & (counts > 0) & (play.col_counts[j] > 0)
    edges = class_edges(play.row_counts.values, play.row_counts.counts), class_edges(play.col_counts)
    classes = (np.searchsorted(edge, each) for edge, each in zip(edges, (counts, play.col_counts[j]), strict=True))
    return NullCells(average[crosses], *(each[crosses] for each in classes))


def _cells_of_null(shape: tuple[int, int], n_cells: int, seed: int) -> tuple[Indices, Indices]:
    """All cells, or about four times as many as are to cross with row and column seen, rows rising."""
    m, n = shape
    if m * n <= 2 * n_cells:
        i, j = (each.ravel() for each in np.indices(shape))
        return i, j
    rng = np.random.default_rng(seed)
    return np.sort(rng.integers(m, size=2 * n_cells)), rng.integers(n, size=2 * n_cells)
