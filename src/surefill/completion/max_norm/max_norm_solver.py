"""Minimises the empirical risk over the max-norm ball: L-BFGS with the factors' rows on spheres, stage by stage."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from surefill.arrays import Array, Floats
from surefill.completion.max_norm.max_norm_loss import TINY, BoundedLoss, EmpiricalRisk
from surefill.loop import Status
from surefill.spaces.certificates import DualBound, bound_dual_max_norm, bound_over_ball, factor_gram
from surefill.spaces.conic_model import attempts, check_size, first_tight, load_cvxpy, plan_for
from surefill.spaces.lbfgs import minimize_lbfgs
from surefill.spaces.saddle_escape import escape_saddle, has_full_rank, widen
from surefill.spaces.separation_oracle import full_width
from surefill.spaces.spheres import Point, Spheres
from surefill.spaces.stage import one_core_if

STAGE_ITERATIONS = 100
"""Iterations of L-BFGS between certificates."""

MULTIPLIER_FLOOR = 1e-3
"""Smallest multiplier of a row in the certificate, as a share of their mean: it divides by them."""

DOUBLE_WORK = 3_000_000
"""Cells times width up to which all is done in double precision; beyond, only once single gains nothing more."""

SERIAL_CELLS = 10_000
"""Observed cells up to which dense products stay on one core: starting threads would take longer than they save."""

EXACT_FIT = 1e-3
"""Share of the zero matrix's loss below which an objective is compared with that share instead of itself: an exact fit
has no relative gap."""


@dataclass(frozen=True, eq=False)
class MaxNormState:
    """State: the best member so far, the best lower bound, lower_bound <= optimum <= objective, and where to go on.

    ``rows`` are unit vectors, the spare coordinate last: m + n of them, for M = K U V'. ``left``, ``right`` are the
    member's factors, ``norm`` the square of their longest row. ``moved`` is the share by which the last stage
    lowered the objective.
    """

    rows: Array
    K: float
    objective: float
    lower_bound: float
    left: Floats
    right: Floats
    norm: float
    moved: float = math.inf


@dataclass
class MaxNormSolver:
    """The solver that :func:`surefill.loop.run` drives: each stage descends, certifies, and leaves saddle points.

    ``rank`` fixes the width; without it the width starts at a quarter of what is always enough and doubles where the
    certificate is open and all columns are in use.
    """

    risk: EmpiricalRisk
    rank: int | None
    tol: float
    rng: np.random.Generator
    deadline: float = math.inf
    start: Array | None = None
    task: str = "fitting in the max-norm ball"

    def __post_init__(self) -> None:
        double = len(self.risk.rows) * (self.rank or self.widest) <= DOUBLE_WORK
        self.dtype: type[np.floating[Any]] = np.float64 if double else np.float32
        self.loss = BoundedLoss(self.risk)

    @property
    def widest(self) -> int:
        """Columns that leave no bad local optimum: r (r + 1) / 2 > |S| + m + n, or one for every row or column."""
        size = len(self.risk.rows) + sum(self.risk.shape)
        return min(full_width(self.risk.shape), math.ceil(math.sqrt(2 * size)))

    def init(self) -> MaxNormState:
        """Random directions, or the start's; the zero matrix is the member that is known."""
        width = self.rank or max(min(self.widest, 8), self.widest // 4)
        rows = self.start
        if rows is None:
            rows = self.rng.normal(size=(sum(self.risk.shape), width + 1))
            rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
        m, n = self.risk.shape
        zero = np.zeros((m, 1)), np.zeros((n, 1))
        return MaxNormState(rows, 1.0 if self.risk.K is None else self.risk.K, self.risk.at_zero, 0.0, *zero, norm=0.0)

    def step(self, state: MaxNormState) -> MaxNormState:
        """Descend, keep the better member and the better bound, and escape from a saddle point if it is one."""
        point, K = self._descend(state)
        found = self._certify(point)
        lower = self.risk.lower_bound(self.loss.residual, found.value, float(self.loss.next_multipliers.sum()))
        entries = self.loss.entries[self.loss.observed]
        with one_core_if(len(self.risk.rows) < SERIAL_CELLS):
            excess = self.loss.update_box(point.left, point.right, K)
        # Divided by its largest excess over the box, the point is a member of the class.
        objective = self.risk.objective(entries / excess, K / excess)
        moved = (state.objective - objective) / max(state.objective, TINY)
        if objective < state.objective:
            root = math.sqrt(K / excess)
            left, right = root * point.left, root * point.right
            state = replace(state, objective=objective, left=left, right=right, norm=K / excess)
        state = replace(state, K=K, lower_bound=max(state.lower_bound, min(lower, state.objective)), moved=abs(moved))
        if state.moved < self.tol / 10:  # single precision has no more to give
            self.dtype = np.float64
        rows = point.on_sphere[:, 0]
        return replace(state, rows=rows if is_closed(state, self.risk, self.tol) else self._escape(rows, found))

    def measure(self, state: MaxNormState) -> float:
        """The certified gap as a share of the objective."""
        return (state.objective - state.lower_bound) / max(state.objective, TINY)

    def terminate(self, state: MaxNormState) -> Status | None:
        """Converged when the gap is as small as asked for, or, with a rank, when stages gain nothing."""
        still = self.rank is not None and state.moved < self.tol / 100
        return Status.CONVERGED if still or is_closed(state, self.risk, self.tol) else None

    def _descend(self, state: MaxNormState) -> tuple[Point, float]:
        """One stage of L-BFGS over the rows' directions and, with a penalty, over K after the first.

        K = 0 would be a false stationary point: directions that mean something come first.
        """
        spheres = Spheres(self.risk.shape, 1.0, 1, state.rows.shape[1] - 1, self.dtype)
        free, size = self.risk.penalty is not None and state.moved < math.inf, state.rows.size
        unit = math.sqrt(sum(self.risk.shape))

        def objective(x: Array) -> tuple[float, Array]:
            point = spheres.point(x[:size])
            K = (float(x[-1]) / unit) ** 2 if free else state.K
            value, d_left, d_right, in_K = self.loss(point.left, point.right, K)
            gradient = point.pull_back(K * d_left, K * d_right)
            if not free:
                return value, gradient
            assert self.risk.penalty is not None
            in_root = 2 * x[-1] / unit**2 * (in_K + self.risk.penalty)
            return value + self.risk.penalty * K, np.append(gradient, gradient.dtype.type(in_root))

        start = np.append(state.rows, unit * math.sqrt(state.K)) if free else state.rows.ravel()
        with one_core_if(True):
            x = minimize_lbfgs(objective, start.astype(self.dtype), STAGE_ITERATIONS, self.deadline)
        objective(x)  # so that the loss holds what belongs to x, not to the last trial of the line search
        return spheres.point(x[:size]), (float(x[-1]) / unit) ** 2 if free else state.K

    def _certify(self, point: Point) -> DualBound:
        """A bound on <B, .> over the unit ball, B the pull on the listed cells."""
        left, right = point.left.astype(np.float64), point.right.astype(np.float64)
        return bound_over_ball(self.loss.pull, left, right, 1.0, MULTIPLIER_FLOOR)

    def _escape(self, rows: Array, found: DualBound) -> Array:
        """Saddle escape where a certificate is open: wider if all columns are in use, and a step along the gains."""
        width = rows.shape[1] - 1
        if self.rank is not None or found.singular_values[0] <= 1 + self.tol:
            return rows
        if width < self.widest and has_full_rank(rows):
            rows = widen(rows, min(2 * width, self.widest), self.rng)
        return escape_saddle(rows, found, self.tol)


def is_closed(state: MaxNormState, risk: EmpiricalRisk, tol: float) -> bool:
    """Whether the gap is at most ``tol`` of the objective, or of a thousandth of the zero matrix's loss."""
    return state.objective - state.lower_bound <= tol * max(state.objective, EXACT_FIT * risk.at_zero)


def solve_max_norm_conic(risk: EmpiricalRisk, tol: float) -> MaxNormState:
    """min over G = [[W1, M], [M', W2]] PSD with diag(G) <= K and |M_x| <= 1, repaired and certified afresh."""
    check_size(risk.shape)
    return first_tight(_answers(risk), lambda found: found.objective - found.lower_bound, tol * 1e-2 * risk.at_zero)


def _answers(risk: EmpiricalRisk) -> Iterator[MaxNormState]:
    cp = load_cvxpy()
    m, n = risk.shape
    gram = cp.Variable((m + n, m + n), PSD=True)
    norm = cp.Variable() if risk.K is None else risk.K
    matrix, diagonal = gram[:m, m:], cp.diag(gram) <= norm
    box = [matrix <= 1, -matrix <= 1] if risk.boxed else []
    misses = cp.multiply(np.sqrt(risk.weight), gram[risk.rows, m + risk.cols] - risk.target)
    penalty = 0.0 if risk.penalty is None else risk.penalty * norm
    problem = cp.Problem(cp.Minimize(cp.sum_squares(misses) + penalty), [diagonal, *box])
    for _ in attempts(problem, plan_for(risk.shape)):
        A = box[0].dual_value - box[1].dual_value if box else np.zeros((m, n))
        yield _certified(risk, np.array(gram.value), A, 2 * np.maximum(0.0, diagonal.dual_value))


def _certified(risk: EmpiricalRisk, G: Array, A: Array, y: Array) -> MaxNormState:
    """A member made of the Gram matrix, and the bound that the multipliers A of the box and y of the diagonal give."""
    m = risk.shape[0]
    U, V = factor_gram(G[:m, :m], G[:m, m:], G[m:, m:])
    M = U @ V.T
    entries = M[risk.rows, risk.cols]
    B = -A
    B[risk.rows, risk.cols] += 2 * risk.weight * (risk.target - entries)
    lower = risk.lower_bound(risk.target - entries, bound_dual_max_norm(B, y), float(np.abs(A).sum()))
    norm = max(float(np.sum(factor**2, axis=1).max()) for factor in (U, V))
    shrink = max(1.0, norm / risk.K if risk.K is not None else 1.0, float(np.abs(M).max()) if risk.boxed else 1.0)
    objective = risk.objective(entries / shrink, norm / shrink)
    left, right = U / np.sqrt(shrink), V / np.sqrt(shrink)
    return MaxNormState(np.empty((0, 0)), norm, objective, min(lower, objective), left, right, norm / shrink)
