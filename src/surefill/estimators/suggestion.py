"""Which cells to ask next: the candidates of a fitted completer, and the strategy that chooses among them."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from surefill.active import (
    KeptMargin,
    Lookahead,
    LookaheadUtility,
    RiskUtility,
    Strategy,
    by_column,
    choose_batch,
    choose_per_row,
    every_cell,
)
from surefill.active.strategies import RiskAt, Utility
from surefill.arrays import Array, Indices
from surefill.completion import BayesianFactorCompletion
from surefill.data import Observations
from surefill.errors import InputError
from surefill.estimators.result import PartialCompletion
from surefill.risk import FittedRisk
from surefill.spaces.confidence_matrix import some_cells

MOST_CANDIDATES = 1_000_000
"""Cells that are compared where none are named: of larger tables as many are drawn, and the best of a million is hardly
better than the best of as many others."""

MARGIN_CELLS = 200_000
"""Cells drawn to find the largest risk that can be kept: the share kept is then known to a tenth of a percent."""


class CandidateCells(NamedTuple):
    """The cells (rows[t], cols[t])."""

    rows: Indices
    cols: Indices

    def at(self, which: Indices | NDArray[np.bool_]) -> CandidateCells:
        """Some of them."""
        return CandidateCells(self.rows[which], self.cols[which])


class ChosenCells(NamedTuple):
    """Cells to ask, in the order they were chosen, and what each adds to those before."""

    rows: Indices
    cols: Indices
    utilities: Array


def suggest(
    result: PartialCompletion,
    observations: Observations,
    drawn: Observations,
    n: int,
    candidates: CandidateCells | None,
    rows: Indices | None,
    strategy: Strategy,
    random_state: int,
) -> ChosenCells:
    """The n cells to ask next, or n of each of the ``rows``; calibration cells are not asked again, and else unused.

    ``drawn`` are the training cells that were not asked for.
    """
    cells = _candidates(observations, candidates, rows, random_state)
    _require_enough(observations, cells, n, rows)
    if strategy == "random":
        utility: Utility = _Shuffled(np.random.default_rng(random_state).random(len(cells.rows)))
    else:
        columns = _column_weights(result, drawn) if rows is not None else np.ones(observations.shape[1])
        utility = _utility(result, cells, rows, columns, strategy, random_state)
    choose = choose_batch if rows is None else choose_per_row
    chosen, worth = choose(cells.rows, cells.cols, utility, n)
    return ChosenCells(*cells.at(chosen), np.ones(len(worth)) if strategy == "random" else worth)


def _utility(
    result: PartialCompletion,
    cells: CandidateCells,
    rows: Indices | None,
    columns: Array,
    strategy: Strategy,
    random_state: int,
) -> Utility:
    completion = result.completion
    if not isinstance(completion, BayesianFactorCompletion):
        raise InputError(
            f"strategy={strategy!r} looks ahead with the posterior of a BayesianFactorModel, completion='auto'; with "
            f"{type(completion).__name__} only strategy='random' is left."
        )
    if strategy == "coverage":
        some = some_cells(completion.shape, MARGIN_CELLS, random_state)
        risk_at, degree = _risk_if_supported(result), result.loss.loss.degree
        margin = KeptMargin.of(completion, risk_at, result.selection.tolerance, *some, degree)
        ahead = Lookahead(completion, *cells, by_column(columns, margin), rows, random_state)
        return LookaheadUtility(ahead, margin.per_risk)
    ahead = Lookahead(completion, *cells, by_column(columns, every_cell), rows, random_state)
    return LookaheadUtility(ahead) if strategy == "variance" else RiskUtility.of(ahead, result.risk_at(*cells))


def _column_weights(result: PartialCompletion, observations: Observations) -> Array:
    """How often each column was observed, over the mean, where the promise is about entries drawn like the observed.

    The cells of a new row that matter are those that rows usually have: asking for the good of all cells alike gained
    little over random questions on MovieLens (docs/benchmarks.md).
    """
    counts = np.bincount(observations.cols, minlength=observations.shape[1]).astype(np.float64)
    return counts / counts.mean() if result.weights.aim == "observed" else np.ones(len(counts))


def _risk_if_supported(result: PartialCompletion) -> RiskAt:
    """The risk of entries as it is where the observations support them: answers bring support to what they are near."""
    risk = result.risk
    return replace(risk, support=None).at if isinstance(risk, FittedRisk) else risk.at


class _Shuffled:
    """Candidates in a random order."""

    def __init__(self, order: Array) -> None:
        self._order = order

    def at(self, which: Indices | slice) -> Array:
        return self._order[which]

    def learn(self, candidate: int) -> None:
        pass


def _candidates(
    observations: Observations, given: CandidateCells | None, rows: Indices | None, random_state: int
) -> CandidateCells:
    """The given cells, or all, or a million drawn; those that were observed or lie in other rows are left out."""
    n = observations.shape[1]
    if given is not None:
        keys = np.unique(given.rows * n + given.cols)
        cells = CandidateCells(keys // n, keys % n)
        cells = cells if rows is None else cells.at(np.isin(cells.rows, rows))
    elif rows is not None:
        ids = np.unique(rows)
        cells = CandidateCells(np.repeat(ids, n), np.tile(np.arange(n), len(ids)))
    else:
        drawn = some_cells(observations.shape, MOST_CANDIDATES, random_state)
        keys = np.unique(drawn[0] * n + drawn[1])
        cells = CandidateCells(keys // n, keys % n)
    return cells.at(observations.find(*cells) < 0)


def _require_enough(observations: Observations, cells: CandidateCells, n: int, rows: Indices | None) -> None:
    if rows is None:
        if len(cells.rows) < n:
            raise InputError(f"{n} cells to ask were wanted; {len(cells.rows)} candidates were not observed yet.")
        return
    if not len(rows):
        raise InputError("rows must name at least one row to ask.")
    counts = np.bincount(cells.rows, minlength=int(rows.max()) + 1)[rows]
    if counts.min() < n:
        short = int(np.argmin(counts))
        row = observations.row_names(rows[short]).item()
        raise InputError(
            f"{n} cells to ask were wanted of each row; row {row!r} has {int(counts[short])} candidates "
            "that were not observed yet."
        )
