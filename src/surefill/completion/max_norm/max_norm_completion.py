"""Empirical risk minimisation over the paper's class, matrices of bounded max-norm, and the completion it returns."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from typing import Any, Literal, Self

import numpy as np

from surefill.arrays import Array
from surefill.completion.effects import Centre, Effects, positions, subtract_effects
from surefill.completion.evaluation_losses import sample_loss
from surefill.completion.factored_completion import StoredProduct
from surefill.completion.grouped_regression import GroupedRegression
from surefill.completion.max_norm.max_norm_loss import EmpiricalRisk
from surefill.completion.max_norm.max_norm_solver import MaxNormSolver, MaxNormState, is_closed, solve_max_norm_conic
from surefill.completion.path_search import PathSearch, hold_out
from surefill.data import Observations, UnitMap
from surefill.data.groups import locate
from surefill.errors import invalid_parameter, is_number, is_seed
from surefill.loop import ProgressCallback, Status, run
from surefill.registry import storable

K_PATH = tuple(0.25 * 2 ** (s / 2) for s in range(12))
"""Candidates for K, two per octave: from a quarter of the least that holds a matrix of signs to 11, which holds any
matrix with entries in [-1, 1] and at most 128 rows or columns."""

DEFAULT_K = 1.0
"""Taken where there are too few cells to choose: the max-norm of a matrix of rank 1 with entries of size 1."""

PATH_TOL, PATH_STAGES = 1e-2, 3
"""Gap and most stages of a candidate's fit: enough to rank them, since each goes on from the last."""

MAX_STAGES = 30
"""Most stages of the final fit, each of 100 iterations and a certificate."""

BISECTIONS = 60
"""Halvings of the interval for a ridge: more than the 52 bits of its digits."""

RANK_TOL = 1e-10
"""Share of the largest singular value below which one counts as 0."""


@storable
@dataclass(frozen=True)
class MaxNormCompletion:
    """min over max-norm(M) <= K, |M_x| <= 1 of  sum_S w_x (u_x - M_x)^2,  w = counts / N, u the values on [-1, 1].

    The full completion that the paper's Proposition on sample complexities speaks of: O(K^2 (m + n)) draws from any
    distribution are enough for its error on that distribution. WarmFit in factored form, M = U V' with rows at most
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
        box; predictions are clipped to the bounds, which only lowers their error.
    method : "factored", or "conic" for the semidefinite program (extra ``conic``, up to 150 rows and columns).
    tol : stop once the gap is at most this share of the objective, or of a thousandth of the zero matrix's loss
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
    tol: float = 1e-3
    time_limit: float | None = None
    random_state: int = 0

    def fit(self, observations: Observations, progress: ProgressCallback | None = None) -> MaxNormFit:
        """Complete the whole matrix."""
        self._validate()
        start = time.perf_counter()
        K, warm = self._choose(observations, progress)
        left = None if self.time_limit is None else self.time_limit - (time.perf_counter() - start)
        return self._fit(observations, K, self.tol, MAX_STAGES, left, warm, progress).completion

    def _choose(self, obs: Observations, progress: ProgressCallback | None) -> tuple[float | None, Array | None]:
        """K and directions for the present rows and columns to start from."""
        if self.K != "auto":
            return float(self.K), None
        if self.penalty is not None:
            return None, None
        split = hold_out(obs, self.random_state)
        if split is None:
            return DEFAULT_K, None
        train, held = split
        limit = None if self.time_limit is None else self.time_limit / 2
        deadline = math.inf if limit is None else time.perf_counter() + limit

        def fit(K: float, last: WarmFit | None) -> WarmFit:
            left = None if limit is None else max(0.0, deadline - time.perf_counter())
            warm = None if last is None or self.method == "conic" else last.state.rows
            return self._fit(train, K, PATH_TOL, PATH_STAGES, left, warm)

        search = PathSearch(K_PATH, fit, lambda warm: sample_loss(warm.completion, held), "choosing K")
        K, best = search.search(time_limit=limit, progress=progress)
        return K, None if self.method == "conic" else best.rows_for(obs, self.random_state)

    def _fit(
        self,
        obs: Observations,
        K: float | None,
        tol: float,
        max_stages: int,
        time_limit: float | None,
        warm: Array | None,
        progress: ProgressCallback | None = None,
    ) -> WarmFit:
        centre: Centre = "effects" if self.centre else "none"
        on_unit = obs.unit.to_unit(obs.values)  # first of all, so that the user's units have no part in what follows
        effects = Effects.of(obs, centre, type(self).__name__, values=on_unit)
        target = on_unit - effects.at(*positions(obs))
        risk = EmpiricalRisk.of(obs, target, K, self.penalty, box=not self.centre)
        if self.method == "conic":
            found = solve_max_norm_conic(risk, tol)
            status = Status.CONVERGED if is_closed(found, risk, tol) else Status.STEP_LIMIT
        else:
            deadline = math.inf if time_limit is None else time.perf_counter() + time_limit
            rng = np.random.default_rng(self.random_state)
            solver = MaxNormSolver(risk, self.rank, tol, rng, deadline, warm)
            outcome = run(solver, max_steps=max_stages, time_limit=time_limit, progress=progress)
            found, status = outcome.state, outcome.status
        row_solution, col_solution = effects.with_factors(found.left, found.right)
        completion = MaxNormFit(
            shape=obs.shape,
            unit=obs.unit,
            mean=effects.offset,
            has_effects=self.centre,
            K=found.norm if K is None else K,
            penalty=self.penalty,
            objective=found.objective,
            lower_bound=found.lower_bound,
            status=status,
            row_ids=obs.by_row.ids,
            col_ids=obs.by_col.ids,
            row_solution=row_solution,
            col_solution=col_solution,
        )
        return WarmFit(completion, found)

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
        check(is_number(self.tol) and self.tol >= 0, "tol", "a number of at least 0")
        check(self.time_limit is None or _is_positive(self.time_limit), "time_limit", "None or a number above 0")
        check(is_seed(self.random_state), "random_state", "a whole number of at least 0")


@storable
@dataclass(frozen=True, eq=False)
class MaxNormFit(StoredProduct):
    """M_ij = mean + b_i + c_j + u_i . v_j on [-1, 1], rows of U and V at most sqrt(K) long; given in the user's units.

    ``row_solution`` holds (b_i, u_i) for the rows ``row_ids`` and a last row of zeros for all others, ``col_solution``
    the same for columns.

    Attributes
    ----------
    K : limit on the max-norm of U V'; with a penalty, the norm that was chosen by it.
    objective : sum_S w_x (value_x - M_x)^2 on [-1, 1], plus penalty K where there is a penalty.
    lower_bound : no matrix of the convex class has a smaller objective.
    gap : objective - lower_bound.
    status : why the solver stopped.
    has_effects : whether a mean and the shrunken means b_i, c_j were taken off first; they are zero unless asked for.

    Examples
    --------
    >>> import surefill as sf
    >>> sim = sf.datasets.make_low_rank((30, 20), rank=2, n_draws=400, noise=0.1, random_state=0)
    >>> completion = sf.completion.MaxNormCompletion(K=1.0).fit(sim.observations)
    >>> completion.lower_bound <= completion.objective
    True
    """

    unit: UnitMap
    mean: float
    has_effects: bool
    K: float
    penalty: float | None
    objective: float
    lower_bound: float
    status: Status

    @property
    def left(self) -> Array:
        """U, with a last row of zeros."""
        return self.row_solution[:, 1:]

    @property
    def right(self) -> Array:
        """V, with a last row of zeros."""
        return self.col_solution[:, 1:]

    @property
    def gap(self) -> float:
        """objective - lower_bound, how far from the best of the convex class at most."""
        return self.objective - self.lower_bound

    @property
    def relative_gap(self) -> float:
        """gap / objective, 0 where the objective is."""
        return self.gap / self.objective if self.objective > 0 else 0.0

    def fold_in(self, observations: Observations) -> Self:
        """The completion of other rows, the columns as learnt: min sum_t c_t (r_t - u . v_t)^2 over |u|^2 <= K each.

        The objective and its bound remain those of the rows that were fitted.
        """
        rows = GroupedRegression.of_rows(observations, self.col_ids, self.unit.to_unit(observations.values) - self.mean)
        effects, target = subtract_effects(rows, self.col_solution, self.has_effects)
        solution, starts = np.zeros((len(effects), self.col_solution.shape[1])), rows.groups.starts
        solution[:, 0] = effects
        for g in range(len(rows.groups)):
            cells = slice(starts[g], starts[g + 1])
            solution[g, 1:] = ball_regression(self.right[rows.other[cells]], target[cells], rows.weight[cells], self.K)
        return replace(self, shape=observations.shape, row_ids=rows.groups.ids, row_solution=solution)

    @property
    def scale(self) -> float:
        """Half the width of the bounds: values lie on [-1, 1]."""
        return self.unit.half_width

    def _in_units(self, centred: Array) -> Array:
        return self.unit.from_unit(np.clip(self.mean + centred, -1.0, 1.0))


def ball_regression(features: Array, target: Array, weight: Array, K: float) -> Array:
    """argmin over |x|^2 <= K of sum_t c_t (y_t - f_t . x)^2, the shortest; |x(s)|^2 = K by bisection on the ridge s.

    With sqrt(c) F = P S Q', x(s) = Q (S / (S^2 + s)) P' sqrt(c) y.
    """
    root = np.sqrt(weight)
    P, S, Qt = np.linalg.svd(root[:, None] * features, full_matrices=False)
    S = np.where(RANK_TOL * S.max(initial=0.0) < S, S, 0.0)
    turned = P.T @ (root * target)

    def solution(ridge: float) -> Array:
        return np.asarray(np.divide(S * turned, S**2 + ridge, out=np.zeros_like(S), where=S > 0))

    low, high = 0.0, float(np.linalg.norm(S * turned)) / np.sqrt(K)
    if np.sum(solution(0.0) ** 2) <= K:
        high = 0.0
    for _ in range(BISECTIONS if high else 0):
        middle = (low + high) / 2
        low, high = (middle, high) if np.sum(solution(middle) ** 2) > K else (low, middle)
    return np.asarray(solution(high) @ Qt)


@dataclass(frozen=True, eq=False)
class WarmFit:
    """A completion and the solver's last state, from which another fit may start."""

    completion: MaxNormFit
    state: MaxNormState

    def rows_for(self, obs: Observations, seed: int) -> Array:
        """The directions for the present rows and columns of ``obs``, one random direction where the fit had none."""
        rows, m = self.state.rows, len(self.completion.row_ids)
        fresh = np.random.default_rng(seed).normal(size=(1, rows.shape[1]))
        known = np.concatenate([rows, fresh / np.linalg.norm(fresh)])
        i, j = locate(self.completion.row_ids, obs.by_row.ids), locate(self.completion.col_ids, obs.by_col.ids)
        return np.asarray(known[np.concatenate([i, np.where(j >= 0, m + j, -1)])])


def _is_positive(given: Any) -> bool:
    return is_number(given) and 0 < given < np.inf
