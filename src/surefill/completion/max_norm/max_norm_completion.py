"""Empirical risk minimisation over the paper's class: matrices of bounded max-norm."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from surefill.arrays import Array
from surefill.completion.effects import Centre, Effects, positions
from surefill.completion.max_norm.max_norm_fit import MaxNormFit
from surefill.completion.max_norm.max_norm_loss import Risk
from surefill.completion.max_norm.max_norm_solver import Bracket, Descent, is_closed, solve_conic
from surefill.data import Observations
from surefill.data.groups import locate
from surefill.data.splits import split_entries
from surefill.errors import invalid_parameter, is_number, is_seed
from surefill.loop import ProgressCallback, Status, run
from surefill.registry import storable

K_PATH = tuple(0.25 * 2 ** (s / 2) for s in range(12))
DEFAULT_K = 1.0
FEWEST_TO_CHOOSE = 20
PATH_TOLERANCE = 1e-2
PATH_STAGES = 3
PATIENCE = 2
MAX_STAGES = 30


@storable
@dataclass(frozen=True)
class MaxNormCompletion:
    """min over max-norm(M) <= K, |M_x| <= 1 of  sum_S w_x (u_x - M_x)^2,  w = counts / N, u the values on [-1, 1].

    The full completion that the paper's Proposition on sample complexities speaks of: O(K^2 (m + n)) draws from any
    distribution are enough for its error on that distribution. Solved in factored form, M = U V' with rows at most
    sqrt(K) long, with a certified gap: the answer's ``objective`` is at most ``gap`` above the best of the class.
    One evaluation takes O((|S| + active cells of the box) x width) on all cores; nothing m x n is held. With a penalty
    in place of K it is min loss + penalty max-norm(M).

    Parameters
    ----------
    K : limit on the max-norm, or "auto": the one of 0.25, 0.35, 0.5, 0.71, ... with the least error on a tenth of the
        cells held out, stopping after two without gain; the model is then fitted on all cells.
    penalty : a number above 0; the norm is then chosen by it and K must be "auto".
    rank : None for the convex class, whose width grows until the certificate closes; or a limit on the rank, whose
        class is not convex: the answer is a local optimum, and the bound that of the convex class.
    centre : fit values less shrunken row and column means instead. The class is then around these means and has no
        box; predictions are cut to the bounds, which only lowers their error.
    method : "factored", or "conic" for the semidefinite program (extra ``conic``, up to 150 rows and columns).
    tolerance : stop once the gap is at most this share of the objective, or of a thousandth of the zero matrix's loss
        where that is larger.
    time_limit : seconds; half of them at most go to the choice of K.
    random_state : seed of the starting directions and of the cells held out; same seed, same result.

    Examples
    --------
    >>> from surefill.datasets import make_low_rank
    >>> sim = make_low_rank((40, 30), rank=2, n_draws=900, noise=0.1, random_state=0)
    >>> completion = MaxNormCompletion(K=1.0).fit(sim.observations)
    >>> bool(np.mean((completion.dense() - sim.truth) ** 2) < 0.02)
    True
    """

    K: float | Literal["auto"] = "auto"
    penalty: float | None = None
    rank: int | None = None
    centre: bool = False
    method: Literal["factored", "conic"] = "factored"
    tolerance: float = 1e-3
    time_limit: float | None = None
    random_state: int = 0

    def fit(self, observations: Observations, progress: ProgressCallback | None = None) -> MaxNormFit:
        """Complete the whole matrix."""
        self._validate()
        start = time.perf_counter()
        K, warm = self._choose(observations, progress)
        left = None if self.time_limit is None else self.time_limit - (time.perf_counter() - start)
        return self._fit(observations, K, self.tolerance, MAX_STAGES, left, warm, progress).fit

    def _choose(self, obs: Observations, progress: ProgressCallback | None) -> tuple[float | None, Array | None]:
        """K and directions for the present rows and columns to start from."""
        if self.K != "auto":
            return float(self.K), None
        if self.penalty is not None:
            return None, None
        if len(obs) < FEWEST_TO_CHOOSE:
            return DEFAULT_K, None
        train, held_out = split_entries(obs, 0.1, self.random_state)
        limit = None if self.time_limit is None else self.time_limit / 2
        search = NormSearch(self, train, held_out, math.inf if limit is None else time.perf_counter() + limit)
        best = run(search, max_steps=len(K_PATH), time_limit=limit, progress=progress).state.best
        assert best is not None
        return best.fit.K, None if self.method == "conic" else best.rows_for(obs, self.random_state)

    def _fit(
        self,
        obs: Observations,
        K: float | None,
        tolerance: float,
        max_stages: int,
        time_limit: float | None,
        warm: Array | None,
        progress: ProgressCallback | None = None,
    ) -> Solved:
        centre: Centre = "effects" if self.centre else "none"
        on_unit = obs.unit.to_unit(obs.values)  # first of all, so that the user's units have no part in what follows
        effects = Effects.of(obs, centre, type(self).__name__, values=on_unit)
        target = on_unit - effects.at(*positions(obs))
        risk = Risk.of(obs, target, K, self.penalty, box=not self.centre)
        if self.method == "conic":
            found = solve_conic(risk, tolerance)
            status = Status.CONVERGED if is_closed(found, risk, tolerance) else Status.STEP_LIMIT
        else:
            deadline = math.inf if time_limit is None else time.perf_counter() + time_limit
            rng = np.random.default_rng(self.random_state)
            descent = Descent(risk, self.rank, tolerance, rng, deadline, warm)
            outcome = run(descent, max_steps=max_stages, time_limit=time_limit, progress=progress)
            found, status = outcome.state, outcome.status
        row_solution, col_solution = effects.beside(found.left, found.right)
        fit = MaxNormFit(
            shape=obs.shape,
            unit=obs.unit,
            mean=effects.offset,
            has_effects=self.centre,
            K=found.norm if K is None else K,
            penalty=self.penalty,
            objective=found.objective,
            lower_bound=found.lower,
            status=status,
            row_ids=obs.by_row.ids,
            col_ids=obs.by_col.ids,
            row_solution=row_solution,
            col_solution=col_solution,
        )
        return Solved(fit, found)

    def _validate(self) -> None:
        def check(valid: bool, name: str, expected: str) -> None:
            if not valid:
                raise invalid_parameter("MaxNormCompletion", name, expected, getattr(self, name))

        check(self.K == "auto" or _is_positive(self.K), "K", "a finite number above 0 or 'auto'")
        check(self.penalty is None or _is_positive(self.penalty), "penalty", "None or a finite number above 0")
        check(self.penalty is None or self.K == "auto", "K", "'auto' where a penalty is given")
        whole = isinstance(self.rank, int | np.integer) and self.rank >= 1
        check(self.rank is None or whole, "rank", "None or a whole number of at least 1")
        check(self.method in ("factored", "conic"), "method", "'factored' or 'conic'")
        check(self.rank is None or self.method == "factored", "rank", "None where the method is 'conic'")
        check(is_number(self.tolerance) and self.tolerance >= 0, "tolerance", "a number of at least 0")
        check(self.time_limit is None or _is_positive(self.time_limit), "time_limit", "None or a number above 0")
        check(is_seed(self.random_state), "random_state", "a whole number of at least 0")


@dataclass(frozen=True, eq=False)
class Solved:
    """A fit and where its solver stood."""

    fit: MaxNormFit
    found: Bracket

    def rows_for(self, obs: Observations, seed: int) -> Array:
        """The directions for the present rows and columns of ``obs``, random where the fit had none."""
        rows, m = self.found.rows, len(self.fit.row_ids)
        fresh = np.random.default_rng(seed).normal(size=(1, rows.shape[1]))
        known = np.concatenate([rows, fresh / np.linalg.norm(fresh)])
        i, j = locate(self.fit.row_ids, obs.by_row.ids), locate(self.fit.col_ids, obs.by_col.ids)
        return np.asarray(known[np.concatenate([i, np.where(j >= 0, m + j, -1)])])


@dataclass(frozen=True, eq=False)
class SearchState:
    """How far along the path the search is, the last and the best fit, its held-out error, and the tries since."""

    position: int = 0
    last: Solved | None = None
    best: Solved | None = None
    best_error: float = math.inf
    last_error: float = math.inf
    without_gain: int = 0


@dataclass(frozen=True, eq=False)
class NormSearch:
    """Let K grow while the error on held-out cells falls; every fit starts from the one before."""

    model: MaxNormCompletion
    train: Observations
    held_out: Observations
    deadline: float = math.inf
    task: str = field(default="choosing K", init=False)

    def init(self) -> SearchState:
        """Nothing tried yet."""
        return SearchState()

    def step(self, state: SearchState) -> SearchState:
        """Fit with the next K and score it on the held-out cells."""
        warm = None if state.last is None or self.model.method == "conic" else state.last.found.rows
        limit = None if math.isinf(self.deadline) else max(0.0, self.deadline - time.perf_counter())
        solved = self.model._fit(self.train, K_PATH[state.position], PATH_TOLERANCE, PATH_STAGES, limit, warm)
        held = self.held_out
        errors = held.squared_errors(solved.fit.at(held.rows, held.cols))
        error = float(np.average(errors, weights=held.counts))
        if error < state.best_error:
            return SearchState(state.position + 1, solved, solved, error, error)
        return SearchState(state.position + 1, solved, state.best, state.best_error, error, state.without_gain + 1)

    def measure(self, state: SearchState) -> float:
        """The held-out mean squared error of the last K tried."""
        return state.last_error

    def terminate(self, state: SearchState) -> Status | None:
        """Stop after two norms without gain."""
        return Status.NO_GAIN if state.without_gain >= PATIENCE else None


def _is_positive(given: Any) -> bool:
    return is_number(given) and 0 < given < np.inf
