"""T factored matrices whose rows are points on spheres, so that the max-norm's limit needs no constraint."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[Any]


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
