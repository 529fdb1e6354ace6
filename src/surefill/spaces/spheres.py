"""T factored matrices whose rows are points on spheres, so that the max-norm's limit needs no constraint."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from surefill.arrays import Floats


@dataclass(frozen=True, eq=False)
class Point:
    """Unit-free variables turned into factors: M^t = U^t V^t', every row of U^t and V^t at most sqrt(K) long.

    ``left`` (m x T r) and ``right`` (n x T r) hold the T matrices side by side.
    """

    spheres: Spheres
    on_sphere: Floats
    lengths: Floats
    left: Floats
    right: Floats

    def pull_back(self, d_left: Floats, d_right: Floats) -> Floats:
        """The gradient in the variables: the part of the factors' gradient along the sphere, over the row's length."""
        s = self.spheres
        m, K = s.shape[0], s.K
        gradient = np.zeros_like(self.on_sphere)
        gradient[:m, :, :-1] = d_left.reshape(m, s.count, s.width)
        gradient[m:, :, :-1] = d_right.reshape(-1, s.count, s.width)
        gradient -= (np.einsum("itk,itk->it", gradient, self.on_sphere) / s.dtype(K))[:, :, None] * self.on_sphere
        gradient /= self.lengths[:, :, None]
        return gradient.ravel()


@dataclass(frozen=True)
class Spheres:
    """a -> sqrt(K) a / |a| in width + 1 dimensions, the last of which is dropped in the product.

    The spare coordinate lets a row be shorter than sqrt(K). ``count`` matrices of an ``shape`` = (m, n).
    """

    shape: tuple[int, int]
    K: float
    count: int
    width: int
    dtype: type[np.floating[Any]] = np.float64

    def random(self, rng: np.random.Generator) -> Floats:
        """Variables with independent directions in every row."""
        return rng.normal(size=(sum(self.shape), self.count, self.width + 1)).ravel().astype(self.dtype)

    def point(self, variables: Floats) -> Point:
        """The factors at ``variables``."""
        a = variables.reshape(sum(self.shape), self.count, self.width + 1)
        lengths = np.sqrt(np.einsum("itk,itk->it", a, a) / self.dtype(self.K))
        on_sphere = a / lengths[:, :, None]
        factors = on_sphere[:, :, :-1].reshape(len(a), -1)
        return Point(self, on_sphere, lengths, factors[: self.shape[0]], factors[self.shape[0] :])

    def variables(self, left: Floats, right: Floats) -> Floats:
        """Unit-length variables whose factors are ``left`` and ``right``, shortened where a row is too long."""
        rows = np.concatenate([left, right]).astype(np.float64).reshape(-1, self.count, self.width) / np.sqrt(self.K)
        squares = np.einsum("itk,itk->it", rows, rows)
        rows = rows / np.sqrt(np.maximum(1.0, squares))[:, :, None]
        spare = np.sqrt(np.maximum(0.0, 1.0 - squares))
        return np.concatenate([rows, spare[:, :, None]], axis=2).ravel().astype(self.dtype)


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
