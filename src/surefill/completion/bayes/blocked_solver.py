"""The variational solver on blocks of rows: columns and what all rows share are here, rows stay where they are.

The sweep is that of :class:`surefill.completion.bayes.variational_solver.VariationalSolver`, cut where sums over rows
are needed. With k = rank + 1, six calls go to all blocks, each a barrier:

    implicit_sums   out: k numbers a column        back: 2 k a column
    implicit_step   out: k numbers a column        back: k^2 in all
    prior_step, noise_sums                         out and back: k^2 in all
    moments                                        back: (k + 1)(k + 2) / 2 + k + 1 a column
    update          out: about 2 k a column        back: k^2 in all

Numbers for columns go out in the precision of the fit and come back in double precision.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from surefill.arrays import Array, Floats, IntArray
from surefill.blocks import Blocks
from surefill.completion.bayes.bayesian_completion import BayesianFactorCompletion
from surefill.completion.bayes.factor_posterior import IMPLICIT_PENALTY, FactorPosterior, log_variances, squared
from surefill.completion.bayes.noise_precision import NoisePrecision, best_strength, bound_with_prior
from surefill.completion.bayes.row_block import WHOLE
from surefill.completion.bayes.variational import (
    LEAST_NOISE,
    VariationalRegression,
    best_length,
    column_sums,
    with_zeros,
)
from surefill.completion.bayes.variational_solver import START_NOISE, bound_on_evidence, with_noise_of_columns
from surefill.completion.grouped_regression import reindexed
from surefill.data import COMPACT_CELLS, Groups, UnitMap
from surefill.data.compact import PIECE
from surefill.data.splits import bernoulli_mask
from surefill.kernels.factor_updates import moments_width, update_from_moments
from surefill.kernels.gram import whole_lanes
from surefill.loop import Outcome, ProgressCallback, Status, run
from surefill.parallel import over_ranges
from surefill.registry import storable


@dataclass(frozen=True, eq=False)
class ColumnRegression(VariationalRegression):
    """The columns' regressions where the entries are elsewhere: their numbers of cells and draws are known."""

    draws_of_columns: Array = field(default_factory=lambda: np.zeros(0))

    @classmethod
    def of(cls, ids: IntArray, cells: NDArray[Any], draws: NDArray[Any], dtype: Any) -> Self:
        """That of the columns ``ids`` with these numbers of cells and draws."""
        groups = Groups(ids, np.append(0, np.cumsum(cells)).astype(np.int64), None)
        none, one = np.empty(0, dtype), np.ones(1, dtype)
        no_entries = np.empty(0, np.int32), none, one, one, dtype(0), dtype(1)
        return cls(groups, *no_entries, draws_of_columns=np.asarray(draws, dtype=np.float64))

    @cached_property
    def draws(self) -> Array:
        """How many draws each column has."""
        return self.draws_of_columns


@dataclass(frozen=True, eq=False)
class BlockedTable:
    """What is known here of the cells that are fitted: how many, in which columns, their ``average`` draw in the user's
    units, and the model's ``mean`` on [-1, 1], which may be that of other cells."""

    name: str
    n_cells: int
    n_draws: int
    n_rows: int
    rows_of_blocks: tuple[int, ...]
    columns: ColumnRegression
    average: float
    mean: float
    unit: UnitMap

    @classmethod
    def of(cls, blocks: Blocks, name: str, n_cols: int, unit: UnitMap, mean: float | None = None) -> Self:
        """Count the cells of the table ``name`` of all blocks, and make it ready to be fitted."""
        n_cells, n_draws, n_rows, total, cells, draws = blocks.total("describe", name, n_cols)
        ids, single = np.flatnonzero(cells), n_cells >= COMPACT_CELLS
        columns = ColumnRegression.of(ids, cells[ids], draws[ids], np.float32 if single else np.float64)
        average = float(total / n_draws)
        mean = float(unit.to_unit(average)) if mean is None else mean
        blocks.each("index", name, ids, mean, (unit.low, unit.high), single)
        rows = tuple(blocks.each("count_rows", name))
        return cls(name, int(n_cells), int(n_draws), int(n_rows), rows, columns, average, mean, unit)

    def streams(self, rng: np.random.Generator, width: int) -> list[dict[str, Any]]:
        """Where each block's part of ``width`` normal numbers a row begins in the stream of ``rng``.

        The stream goes on after the last row: rows have the numbers that they would have in one table.
        """
        states = []
        for n_rows in self.rows_of_blocks:
            states.append(dict(rng.bit_generator.state))
            for first in range(0, n_rows * width, PIECE):
                rng.normal(size=min(PIECE, n_rows * width - first))
        return states


@storable
@dataclass(frozen=True, eq=False)
class BlockedState:
    """A :class:`VariationalState` without its rows, which the blocks have under the ``name``.

    ``rows`` is the rows' prior, of no rows, with the columns' implicit factors; ``cols`` has of the rows' implicit
    factors their common part alone, ``of_implicit`` is their scatter around it. ``gram`` and ``right`` are the sums
    that the rows' next prior is learnt from.
    """

    name: str
    rows: FactorPosterior
    cols: FactorPosterior
    col_prior_means: Floats
    of_implicit: Array
    noise: float
    gram: Array
    right: Array
    error: float
    bound: float
    gain: float


class Runs(Protocol):
    """Runs solvers of blocks to their end, and may keep what they have reached."""

    def run(self, solver: BlockedSolver, max_steps: int, progress: ProgressCallback | None) -> Outcome[BlockedState]:
        """As :func:`surefill.loop.run`."""
        ...

    def stage(self, name: str, compute: Callable[[], Any], parts: Sequence[str] = ()) -> Any:
        """What ``compute`` gives, which may leave ``parts`` of these names with the blocks."""
        ...


class PlainRuns:
    """Runs that keep nothing."""

    def stage(self, name: str, compute: Callable[[], Any], parts: Sequence[str] = ()) -> Any:
        """What ``compute`` gives."""
        return compute()

    def run(self, solver: BlockedSolver, max_steps: int, progress: ProgressCallback | None) -> Outcome[BlockedState]:
        """As :func:`surefill.loop.run`."""
        return run(solver, max_steps=max_steps, progress=progress)


@dataclass(frozen=True, eq=False)
class BlockedSolver:
    """The solver of one table in blocks; ``name`` is that of the state it makes, ``path`` of the run among all."""

    blocks: Blocks
    table: BlockedTable
    rank: int
    tol: float
    random_state: int
    n_cols: int
    runs: Runs
    path: str = "fit"
    start_noise: float = START_NOISE
    begin: Callable[[], BlockedState] | None = None
    equal_noise: bool = True
    task: str = field(default="fitting factors", init=False)

    @classmethod
    def of(
        cls,
        blocks: Blocks,
        shape: tuple[int, int],
        unit: UnitMap,
        rank: int,
        tol: float,
        random_state: int,
        runs: Runs | None = None,
        mean: float | None = None,
        name: str = WHOLE,
    ) -> Self:
        """The solver for all cells of the blocks, or for those of their table ``name``."""
        table, path = BlockedTable.of(blocks, name, shape[1], unit, mean), "fit" if name == WHOLE else name
        return cls(blocks, table, rank, tol, random_state, shape[1], runs or PlainRuns(), path)

    @property
    def n_cells(self) -> int:
        """Cells that are fitted."""
        return self.table.n_cells

    def run(self, max_steps: int, progress: ProgressCallback | None) -> Outcome[BlockedState]:
        """Sweeps until the bound hardly rises."""
        return self.runs.run(self, max_steps, progress)

    def from_noise(self, share: float) -> Self:
        """The same, started from this share of the draws' variance as noise."""
        return replace(self, start_noise=share, path=f"{self.path}-noise{share:g}")

    def from_state(self, state: BlockedState) -> Self:
        """The same, gone on with from ``state`` of one of its runs, with noise precisions."""
        return replace(self, begin=lambda: state, equal_noise=False, path=f"{self.path}-{self.rank}")

    def sampled(self, share: float) -> BlockedSolver:
        """The solver of a share of the rows, or of the columns where those are more."""
        table = sample_table(self.blocks, self.table, self.n_cols, share, self.random_state)
        return replace(self, table=table, path=f"{self.path}-sample", begin=None, equal_noise=True)

    def adopting(self, state: BlockedState) -> Self:
        """The same, started from the state of a sample, which is forgotten then."""
        return replace(self, begin=lambda: self._adopted(state), equal_noise=False, path=f"{self.path}-{self.rank}")

    def adopting_completion(self, start: BayesianFactorCompletion) -> Self:
        """The same, started from a completion that is here: each block is given its rows."""

        def begin() -> BlockedState:
            name, cols = f"{self.path}-before", replace(start.cols, implicit=start.cols.implicit[-1:])
            ends = self.blocks.each("row_range", self.table.name)
            self.blocks.each("put", name, self.table.name, own=[_rows_between(start, *each) for each in ends])
            nothing = np.zeros((0, 0))
            sums = nothing, nothing, start.noise, nothing, nothing
            return self._adopted(BlockedState(name, _without_groups(start.rows), cols, *sums, 0.0, 0.0, 0.0))

        return replace(self, begin=begin, equal_noise=False, path=f"{self.path}-{self.rank}")

    def widening(self, state: BlockedState, rank: int) -> Self:
        """The same, started from ``state`` of one of its runs with more factors."""
        return replace(self, begin=lambda: self._widened(state, rank), equal_noise=False, path=f"{self.path}-{rank}")

    def release(self, state: BlockedState) -> None:
        """Have the blocks forget a state."""
        self.blocks.each("drop", state.name)

    def init(self) -> BlockedState:
        """Where another run stopped, or one sweep from small random factors, as in one table."""
        if self.begin is not None:
            return self.begin()
        table, rng = self.table, np.random.default_rng(self.random_state)
        columns = table.columns
        rank = min(self.rank, table.n_rows, len(columns.groups))
        streams = table.streams(rng, rank)
        rows = _no_rows(columns.dtype).start(rank, len(columns.groups), rng)
        cols = columns.start(rank, 0, rng)
        self.blocks.each("start", self.path, table.name, rows.intercept, own=streams)
        noise = self.start_noise * self._variance() + LEAST_NOISE[columns.dtype]
        return self._first_sweep(self.path, rows, cols, noise)

    def _variance(self) -> float:
        """Variance of the draws, on [-1, 1]."""
        (total,) = self.blocks.total("squares", self.table.name, self.table.average)
        return float(self.table.unit.squared_error_to_unit(total / self.table.n_draws))

    def _widened(self, state: BlockedState, rank: int) -> BlockedState:
        """One sweep from ``state`` with random factors added up to ``rank``."""
        n_new, rng = rank + 1 - state.rows.mean.shape[1], np.random.default_rng([self.random_state, rank])
        streams = self.table.streams(rng, n_new)
        rows, cols = state.rows.widened(n_new, rng), state.cols.widened(n_new, rng)
        name = f"{self.path}-{rank}"
        prior = rows.intercept, rows.precision, rows.implicit
        self.blocks.each("widen", name, state.name, *prior, own=streams)
        self.release(state)
        return self._first_sweep(name, rows, cols, state.noise)

    def _adopted(self, state: BlockedState) -> BlockedState:
        """One sweep from the rows and columns of a sample, those unknown there at their prior."""
        columns, name = self.table.columns, f"{self.path}-{self.rank}"
        ids, sampled = columns.groups.ids, state.cols.ids
        cols = state.cols.reindexed(ids, columns.draws)
        rows = replace(state.rows, implicit=reindexed(sampled, state.rows.implicit, ids))
        prior = rows.implicit, rows.intercept, rows.precision, state.noise
        self.blocks.each("adopt", name, self.table.name, state.name, columns.lines_of(cols), *prior)
        self.release(state)
        return self._first_sweep(name, rows, cols, state.noise)

    def step(self, state: BlockedState) -> BlockedState:
        """The priors, the rows' noise precisions and the noise given the factors, then all columns, then all rows."""
        columns, name, rows = self.table.columns, state.name, state.rows
        dtype, total = columns.dtype, self.blocks.total
        learnt = rows.solved_prior(state.gram, state.right)
        of_cols = state.cols.solved_prior(*columns.prior_sums(state.cols, state.col_prior_means))
        pull = columns.implicit_pull(state.cols, state.col_prior_means, of_cols)
        drawn, moved, squares = total("implicit_sums", name, learnt, pull)

        along = moved.astype(dtype) / columns.root_sizes
        length = best_length(squares, columns.curvature_along(state.cols, along)).astype(dtype)
        col_means = columns.moved_means(state.cols, state.col_prior_means, of_cols, length * along)
        d = rows.implicit - rows.implicit[-1]
        gradient = with_zeros(drawn.astype(dtype)) - dtype(IMPLICIT_PENALTY) * d
        curvature, of_implicit = total("implicit_step", name, gradient, length, of_cols[1])

        length = best_length(column_sums(gradient, gradient), curvature).astype(dtype)
        rows = rows.with_prior(learnt, d + length * gradient + learnt[1].astype(dtype))
        (scatter,) = total("prior_step", name, length, rows.implicit[-1])
        rows = rows.with_best_precision(scatter + _of_prior(rows), self.table.n_rows)
        cols = state.cols.with_prior(of_cols, of_cols[1].astype(dtype)[None])
        scatter = columns.scatter_of_groups(cols, col_means) + cols.scatter_of_prior(of_implicit)
        cols = cols.with_best_precision(scatter, len(columns.groups))

        relearn = not self.equal_noise
        (excess,) = total("noise_sums", name, rows.precision, state.noise, relearn)
        strength = best_strength(excess, self.table.n_rows) if relearn else None
        if strength is not None:
            rows = replace(rows, noise_precision=replace(rows.noise_precision, strength=strength))
        error, moments = total("moments", name, strength)
        noise = error / self.table.n_draws
        return self._sweep(name, rows, cols, col_means, of_implicit, noise, moments, state.bound)

    def _first_sweep(self, name: str, rows: FactorPosterior, cols: FactorPosterior, noise: float) -> BlockedState:
        """A sweep from posteriors that were not learnt from these cells."""
        columns = self.table.columns
        total, of_implicit = self.blocks.total("column_means", name)
        col_means = cols.intercept.astype(columns.dtype) + total.astype(columns.dtype) / columns.root_sizes
        _, moments = self.blocks.total("moments", name, None)
        return self._sweep(name, rows, cols, col_means, of_implicit, noise, moments, -np.inf)

    def _sweep(
        self,
        name: str,
        rows: FactorPosterior,
        cols: FactorPosterior,
        col_means: Floats,
        of_implicit: Array,
        noise: float,
        moments: Array,
        bound_before: float,
    ) -> BlockedState:
        """All columns from their moments, their noise precisions, then all rows given the columns; the bound then."""
        table, columns = self.table, self.table.columns

        def kernel(*arrays: Any) -> None:
            over_ranges(lambda first, last: update_from_moments(first, last, moments, *arrays), columns.groups.starts)

        new_cols = columns.updated_by(kernel, cols, col_means, noise, cols.noise_precision)
        cols = new_cols.posterior
        scatter = columns.scatter_of_groups(cols, col_means) + cols.scatter_of_prior(of_implicit)
        of_cols = cols.bound(scatter, len(columns.groups), log_variances(cols)) + cols.noise_precision.bound
        cols, gained = with_noise_of_columns(columns, new_cols, col_means, None if self.equal_noise else noise)
        sums = self.blocks.total("update", name, columns.lines_of(cols), noise)
        error, log_variance, of_noise, scatter, gram, right = sums
        of_rows = rows.bound(scatter + _of_prior(rows), table.n_rows, log_variance)
        of_rows += bound_with_prior(of_noise, table.n_rows, rows.noise_precision.strength)
        bound = bound_on_evidence(error, noise, table.n_draws) + of_rows + of_cols + gained
        fitted = name, rows, cols, col_means, of_implicit, noise, gram, right
        return BlockedState(*fitted, error, bound, bound - bound_before)

    def measure(self, state: BlockedState) -> float:
        """The lower bound on the evidence, less a constant."""
        return state.bound

    def terminate(self, state: BlockedState) -> Status | None:
        """Converged once a sweep raises the bound by less than ``tol`` per draw."""
        return Status.CONVERGED if state.gain < self.tol * self.table.n_draws else None

    def completion(self, outcome: Outcome[BlockedState], n_rows: int) -> BayesianFactorCompletion:
        """The completion that a run arrived at, with all rows: for tables whose rows fit here."""
        state, unit = outcome.state, self.table.unit
        parts = self.blocks.each("get", state.name)
        rows = _gathered(state.rows, parts)
        implicit = np.vstack([*(part["implicit"] for part in parts), state.cols.implicit])
        cols = replace(state.cols, implicit=implicit)
        fitted = self.table.mean, state.noise, outcome.status, rows, cols
        return BayesianFactorCompletion((n_rows, self.n_cols), unit, *fitted)


def bytes_per_sweep(n_cols: int, k: int, single: bool) -> tuple[int, int]:
    """Bytes of arrays that go to one worker and come back in a sweep with k = rank + 1, as the layout has it.

    They come back once for each node of the tree that the worker's blocks make, one where workers are a power of two.

    >>> bytes_per_sweep(n_cols=1_000_000, k=21, single=True)
    (360004560, 2536011288)
    """
    of_number, square = 4 if single else 8, 8 * k * k
    sent = {
        "implicit_sums": of_number * n_cols * k + 8 * 2 * k,
        "implicit_step": of_number * ((n_cols + 1) * k + k) + 8 * k,
        "prior_step": 2 * of_number * k,
        "noise_sums": square,
        "update": of_number * (n_cols + 1) * (whole_lanes(k + 1) + whole_lanes(k)),
    }
    received = {
        "implicit_sums": 8 * (2 * n_cols * k + k),
        "implicit_step": 8 * k + square,
        "prior_step": square,
        "moments": 8 * n_cols * moments_width(k),
        "update": square + 8 * (4 + 2 * k),
    }
    return sum(sent.values()), sum(received.values())


def sample_table(
    blocks: Blocks, table: BlockedTable, n_cols: int, share: float, random_state: int, name: str | None = None
) -> BlockedTable:
    """A table of a share of the rows, or of the columns where those are more, drawn as in one table."""
    sample = name or f"{table.name}-sample"
    if table.n_rows >= len(table.columns.groups):
        streams, rng = [], np.random.default_rng(random_state)
        for n_rows in table.rows_of_blocks:
            streams.append(dict(rng.bit_generator.state))
            rng.bit_generator.advance(n_rows)  # type: ignore[attr-defined]
        blocks.each("select_rows", sample, table.name, share, own=streams)
    else:
        drawn = np.zeros(n_cols, dtype=bool)
        drawn[table.columns.groups.ids] = bernoulli_mask(len(table.columns.groups), share, random_state)
        blocks.each("select_cols", sample, table.name, drawn)
    return BlockedTable.of(blocks, sample, n_cols, table.unit, table.mean)


def _no_rows(dtype: Any) -> ColumnRegression:
    nothing = np.empty(0, np.int64)
    return ColumnRegression.of(nothing, nothing, nothing, dtype)


def _without_groups(posterior: FactorPosterior) -> FactorPosterior:
    """The prior alone, of no groups."""
    last = slice(-1, None)
    no_noise = replace(posterior.noise_precision, draws=np.zeros(1), errors=np.zeros(1))
    return replace(
        posterior, ids=posterior.ids[:0], mean=posterior.mean[last], variance=posterior.variance[last],
        noise_precision=no_noise,
    )  # fmt: skip


def _rows_between(completion: BayesianFactorCompletion, lowest: int, highest: int) -> dict[str, Any]:
    """The rows ``lowest`` to ``highest`` of a completion, as :meth:`RowBlock.put` takes them."""
    rows, h = completion.rows, completion.cols.implicit
    here = slice(*np.searchsorted(rows.ids, [lowest, highest + 1]))
    noise, n_rows = rows.noise_precision, len(rows.ids[here])
    return {
        "ids": rows.ids[here], "mean": np.vstack([rows.mean[here], rows.mean[-1:]]),
        "variance": np.vstack([rows.variance[here], rows.variance[-1:]]), "precision": rows.precision,
        "intercept": rows.intercept, "g": rows.implicit[-1:], "draws": np.append(noise.draws[here], 0.0),
        "strayed": np.append(noise.errors[here], 0.0), "strength": noise.strength, "means": np.zeros((n_rows, 1)),
        "implicit": h[here], "common": h[-1], "errors": np.zeros(n_rows),
    }  # fmt: skip


def _of_prior(rows: FactorPosterior) -> Array:
    return rows.scatter_of_prior(squared(rows.implicit[:-1], rows.implicit[-1]))


def _gathered(prior: FactorPosterior, parts: Sequence[dict[str, Any]]) -> FactorPosterior:
    """The posterior of the rows of all blocks."""
    ids = np.concatenate([part["ids"] for part in parts])
    tables = [np.vstack([*(part[name][:-1] for part in parts), parts[0][name][-1:]]) for name in ("mean", "variance")]
    sums = [np.append(np.concatenate([part[name][:-1] for part in parts]), 0.0) for name in ("draws", "strayed")]
    learnt = replace(prior.noise_precision, draws=sums[0], errors=sums[1])
    assert isinstance(learnt, NoisePrecision)
    return replace(prior, ids=ids, mean=tables[0], variance=tables[1], noise_precision=learnt)
