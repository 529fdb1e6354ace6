"""Regularisers of singular values and their proximal maps: the trace-norm penalty, the trace-norm ball, a rank.

The proximal map of h, argmin_M (L/2) |M - Z|_F^2 + h(M) keeps the singular vectors of Z and maps
its singular values, so a solver that knows the largest of them knows the answer. The two convex ones bound how far M is
from optimal by the spectral norm of the residual E = -grad f(M): the dual of min f + h is a problem over matrices Z
that live on the sample, and multiples of E are tried as Z.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from surefill.arrays import Array
from surefill.completion.base import OptimalityGap
from surefill.completion.spectral.squared_loss import SquaredLoss
from surefill.spaces.spectral_norm import SparseOperator, bound_spectral_norm, lanczos

GAP_LANCZOS_STEPS = 100
"""Steps of Lanczos for the norm that decides when to stop; the certificate of the result takes as many as it needs."""

EXACT_FIT = 1e-6
"""Share of f(0) below which an objective is compared with that share instead of itself: at an exact fit it is 0."""


class Shrinkage(Protocol):
    """A regulariser h of min f + h that depends on singular values alone."""

    @property
    def convex(self) -> bool:
        """Whether a duality gap exists."""
        ...

    def prox(self, values: Array, lipschitz: float) -> Array:
        """The singular values of the proximal map with constant L, in falling order like those given."""
        ...

    def cost(self, values: Array) -> float:
        """h(M) where it is finite."""
        ...

    def lower_bound(self, loss: SquaredLoss, residual: Array, sigma: float) -> float:
        """At most min f + h, from the residual E of some M and sigma >= |E|_2."""
        ...


@dataclass(frozen=True)
class SoftThreshold:
    """h(M) = penalty |M|_tr: singular values lose penalty / L.

    Dual: max over Z on S with |Z|_2 <= penalty of <Z, r> - (1/2) sum z_x^2 / c_x; Z = t E with t <= penalty / sigma is
    feasible, and the best such t is known in closed form.
    """

    penalty: float
    convex: bool = True

    def prox(self, values: Array, lipschitz: float) -> Array:
        """(s - penalty / L)+."""
        return np.maximum(values - self.penalty / lipschitz, 0.0)

    def cost(self, values: Array) -> float:
        """penalty sum(s)."""
        return self.penalty * float(values.sum())

    def lower_bound(self, loss: SquaredLoss, residual: Array, sigma: float) -> float:
        """max over 0 <= t <= penalty / sigma of t <E, r> - t^2 f, f = f(M) = (1/2) sum E_x^2 / c_x."""
        square = 2 * loss.value(residual)
        if square == 0.0:
            return 0.0
        slope = float(residual @ loss.rows.target)
        t = np.clip(slope / square, 0.0, self.penalty / sigma if sigma > 0 else np.inf)
        return float(t * slope - 0.5 * t**2 * square)


@dataclass(frozen=True)
class TraceBall:
    """h(M) = 0 if |M|_tr <= tau, else infinite: singular values lose what brings their sum to tau.

    Dual: max over Z on S of <Z, r> - (1/2) sum z_x^2 / c_x - tau |Z|_2, bounded at Z = t E with the best t. At t = 1
    this is the familiar f(M) - min f <= tau sigma - <E, M>.
    """

    tau: float
    convex: bool = True

    def prox(self, values: Array, lipschitz: float) -> Array:
        """(s - theta)+ with theta = 0 if the sum is at most tau, else such that they add up to tau."""
        if values.sum() <= self.tau:
            return values
        theta = (np.cumsum(values) - self.tau) / np.arange(1, len(values) + 1)
        kept = int(np.flatnonzero(values > theta)[-1])
        return np.asarray(np.maximum(values - theta[kept], 0.0))

    def cost(self, values: Array) -> float:
        """0 inside."""
        return 0.0

    def lower_bound(self, loss: SquaredLoss, residual: Array, sigma: float) -> float:
        """max over t >= 0 of t (<E, r> - tau sigma) - t^2 f."""
        square = 2 * loss.value(residual)
        slope = max(0.0, float(residual @ loss.rows.target) - self.tau * sigma)
        return 0.5 * slope**2 / square if square > 0 else 0.0


@dataclass(frozen=True)
class RankLimit:
    """h(M) = 0 if rank(M) <= rank, else infinite: the largest singular values stay. Not convex: no duality gap."""

    rank: int
    convex: bool = False

    def prox(self, values: Array, lipschitz: float) -> Array:
        """The first ``rank`` values."""
        return np.where(np.arange(len(values)) < self.rank, values, 0.0)

    def cost(self, values: Array) -> float:
        """0 inside."""
        return 0.0

    def lower_bound(self, loss: SquaredLoss, residual: Array, sigma: float) -> float:
        """0: none better is known."""
        return 0.0


def certify(
    loss: SquaredLoss, shrinkage: Shrinkage, residual: Array, values: Array, factor: float = 1.0
) -> OptimalityGap:
    """The gap of the matrix with residual E and singular values ``values``; ``factor`` changes units."""
    objective = loss.value(residual) + shrinkage.cost(values)
    if not shrinkage.convex:
        return OptimalityGap(factor * objective, 0.0, "searched")
    norm = bound_spectral_norm(loss.matrix(residual))
    return OptimalityGap(factor * objective, factor * shrinkage.lower_bound(loss, residual, norm.upper), norm.standing)


def estimate_gap(loss: SquaredLoss, shrinkage: Shrinkage, residual: Array, objective: float) -> float:
    """The relative duality gap with Lanczos' own value for the norm: quick, a little too small, to stop a solver by."""
    if not shrinkage.convex:
        return float("inf")
    sigma = float(lanczos(SparseOperator(loss.matrix(residual)), GAP_LANCZOS_STEPS).values[0])
    return (objective - shrinkage.lower_bound(loss, residual, sigma)) / max(objective, EXACT_FIT * loss.value_at_zero)
