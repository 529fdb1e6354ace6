"""T factored matrices with both factors on one sphere, so that the trace norm's limit needs no constraint."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from surefill.spaces.sphere import Floats, Point, Spheres


@dataclass(frozen=True)
class WholeSpheres(Spheres):
    """a -> sqrt(2 tau) a / |a|, with all rows of U^t, V^t and one spare coordinate as one vector a.

    |U|_F^2 + |V|_F^2 <= 2 tau, so the trace norm of U V' is at most tau, and every matrix of that norm is reached. The
    spare coordinate of every row but the first is zero. ``K`` is tau.
    """

    def random(self, rng: np.random.Generator) -> Floats:
        """Variables with independent entries."""
        a = rng.normal(size=(sum(self.shape), self.count, self.width + 1))
        a[1:, :, -1] = 0.0
        return a.ravel().astype(self.dtype)

    def point(self, variables: Floats) -> Point:
        """The factors at ``variables``."""
        a = variables.reshape(sum(self.shape), self.count, self.width + 1)
        lengths = np.sqrt(np.einsum("itk,itk->t", a, a) / self.dtype(2 * self.K))
        on_sphere = a / lengths[None, :, None]
        factors = on_sphere[:, :, :-1].reshape(len(a), -1)
        left, right = factors[: self.shape[0]], factors[self.shape[0] :]
        return WholePoint(self, on_sphere, lengths, left, right)


@dataclass(frozen=True, eq=False)
class WholePoint(Point):
    """Variables of :class:`WholeSpheres` turned into factors."""

    def pull_back(self, d_left: Floats, d_right: Floats) -> Floats:
        """The gradient in the variables: the part of the factors' gradient along the sphere, over the length."""
        s = self.spheres
        m = s.shape[0]
        gradient = np.zeros_like(self.on_sphere)
        gradient[:m, :, :-1] = d_left.reshape(m, s.count, s.width)
        gradient[m:, :, :-1] = d_right.reshape(-1, s.count, s.width)
        along = np.einsum("itk,itk->t", gradient, self.on_sphere) / s.dtype(2 * s.K)
        gradient -= along[None, :, None] * self.on_sphere
        gradient /= self.lengths[None, :, None]
        gradient[1:, :, -1] = 0.0
        return gradient.ravel()
