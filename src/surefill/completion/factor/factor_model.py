"""Biased matrix factorisation by alternating least squares."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

import numpy as np

from surefill.arrays import Array
from surefill.completion.factor.factor_completion import FactorCompletion, RidgeSide
from surefill.completion.grouped_regression import lent
from surefill.data import Observations
from surefill.data.splits import split_entries
from surefill.errors import invalid_parameter, is_number, is_seed
from surefill.loop import ProgressCallback, Status, run
from surefill.registry import storable

PENALTY_PATH = tuple(2.4 / 2**s for s in range(10))
DEFAULT_PENALTY = 0.6
FEWEST_TO_CHOOSE = 20
PATH_SWEEPS = 6
PATIENCE = 2


@storable
@dataclass(frozen=True)
class FactorModel:
    """min  sum_S c_x (u_x - mean - b_i - c_j - p_i . q_j)^2
            + penalty sum_i (5 b_i^2 + sqrt(N_i) |p_i|^2) + penalty sum_j (5 c_j^2 + sqrt(N_j) |q_j|^2)

    by alternating least squares, on values mapped to [-1, 1] so that ``penalty`` means the same for every data
    set. Each sweep solves all columns, then all rows exactly; the objective never rises. One sweep costs
    2 nnz rank^2 multiply-adds and O((m + n) rank) memory beside the observations. One number to choose and a convex
    problem per row: the plain baseline. :class:`BayesianFactorModel` is more accurate at about the same cost.

    Parameters
    ----------
    rank : number of factors; fewer are used where the matrix is smaller.
    penalty : a number above 0, or "auto": the one of 2.4, 1.2, 0.6, ... with the least error on a tenth of the
        cells held out, the search stopping early after two without gain; the model is then fitted on all cells.
    max_sweeps : stop after this many sweeps.
    tol : stop once a sweep lowers the objective by less than this share.
    random_state : seed of the starting factors and of the cells held out; same seed, same result.

    Examples
    --------
    >>> from surefill.datasets import make_low_rank
    >>> sim = make_low_rank((40, 30), rank=2, n_draws=900, random_state=0)
    >>> completion = FactorModel(rank=2).fit(sim.observations)
    >>> bool(np.mean((completion.dense() - sim.truth) ** 2) < 0.01)
    True
    """

    rank: int = 10
    penalty: float | Literal["auto"] = "auto"
    max_sweeps: int = 30
    tol: float = 1e-3
    random_state: int = 0

    def fit(self, observations: Observations, progress: ProgressCallback | None = None) -> FactorCompletion:
        """Complete the whole matrix."""
        self._validate()
        if self.penalty != "auto":
            return self._fit(observations, self.penalty, self.max_sweeps, progress)
        if len(observations) < FEWEST_TO_CHOOSE:
            return self._fit(observations, DEFAULT_PENALTY, self.max_sweeps, progress)
        search = PenaltySearch(self, *split_entries(observations, 0.1, self.random_state))
        best = run(search, max_steps=len(PENALTY_PATH), progress=progress).state.best
        assert best is not None
        return self._fit(observations, best.penalty, self.max_sweeps, progress, start=best)

    def _validate(self) -> None:
        if not (isinstance(self.rank, int | np.integer) and self.rank >= 1):
            raise invalid_parameter("FactorModel", "rank", "a whole number of at least 1", self.rank)
        if self.penalty != "auto" and not (is_number(self.penalty) and 0 < self.penalty < np.inf):
            raise invalid_parameter("FactorModel", "penalty", "a number above 0 or 'auto'", self.penalty)
        if not (isinstance(self.max_sweeps, int | np.integer) and self.max_sweeps >= 1):
            raise invalid_parameter("FactorModel", "max_sweeps", "a whole number of at least 1", self.max_sweeps)
        if not (is_number(self.tol) and self.tol >= 0):
            raise invalid_parameter("FactorModel", "tol", "a number of at least 0", self.tol)
        if not is_seed(self.random_state):
            raise invalid_parameter("FactorModel", "random_state", "a whole number of at least 0", self.random_state)

    def _fit(
        self,
        obs: Observations,
        penalty: float,
        max_sweeps: int,
        progress: ProgressCallback | None,
        start: FactorCompletion | None = None,
    ) -> FactorCompletion:
        alternation = Alternation(obs, self.rank, penalty, self.tol, self.random_state, start)
        outcome = run(alternation, max_steps=max_sweeps, progress=progress)
        return FactorCompletion(
            shape=obs.shape,
            unit=obs.unit,
            mean=alternation.mean,
            penalty=penalty,
            status=outcome.status,
            row_ids=obs.by_row.ids,
            col_ids=obs.by_col.ids,
            row_solution=outcome.state.row_solution,
            col_solution=outcome.state.col_solution,
        )


@dataclass(frozen=True, eq=False)
class Sweep:
    """State of the alternation: both sides' solutions and the objective's last share of decrease."""

    row_solution: Array
    col_solution: Array
    objective: float
    decrease: float


@dataclass(frozen=True, eq=False)
class Alternation:
    """The solver that :func:`surefill.loop.run` drives: one step is one sweep over columns and rows."""

    observations: Observations
    rank: int
    penalty: float
    tol: float
    random_state: int
    start: FactorCompletion | None = None
    task: str = field(default="fitting factors", init=False)

    @cached_property
    def _unit_values(self) -> Array:
        return self.observations.unit.to_unit(self.observations.values)

    @cached_property
    def mean(self) -> float:
        """The mean of the draws, on [-1, 1]."""
        return float(np.average(self._unit_values, weights=self.observations.counts))

    @cached_property
    def _sides(self) -> tuple[RidgeSide, RidgeSide]:
        obs, residual = self.observations, self._unit_values - self.mean
        return RidgeSide.of_rows(obs, obs.by_col.ids, residual), RidgeSide.of_cols(obs, obs.by_row.ids, residual)

    def init(self) -> Sweep:
        """The factors of the start where there is one, else random small ones for the rows; no objective yet."""
        rows, n_cols = self.observations.by_row.ids, len(self.observations.by_col)
        if self.start is not None:
            row_solution = lent(*self.start.row_table(), rows)
        else:
            rank = min(self.rank, len(rows), n_cols)
            row_solution = np.zeros((len(rows) + 1, rank + 1))
            row_solution[:-1, 1:] = np.random.default_rng(self.random_state).normal(0, 0.1, (len(rows), rank))
        return Sweep(row_solution, np.zeros((n_cols + 1, row_solution.shape[1])), np.inf, np.inf)

    def step(self, state: Sweep) -> Sweep:
        """All columns given the rows, then all rows given the columns."""
        row_side, col_side = self._sides
        col_solution, _ = col_side.solve(state.row_solution, self.penalty)
        row_solution, of_rows = row_side.solve(col_solution, self.penalty)
        objective = of_rows + col_side.penalised(col_solution, self.penalty)
        before = state.objective
        decrease = np.inf if np.isinf(before) else (before - objective) / max(before, np.finfo(float).tiny)
        return Sweep(row_solution, col_solution, objective, decrease)

    def measure(self, state: Sweep) -> float:
        """The objective."""
        return state.objective

    def terminate(self, state: Sweep) -> Status | None:
        """Converged once a sweep lowers the objective by less than ``tol`` of it."""
        return Status.CONVERGED if state.decrease < self.tol else None


@dataclass(frozen=True, eq=False)
class SearchState:
    """How far down the path the search is, the best fit so far, its held-out error, and the tries since."""

    position: int = 0
    best: FactorCompletion | None = None
    best_error: float = np.inf
    last_error: float = np.inf
    without_gain: int = 0


@dataclass(frozen=True, eq=False)
class PenaltySearch:
    """Walk down the penalty path while the error on held-out cells falls."""

    model: FactorModel
    train: Observations
    held_out: Observations
    task: str = field(default="choosing the penalty", init=False)

    def init(self) -> SearchState:
        """Nothing tried yet."""
        return SearchState()

    def step(self, state: SearchState) -> SearchState:
        """Fit with the next penalty and score it on the held-out cells."""
        completion = self.model._fit(self.train, PENALTY_PATH[state.position], PATH_SWEEPS, None)
        held = self.held_out
        errors = held.squared_errors(completion.at(held.rows, held.cols))
        error = float(np.average(errors, weights=held.counts))
        if error < state.best_error:
            return SearchState(state.position + 1, completion, error, error)
        return SearchState(state.position + 1, state.best, state.best_error, error, state.without_gain + 1)

    def measure(self, state: SearchState) -> float:
        """The held-out mean squared error of the last penalty tried."""
        return state.last_error

    def terminate(self, state: SearchState) -> Status | None:
        """Stop after two penalties without gain: one may be chance, or the plateau where all factors vanish."""
        return Status.NO_GAIN if state.without_gain >= PATIENCE else None
