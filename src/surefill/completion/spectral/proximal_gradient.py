"""Accelerated proximal gradient for min f(M) + h(M), on singular values, with products sparse plus low rank.

    Y = M + theta (M - M_before),        M_next = prox_h (Y + E_Y / L),

E_Y the sparse residual of Y. For the penalty and theta = 0 this is SoftImpute, for a rank it is hard impute. The few
singular vectors that prox_h needs are found by power steps that start from the last ones (Yao and Kwok, 2015, do the
same for the penalty). One step costs O(nnz k + (m + n) k^2) for k vectors.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from scipy.sparse import csr_array

from surefill.arrays import Array
from surefill.completion.spectral.shrinkage import Shrinkage, estimate_gap
from surefill.completion.spectral.squared_loss import SquaredLoss
from surefill.loop import Status

SPARE = 6
"""Vectors carried beyond the rank, so that a rising one is seen before it is needed."""

POWER_STEPS = 2
"""Power steps per proximal step: they start from the last vectors, so that few are enough (Yao and Kwok take one)."""

CHECK_EVERY = 10
"""Steps between estimates of the duality gap, each of which costs a few steps."""

NO_LOSS = 1e-15
"""Share of f(0) at which an objective is 0 to rounding."""

CHANGE_FLOOR = 1e-9
"""Share of f(0) below which a change of the objective is compared with that share instead of the objective."""


@dataclass(frozen=True, eq=False)
class FittedSVD:
    """M = left diag(values) right' with orthonormal columns, its residual E and f + h at it."""

    left: Array
    values: Array
    right: Array
    residual: Array
    objective: float


@dataclass(frozen=True, eq=False)
class ProximalState:
    """The last two matrices, the right vectors to start from, and the steps since momentum was reset.

    ``mark`` is the objective at the last check, ``change`` its relative fall since the one before, ``gap`` the relative
    duality gap estimated then.
    """

    now: FittedSVD
    before: FittedSVD
    basis: Array
    momentum: int = 0
    steps: int = 0
    mark: float = np.inf
    change: float = np.inf
    gap: float = np.inf


@dataclass(frozen=True, eq=False)
class ProximalGradient:
    """The solver for :func:`surefill.loop.run`: one step is one proximal step.

    Stops at a relative duality gap of ``tol`` (estimated every tenth step), or, where h is not convex, when the
    objective falls by less than ``tol`` of itself in ten steps.
    """

    loss: SquaredLoss
    shrinkage: Shrinkage
    tol: float
    max_rank: int
    random_state: int = 0
    start: FittedSVD | None = None
    task: str = field(default="completing", init=False)

    def init(self) -> ProximalState:
        """The start given, else zero."""
        m, n = self.loss.shape
        width = min(2 * SPARE, self.max_rank)
        first = self.start
        if first is None:
            first = self._spectrum(np.zeros((m, 0)), np.zeros(0), np.zeros((n, 0)))
        else:
            first = self._spectrum(first.left, first.values, first.right)
        return ProximalState(first, first, self._widened(first.right, max(width, first.right.shape[1] + SPARE)))

    def step(self, state: ProximalState) -> ProximalState:
        """One proximal step from the extrapolated point; where the objective would rise, M stays and momentum goes."""
        # Restarted Nesterov momentum; without convexity it could carry the objective up, so there is none.
        theta = state.momentum / (state.momentum + 3.0) if self.shrinkage.convex else 0.0
        after, basis = self._proximal(state, theta)
        rises = after.objective > state.now.objective
        following = replace(
            state,
            now=state.now if rises else after,
            before=state.now,
            basis=basis,
            momentum=0 if rises else state.momentum + 1,
            steps=state.steps + 1,
        )
        return self._checked(following) if following.steps % CHECK_EVERY == 0 else following

    def _checked(self, state: ProximalState) -> ProximalState:
        objective = state.now.objective
        change = (state.mark - objective) / max(objective, CHANGE_FLOOR * self.loss.value_at_zero)
        gap = estimate_gap(self.loss, self.shrinkage, state.now.residual, objective)
        return replace(state, mark=objective, change=change, gap=gap)

    def solution(self, state: ProximalState) -> FittedSVD:
        """The matrix found."""
        return state.now

    def measure(self, state: ProximalState) -> float:
        """f + h."""
        return state.now.objective

    def terminate(self, state: ProximalState) -> Status | None:
        """At the gap asked for, or, without convexity, when steps no longer pay."""
        enough = state.gap <= self.tol if self.shrinkage.convex else state.change <= self.tol
        return Status.CONVERGED if enough or state.now.objective <= NO_LOSS * self.loss.value_at_zero else None

    def _proximal(self, state: ProximalState, theta: float) -> tuple[FittedSVD, Array]:
        """prox_h of Y + E_Y / L by power steps from the basis, and the basis for the next time."""
        L, now, before = self.loss.lipschitz, state.now, state.before
        left = np.hstack([(1 + theta) * now.left * now.values, -theta * before.left * before.values])
        right = np.hstack([now.right, before.right])
        E = self.loss.matrix(((1 + theta) * now.residual - theta * before.residual) / L)
        P, s, Q = _top_singular(left, right, E, state.basis)
        values = self.shrinkage.prox(s, L)
        kept = int(np.count_nonzero(values))
        wanted = min(kept + SPARE if kept < len(s) else 2 * len(s), self.max_rank, *self.loss.shape)
        after = self._spectrum(P[:, :kept], values[:kept], Q[:, :kept])
        return after, self._widened(Q[:, :wanted], wanted)

    def _spectrum(self, left: Array, values: Array, right: Array) -> FittedSVD:
        residual = self.loss.residual(left * values, right)
        objective = self.loss.value(residual) + self.shrinkage.cost(values)
        return FittedSVD(left, values, right, residual, objective)

    def _widened(self, basis: Array, width: int) -> Array:
        """``basis`` with random columns beside it until there are ``width``."""
        more = min(width, *self.loss.shape) - basis.shape[1]
        if more <= 0:
            return basis
        fresh = np.random.default_rng([self.random_state, basis.shape[1]]).normal(size=(len(basis), more))
        return np.hstack([basis, fresh / np.sqrt(len(basis))])


def _top_singular(left: Array, right: Array, E: csr_array, basis: Array) -> tuple[Array, Array, Array]:
    """The largest singular triplets of left right' + E found in the span that power steps reach from ``basis``."""
    Et = E.T.tocsr()
    for _ in range(POWER_STEPS):
        P, _ = np.linalg.qr(left @ (right.T @ basis) + E @ basis)
        basis = right @ (left.T @ P) + Et @ P
    Q, R = np.linalg.qr(basis)
    U, s, Vt = np.linalg.svd(R.T, full_matrices=False)
    return P @ U, s, Q @ Vt.T
