"""What limits a low-rank fit, seen as a map of singular values: a penalty, a ball, or a rank.

Each is the proximal map of its limit h: argmin_M (L/2) |M - Z|_F^2 + h(M) keeps the singular vectors of Z and maps
its singular values, so a solver that knows the largest of them knows the answer. The two convex ones bound how far M is
from optimal by the spectral norm of the residual E = -grad f(M): the dual of min f + h is a problem over matrices Z
that live on the sample, and multiples of E are tried as Z.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from surefill.arrays import Array
from surefill.completion.spectral.squared_loss import Sample


class Shrinkage(Protocol):
    """h of min f + h."""

    @property
    def convex(self) -> bool:
        """Whether a duality gap exists."""
        ...

    def apply(self, values: Array, lipschitz: float) -> Array:
        """The singular values of the proximal map, in falling order like those given."""
        ...

    def cost(self, values: Array) -> float:
        """h(M) where it is finite."""
        ...

    def lower_bound(self, sample: Sample, residual: Array, sigma: float) -> float:
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

    def apply(self, values: Array, lipschitz: float) -> Array:
        """(s - penalty / L)+."""
        return np.maximum(values - self.penalty / lipschitz, 0.0)

    def cost(self, values: Array) -> float:
        """penalty sum(s)."""
        return self.penalty * float(values.sum())

    def lower_bound(self, sample: Sample, residual: Array, sigma: float) -> float:
        """max over 0 <= t <= penalty / sigma of t <E, r> - t^2 f, f = f(M) = (1/2) sum E_x^2 / c_x."""
        square = 2 * sample.loss(residual)
        if square == 0.0:
            return 0.0
        slope = float(residual @ sample.rows.target)
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

    def apply(self, values: Array, lipschitz: float) -> Array:
        """(s - theta)+ with theta = 0 if the sum is at most tau, else such that they add up to tau."""
        if values.sum() <= self.tau:
            return values
        theta = (np.cumsum(values) - self.tau) / np.arange(1, len(values) + 1)
        kept = int(np.flatnonzero(values > theta)[-1])
        return np.asarray(np.maximum(values - theta[kept], 0.0))

    def cost(self, values: Array) -> float:
        """0 inside."""
        return 0.0

    def lower_bound(self, sample: Sample, residual: Array, sigma: float) -> float:
        """max over t >= 0 of t (<E, r> - tau sigma) - t^2 f."""
        square = 2 * sample.loss(residual)
        slope = max(0.0, float(residual @ sample.rows.target) - self.tau * sigma)
        return 0.5 * slope**2 / square if square > 0 else 0.0


@dataclass(frozen=True)
class RankLimit:
    """h(M) = 0 if rank(M) <= rank, else infinite: the largest singular values stay. Not convex, so no bound."""

    rank: int
    convex: bool = False

    def apply(self, values: Array, lipschitz: float) -> Array:
        """The first ``rank`` values."""
        return np.where(np.arange(len(values)) < self.rank, values, 0.0)

    def cost(self, values: Array) -> float:
        """0 inside."""
        return 0.0

    def lower_bound(self, sample: Sample, residual: Array, sigma: float) -> float:
        """Nothing better than 0 is known."""
        return 0.0
