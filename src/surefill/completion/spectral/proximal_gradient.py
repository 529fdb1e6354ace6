"""min f(M) + h(M) by accelerated proximal steps on singular values, with products sparse plus low rank.

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
from surefill.completion.optimality_gap import estimate_gap
from surefill.completion.spectral.shrinkage import Shrinkage
from surefill.completion.spectral.squared_loss import Sample
from surefill.loop import Status

SPARE = 6
"""Vectors carried beyond the rank, so that a rising one is seen before it is needed."""

POWER_STEPS = 2
CHECK_EVERY = 10


@dataclass(frozen=True, eq=False)
class Spectrum:
    """M = left diag(values) right' with orthonormal columns, its residual E and f + h at it."""

    left: Array
    values: Array
    right: Array
    residual: Array
    objective: float


@dataclass(frozen=True, eq=False)
class Descent:
    """State of the descent: two last matrices, the right vectors to start from, and how long momentum has built up."""

    now: Spectrum
    before: Spectrum
    basis: Array
    momentum: int = 0
    steps: int = 0
    mark: float = np.inf
    change: float = np.inf
    gap: float = np.inf


@dataclass(frozen=True, eq=False)
class SpectralDescent:
    """The solver for :func:`surefill.loop.run`. Stops at a relative duality gap of ``tol`` (estimated every tenth
    step), or, where h is not convex, when the objective falls by less than ``tol`` of itself in ten steps.
    """

    sample: Sample
    shrinkage: Shrinkage
    tol: float
    max_rank: int
    random_state: int = 0
    start: Spectrum | None = None
    task: str = field(default="completing", init=False)

    def init(self) -> Descent:
        """The start given, else zero."""
        m, n = self.sample.shape
        width = min(2 * SPARE, self.max_rank)
        first = self.start
        if first is None:
            first = self._spectrum(np.zeros((m, 0)), np.zeros(0), np.zeros((n, 0)))
        else:
            first = self._spectrum(first.left, first.values, first.right)
        return Descent(first, first, self._widened(first.right, max(width, first.right.shape[1] + SPARE)))

    def step(self, state: Descent) -> Descent:
        """One proximal step from the extrapolated point; where the objective would rise, M stays and momentum goes."""
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

    def _checked(self, state: Descent) -> Descent:
        objective = state.now.objective
        change = (state.mark - objective) / max(objective, 1e-9 * self.sample.null_loss)
        gap = estimate_gap(self.sample, self.shrinkage, state.now.residual, objective)
        return replace(state, mark=objective, change=change, gap=gap)

    def spectrum(self, state: Descent) -> Spectrum:
        """The matrix found."""
        return state.now

    def measure(self, state: Descent) -> float:
        """f + h."""
        return state.now.objective

    def terminate(self, state: Descent) -> Status | None:
        """At the gap asked for, or, without convexity, when steps no longer pay."""
        enough = state.gap <= self.tol if self.shrinkage.convex else state.change <= self.tol
        return Status.CONVERGED if enough or state.now.objective <= 1e-15 * self.sample.null_loss else None

    def _proximal(self, state: Descent, theta: float) -> tuple[Spectrum, Array]:
        """prox_h of Y + E_Y / L by power steps from the basis, and the basis for the next time."""
        L, now, before = self.sample.lipschitz, state.now, state.before
        left = np.hstack([(1 + theta) * now.left * now.values, -theta * before.left * before.values])
        right = np.hstack([now.right, before.right])
        E = self.sample.matrix(((1 + theta) * now.residual - theta * before.residual) / L)
        P, s, Q = _top_singular(left, right, E, state.basis)
        values = self.shrinkage.apply(s, L)
        kept = int(np.count_nonzero(values))
        wanted = min(kept + SPARE if kept < len(s) else 2 * len(s), self.max_rank, *self.sample.shape)
        after = self._spectrum(P[:, :kept], values[:kept], Q[:, :kept])
        return after, self._widened(Q[:, :wanted], wanted)

    def _spectrum(self, left: Array, values: Array, right: Array) -> Spectrum:
        residual = self.sample.residual(left * values, right)
        objective = self.sample.loss(residual) + self.shrinkage.cost(values)
        return Spectrum(left, values, right, residual, objective)

    def _widened(self, basis: Array, width: int) -> Array:
        """``basis`` with random columns beside it until there are ``width``."""
        more = min(width, *self.sample.shape) - basis.shape[1]
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
