"""The projection of the matrix player: matrix relative entropy, onto limits of trace, diagonal and entries.

Every matrix the player meets is the exponential of a diagonal plus a bipartite part,

    P = exp(H),    H = diag(h) + [[0, B], [B^T, 0]],    h in R^(m + n),  B in R^(m x n),

since it starts at a multiple of the identity, its gradients are bipartite and the multipliers of trace and diagonal are
diagonal, those of the entries bipartite. So (h, B) is all there is to remember and no logarithm is ever taken.

With Y = exp(H) before, one or two blocks P^k and limits tau, K, 1/2,

    min sum_k Delta(P^k, Y^k)    over   sum_k tr P^k <= tau,   P^k_aa <= K,   |P^k_ij| <= 1/2  (i a row, j a column)

is attained at P^k = exp(H^k - nu I - diag(d^k) - [[0, Z^k], [Z^kT, 0]]), where (nu, d >= 0, Z) minimise

    phi = sum_k tr P^k + nu tau + K sum d + sum |Z|,

a convex function with gradients tau - sum tr P, K - P_aa and sign(Z_ij) - 2 P_ij. nu has a closed form, the log of the
total trace over tau where that is positive. (d, Z) are found by Newton's method on the coordinates that are positive or
want to be (projected Newton), the linear system by conjugate gradients; a product with the Hessian costs about three
products of matrices.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh

from surefill.arrays import Array
from surefill.errors import InputError, SolverError


def project_relative_entropy(weights: Array, floor: float) -> Array:
    """argmin of sum_x C_x log(C_x / W_x) - C_x + W_x over {sum C = 1, C >= floor}, for W = ``weights`` > 0.

    Stationarity is log(C_x / W_x) = -lambda + mu_x with mu_x >= 0 and mu_x (C_x - floor) = 0, so
    C_x = max(floor, s W_x) with s = e^-lambda the root of sum_x max(floor, s W_x) = 1.
    """
    flat = weights.ravel()
    if floor * flat.size > 1:
        raise InputError(f"{flat.size} cells of at least {floor:g} add up to more than 1.")
    free = np.ones(flat.size, dtype=bool)
    scale = 1.0 / flat.sum()
    while True:
        low = free & (flat * scale < floor)
        if not low.any():
            return np.where(free, flat * scale, floor).reshape(weights.shape)
        free &= ~low
        if not free.any():  # only where the floor is 1/size, to rounding
            return np.full(weights.shape, 1.0 / flat.size)
        scale = (1.0 - floor * (flat.size - np.count_nonzero(free))) / flat[free].sum()


def project_euclidean(point: Array) -> Array:
    """argmin of |C - W|_F over {sum C = 1, C >= 0}, W = ``point``: C_x = max(0, W_x - t), sum C = 1 (Michelot)."""
    flat = point.ravel()
    kept = flat
    while True:
        shift = (kept.sum() - 1.0) / kept.size
        above = kept > shift
        if above.all():
            projected: Array = np.maximum(point - shift, 0.0)
            return projected
        kept = kept[above]


MAX_NEWTON_STEPS = 60
CG_STEPS = 60
CG_REDUCTION = 0.02
"""Largest share of the residual that conjugate gradients may leave: a product costs a third of an evaluation."""


class Limits(NamedTuple):
    """sum_k tr P^k <= trace, P^k_aa <= diagonal, |P^k_ij| <= 1/2."""

    trace: float
    diagonal: float


class Bipartite(NamedTuple):
    """diag(h^k) + [[0, B^k], [B^kT, 0]] for each block k: ``diagonal`` (k, m + n) and ``across`` (k, m, n)."""

    diagonal: Array
    across: Array

    def minus(self, other: Bipartite, shift: float = 0.0) -> Bipartite:
        """The difference, less ``shift`` times the identity."""
        return Bipartite(self.diagonal - other.diagonal - shift, self.across - other.across)

    def plus(self, other: Bipartite, scale: float) -> Bipartite:
        """The sum with ``scale`` times the other."""
        return Bipartite(self.diagonal + scale * other.diagonal, self.across + scale * other.across)

    def dot(self, other: Bipartite) -> float:
        """The inner product of the stored numbers."""
        return float(np.vdot(self.diagonal, other.diagonal) + np.vdot(self.across, other.across))

    def times(self, other: Bipartite) -> Bipartite:
        """The product, number by number."""
        return Bipartite(self.diagonal * other.diagonal, self.across * other.across)

    def largest(self) -> float:
        """The largest size of a number."""
        return float(max(np.abs(self.diagonal).max(), np.abs(self.across).max()))


class Block:
    """exp(diag(h) + [[0, B], [B^T, 0]]) of one block, through its eigenvectors."""

    def __init__(self, h: Array, B: Array) -> None:
        self.m, n = B.shape
        H = np.zeros((self.m + n, self.m + n), order="F")
        H[self.m :, : self.m] = B.T
        H[np.diag_indices_from(H)] = h
        self.values, vectors = eigh(H, overwrite_a=True, check_finite=False, driver="evr")
        self.upper, self.lower = vectors[: self.m], vectors[self.m :]

    def marginals(self, values: Array) -> tuple[Array, Array]:
        """Diagonal and across part of V diag(values) V^T."""
        diagonal = np.concatenate([self.upper**2 @ values, self.lower**2 @ values])
        return diagonal, (self.upper * values) @ self.lower.T

    def derivative(self, shift: float, diagonal: Array, across: Array) -> tuple[Array, Array]:
        """Diagonal and across part of the derivative of exp at H - shift I, along diag(diagonal) + [[0, across], .]."""
        up, low = self.upper, self.lower
        left = across @ low + diagonal[: self.m, None] * up
        right = across.T @ up + diagonal[self.m :, None] * low
        W = (up.T @ left + low.T @ right) * divided_differences(self.values - shift)
        up_W, low_W = up @ W, low @ W
        return np.concatenate([np.sum(up_W * up, axis=1), np.sum(low_W * low, axis=1)]), up_W @ low.T


def divided_differences(values: Array) -> Array:
    """(e^a - e^b) / (a - b) for all pairs, e^a where they agree."""
    middle = (values[:, None] + values) / 2
    half = (values[:, None] - values) / 2
    ratio = np.ones_like(half)
    np.divide(np.sinh(half), half, out=ratio, where=np.abs(half) > 1e-8)
    result: Array = np.exp(middle) * ratio
    return result


class Spectrum:
    """Everything known at one choice of multipliers: the projected matrices, phi, and its derivatives."""

    def __init__(self, log: Bipartite, multipliers: Bipartite, limits: Limits) -> None:
        self.multipliers, self.limits = multipliers, limits
        self.log = log.minus(multipliers)
        self.blocks = [Block(h, B) for h, B in zip(self.log.diagonal, self.log.across, strict=True)]
        top = max(block.values[-1] for block in self.blocks)
        total = sum(np.exp(block.values - top).sum() for block in self.blocks)
        self.shift = max(0.0, top + float(np.log(total / limits.trace)))
        marginals = [block.marginals(np.exp(block.values - self.shift)) for block in self.blocks]
        self.diagonal = np.stack([diagonal for diagonal, _ in marginals])
        self.across = np.stack([across for _, across in marginals])
        d, Z = multipliers
        self.phi = float(self.diagonal.sum() + self.shift * limits.trace + limits.diagonal * d.sum() + np.abs(Z).sum())

    def residual(self) -> tuple[Bipartite, Bipartite]:
        """-(gradient of phi) where it counts, and 1 on the coordinates that Newton may move, 0 on the others.

        d may move where it is positive or its limit is exceeded, Z where it is not 0 or its limit is exceeded.
        """
        d, Z = self.multipliers
        over = self.diagonal - self.limits.diagonal
        free_d = (d > 0) | (over > 0)
        entries = 2 * self.across
        side = np.where(Z != 0, np.sign(Z), np.sign(entries))
        free_Z = (Z != 0) | (np.abs(entries) > 1)
        free = Bipartite(free_d.astype(np.float64), free_Z.astype(np.float64))
        return Bipartite(over * free_d, (entries - side) * free_Z), free

    def newton_direction(self, residual: Bipartite, free: Bipartite) -> Bipartite:
        """Hessian of phi (nu eliminated) on the free coordinates, solved for ``residual`` by conjugate gradients."""
        inverse = self._diagonal_inverse(free)
        solution = Bipartite(np.zeros_like(residual.diagonal), np.zeros_like(residual.across))
        left = residual
        direction = scaled = inverse.times(left)
        strength = left.dot(scaled)
        goal = max(1e-6, min(CG_REDUCTION, residual.largest())) ** 2 * strength
        for _ in range(CG_STEPS):
            image = self._hessian(direction).times(free)
            curvature = direction.dot(image)
            if curvature <= 0 or strength <= goal:
                break
            solution = solution.plus(direction, strength / curvature)
            left = left.plus(image, -strength / curvature)
            scaled = inverse.times(left)
            strength, before = left.dot(scaled), strength
            direction = scaled.plus(direction, strength / before)
        return solution

    def _hessian(self, direction: Bipartite) -> Bipartite:
        parts = [
            block.derivative(self.shift, d, Z)
            for block, d, Z in zip(self.blocks, direction.diagonal, direction.across, strict=True)
        ]
        diagonal, across = np.stack([d for d, _ in parts]), 2 * np.stack([Z for _, Z in parts])
        if self.shift > 0:
            first = np.vdot(self.diagonal, direction.diagonal) + 2 * np.vdot(self.across, direction.across)
            share = float(first) / self.limits.trace
            diagonal -= share * self.diagonal
            across -= 2 * share * self.across
        return Bipartite(diagonal, across)

    def _diagonal_inverse(self, free: Bipartite) -> Bipartite:
        """1 / Hessian_aa by the midpoint rule: Q_aa^2 and 2 (Q_ii Q_jj + Q_ij^2) with Q = exp(H / 2)."""
        halves = [block.marginals(np.exp((block.values - self.shift) / 2)) for block in self.blocks]
        diagonal, across = np.stack([q for q, _ in halves]), np.stack([Q for _, Q in halves])
        m = across.shape[1]
        outer = diagonal[:, :m, None] * diagonal[:, None, m:]
        return Bipartite(free.diagonal / diagonal**2, free.across / (2 * (outer + across**2)))


@dataclass(frozen=True, eq=False)
class Projection:
    """The projected matrices: their logarithm (h, B), entries across, the multipliers, and the violation left."""

    log: Bipartite
    across: Array
    multipliers: Bipartite
    residual: float
    evaluations: int


def project(log: Bipartite, limits: Limits, start: Bipartite, tolerance: float) -> Projection:
    """argmin of sum_k Delta(P^k, exp(H^k)) over the limits, H = ``log``, from the multipliers ``start``.

    Ends when no limit is exceeded, and no limit with a multiplier is missed, by more than ``tolerance``.
    """
    point = Spectrum(log, start, limits)
    evaluations = 1
    for _ in range(MAX_NEWTON_STEPS):
        residual, free = point.residual()
        if residual.largest() <= tolerance:
            found = point.log.minus(zeros_like(log), point.shift)
            return Projection(found, point.across, point.multipliers, residual.largest(), evaluations)
        step = point.newton_direction(residual, free)
        point, used = _search(log, limits, point, step, residual)
        evaluations += used
    raise SolverError(f"the projection did not reach {tolerance:g}: take smaller steps (eta) or a larger tolerance.")


def zeros_like(log: Bipartite) -> Bipartite:
    """No multipliers."""
    return Bipartite(np.zeros_like(log.diagonal), np.zeros_like(log.across))


def _search(
    log: Bipartite, limits: Limits, point: Spectrum, step: Bipartite, residual: Bipartite
) -> tuple[Spectrum, int]:
    """The longest of the steps 1, 1/2, 1/4, ... along the projected Newton direction that lowers phi enough."""
    length = 1.0
    for used in range(1, 41):
        moved = _keep_signs(point, step, length, residual)
        trial = Spectrum(log, moved, limits)
        change = moved.minus(point.multipliers)
        gain = residual.dot(change)
        if trial.phi <= point.phi - 1e-4 * gain + 1e-12 * abs(point.phi):
            return trial, used
        length /= 2
    raise SolverError("the projection's line search found no descent: take smaller steps (eta).")


def _keep_signs(point: Spectrum, step: Bipartite, length: float, residual: Bipartite) -> Bipartite:
    """Multipliers moved along ``step``, stopped at zero: d stays at least 0, Z on the side where it is or starts."""
    d, Z = point.multipliers.plus(step, length)
    old = point.multipliers.across
    side = np.where(old != 0, np.sign(old), np.sign(residual.across))
    return Bipartite(np.maximum(d, 0.0), np.where(Z * side > 0, Z, 0.0))
