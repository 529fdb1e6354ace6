"""Cells without support, made on purpose, and the floor that a stated share of them passes.

Rows and columns are split at random into halves; what crosses is hidden, and the game is played on the rest. Between
the halves nothing ties, so the adversary's average there is what it reaches where nothing is known: the null. A cell of
the real table counts as supported where its average is below all but a share ``false_support`` of the null's cells,
among cells whose row and column were seen about as often.

The null has more groups than the table, and the adversary reaches the less the more groups there are (1 / (2 - 2/k)
between k groups): the stated share errs on the safe side. Some lines of the null keep one observation that crosses, for
that is what a stray observation in a real table does: it ties a row to a group of which little is known.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from surefill.arrays import Array, Floats, Indices, IntArray, read_only
from surefill.confidence.alternating_play import SNAPSHOTS, AlternatingPlay, Lines, fold_in, side_by_side
from surefill.data.compact import PIECE
from surefill.data.groups import gathered, positions_where
from surefill.errors import InputError
from surefill.kernels.best_response import mean_products
from surefill.kernels.counting_sort import count_keys
from surefill.parallel import over_ranges
from surefill.registry import storable

CLASSES = 4
"""Classes of rows, and of columns, by how often they were seen: pass rates under one floor range from 0.3% for rows
seen seldom to 14% for busy ones (ml-100k); with four by four classes the worst is 2%."""

NULL_CELLS = 100_000
"""Null cells looked at: a share of 2% of a sixteenth of them has a standard error of 0.2%."""

LEAST_CELLS = 500
"""Null cells that a class needs for a floor of its own, ten below the floor; else the floor of all classes is taken."""

ENOUGH_TABLE_CELLS, MOST_DRAWS = 20_000, 8
"""Tables of fewer cells are split several times, at most so often, to have null cells enough."""

STRAY_SHARE, STRAY_LEAST = 0.1, 6
"""Share of the null's lines that keep one observation that crosses, among those with at least so many of their own:
without strays, 0.5% of leaked observations raised false support to 3 to 10%; with fewer of their own, sparse tables
would keep little."""

LEFT_OUT = 0.1
"""Share of the null's rows that have no part in its play and are folded in: the null of new rows."""


@storable
@dataclass(frozen=True, eq=False)
class Floors:
    """The adversary's average below which a cell is supported, by classes of row and column counts.

    ``row_edges`` and ``col_edges`` are the largest counts of all classes but the last; ``table`` has the floors, 0
    where no cell can be told from the null's; ``n_null`` is how many null cells they rest on.
    """

    row_edges: Array
    col_edges: Array
    table: Array
    n_null: int

    def __post_init__(self) -> None:
        rows, cols = self.table.shape  # there are fewer classes where counts are equal
        if rows <= len(self.row_edges) or cols <= len(self.col_edges):
            raise InputError("floors need a table of all classes of rows and columns.")

    @classmethod
    def of(cls, null: NullCells, share: float, row_counts: Indices, col_counts: Indices) -> Floors:
        """The ``share`` quantile of the null's averages in each class, for a table of these counts."""
        return cls.between(null, share, class_edges(row_counts), class_edges(col_counts))

    @classmethod
    def between(cls, null: NullCells, share: float, row_edges: Array, col_edges: Array) -> Floors:
        """The same for a table whose classes have these edges."""
        table = np.full((CLASSES, CLASSES), _lower_quantile(null.average, share))
        for r, c in np.ndindex(*table.shape):
            inside = null.average[(null.row_class == r) & (null.col_class == c)]
            if len(inside) >= LEAST_CELLS:
                table[r, c] = _lower_quantile(inside, share)
        return cls(row_edges, col_edges, np.maximum(table, 0.0), len(null.average))

    def row_classes(self, counts: Indices) -> Indices:
        """The class of rows of these counts."""
        return np.searchsorted(self.row_edges, counts, side="left")

    def col_classes(self, counts: Indices) -> Indices:
        """The class of columns of these counts."""
        return np.searchsorted(self.col_edges, counts, side="left")


@dataclass(frozen=True, eq=False)
class NullCells:
    """Cells between the halves of a null: the adversary's average there, and the classes of row and column."""

    average: Array
    row_class: Indices
    col_class: Indices

    @classmethod
    def joined(cls, parts: list[NullCells]) -> NullCells:
        """Those of several draws."""
        columns = (np.concatenate([getattr(part, name) for part in parts]) for name in cls.__dataclass_fields__)
        return cls(*columns)


@dataclass(frozen=True, eq=False)
class Null:
    """A random split of a table into halves, and the adversary's averages between them.

    ``of_rows`` is about rows that took part in the play, ``of_new_rows`` about rows that were folded in.
    """

    of_rows: NullCells
    of_new_rows: NullCells

    @classmethod
    def draw(cls, rows: IntArray, cols: IntArray, shape: tuple[int, int], rank: int, seed: int, n_cells: int) -> Null:
        """Split, hide, play, and look at about ``n_cells`` cells between the halves."""
        rng = np.random.default_rng(seed)
        halves = tuple(rng.permutation(size) % 2 == 0 for size in shape)
        shown = shown_in_null(rows, cols, halves, rng)
        left_out = np.zeros(shape[0], dtype=bool)
        left_out[rng.choice(shape[0], round(LEFT_OUT * shape[0]), replace=False)] = True
        in_new_row = gathered(left_out, rows)
        fitted, new = shown & ~in_new_row, shown & in_new_row
        game = AlternatingPlay.on(rows[fitted], cols[fitted], shape, rank, seed)
        new_rows = replace(Lines.of(rows[new], cols[new], shape[0]), weight=game.row_lines.weight)
        del shown, in_new_row, fitted, new  # a table may have very many cells
        row_counts, col_counts = game.row_lines.counts, game.col_lines.counts
        edges = class_edges(row_counts), class_edges(col_counts)

        def crossing(row_slots: Floats, col_slots: Floats, counts: Indices) -> NullCells:
            i, j = _crossing_cells(halves, counts, col_counts, n_cells, rng)
            average = average_products(row_slots, col_slots, i, j)
            return NullCells(average, _classes(counts, edges[0])[i], _classes(col_counts, edges[1])[j])

        adversary = game.play()
        of_rows, col_slots = crossing(adversary.row_slots, adversary.col_slots, row_counts), adversary.col_slots
        del game, adversary
        new_slots = fold_in(new_rows, col_slots, col_counts, seed, side=0)
        return cls(of_rows, crossing(new_slots, col_slots, new_rows.counts))


def n_draws(shape: tuple[int, int]) -> int:
    """How many times a table is split."""
    return int(np.clip(np.ceil(ENOUGH_TABLE_CELLS / (shape[0] * shape[1])), 1, MOST_DRAWS))


def shown_in_null(
    rows: IntArray, cols: IntArray, halves: tuple[NDArray[np.bool_], ...], rng: np.random.Generator
) -> NDArray[np.bool_]:
    """Which observations a null keeps: those within a half, and of some lines one that crosses."""
    within = gathered(halves[0], rows) == gathered(halves[1], cols)
    shown, order = within.copy(), positions_where(~within)
    rng.shuffle(order)
    for lines in (rows, cols):
        own = np.zeros(int(lines.max(initial=0)) + 2, dtype=np.int64)
        count_keys(read_only(lines[within]), 0, own)
        own = own[1:]
        strays = (own >= STRAY_LEAST) & (rng.random(len(own)) < STRAY_SHARE)
        first = np.full(len(own), -1)
        for begin in reversed(range(0, len(order), PIECE)):
            piece = order[begin : begin + PIECE][::-1]
            first[lines[piece]] = piece  # one observation of each line, at random: the first in this order
        candidates = first[first >= 0]
        shown[candidates[strays[lines[candidates]]]] = True
    kept: NDArray[np.bool_] = shown
    return kept


def _crossing_cells(
    halves: tuple[NDArray[np.bool_], ...],
    row_counts: Indices,
    col_counts: Indices,
    n_cells: int,
    rng: np.random.Generator,
) -> tuple[Indices, Indices]:
    """Cells between the halves whose row and column were seen: all of them, or as many of about twice ``n_cells``."""
    rows, cols = np.flatnonzero(row_counts), np.flatnonzero(col_counts)
    if len(rows) * len(cols) <= 2 * n_cells:
        i, j = (axis.ravel() for axis in np.meshgrid(rows, cols, indexing="ij"))
    else:
        i, j = rng.choice(rows, 2 * n_cells), rng.choice(cols, 2 * n_cells)
    crosses = halves[0][i] != halves[1][j]
    return i[crosses], j[crosses]


def average_products(row_slots: Floats, col_slots: Floats, i: Indices, j: Indices) -> Array:
    """Mbar at the cells (i[t], j[t]): the mean over snapshots of u_i . v_j."""
    left, right = (side_by_side(slots)[:, slots.shape[2] :] for slots in (row_slots, col_slots))
    out = np.empty(len(i), np.float32)
    even = np.arange(len(i) + 1)
    over_ranges(lambda first, last: mean_products(first, last, i, j, left, right, SNAPSHOTS, out), even)
    return out.astype(np.float64)


def class_edges(counts: Indices, sizes: Indices | None = None) -> Array:
    """Largest counts of all classes but the last: quartiles of lines seen at least once, equal counts never parted.

    ``sizes`` says how many lines have each count, rising counts, where these are not the counts of single lines.

    >>> class_edges(np.array([1, 1, 2, 9])), class_edges(np.array([1, 2, 9]), np.array([2, 1, 1]))
    (array([1., 2., 9.]), array([1., 2., 9.]))
    """
    lines = np.sort(counts) if sizes is None else counts
    last = np.cumsum(np.ones(len(lines), np.int64) if sizes is None else sizes)
    unseen = int(last[lines == 0].max(initial=0))
    n_seen = int(last[-1]) - unseen if len(last) else 0
    if not n_seen:
        return np.zeros(0)
    # the quantile of n sorted numbers that is the one at ceil(q (n - 1)), NumPy's "higher"
    places = unseen + np.ceil((n_seen - 1) * np.arange(1, CLASSES) / CLASSES).astype(np.int64)
    return np.unique(lines[np.searchsorted(last, places, side="right")]).astype(np.float64)


def _classes(counts: Indices, edges: Array) -> Indices:
    return np.searchsorted(edges, counts, side="left")


def _lower_quantile(values: Array, share: float) -> float:
    """The k-th smallest, k = floor(share (n + 1)): a new value is below it with probability at most ``share``."""
    k = int(np.floor(share * (len(values) + 1)))
    return float(np.partition(values, k - 1)[k - 1]) if k >= 1 else 0.0
