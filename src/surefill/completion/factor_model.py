"""Biased matrix factorisation by alternating least squares: the model, its solver, and the completion it returns."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import ClassVar, Literal, Self

import numpy as np

from surefill.arrays import Array
from surefill.completion.evaluation_losses import sample_loss
from surefill.completion.factored_completion import FactoredCompletion, StoredProduct
from surefill.completion.grouped_regression import GroupedRegression, merged, reindexed
from surefill.completion.path_search import PathSearch, hold_out
from surefill.data import Observations, UnitMap
from surefill.errors import invalid_parameter, is_number, is_seed
from surefill.loop import ProgressCallback, Status, run
from surefill.registry import storable

PENALTY_PATH = tuple(2.4 / 2**s for s in range(10))
"""Candidates from strong to weak: at 2.4 hardly a factor is left on values in [-1, 1], at 0.005 hardly a penalty."""

DEFAULT_PENALTY = 0.6
"""Taken where there are too few cells to choose: the third of the path, strong enough for a handful of cells."""

PATH_SWEEPS = 6
"""Sweeps of each candidate: enough to rank penalties; the best one is fitted to ``tol`` afterwards."""

START_SPREAD = 0.1
"""Standard deviation of the random factors to start from, small beside values in [-1, 1]."""

BIAS_PENALTY = 5.0
"""Penalty of a bias, in units of ``penalty``: at penalty 1 a row of five draws keeps half of its own mean, as with the
effects of :mod:`surefill.completion.effects`. A convention."""


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
        split = hold_out(observations, self.random_state)
        if split is None:
            return self._fit(observations, DEFAULT_PENALTY, self.max_sweeps, progress)
        train, held = split
        search = PathSearch(
            PENALTY_PATH,
            fit=lambda penalty, _: self._fit(train, penalty, PATH_SWEEPS, None),
            error=lambda fitted: sample_loss(fitted, held),
            task="choosing the penalty",
        )
        penalty, best = search.search(progress=progress)
        return self._fit(observations, penalty, self.max_sweeps, progress, start=best)

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
        solver = AlternatingLeastSquares(obs, self.rank, penalty, self.tol, self.random_state, start)
        outcome = run(solver, max_steps=max_sweeps, progress=progress)
        return FactorCompletion(
            shape=obs.shape,
            unit=obs.unit,
            mean=solver.mean,
            penalty=penalty,
            status=outcome.status,
            row_ids=obs.by_row.ids,
            col_ids=obs.by_col.ids,
            row_solution=outcome.state.row_solution,
            col_solution=outcome.state.col_solution,
        )


@dataclass(frozen=True, eq=False)
class RidgeRegressions(GroupedRegression):
    """min_x  sum_t c_t (r_t - bias_t - f_t . x)^2 + penalty (5 x_0^2 + sqrt(N_g) |x_1..|^2)  for each group g.

    A group's solution is x_g = (bias, factors); N_g is the number of its draws. The square root lies between a prior
    that is the same for all (N_g^0) and one that grows with the data (N_g^1).
    """

    def solve(self, fixed: Array, penalty: float) -> tuple[Array, float]:
        """The groups' solutions given those of the others, and the sum of their problems' values."""
        width = fixed.shape[1]
        ridge = self.ridge(width, penalty)
        return self.regress(fixed, ridge, np.zeros((width, width)), np.zeros_like(ridge))

    def inverses(self, fixed: Array, penalty: float) -> Array:
        """(sum_t c_t f_t f_t' + P)^-1 of each group, P the ridge of a single draw; last P^-1, of no entries.

        The prior is the same for every group, so that only observations lower a variance: with the ridge of the
        regressions, which grows with the draws, a busy row would seem well known even in directions it never saw.
        """
        width = fixed.shape[1]
        prior = np.diag(np.append(BIAS_PENALTY * penalty, np.full(width - 1, penalty)))
        return self.inverses_of(fixed, np.zeros((len(self.groups), width)), prior)

    def penalty_value(self, solution: Array, penalty: float) -> float:
        """The sum of all groups' penalty terms."""
        return float(np.sum(self.ridge(solution.shape[1], penalty) * solution[:-1] ** 2))

    def ridge(self, width: int, penalty: float) -> Array:
        """The diagonal added to each group's normal equations."""
        draws = np.add.reduceat(self.weight, self.groups.starts[:-1])
        ridge: Array = np.outer(np.sqrt(draws), np.full(width, penalty))
        ridge[:, 0] = BIAS_PENALTY * penalty
        return ridge


@storable
@dataclass(frozen=True, eq=False)
class FactorCompletion(StoredProduct, FactoredCompletion):
    """u_ij = mean + b_i + c_j + p_i . q_j on [-1, 1], clipped to it and given in the user's units.

    ``row_solution`` holds (b_i, p_i) for the rows ``row_ids`` and a last row of zeros for all others, and
    ``col_solution`` the same for columns: an entry of an unseen row is predicted from its column alone.

    Examples
    --------
    >>> import surefill as sf
    >>> sim = sf.datasets.make_low_rank((30, 20), rank=2, n_draws=400, noise=0.1, random_state=0)
    >>> completion = sf.completion.FactorModel(rank=3).fit(sim.observations)
    >>> type(completion).__name__, completion.dense().shape
    ('FactorCompletion', (30, 20))
    """

    kind: ClassVar[str] = "factors by alternating least squares"

    unit: UnitMap
    mean: float
    penalty: float
    status: Status

    def _with_rows(self, observations: Observations, keep: bool) -> Self:
        regressions = self.row_regressions(observations)
        table = regressions.groups.ids, regressions.solve(self.col_solution, self.penalty)[0]
        ids, solution = merged(*self.row_table(), *table) if keep else table
        return replace(self, shape=observations.shape, row_ids=ids, row_solution=solution)

    def _with_cols(self, observations: Observations, keep: bool) -> Self:
        regressions = self.col_regressions(observations)
        table = regressions.groups.ids, regressions.solve(self.row_solution, self.penalty)[0]
        ids, solution = merged(*self.col_table(), *table) if keep else table
        return replace(self, shape=observations.shape, col_ids=ids, col_solution=solution)

    def row_posterior(self, observations: Observations) -> Array:
        """A_i^-1 of each row, in units of the noise; last the prior's."""
        return self.row_regressions(observations).inverses(self.col_solution, self.penalty)

    def col_posterior(self, observations: Observations) -> Array:
        """B_j^-1 of each column, in units of the noise; last the prior's."""
        return self.col_regressions(observations).inverses(self.row_solution, self.penalty)

    def row_regressions(self, observations: Observations) -> RidgeRegressions:
        """The regressions of the rows of ``observations`` on this completion's columns."""
        return RidgeRegressions.of_rows(observations, self.col_ids, self.residual(observations))

    def col_regressions(self, observations: Observations) -> RidgeRegressions:
        """The regressions of the columns of ``observations`` on this completion's rows."""
        return RidgeRegressions.of_cols(observations, self.row_ids, self.residual(observations))


@dataclass(frozen=True, eq=False)
class ALSSweep:
    """State of alternating least squares: both solutions, the objective, and the share by which it fell."""

    row_solution: Array
    col_solution: Array
    objective: float
    decrease: float


@dataclass(frozen=True, eq=False)
class AlternatingLeastSquares:
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
    def _rows(self) -> RidgeRegressions:
        obs = self.observations
        return RidgeRegressions.of_rows(obs, obs.by_col.ids, self._unit_values - self.mean)

    @cached_property
    def _cols(self) -> RidgeRegressions:
        obs = self.observations
        return RidgeRegressions.of_cols(obs, obs.by_row.ids, self._unit_values - self.mean)

    def init(self) -> ALSSweep:
        """The factors of the start where there is one, else random small ones for the rows; no objective yet."""
        rows, n_cols = self.observations.by_row.ids, len(self.observations.by_col)
        if self.start is not None:
            row_solution = reindexed(*self.start.row_table(), rows)
        else:
            rank, rng = min(self.rank, len(rows), n_cols), np.random.default_rng(self.random_state)
            row_solution = np.zeros((len(rows) + 1, rank + 1))
            row_solution[:-1, 1:] = rng.normal(0, START_SPREAD, (len(rows), rank))
        return ALSSweep(row_solution, np.zeros((n_cols + 1, row_solution.shape[1])), np.inf, np.inf)

    def step(self, state: ALSSweep) -> ALSSweep:
        """All columns given the rows, then all rows given the columns."""
        col_solution, _ = self._cols.solve(state.row_solution, self.penalty)
        row_solution, of_rows = self._rows.solve(col_solution, self.penalty)
        objective = of_rows + self._cols.penalty_value(col_solution, self.penalty)
        before = state.objective
        decrease = np.inf if np.isinf(before) else (before - objective) / max(before, np.finfo(float).tiny)
        return ALSSweep(row_solution, col_solution, objective, decrease)

    def measure(self, state: ALSSweep) -> float:
        """The objective."""
        return state.objective

    def terminate(self, state: ALSSweep) -> Status | None:
        """Converged once a sweep lowers the objective by less than ``tol`` of it."""
        return Status.CONVERGED if state.decrease < self.tol else None
