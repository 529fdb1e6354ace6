"""The paper's game over cells that were all observed already: confidence and adversary answer each other in sweeps.

The online game (the paper's h_t, single-matrix form: all observations taken to be zero) is, with the cells S given,

    max over C, min over M:  mean_x [C_x (1 - log C_x) - alpha C_x M_x] + alpha theta mean_{x in S} M_x^2

over C in [0, 1]^X and M = U V', |u_i|^2, |v_j|^2 <= K. A sweep lets every row of U play its best response given V, then
every column of V given the new U, each held near where it was (a proximal step). The confidence's best response to the
average Mbar of the adversary's plays is C_x = exp(-alpha max(0, Mbar_x)): follow the leader, and the average of such
plays is what the online-to-offline conversion takes. One low-rank adversary alone is no equilibrium; their average is.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from surefill.arrays import Array, Floats, Indices, IntArray, read_only
from surefill.data import Groups
from surefill.data.repeats import others_by_line
from surefill.kernels.best_response import best_responses, best_responses_to_grams, random_start
from surefill.kernels.counter_random import random_below, stream_key
from surefill.loop import ProgressCallback, Status, run
from surefill.parallel import over_ranges

ALPHA, THETA, K = 8.0, 1.0, 1.0
"""Weight of the deviation, weight of the observations, max-norm. Found on tables split into groups: alpha from 5 to 15
does alike where much was seen, and 5 keeps less of sparse tables; theta from 0.3 to 3 does alike on real tables, and at
0.1 the observations hold nothing down. The scale of K drops out, since the null sets the floor."""

PROX = 0.3
"""Weight that holds a best response near the last one: with 0.1 the play oscillates, with 1 it is too slow."""

BURN_IN, SNAPSHOTS = 24, 16
"""Sweeps with C = 1, and sweeps after each of which the adversary is remembered. All are averaged with equal weight:
forgetting old ones makes the play oscillate. With half the burn-in sparse tables keep much less; with half the
snapshots more of what is unsupported passes between uneven groups; more of either gains little."""

BLOCK = 64
"""Columns per sweep on which a row's push is estimated; shared by all rows, so that C there is one dense product. From
32 to 256 of them do alike."""

CAP = 64
"""Observations of a row that are looked at in one sweep; of busier rows, so many drawn at random stand for all."""

LINES_AT_ONCE = 1 << 14
"""Lines whose snapshots are laid side by side at a time: at most 8 MB of them."""


@dataclass(frozen=True, eq=False)
class Lines:
    """The rows (or columns) of a table: where each was seen, and the weight of an observation in its problem."""

    starts: Indices
    others: IntArray
    weight: float

    @classmethod
    def of(cls, lines: IntArray, others: IntArray, n: int) -> Lines:
        """Observations (lines[t], others[t]) grouped by line; each weighs theta n' / N, n' the lines seen."""
        groups, counts = Groups.of(lines), np.zeros(n, dtype=np.int64)
        counts[groups.ids] = groups.sizes
        # sorted within lines too, so that the order of the observations makes no difference
        in_order = others_by_line(groups, lines, others).astype(np.int32, copy=False)
        weight = THETA * max(len(groups), 1) / max(len(lines), 1)
        return cls(np.concatenate([[0], np.cumsum(counts)]), read_only(in_order), weight)

    @property
    def counts(self) -> Indices:
        """Observations of each line."""
        return np.diff(self.starts)


@dataclass(frozen=True, eq=False)
class PlayState:
    """Where a play stands: the factors now and as they were after the burn-in (slot 0) and after each later sweep.

    A slot is written once, by the sweep whose number it has, so that states of earlier sweeps stay valid.
    """

    sweep: int
    rows: Floats
    cols: Floats
    row_slots: Floats
    col_slots: Floats


@dataclass(frozen=True, eq=False)
class AlternatingPlay:
    """One play of the game on given cells; a solver for :func:`surefill.loop.run`, one step a sweep.

    Rows are independent of one another given the columns and every random number is a hash of the seed and its place,
    so that the result does not depend on the number of cores.
    """

    row_lines: Lines
    col_lines: Lines
    rank: int
    seed: int
    task: str = "playing the coverage game"

    @classmethod
    def on(cls, rows: IntArray, cols: IntArray, shape: tuple[int, int], rank: int, seed: int) -> AlternatingPlay:
        """The game on the cells (rows[t], cols[t])."""
        return cls(Lines.of(rows, cols, shape[0]), Lines.of(cols, rows, shape[1]), rank, seed)

    def play(self, progress: ProgressCallback | None = None) -> PlayState:
        """All sweeps."""
        return run(self, max_steps=BURN_IN + SNAPSHOTS, progress=progress).state

    def init(self) -> PlayState:
        """Near the constant matrix 1."""
        sizes = len(self.row_lines.counts), len(self.col_lines.counts)
        rows, cols = (start_of(size, self.rank, self.seed, side) for side, size in enumerate(sizes))
        slots = [np.zeros((size, 1 + SNAPSHOTS, self.rank), np.float32) for size in sizes]
        return PlayState(0, rows, cols, *slots)

    def step(self, state: PlayState) -> PlayState:
        """All rows given the columns, then all columns given the rows."""
        t, taken = state.sweep, max(state.sweep - BURN_IN, 0)
        row_slots, col_slots = state.row_slots[:, 1 : 1 + taken], state.col_slots[:, 1 : 1 + taken]
        seen_rows, seen_cols = (np.flatnonzero(lines.counts) for lines in (self.row_lines, self.col_lines))
        across = Across.drawn(state.cols, col_slots, seen_cols, self.seed, t, side=0)
        rows = responses(self.row_lines, state.rows, row_slots, across)
        across = Across.drawn(rows, row_slots, seen_rows, self.seed, t, side=1)
        cols = responses(self.col_lines, state.cols, col_slots, across)
        if t + 1 >= BURN_IN:
            state.row_slots[:, t + 1 - BURN_IN], state.col_slots[:, t + 1 - BURN_IN] = rows, cols
        return replace(state, sweep=t + 1, rows=rows, cols=cols)

    def measure(self, state: PlayState) -> float:
        """Sweeps still to come."""
        return float(BURN_IN + SNAPSHOTS - state.sweep)

    def terminate(self, state: PlayState) -> Status | None:
        """Done once all snapshots are taken."""
        return Status.CONVERGED if state.sweep == BURN_IN + SNAPSHOTS else None


@dataclass(frozen=True, eq=False)
class Across:
    """What the lines of one side see of the other: all its factors, and a block of them with its snapshots."""

    factors: Floats
    mean: Floats
    block: Floats
    block_slots: Floats
    key: np.uint64

    @classmethod
    def drawn(cls, factors: Floats, slots: Floats, seen: Indices, seed: int, sweep: int, side: int) -> Across:
        """The block of a sweep, drawn among lines ``seen`` at least once; none in the burn-in, where C = 1."""
        key = sweep_key(seed, sweep, side)
        block = seen[draw_block(key, len(seen))] if slots.shape[1] else seen[:0]
        mean = factors[seen].mean(axis=0, dtype=np.float64) if len(seen) else np.zeros(factors.shape[1])
        return cls.of(factors, mean, factors[block], slots[block], key)

    @classmethod
    def of(cls, factors: Floats, mean: Array, block: Floats, block_slots: Floats, key: np.uint64) -> Across:
        """From the factors and snapshots of a block of lines."""
        n_lines, taken, rank = block_slots.shape
        past = block_slots.reshape(n_lines, taken * rank).T / np.float32(max(taken, 1))
        return cls(factors, mean, np.ascontiguousarray(block.T), np.ascontiguousarray(past), key)


def side_by_side(slots: Floats) -> Floats:
    """The snapshots of each line in one."""
    n_lines, taken, rank = slots.shape
    return slots.reshape(n_lines, taken * rank)


def responses(lines: Lines, factors: Floats, slots: Floats, across: Across, offset: int = 0) -> Floats:
    """The best responses of all lines to what they see across; the first is the line ``offset`` of its table."""
    new = np.empty_like(factors)
    # groups of equal cost: a line's work is at most that of CAP observations and a block
    even = np.arange(len(factors) + 1) * (BLOCK + CAP)

    def work(first: int, last: int) -> None:
        for begin in range(first, last, LINES_AT_ONCE):
            here = slice(begin, min(begin + LINES_AT_ONCE, last))
            flat, starts = side_by_side(slots[here]), lines.starts[begin : here.stop + 1]
            best_responses(
                0, len(flat), factors[here], flat, starts, lines.others, across.factors, across.block,
                across.block_slots, across.mean, np.float32(ALPHA), lines.weight, PROX, K, CAP, across.key,
                offset + begin, new[here],
            )  # fmt: skip

    over_ranges(work, even)
    return new


def fold_in(lines: Lines, col_slots: Floats, col_counts: Indices, seed: int, side: int) -> Floats:
    """Slots of new lines against the other side as it was: their own sweeps only."""
    size, rank = len(lines.counts), col_slots.shape[2]
    factors, slots = start_of(size, rank, seed, side), np.zeros((size, *col_slots.shape[1:]), np.float32)
    seen = np.flatnonzero(col_counts)
    for t in range(BURN_IN + SNAPSHOTS):
        taken = max(t - BURN_IN, 0)
        across_now = np.ascontiguousarray(col_slots[:, taken])  # during the burn-in, where it led to
        across = Across.drawn(across_now, col_slots[:, 1 : 1 + taken], seen, seed, t, side)
        factors = responses(lines, factors, slots[:, 1 : 1 + taken], across)
        if t + 1 >= BURN_IN:
            slots[:, t + 1 - BURN_IN] = factors
    return slots


def responses_to_grams(grams: Array, counts: Indices, weight: float, factors: Floats, slots: Floats, across: Across
) -> Floats:  # fmt: skip
    """The same where what lines see of the other side is summed (:func:`add_grams`)."""
    new, flat = np.empty_like(factors), side_by_side(slots)

    def work(first: int, last: int) -> None:
        best_responses_to_grams(
            first, last, factors, flat, grams, counts, across.block, across.block_slots, across.mean,
            np.float32(ALPHA), weight, PROX, K, new,
        )  # fmt: skip

    over_ranges(work, np.arange(len(factors) + 1) * BLOCK)
    return new


def start_of(size: int, rank: int, seed: int, side: int, offset: int = 0) -> Floats:
    """Where the lines of a side start, the first of them the line ``offset`` of its table."""
    factors = np.empty((size, rank), np.float32)
    random_start(factors, stream_key(seed, 1 + side), offset)
    return factors


def sweep_key(seed: int, sweep: int, side: int) -> np.uint64:
    """The key of all that is random when one side plays in a sweep."""
    return stream_key(seed, 10 + 2 * sweep + side)


def draw_block(key: np.uint64, n: int) -> Indices:
    """At most BLOCK of n lines: all where there are so few, else drawn with replacement, each once."""
    if n <= BLOCK:
        return np.arange(n)
    return np.unique([random_below(key, k, n) for k in range(BLOCK)])
