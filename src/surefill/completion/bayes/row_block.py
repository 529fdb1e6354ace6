"""One block of rows of a Bayesian factor model: its cells, its rows' posterior, and what it adds to sums over all rows.

A sweep of :class:`surefill.completion.bayes.variational_solver.VariationalSolver` is sums over rows and updates of
single rows. Here a block owns its rows: methods take what is known of all columns, update the block's rows, and give
sums for each column or for all. Nothing that has a line for each row or each cell leaves the block.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from surefill.arrays import Array, Floats, IntArray, read_only
from surefill.completion.bayes.factor_posterior import (
    IMPLICIT_PENALTY,
    PRIOR_VARIANCE,
    START_PRECISION,
    START_SPREAD,
    FactorPosterior,
    log_variances,
    squared,
)
from surefill.completion.bayes.noise_precision import NoisePrecision
from surefill.completion.bayes.variational import VariationalRegression, column_sums, with_zeros
from surefill.completion.grouped_regression import reindexed
from surefill.data import Groups, Observations, UnitMap
from surefill.data.groups import locate
from surefill.kernels.factor_updates import moments_width, sum_moments
from surefill.loop import generator_at

BLOCK_CELLS = 1 << 19
"""Cells of a block at least: about a tenth of a second of work in a sweep, some ten times what its calls cost."""

CELLS_PER_COLUMN = 128
"""Cells of a block at least, for each column of the table: to clear and to add up a block's sums for a column, 275
numbers at rank 20, takes what some twenty of its cells do."""

WHOLE = "whole"
"""The table of all cells of a block; others are selected from it."""

Counted = NDArray[Any]


@dataclass(frozen=True, eq=False)
class BlockCells:
    """The cells of consecutive rows: those of the row ``row_ids[g]`` lie from ``starts[g]`` to ``starts[g + 1]``.

    ``counts`` and ``scatter`` have one item per cell, or a single one for all.
    """

    row_ids: NDArray[np.int64]
    starts: NDArray[np.int64]
    cols: IntArray
    values: Floats
    counts: Counted
    scatter: Floats

    def __len__(self) -> int:
        return len(self.cols)

    @property
    def row_of_cell(self) -> NDArray[np.int64]:
        """The position of each cell's row in the block."""
        return np.repeat(np.arange(len(self.row_ids)), np.diff(self.starts))

    def select(self, taken: NDArray[np.bool_]) -> BlockCells:
        """Some of the cells, and the rows that have any of them."""
        sizes = np.bincount(self.row_of_cell[taken], minlength=len(self.row_ids))
        present = sizes > 0
        starts = np.append(0, np.cumsum(sizes[present]))
        each = [table if len(table) == 1 else table[taken] for table in (self.counts, self.scatter)]
        return BlockCells(self.row_ids[present], starts, self.cols[taken], self.values[taken], *each)


def block_cells(n_cols: int) -> int:
    """How many cells a block of a table with ``n_cols`` columns has at least.

    >>> block_cells(2_000), block_cells(20_000), block_cells(1_000_000)
    (524288, 2560000, 128000000)
    """
    return max(BLOCK_CELLS, CELLS_PER_COLUMN * n_cols)


def cut_rows(starts: NDArray[np.int64], cells: int) -> NDArray[np.int64]:
    """Where to cut rows into a power of two of blocks with about as many cells each, at least ``cells``.

    It goes by the table alone, whoever is to have the blocks: a power of two of workers then has one node of the tree
    each, over which sums are taken (:class:`surefill.blocks.TreeSum`).

    >>> cut_rows(np.array([0, 3, 5, 9, 10]), cells=4)
    array([0, 2, 4])
    """
    n_cells, n_rows = int(starts[-1]), len(starts) - 1
    n_blocks = 1 << max(0, int(np.log2(max(1, n_cells // cells))))
    cuts = np.searchsorted(starts, np.linspace(0, n_cells, n_blocks + 1))
    cuts[0], cuts[-1] = 0, n_rows
    return np.unique(cuts)


def blocks_of(observations: Observations, cells: int | None = None) -> list[BlockCells]:
    """The cells of a table as blocks of rows, in the order of the rows."""
    groups = observations.by_row
    taken = [groups.take(table) for table in (observations.cols, observations.values)]
    counts, scatter = (_one_or_all(groups.take(table)) for table in (observations.counts, observations.scatter))
    cuts = cut_rows(groups.starts, block_cells(observations.shape[1]) if cells is None else cells)
    blocks = []
    for first, last in pairwise(cuts):
        here = slice(groups.starts[first], groups.starts[last])
        each = [table if len(table) == 1 else table[here] for table in (counts, scatter)]
        starts, ids = groups.starts[first : last + 1] - groups.starts[first], groups.ids[first:last]
        blocks.append(BlockCells(ids.astype(np.int64), starts, *(table[here] for table in taken), *each))
    return blocks


def _one_or_all(table: NDArray[Any]) -> NDArray[Any]:
    return table[:1] if table.strides == (0,) or (table == table[0]).all() else table


@dataclass(frozen=True, eq=False)
class BlockTable:
    """Cells that are fitted: regressions of the block's rows on all columns, and of its columns on its rows.

    ``lines`` are the positions of the block's columns among all, of which there are ``n_cols``.
    """

    rows: VariationalRegression
    cols: VariationalRegression
    lines: IntArray
    n_cols: int

    @classmethod
    def of(cls, cells: BlockCells, col_ids: IntArray, mean: float, unit: UnitMap, dtype: Any) -> Self:
        """The regressions on columns ``col_ids``, on values mapped by ``unit`` less ``mean``."""
        position, row = locate(col_ids, cells.cols).astype(np.int32), cells.row_of_cell.astype(np.int32)
        by_row, by_col = Groups(cells.row_ids, cells.starts, None), Groups.of(position)
        shift, scale = dtype(unit.centre + mean * unit.half_width), dtype(1 / unit.half_width)

        def regression(groups: Groups, other: IntArray) -> VariationalRegression:
            counts = _by(groups, cells.counts, dtype)
            scatter = _by(groups, cells.scatter, dtype) / dtype(unit.half_width**2)
            values = read_only(groups.take(cells.values).astype(dtype, copy=False))
            return VariationalRegression(groups, read_only(groups.take(other)), values, counts, scatter, shift, scale)

        return cls(regression(by_row, position), regression(by_col, row), by_col.ids, len(col_ids))

    def column_totals(self, table: Floats) -> Array:
        """sum_t table[row_t] over the block's cells of each column, zeros for columns it does not have."""
        total = np.zeros((self.n_cols, table.shape[1]))
        total[self.lines] = self.cols.totals(table, np.float64)
        return total

    def moments(self, posterior: FactorPosterior) -> Array:
        """The block's part of the normal equations of each column."""
        k, cols = posterior.mean.shape[1], self.cols
        total = np.zeros((self.n_cols, moments_width(k)))
        cols.over(sum_moments, cols.entries, cols.lines_of(posterior), k, self.lines, total)
        return total


def _by(groups: Groups, table: NDArray[Any], dtype: Any) -> Floats:
    return (table if len(table) == 1 else groups.take(table)).astype(dtype)


@dataclass(frozen=True, eq=False)
class RowState:
    """The posterior of the block's rows, its prior means m_g, the implicit factors h_g of the rows, by which columns
    are known before any value is, their common h_0, and the errors e_g of the last update.

    The posterior's own implicit factors, those of columns, are kept elsewhere but for g_0.
    """

    table: str
    posterior: FactorPosterior
    means: Floats
    implicit: Floats
    common: Floats
    errors: Array


class RowBlock:
    """The rows of one block: ``tables`` of cells, and ``states``, each the rows of one fit, by name."""

    def __init__(self, cells: BlockCells) -> None:
        self._cells: dict[str, BlockCells] = {WHOLE: cells}
        self._tables: dict[str, BlockTable] = {}
        self._states: dict[str, RowState] = {}
        self._during: dict[str, tuple[Any, ...]] = {}

    # Which cells

    def describe(self, table: str, n_cols: int) -> tuple[int, int, int, float, Counted, Counted]:
        """Cells, draws, rows, the sum of all draws, and for each column its cells and draws."""
        cells = self._cells[table]
        n_cells = np.bincount(cells.cols, minlength=n_cols)
        counts = cells.counts
        if len(counts) == 1:
            total = float(counts[0]) * float(np.sum(cells.values, dtype=np.float64))
            draws = n_cells * int(counts[0])
        else:
            total = float(np.einsum("t,t->", cells.values, counts, dtype=np.float64))
            draws = np.bincount(cells.cols, counts, n_cols).astype(np.int64)
        return len(cells), int(draws.sum()), len(cells.row_ids), total, n_cells, draws

    def squares(self, table: str, centre: float) -> tuple[float]:
        """The sum of all draws' squared distances from ``centre``."""
        cells = self._cells[table]
        away = np.square(np.subtract(cells.values, centre, dtype=np.float64))
        scatter = np.broadcast_to(cells.scatter, len(cells))
        return (float(np.sum(away * cells.counts) + np.sum(scatter, dtype=np.float64)),)

    def count_rows(self, table: str) -> int:
        """How many rows of the block have cells."""
        return len(self._cells[table].row_ids)

    def row_range(self, table: str) -> tuple[int, int]:
        """The least and the largest id of the block's rows."""
        ids = self._cells[table].row_ids
        return (int(ids[0]), int(ids[-1])) if len(ids) else (0, -1)

    def select_rows(self, table: str, parent: str, share: float, generator: dict[str, Any]) -> None:
        """``table``: the cells of rows of ``parent`` drawn by coins, the block's part of one stream of coins."""
        cells = self._cells[parent]
        drawn = generator_at(generator).random(len(cells.row_ids)) < share
        self._cells[table] = cells.select(drawn[cells.row_of_cell])

    def select_cols(self, table: str, parent: str, drawn: NDArray[np.bool_]) -> None:
        """``table``: the cells of ``parent`` in the columns ``drawn``."""
        cells = self._cells[parent]
        self._cells[table] = cells.select(drawn[cells.cols])

    def cells(self, table: str) -> BlockCells:
        """The cells themselves: for small samples."""
        return self._cells[table]

    def index(self, table: str, col_ids: IntArray, mean: float, unit: tuple[float, float], single: bool) -> None:
        """Make ready to fit the cells of ``table``."""
        dtype = np.float32 if single else np.float64
        self._tables[table] = BlockTable.of(self._cells[table], col_ids, mean, UnitMap(*unit), dtype)

    def forget(self, table: str) -> None:
        """Drop a table that is not needed any more."""
        self._tables.pop(table, None)
        if table != WHOLE:
            self._cells.pop(table, None)

    # How a fit begins

    def start(self, name: str, table: str, intercept: Array, generator: dict[str, Any]) -> None:
        """Small random factors, the block's part of one stream, as :meth:`VariationalRegression.start` has them."""
        rows, width = self._tables[table].rows, len(intercept)
        mean: Floats = np.zeros((len(rows.groups) + 1, width), rows.dtype)
        mean[:-1, 1:] = generator_at(generator).normal(0, START_SPREAD, (len(rows.groups), width - 1))
        variance, precision = np.full_like(mean, PRIOR_VARIANCE / 10), START_PRECISION * np.eye(width)
        noise_precision, nothing = NoisePrecision.unknown(rows.draws + width), np.zeros((1, width), rows.dtype)
        posterior = FactorPosterior(rows.groups.ids, mean, variance, precision, intercept, nothing, noise_precision)
        zeros: Floats = np.zeros((len(rows.groups), width), rows.dtype)
        means = zeros + intercept.astype(rows.dtype)
        self._states[name] = RowState(table, posterior, means, zeros, nothing[0], np.zeros(len(rows.groups)))

    def widen(self, name: str, source: str, intercept: Array, precision: Array, g: Floats, generator: Any) -> None:
        """The rows of ``source`` with more random factors, the block's part of one stream."""
        before = self._states[source]
        rows, n_rows, width = self._tables[before.table].rows, len(before.means), len(intercept)
        n_new = width - before.means.shape[1]
        new: Floats = np.zeros((n_rows + 1, n_new), rows.dtype)
        new[:-1] = generator_at(generator).normal(0, START_SPREAD, (n_rows, n_new))
        posterior = replace(
            before.posterior,
            mean=np.hstack([before.posterior.mean, new]),
            variance=np.hstack([before.posterior.variance, np.full_like(new, PRIOR_VARIANCE / 10)]),
            precision=precision,
            intercept=intercept,
            implicit=g[-1:],
            noise_precision=before.posterior.noise_precision.with_more(n_new),
        )
        implicit = np.hstack([before.implicit, np.zeros_like(new[:-1])])
        common = np.append(before.common, np.zeros(n_new, rows.dtype))
        means = rows.prior_means(replace(posterior, implicit=g))
        self._states[name] = RowState(before.table, posterior, means, implicit, common, before.errors)

    def adopt(
        self,
        name: str,
        table: str,
        source: str,
        lines: Floats,
        g: Floats,
        intercept: Array,
        precision: Array,
        noise: float,
    ) -> None:
        """The rows of ``table`` from those of another fit, ``source``, rows unknown there at the prior; then solved
        given the ``lines`` of columns: these would be drawn to 0 by rows that are not known yet."""
        before, rows = self._states[source], self._tables[table].rows
        known = before.posterior.reindexed(rows.groups.ids, rows.draws)
        known = replace(known, precision=precision, intercept=intercept, implicit=g[-1:])
        implicit = reindexed(before.posterior.ids, np.vstack([before.implicit, before.common]), rows.groups.ids)
        means = rows.prior_means(replace(known, implicit=g))
        solved = rows.solve_on(known, means, lines, noise, known.noise_precision)
        self._states[name] = RowState(table, solved.posterior, means, implicit[:-1], before.common, solved.errors)

    def put(self, name: str, table: str, state: dict[str, Any]) -> None:
        """A state that comes from elsewhere, such as :meth:`get` gave it."""
        noise_precision = NoisePrecision(state["draws"], state["strayed"], float(state["strength"]))
        learnt = state["precision"], state["intercept"], state["g"], noise_precision
        posterior = FactorPosterior(state["ids"], state["mean"], state["variance"], *learnt)
        rest = state["means"], state["implicit"], state["common"], state["errors"]
        self._states[name] = RowState(table, posterior, *rest)

    def get(self, name: str) -> dict[str, Any]:
        """All of a state, as arrays."""
        state = self._states[name]
        q, noise_precision = state.posterior, state.posterior.noise_precision
        return {
            "ids": q.ids, "mean": q.mean, "variance": q.variance, "precision": q.precision, "intercept": q.intercept,
            "g": q.implicit, "draws": noise_precision.draws, "strayed": noise_precision.errors,
            "strength": np.float64(noise_precision.strength), "means": state.means, "implicit": state.implicit,
            "common": state.common, "errors": state.errors,
        }  # fmt: skip

    def table_of(self, name: str) -> str:
        """Which table a state is about."""
        return self._states[name].table

    def drop(self, name: str) -> None:
        """Forget a state."""
        self._states.pop(name, None)

    def column_means(self, name: str) -> tuple[Array, Array]:
        """sum of h_g over the rows that each column was seen in, and the scatter of all h_g around h_0."""
        state = self._states[name]
        totals = self._tables[state.table].column_totals(with_zeros(state.implicit))
        return totals, squared(state.implicit, state.common)

    # A sweep, in the order of the calls; the last update's sums begin the next sweep

    def moments(self, name: str, strength: float | None) -> tuple[float, Array]:
        """The weighted errors of the last update, and the rows' part of each column's normal equations, once noise
        precisions have the strength that was learnt (None: as they are)."""
        state = self._states[name]
        if strength is not None:
            learnt = replace(self._during.pop(name)[0], strength=strength)
            state = replace(state, posterior=replace(state.posterior, noise_precision=learnt))
            self._states[name] = state
        s = state.posterior.noise_precision.mean[:-1]
        return float(s @ state.errors), self._tables[state.table].moments(state.posterior)

    def update(self, name: str, lines: Floats, noise: float) -> tuple[float, float, float, Array, Array, Array]:
        """Solve all rows given the ``lines`` of columns (:meth:`VariationalRegression.lines_of`).

        Gives their errors, parts of the lower bound (log variances, noise precisions), their scatter, and the sums that
        the next prior is learnt from.
        """
        state = self._states[name]
        rows, s = self._tables[state.table].rows, state.posterior.noise_precision
        update = rows.solve_on(state.posterior, state.means, lines, noise, s)
        state = replace(state, posterior=update.posterior, errors=update.errors)
        self._states[name] = state
        bounds = log_variances(state.posterior), s.bound_of_groups
        scatter = rows.scatter_of_groups(state.posterior, state.means)
        return (update.error, *bounds, scatter, *rows.prior_sums(state.posterior, state.means))

    def implicit_sums(self, name: str, learnt: Array, pull: Floats) -> tuple[Array, Array, Array]:
        """What implicit factors of columns are drawn by, given the rows' ``learnt`` coefficients; of the rows' own, the
        gradient for columns with this ``pull``, summed for each column, and its squares by factor."""
        state = self._states[name]
        table = self._tables[state.table]
        of_cols = table.column_totals(with_zeros(table.rows.implicit_pull(state.posterior, state.means, learnt)))
        d = state.implicit - state.common
        gradient = table.rows.totals(with_zeros(pull)) - table.rows.dtype(IMPLICIT_PENALTY) * d
        self._during[name] = (learnt, d, gradient)
        return of_cols, table.column_totals(with_zeros(gradient)), column_sums(gradient, gradient)

    def implicit_step(self, name: str, gradient: Floats, length: Floats, common: Array) -> tuple[Array, Array]:
        """Move the rows' implicit factors by ``length`` along their gradient, to the common part ``common``.

        Gives the curvature of the rows' cost along the columns' ``gradient``, and the scatter of implicit factors.
        """
        state, (learnt, d, own) = self._states[name], self._during[name]
        rows = self._tables[state.table].rows
        of_groups = rows.implicit_means(gradient)
        h0 = common.astype(rows.dtype)
        implicit = d + length.astype(rows.dtype) * own + h0
        self._states[name] = replace(state, implicit=implicit, common=h0)
        self._during[name] = (learnt, of_groups)
        return rows.curvature_along(state.posterior, of_groups), squared(implicit, h0)

    def prior_step(self, name: str, length: Floats, g_common: Floats) -> tuple[Array]:
        """Move the prior means along the columns' gradient, and take the learnt coefficients; gives the scatter."""
        state, (learnt, of_groups) = self._states[name], self._during.pop(name)
        rows = self._tables[state.table].rows
        means = rows.moved_means(state.posterior, state.means, learnt, length.astype(rows.dtype) * of_groups)
        posterior = state.posterior.with_prior(learnt, g_common[None])
        self._states[name] = replace(state, posterior=posterior, means=means)
        return (rows.scatter_of_groups(posterior, means),)

    def noise_sums(self, name: str, precision: Array, noise: float, relearn: bool) -> tuple[float]:
        """Take the precision of the prior; the excess of the noise precisions given the errors of the last update."""
        state = self._states[name]
        posterior = replace(state.posterior, precision=precision)
        self._states[name] = replace(state, posterior=posterior)
        if not relearn:
            return (0.0,)
        strayed = self._tables[state.table].rows.strayed(posterior, state.means)
        learnt = posterior.noise_precision.updated(state.errors / noise + strayed)
        self._during[name] = (learnt,)
        return (learnt.excess,)
