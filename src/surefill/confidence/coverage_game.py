"""The paper's game as a confidence algorithm for tables of any size, its floor set by cells without support."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefill.arrays import Array, Floats, Indices, IntArray, read_only, row_blocks
from surefill.completion import Completion
from surefill.confidence.algorithm import Certificate, require_columns
from surefill.confidence.alternating_play import (
    SNAPSHOTS,
    AlternatingPlay,
    Lines,
    PlayState,
    fold_in,
    side_by_side,
)
from surefill.confidence.null_support import LEAST_CELLS, NULL_CELLS, Floors, Null, NullCells, average_products, n_draws
from surefill.data import Observations
from surefill.data.groups import compact_positions, gathered, locate
from surefill.errors import InputError, invalid_parameter, is_number, is_seed
from surefill.kernels.components import component_labels
from surefill.kernels.support_grid import supports_on_grid
from surefill.loop import ProgressCallback
from surefill.parallel import SerialMap, current_map
from surefill.registry import storable
from surefill.spaces.confidence_matrix import some_cells

NAME = "the coverage game"
"""What sentences call it."""

FLOOR = 0.5
"""The confidence at which the stated share of cells without support passes, whatever their class."""

LEAST_RANK, MOST_RANK, OBSERVATIONS_PER_RANK = 4, 8, 4
"""Rank of the adversary: a quarter of the observations per line of the longer side, within limits. More factors than a
line has observations could not be held down by them."""

EXACT_CELLS, DRAWN_CELLS = 50_000_000, 1_000_000
"""Cells up to which the coverage is summed, and how many are drawn to estimate it beyond."""

MANY_CELLS = 5_000_000
"""Observations from which the null and the play go one after the other, each on all cores: both at once would hold the
cells once more, for little gain in time."""

NULL_SEED = 1000
"""Added to the seed for the null, and the number of the split: far from the seeds people give."""


@storable
@dataclass(frozen=True)
class CoverageGame:
    """The paper's game between a confidence and the matrices that vanish where we looked, at any size.

    C_x = 2^(-max(0, Mbar_x) / f_x), where Mbar is the average play of low-rank adversaries on the observed cells
    (:mod:`surefill.confidence.alternating_play`) and f the floor that a share ``false_support`` of cells without
    support passes, among cells whose row and column were seen as often (:mod:`surefill.confidence.null_support`). So a
    cell is supported where C >= 1/2. C is 0, exactly, between different components of the graph of observed cells, and
    where row or column was never seen. Only locations matter, never values.

    The cost is O((m + n) rank^2) for each of 40 sweeps of two plays, with O((m + n) rank) memory; nothing is of size
    m n, and a line costs no more beyond 64 observations. The result is the same for any number of cores.

    Parameters
    ----------
    false_support : share of cells that nothing ties to the observations which may pass as supported; in (0, 1/2].
    rank : of the adversaries; when None, a quarter of the observations per line of the longer side, from 4 to 8.
    random_state : seed of everything random; same seed, same result to the bit.

    Examples
    --------
    >>> import surefill as sf
    >>> sim = sf.datasets.make_blocks((60, 50), n_groups=2, rank=2, n_draws=3000, noise=0.1, random_state=0)
    >>> game = sf.confidence.CoverageGame()
    >>> confidence, certificate = game.fit(sim.observations, completion=None)
    >>> C = confidence.dense()
    >>> bool((C[~sim.support] == 0).all()), bool(np.mean(C[sim.support] >= certificate.floor) > 0.9)
    (True, True)
    """

    false_support: float = 0.02
    rank: int | None = None
    random_state: int = 0

    sets_floor: ClassVar[bool] = True

    def chosen_for(
        self, observations: Observations, completion: Completion, tolerance: float, held_out_error: float
    ) -> Self:
        """The game with its rank chosen."""
        return replace(self, rank=self._rank_for(observations))

    def fit(
        self, observations: Observations, completion: Completion | None = None, progress: ProgressCallback | None = None
    ) -> tuple[GameConfidence, Certificate]:
        """Play on the observed cells and on random splits of them, the null; the completion plays no part."""
        self._validate()
        by_row, by_col = observations.by_row, observations.by_col
        rank, shape = self._rank_for(observations), (len(by_row), len(by_col))  # only lines that were seen play
        rows, cols = _sorted_cells(observations)
        draws = n_draws(shape)

        def play(k: int) -> Null | tuple[AlternatingPlay, PlayState]:
            if k == draws:
                game = AlternatingPlay.on(rows, cols, shape, rank, self.random_state)
                return game, game.play(progress)
            return Null.draw(rows, cols, shape, rank, self.random_state + NULL_SEED * (k + 1), NULL_CELLS // draws)

        one_by_one = len(rows) >= MANY_CELLS
        *nulls, played = (SerialMap() if one_by_one else current_map()).map(play, range(draws + 1))
        assert isinstance(played, tuple)
        game, adversary = played
        counts = game.row_lines.counts, game.col_lines.counts
        null, of_new = (NullCells.joined([getattr(one, part) for one in nulls]) for part in ("of_rows", "of_new_rows"))
        if len(of_new.average) < LEAST_CELLS:  # too few rows were left out to tell; those that played stand in for them
            of_new = null
        floors = [Floors.of(cells, self.false_support, *counts) for cells in (null, of_new)]
        components = _components(rows, cols, shape)
        confidence = GameConfidence(
            shape=observations.shape,
            row_ids=by_row.ids,
            col_ids=by_col.ids,
            row_slots=adversary.row_slots,
            col_slots=adversary.col_slots,
            row_counts=counts[0],
            col_counts=counts[1],
            row_components=components[0],
            col_components=components[1],
            floors=floors[0],
            new_row_floors=floors[1],
            row_weight=game.row_lines.weight,
            random_state=self.random_state,
        )
        return confidence, self.certificate(floors[0])

    def _rank_for(self, observations: Observations) -> int:
        if self.rank is not None:
            return int(self.rank)
        per_line = len(observations) / max(len(observations.by_row), len(observations.by_col))
        return int(np.clip(per_line / OBSERVATIONS_PER_RANK, LEAST_RANK, MOST_RANK))

    def certificate(self, floors: Floors) -> Certificate:
        """What is known of a confidence with these floors."""
        if not floors.table.any():
            statement = "The table is too small to tell supported cells from others, so that none counts as supported."
        else:
            statement = (
                f"A cell counts as supported from a confidence of {FLOOR:g} on. Of cells that nothing ties to the "
                f"others about {100 * self.false_support:.2g}% would pass as well, as measured on {floors.n_null:,} "
                "cells hidden on purpose; no bound is proved."
            )
        return Certificate("tested", None, None, None, statement, NAME, floor=FLOOR, false_support=self.false_support)

    def _validate(self) -> None:
        if not (is_number(self.false_support) and 0 < self.false_support <= 0.5):
            expected = "a number above 0 and at most 0.5"
            raise invalid_parameter("CoverageGame", "false_support", expected, self.false_support)
        if self.rank is not None and not (is_seed(self.rank) and self.rank >= 1):
            raise invalid_parameter("CoverageGame", "rank", "None or a whole number of at least 1", self.rank)
        if not is_seed(self.random_state):
            raise invalid_parameter("CoverageGame", "random_state", "a whole number of at least 0", self.random_state)


@storable
@dataclass(frozen=True, eq=False)
class GameConfidence:
    """C_x = 2^(-max(0, Mbar_x) / f_x) from the snapshots of a play; memory per row and column.

    Attributes
    ----------
    shape : (m, n).
    row_ids, col_ids : rows and columns that were seen, rising; all else is about these.
    row_slots, col_slots : factors of the adversary after the burn-in and after each later sweep, one line per row and
        column; Mbar is the mean product over all but the first.
    row_counts, col_counts : observations of each row and column.
    row_components, col_components : components of the graph of observed cells.
    floors, new_row_floors : f for rows of the fit and for rows folded in, by counts.
    row_weight : weight of an observation in a row's best response.
    random_state : seed of the play.

    Examples
    --------
    >>> import surefill as sf
    >>> sim = sf.datasets.make_blocks((60, 50), n_groups=2, rank=2, n_draws=3000, noise=0.1, random_state=0)
    >>> confidence, _ = sf.confidence.CoverageGame().fit(sim.observations)
    >>> confidence.shape
    (120, 100)
    >>> bool(((confidence.dense() >= 0) & (confidence.dense() <= 1)).all())
    True
    """

    shape: tuple[int, int]
    row_ids: IntArray
    col_ids: IntArray
    row_slots: Floats
    col_slots: Floats
    row_counts: Indices
    col_counts: Indices
    row_components: Indices
    col_components: Indices
    floors: Floors
    new_row_floors: Floors
    row_weight: float
    random_state: int

    def __post_init__(self) -> None:
        of_rows = self.row_ids, self.row_slots, self.row_counts, self.row_components
        of_cols = self.col_ids, self.col_slots, self.col_counts, self.col_components
        fits = all(len({len(table) for table in tables}) == 1 for tables in (of_rows, of_cols))
        fits = fits and self.row_slots.shape[1:] == self.col_slots.shape[1:] and self.row_slots.ndim == 3
        fits = fits and self.row_slots.shape[1] == SNAPSHOTS + 1
        if not (fits and all((np.diff(ids) > 0).all() for ids in (self.row_ids, self.col_ids))):
            raise InputError("a confidence of the game needs sorted ids, and factors, counts and components of each.")

    def at(self, rows: ArrayLike, cols: ArrayLike) -> NDArray[np.float64]:
        """C at the cells (rows[t], cols[t])."""
        i, j = locate(self.row_ids, np.asarray(rows)), locate(self.col_ids, np.asarray(cols))
        average = average_products(self.row_slots, self.col_slots, i, j)
        floor = self.floors.table[self._row_classes[i], self._col_classes[j]]
        tied = (i >= 0) & (j >= 0) & (self.row_components[i] == self.col_components[j])
        return _confidence(average, floor, tied)

    def block(self, rows: ArrayLike, cols: ArrayLike) -> NDArray[np.float64]:
        """C at every pair of the given rows and columns, len(rows) x len(cols)."""
        i, j = locate(self.row_ids, np.asarray(rows)), locate(self.col_ids, np.asarray(cols))
        left, right = self._flat
        C = np.empty((len(i), len(j)))
        of_lines = self._row_classes[i], self._col_classes[j], *self._components_at(i, j)
        supports_on_grid(left[i] @ right[j].T, SNAPSHOTS, self.floors.table, *of_lines, C)
        return C

    def dense(self) -> NDArray[np.float64]:
        """All m x n of it; only for matrices small enough to hold."""
        return self.block(np.arange(self.shape[0]), np.arange(self.shape[1]))

    @property
    def coverage(self) -> float:
        """|C|, the sum of all confidences; from drawn cells where there are more than 50 million."""
        m, n = self.shape
        if m * n > EXACT_CELLS:
            return float(m) * n * float(self.at(*some_cells(self.shape, DRAWN_CELLS)).mean())
        cols = np.arange(n)
        return float(sum(self.block(np.arange(rows.start, rows.stop), cols).sum() for rows in row_blocks(m, n)))

    def fold_in(self, observations: Observations) -> Self:
        """The confidence for other rows, seen at ``observations``: their own best responses, the columns as they were.

        Its floors are those that rows folded into a null were held to.
        """
        require_columns(observations, self.shape[1])
        by_row, cols = observations.by_row, locate(self.col_ids, observations.cols)
        known = cols >= 0  # a column that was never seen before says nothing yet
        rows, cols = by_row.locate(observations.rows)[known], cols[known]
        lines = replace(Lines.of(rows, cols, len(by_row)), weight=self.row_weight)
        row_components, col_components = _joined(rows, cols, len(by_row), self.col_components)
        return replace(
            self,
            shape=observations.shape,
            row_ids=by_row.ids,
            row_slots=fold_in(lines, self.col_slots, self.col_counts, self.random_state, side=0),
            row_counts=lines.counts,
            row_components=row_components,
            col_components=col_components,
            floors=self.new_row_floors,
        )

    @cached_property
    def _flat(self) -> tuple[Floats, Floats]:
        """Snapshots side by side, without the end of the burn-in."""
        rank = self.row_slots.shape[2]
        left, right = (side_by_side(slots)[:, rank:] for slots in (self.row_slots, self.col_slots))
        return left, right

    def _components_at(self, i: Indices, j: Indices) -> tuple[Indices, Indices]:
        """Components of rows and columns at these positions, -1 where they were never seen."""
        of_rows, of_cols = self.row_components[i], self.col_components[j]
        return np.where(i >= 0, of_rows, -1), np.where(j >= 0, of_cols, -1)

    @cached_property
    def _row_classes(self) -> Indices:
        return self.floors.row_classes(self.row_counts)

    @cached_property
    def _col_classes(self) -> Indices:
        return self.floors.col_classes(self.col_counts)


def _confidence(average: Array, floor: Array, tied: NDArray[np.bool_]) -> NDArray[np.float64]:
    """2^(-max(0, average) / floor); 0 where nothing ties row and column, or no floor tells."""
    known = tied & (floor > 0)
    exponent = np.divide(np.maximum(average, 0.0), floor, out=np.full(np.shape(average), np.inf), where=known)
    return np.asarray(np.exp2(-exponent))


def _sorted_cells(observations: Observations) -> tuple[IntArray, IntArray]:
    """Rows and columns of the cells in sorted order, so that their order in the data makes no difference."""
    by_row, by_col, order = observations.by_row, observations.by_col, observations.cell_order
    rows, cols = observations.rows, observations.cols
    if len(order):
        rows, cols = (rows if by_row.in_order else gathered(rows, order)), gathered(cols, order)
    return compact_positions(by_row.ids, rows), compact_positions(by_col.ids, cols)


def _components(rows: IntArray, cols: IntArray, shape: tuple[int, int]) -> tuple[Indices, Indices]:
    """The component of each row and column in the bipartite graph of observed cells."""
    m, n = shape
    labels = component_labels(read_only(rows), read_only(cols), m, n)
    return labels[:m], labels[m:]


def _joined(rows: Indices, cols: Indices, m: int, col_components: Indices) -> tuple[Indices, Indices]:
    """Components of m new rows seen at ``cols``, and of the columns once the new rows tie them."""
    of_rows, of_components = _components(rows, col_components[cols], (m, int(col_components.max()) + 1))
    return of_rows, of_components[col_components]
