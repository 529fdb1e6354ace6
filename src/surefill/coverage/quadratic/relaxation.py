"""MP 1 from below: a convex set that holds the square M o M of every member of V, and the program over it.

The set is a semidefinite relaxation; the bounds are computed afresh from the solver's multipliers.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surefill.arrays import Array
from surefill.coverage.closed_form import make_feasible
from surefill.loop import Status
from surefill.registry import storable
from surefill.spaces.classes import TraceNorm
from surefill.spaces.conic_model import Attempt, attempts, first_tight, load_cvxpy, plan_for
from surefill.spaces.version_space import VersionSpace

TRIANGLE_LIMIT = 24
"""Rows plus columns up to which triangles are added: beyond, they gain a part in a thousand and cost several solves."""

MAX_NEW_TRIANGLES = 200
"""Triangles added at once, of up to 6,072 at the limit above: the most violated ones settle most others."""

ROUNDING = 1e-10
"""Share by which a bound is taken larger: its eigenvalues are known to about 1e-13."""

REPAIR_COST = 1e-3
"""Share of coverage lost to the repair at which the conic solver is asked for no more accuracy."""

ENOUGH = 1e-5
"""A round of triangles that covers no more than this share in addition is the last."""

SMALLEST_TANGENT = 1e-3
"""Least t of a triangle inequality: the tangent to the root would be vertical at 0."""

LEAST_VIOLATION = 1e-5
"""Excess over a triangle inequality, with K = 1, below which it is not added; of the order of ``ENOUGH``."""


@storable
@dataclass(frozen=True, eq=False)
class TriangleCuts:
    """Triangle inequalities H_ac + H_bc - H_ab / (2 t) <= K^2 (1 + t / 2), valid for all t > 0.

    ``corners`` holds the indices (a, b, c), ``tangents`` the t; see :class:`MaxNormSquares`.
    """

    corners: NDArray[np.int64]
    tangents: Array

    @classmethod
    def none(cls) -> TriangleCuts:
        """No inequality."""
        return cls(np.zeros((0, 3), np.int64), np.zeros(0))

    def with_violated(self, H: Array, most: int, least: float = LEAST_VIOLATION) -> TriangleCuts:
        """These and up to ``most`` triangles that H (with K = 1) exceeds by more than ``least``, each at its best t."""
        size = len(H)
        pairs = np.array(list(itertools.combinations(range(size), 2)))
        tangents = np.sqrt(np.maximum(H[pairs[:, 0], pairs[:, 1]], SMALLEST_TANGENT**2))
        excess = H[pairs[:, 0]] + H[pairs[:, 1]] - 1 - tangents[:, None]
        rows = np.arange(len(pairs))
        excess[rows, pairs[:, 0]] = excess[rows, pairs[:, 1]] = -np.inf
        worst = np.argsort(-excess, axis=None)[:most]
        worst = worst[excess.ravel()[worst] > least]
        pair, third = np.unravel_index(worst, excess.shape)
        corners = np.column_stack([pairs[pair], third])
        return TriangleCuts(np.concatenate([self.corners, corners]), np.concatenate([self.tangents, tangents[pair]]))

    def total(self, multipliers: Array, size: int) -> Array:
        """sum_k mu_k T_k, the symmetric matrices of the left-hand sides."""
        a, b, c = self.corners.T
        Q = np.zeros((size, size))
        # add.at, since a pair of corners may belong to several triangles
        for i, j, weight in ((a, c, 0.5), (b, c, 0.5), (a, b, -0.25 / self.tangents)):
            np.add.at(Q, (i, j), weight * multipliers)
            np.add.at(Q, (j, i), weight * multipliers)
        return Q


class MaxNormSquares:
    """N in lambda R for max-norm(M) <= K: N is the block of H = [[H1, N], [N^T, H2]] PSD, H >= 0, with

        diag(H) <= lambda K^2,   N_x <= lambda,   sum_S w_x N_x <= lambda beta,   and some of the triangles
        H_ac + H_bc <= lambda K^2 + sqrt(lambda K^2 H_ab), linear in H by tangents to the root.

    If G is the Gram matrix of M's factors, H = G o G satisfies all of them: it is PSD (Schur), and for vectors no
    longer than sqrt(K), z'(x x' + y y')z <= K (K + |x.y|). ``scale`` is lambda, a cvxpy variable or the number 1.
    """

    def __init__(self, space: VersionSpace, scale: Any, triangles: TriangleCuts) -> None:
        cp = load_cvxpy()
        (m, n), seen = space.shape, space.observations
        self.space, self.triangles, self.limit = space, triangles, space.matrix_class.radius**2
        self.gram = cp.Variable((m + n, m + n), PSD=True)
        self.matrix = self.gram[:m, m:]
        self._norm = cp.diag(self.gram) <= scale * self.limit
        self._positive = self.gram >= 0
        self._ball = seen.weights @ self.gram[seen.rows, m + seen.cols] <= scale * space.beta
        self._box = [self.matrix <= scale] if space.matrix_class.radius > 1 else []
        self._triangles = []
        if len(triangles.tangents):
            (a, b, c), t = triangles.corners.T, triangles.tangents
            sides = self.gram[a, c] + self.gram[b, c] - cp.multiply(1 / (2 * t), self.gram[a, b])
            self._triangles = [sides <= scale * (self.limit * (1 + t / 2))]

    @property
    def constraints(self) -> list[Any]:
        """All cone constraints, to be joined to an objective that is minimised."""
        return [self._norm, self._positive, self._ball, *self._box, *self._triangles]

    def bound(self, C: Array) -> float:
        """K^2 sum(y) + s beta + sum(A) + K^2 sum_k mu_k (1 + t_k / 2) >= sup over V of sum_x C_x M_x^2,

        if diag(y) - Q is PSD, Q = E - sum_k mu_k T_k + [[0, B], [B^T, 0]] / 2, B = C - s w - A, and s, A, E, mu >= 0.
        These come from the dual variables and y is raised until it fits, so that any numbers of a solver will do.
        """
        (m, n), seen = self.space.shape, self.space.observations
        s = max(0.0, float(self._ball.dual_value))
        A = np.maximum(self._box[0].dual_value, 0.0) if self._box else np.zeros((m, n))
        B = C - A
        B[seen.rows, seen.cols] -= s * seen.weights
        E = np.maximum(self._positive.dual_value, 0.0)
        Q = (E + E.T) / 2
        Q[:m, m:] += B / 2
        Q[m:, :m] += B.T / 2
        rest = s * self.space.beta + float(A.sum())
        if self._triangles:
            mu, t = np.maximum(self._triangles[0].dual_value, 0.0), self.triangles.tangents
            Q -= self.triangles.total(mu, m + n)
            rest += self.limit * float(np.sum(mu * (1 + t / 2)))
        return self.limit * _dominate(Q, np.maximum(self._norm.dual_value, 0.0)) + rest

    def tightened(self, most: int, scale: float) -> TriangleCuts | None:
        """The triangles with those that the solver's H / lambda violates, or None where there are no new ones."""
        if scale <= 0:
            return None
        more = self.triangles.with_violated(np.array(self.gram.value) / (scale * self.limit), most)
        return more if len(more.tangents) > len(self.triangles.tangents) else None


class TraceNormSquares:
    """N in lambda R for trace-norm(M) <= tau: with rho = min(tau, 1) and Y the block of a PSD matrix G,

        0 <= N_x <= lambda rho^2,   sum_S w_x N_x <= lambda beta,   sum_x N_x <= lambda tau^2,
        N <= Y,   trace(G) <= 2 lambda rho tau.

    The last two say that <B, N> <= lambda rho tau |B|_2 for every B >= 0, and for N = M o M
    <B o M, M> <= tau |B o M|_2 <= tau rho |B|_2, since |M_x| <= rho.
    """

    def __init__(self, space: VersionSpace, scale: Any) -> None:
        cp = load_cvxpy()
        (m, n), seen, tau = space.shape, space.observations, space.matrix_class.radius
        self.space, self.rho = space, min(tau, 1.0)
        self.matrix = cp.Variable((m, n), nonneg=True)
        gram = cp.Variable((m + n, m + n), PSD=True)
        self._ball = seen.weights @ self.matrix[seen.rows, seen.cols] <= scale * space.beta
        self._box = self.matrix <= scale * self.rho**2
        self._sum = cp.sum(self.matrix) <= scale * tau**2
        self._link = self.matrix <= gram[:m, m:]
        self._norm = cp.trace(gram) <= 2 * scale * self.rho * tau

    @property
    def constraints(self) -> list[Any]:
        """All cone constraints, to be joined to an objective that is minimised."""
        return [self._ball, self._box, self._sum, self._link, self._norm]

    def bound(self, C: Array) -> float:
        """s beta + f tau^2 + rho tau |F|_2 + rho^2 sum(A) >= sup over V of sum_x C_x M_x^2

        for all s, f >= 0, F, A >= 0 with s w + f + F + A >= C: the first three from the dual variables, A what remains.
        """
        seen, tau = self.space.observations, self.space.matrix_class.radius
        s, f = (max(0.0, float(limit.dual_value)) for limit in (self._ball, self._sum))
        F = np.maximum(self._link.dual_value, 0.0)
        A = C - f - F
        A[seen.rows, seen.cols] -= s * seen.weights
        norms = f * tau**2 + self.rho * tau * float(np.linalg.norm(F, 2))
        return s * self.space.beta + norms + self.rho**2 * float(np.maximum(A, 0.0).sum())

    def tightened(self, most: int, scale: float) -> None:
        """None: the relaxation of this class has no triangle inequalities to add."""


def scaled_squares(
    space: VersionSpace, scale: Any, triangles: TriangleCuts | None = None
) -> MaxNormSquares | TraceNormSquares:
    """The relaxation for the space's class."""
    if isinstance(space.matrix_class, TraceNorm):
        return TraceNormSquares(space, scale)
    return MaxNormSquares(space, scale, triangles or TriangleCuts.none())


def _dominate(Q: Array, y: Array) -> float:
    """sum(y') for a y' >= 0 with diag(y') - Q PSD: y shifted, or scaled, whichever adds less."""
    shift = max(0.0, -float(np.linalg.eigvalsh(np.diag(y) - Q)[0]))
    shifted = float(np.sum(y + shift))
    if y.min() <= 0:
        return shifted
    root = np.sqrt(y)
    factor = max(0.0, float(np.linalg.eigvalsh(Q / np.outer(root, root))[-1]))
    return min(shifted, factor * float(y.sum()))


@storable
@dataclass(frozen=True, eq=False)
class RelaxationState:
    """C with sum_x C_x M_x^2 <= ``bound`` <= gamma |C| for all M in V; ``triangles`` for the next round, if any."""

    C: Array
    bound: float
    lost: float
    triangles: TriangleCuts | None
    gained: float = np.inf


class RelaxationSolver:
    """max |C| with <C, Z> <= gamma |C| for all Z in R, R holding every M o M; a solver for ``loop.run``.

    Its dual is min over lambda >= 0, N in lambda R of sum_x max(0, 1 + lambda gamma - N_x), a semidefinite program as
    for MP 2, and C the multiplier of the hinge. Each step solves it with the triangles that the last answer violated. C
    is repaired: mixed with counts / max(counts), which has (gamma - beta) |C0| to spare, until its bound holds.
    """

    task = "covering against all squares"

    def __init__(self, space: VersionSpace, gamma: float) -> None:
        self.space, self.gamma = space, gamma

    def init(self) -> RelaxationState:
        """The program without triangles."""
        return self._solve(TriangleCuts.none())

    def step(self, state: RelaxationState) -> RelaxationState:
        """Solve again with more triangles, and keep the better C."""
        assert state.triangles is not None  # terminate() ends where there are none
        new = self._solve(state.triangles)
        gained = float(new.C.sum() / state.C.sum()) - 1
        best = new if gained > 0 else state
        return RelaxationState(best.C, best.bound, best.lost, new.triangles, gained)

    def measure(self, state: RelaxationState) -> float:
        """The certified coverage."""
        return float(state.C.sum())

    def terminate(self, state: RelaxationState) -> Status | None:
        """Converged when no triangle is violated, or the last ones brought nothing; large matrices take none."""
        if sum(self.space.shape) > TRIANGLE_LIMIT or state.triangles is None:
            return Status.CONVERGED
        return Status.CONVERGED if state.gained < ENOUGH else None

    def _solve(self, triangles: TriangleCuts) -> RelaxationState:
        answers = self._answers(triangles, plan_for(self.space.shape))
        return first_tight(answers, lambda answer: answer.lost, REPAIR_COST)

    def _answers(self, triangles: TriangleCuts, plan: tuple[Attempt, ...]) -> Iterator[RelaxationState]:
        """A repaired answer from each attempt; ``lost`` is the share of coverage that the repair cost."""
        cp = load_cvxpy()
        scale, hinge = cp.Variable(nonneg=True), cp.Variable(self.space.shape, nonneg=True)
        model = scaled_squares(self.space, scale, triangles)
        covers = hinge >= 1 + scale * self.gamma - model.matrix
        for _ in attempts(cp.Problem(cp.Minimize(cp.sum(hinge)), [covers, *model.constraints]), plan):
            found = np.clip(covers.dual_value, 0.0, 1.0)
            C, bound = make_squares_feasible(self.space, self.gamma, found, model.bound(found))
            lost = 1 - float(C.sum()) / max(float(found.sum()), 1e-300)
            yield RelaxationState(C, bound, lost, model.tightened(MAX_NEW_TRIANGLES, float(scale.value)))


def make_squares_feasible(space: VersionSpace, gamma: float, C: Array, bound: float) -> tuple[Array, float]:
    """C mixed with counts / max(counts) until it is feasible for MP 1; see :func:`make_feasible`."""
    return make_feasible(space, gamma, C, bound * (1 + ROUNDING), space.beta)
