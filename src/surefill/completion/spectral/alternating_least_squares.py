"""softImpute-ALS: SoftImpute by alternating ridge regressions on filled-in rows and columns (Hastie et al., 2015).

    |M|_tr = min over A B' = M of (|A|_F^2 + |B|_F^2) / 2

turns min f(M) + penalty |M|_tr into a smooth problem in A and B. With f majorised at the present M by
(L/2) |M + E/L - A B'|_F^2, E the sparse residual, all rows of A share one normal matrix:

    A <- (E B + L A B'B) (L B'B + penalty I)^-1,        then the same for B.

One sweep costs 4 nnz k + O((m + n) k^2) multiply-adds for k columns; the objective never rises.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from surefill.arrays import Array
from surefill.completion.spectral.proximal_gradient import CHECK_EVERY, FittedSVD
from surefill.completion.spectral.shrinkage import SoftThreshold, estimate_gap
from surefill.completion.spectral.squared_loss import SquaredLoss
from surefill.loop import Status
from surefill.spaces.spectral_norm import SparseOperator, lanczos

FEWEST_NEW = 10
"""Directions that may join at a time, or as many as there are already: the width at most doubles."""

VANISHED = 1e-9
"""Share of the largest singular value below which one is dropped, since sweeps shrink it to 0 only in the limit."""


@dataclass(frozen=True, eq=False)
class ALSState:
    """State: M = A B' with A = left sqrt(values), B = right sqrt(values), left and right orthonormal."""

    left: Array
    values: Array
    right: Array
    objective: float
    steps: int = 0
    gap: float = np.inf


@dataclass(frozen=True, eq=False)
class SoftImputeALS:
    """The solver for :func:`surefill.loop.run`: one step is one sweep over columns and rows.

    Every tenth sweep it estimates the duality gap, stops at ``tol``, and else lets directions join in which the
    residual is stronger than the penalty, up to ``max_rank`` in all.
    """

    loss: SquaredLoss
    shrinkage: SoftThreshold
    tol: float
    max_rank: int
    random_state: int = 0
    start: FittedSVD | None = None
    task: str = field(default="completing", init=False)

    def init(self) -> ALSState:
        """The start given, or the zero matrix, and the directions in which the residual is strong."""
        m, n = self.loss.shape
        first = self.start or FittedSVD(np.zeros((m, 0)), np.zeros(0), np.zeros((n, 0)), np.zeros(0), np.inf)
        residual = self.loss.residual(first.left * first.values, first.right)
        objective = self.loss.value(residual) + self.shrinkage.cost(first.values)
        return self._grown(ALSState(first.left, first.values, first.right, objective), residual)

    def step(self, state: ALSState) -> ALSState:
        """All columns, then all rows."""
        root = np.sqrt(state.values)
        A, B = state.left * root, state.right * root
        product = self.loss.residual_times_left(A, B)
        V, d, R = self._regressed(product, B, state.values)
        A, B = state.left @ R * np.sqrt(d), V * np.sqrt(d)
        product = self.loss.residual_times_right(A, B)
        U, values, R = self._regressed(product, A, d)
        following = replace(state, left=U, values=values, right=V @ R, steps=state.steps + 1)
        return self._checked(following) if following.steps % CHECK_EVERY == 0 else following

    def _regressed(self, product: Array, own: Array, d: Array) -> tuple[Array, Array, Array]:
        """own+ = (product + L own D)(L D + penalty)^-1, and the singular value decomposition of own+ sqrt(D)."""
        L = self.loss.lipschitz
        updated = (product + L * own * d) * (np.sqrt(d) / (L * d + self.shrinkage.penalty))
        left, values, rightt = np.linalg.svd(updated, full_matrices=False)
        return left, values, rightt.T

    def _checked(self, state: ALSState) -> ALSState:
        """Estimate the gap; drop what vanished; let new directions join if the gap is open."""
        kept = state.values > VANISHED * max(state.values.max(initial=0.0), 1e-300)
        slim = replace(state, left=state.left[:, kept], values=state.values[kept], right=state.right[:, kept])
        residual = self.loss.residual(slim.left * slim.values, slim.right)
        objective = self.loss.value(residual) + self.shrinkage.cost(slim.values)
        gap = estimate_gap(self.loss, self.shrinkage, residual, objective)
        measured = replace(slim, objective=objective, gap=gap)
        return measured if gap <= self.tol else self._grown(measured, residual)

    def _grown(self, state: ALSState, residual: Array) -> ALSState:
        """Join the strongest directions of (I - U U') E (I - V V') whose singular value sigma exceeds the penalty.

        Along such a u v' the objective falls, most at the amount (sigma - penalty) / L.
        """
        width = len(state.values)
        room = min(self.max_rank - width, max(FEWEST_NEW, width))
        if room <= 0:
            return state
        complement = _Deflated(SparseOperator(self.loss.matrix(residual)), state.left, state.right)
        found = lanczos(complement, 2 * room + 20, self.random_state)
        fresh = min(room, int(np.count_nonzero(found.values > self.shrinkage.penalty)))
        amounts = (found.values[:fresh] - self.shrinkage.penalty) / self.loss.lipschitz
        left, right = found.left[:, :fresh], found.right[:, :fresh]
        return replace(
            state,
            left=np.hstack([state.left, left]),
            values=np.append(state.values, amounts),
            right=np.hstack([state.right, right]),
        )

    def solution(self, state: ALSState) -> FittedSVD:
        """The matrix found, after a last threshold within the span of its columns: small factors become zero."""
        L, V = self.loss.lipschitz, state.right
        product = self.loss.matrix(self.loss.residual(state.left * state.values, V)) @ V
        U, s, Rt = np.linalg.svd(product / L + state.left * state.values, full_matrices=False)
        values = self.shrinkage.prox(s, L)
        kept = int(np.count_nonzero(values))
        left, values, right = U[:, :kept], values[:kept], np.ascontiguousarray(V @ Rt[:kept].T)
        residual = self.loss.residual(left * values, right)
        return FittedSVD(left, values, right, residual, self.loss.value(residual) + self.shrinkage.cost(values))

    def measure(self, state: ALSState) -> float:
        """f + penalty |M|_tr as of the last check."""
        return state.objective

    def terminate(self, state: ALSState) -> Status | None:
        """At the gap asked for, or with nothing left to fit."""
        return Status.CONVERGED if state.gap <= self.tol or len(state.values) == 0 else None


@dataclass(frozen=True, eq=False)
class _Deflated:
    """The operator (I - U U') E (I - V V'): E outside the directions that are already there."""

    inner: SparseOperator
    left: Array
    right: Array

    @property
    def shape(self) -> tuple[int, int]:
        return self.inner.shape

    def times(self, right: Array) -> Array:
        """Z X."""
        product = self.inner.times(right - self.right @ (self.right.T @ right))
        return product - self.left @ (self.left.T @ product)

    def transposed_times(self, left: Array) -> Array:
        """Z' X."""
        product = self.inner.transposed_times(left - self.left @ (self.left.T @ left))
        return product - self.right @ (self.right.T @ product)
