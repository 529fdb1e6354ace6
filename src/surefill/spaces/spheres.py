"""Factors parametrised by points on spheres, so that the limit on a matrix's norm needs no constraint."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from surefill.arrays import Floats


@dataclass(frozen=True, eq=False)
class Point:
    """Factors of T matrices at some variables: M^t = U^t V^t', every row of U^t and V^t at most sqrt(K) long.

    ``left`` (m x T r) and ``right`` (n x T r) hold the T matrices side by side.
    """

    spheres: Spheres
    on_sphere: Floats
    lengths: Floats
    left: Floats
    right: Floats

    def factors(self, t: int) -> tuple[Floats, Floats]:
        """U^t and V^t."""
        columns = self.spheres.columns(t)
        return self.left[:, columns], self.right[:, columns]

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
    """Rows a -> sqrt(K) a / |a| on spheres of width + 1 dimensions, the last of which is dropped in the product.

    So every row of the factors is at most sqrt(K) long and the max-norm of U V' at most K; the spare coordinate lets a
    row be shorter. ``count`` is T, the number of matrices of ``shape`` (m, n); ``width`` the columns of their factors.
    """

    shape: tuple[int, int]
    K: float
    count: int
    width: int
    dtype: type[np.floating[Any]] = np.float64

    def columns(self, t: int) -> slice:
        """Where the factors of M^t lie among the stacked ones."""
        return slice(t * self.width, (t + 1) * self.width)

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
class FrobeniusSphere(Spheres):
    """One sphere per matrix for the trace norm: a -> sqrt(2 tau) a / |a|, a all of U^t and V^t and a spare coordinate.

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
        return FrobeniusPoint(self, on_sphere, lengths, left, right)


@dataclass(frozen=True, eq=False)
class FrobeniusPoint(Point):
    """Variables of :class:`FrobeniusSphere` turned into factors."""

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
