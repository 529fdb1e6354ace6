"""Projections of the online game: onto the simplex for C, onto the constraints of K_X for the matrices.

**Simplex.** In Euclidean distance (:func:`project_euclidean`), exact in a few passes.

**Matrices** (:func:`project_matrix_entropy`). Every matrix of the matrix player is the exponential of a diagonal plus a
bipartite part,

    P = exp(H),    H = diag(h) + [[0, B], [B^T, 0]],    h in R^(m + n),  B in R^(m x n),

since it starts at a multiple of the identity, its gradients are bipartite and the multipliers of trace and diagonal are
diagonal, those of the entries bipartite. So (h, B) is the whole state and no matrix logarithm is computed.

With Y = exp(H) the matrix before the projection and a bound b on the diagonal, the minimum over a block P of

    Delta(P, Y)    over   P_aa <= b,   |P_ij| <= 1/2  (i a row, j a column)

is attained at P = exp(H - diag(d) - [[0, Z], [Z^T, 0]]), where (d >= 0, Z) minimise the dual

    phi = tr P + b sum d + sum |Z|,

a convex function with gradients b - P_aa and sign(Z_ij) - 2 P_ij. (d, Z) are found by projected Newton: Newton's method
on the coordinates that are positive or whose constraint is violated, the linear system by conjugate gradients; a
product with the Hessian costs about three matrix products. Since |P_ij| <= b, no entry binds where b <= 1/2, and all
unknowns are then the m + n of d.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh

from surefill.arrays import Array
from surefill.errors import SolverError

MAX_NEWTON_STEPS = 60
"""Newton steps before giving up; from the last multipliers at most 10 were needed in 300 rounds at 20 x 20, K = 1."""

CG_STEPS = 60
"""Conjugate gradient steps per Newton step at most; an inexact direction is still a descent direction."""

CG_REDUCTION = 0.02
"""Largest share of the residual that conjugate gradients may leave: a product costs a third of an evaluation."""

CG_SMALLEST_REDUCTION = 1e-6
"""Smallest share asked for: the next Newton step corrects what is left, and more digits would only cost products."""

ARMIJO = 1e-4
"""Share of the linear decrease that a step must achieve, the customary constant of the Armijo rule."""

PHI_ROUNDING = 1e-12
"""Relative rounding error of phi that the Armijo rule forgives."""

MAX_HALVINGS = 40
"""Step lengths tried, down to 2^-39 of the Newton step."""

EQUAL_EIGENVALUES = 1e-8
"""Half differences below which sinh(x) / x is 1 to double precision (its error is x^2 / 6)."""


def project_euclidean(point: Array) -> Array:
    """argmin of |C - W|_F over {sum C = 1, C >= 0}, W = ``point``: C_x = max(0, W_x - t), sum C = 1 (Michelot)."""
    flat = point.ravel()
    positive = flat
    while True:
        shift = (positive.sum() - 1.0) / positive.size
        above = positive > shift
        if above.all():
            projected: Array = np.maximum(point - shift, 0.0)
            return projected
        positive = positive[above]


class BipartiteMatrix(NamedTuple):
    """diag(h^k) + [[0, B^k], [B^kT, 0]] for each block k: ``diagonal`` (k, m + n) and ``off_diagonal`` (k, m, n)."""

    diagonal: Array
    off_diagonal: Array

    def zeros(self) -> BipartiteMatrix:
        """Zero, of the same shape."""
        return BipartiteMatrix(np.zeros_like(self.diagonal), np.zeros_like(self.off_diagonal))

    def minus(self, other: BipartiteMatrix) -> BipartiteMatrix:
        """The difference."""
        return self.plus(other, -1.0)

    def plus(self, other: BipartiteMatrix, scale: float) -> BipartiteMatrix:
        """The sum with ``scale`` times the other."""
        return BipartiteMatrix(self.diagonal + scale * other.diagonal, self.off_diagonal + scale * other.off_diagonal)

    def dot(self, other: BipartiteMatrix) -> float:
        """The inner product of the stored numbers."""
        return float(np.vdot(self.diagonal, other.diagonal) + np.vdot(self.off_diagonal, other.off_diagonal))

    def times(self, other: BipartiteMatrix) -> BipartiteMatrix:
        """The entrywise product."""
        return BipartiteMatrix(self.diagonal * other.diagonal, self.off_diagonal * other.off_diagonal)

    def max_abs(self) -> float:
        """The largest absolute entry."""
        return float(max(np.abs(self.diagonal).max(), np.abs(self.off_diagonal).max()))


class BlockExponential:
    """exp(diag(h) + [[0, B], [B^T, 0]]) of one block, by its eigendecomposition."""

    def __init__(self, h: Array, B: Array) -> None:
        self.m, n = B.shape
        H = np.zeros((self.m + n, self.m + n), order="F")
        H[self.m :, : self.m] = B.T  # eigh reads the lower triangle alone
        H[np.diag_indices_from(H)] = h
        self.eigenvalues, vectors = eigh(H, overwrite_a=True, check_finite=False, driver="evr")
        self.row_vectors, self.col_vectors = vectors[: self.m], vectors[self.m :]

    def parts(self, values: Array) -> tuple[Array, Array]:
        """Diagonal and off-diagonal block of V diag(values) V^T."""
        up, low = self.row_vectors, self.col_vectors
        return np.concatenate([up**2 @ values, low**2 @ values]), (up * values) @ low.T

    @cached_property
    def differences(self) -> Array:
        """The divided differences of exp at the eigenvalues."""
        return divided_differences(self.eigenvalues)

    def derivative(self, diagonal: Array, off_diagonal: Array) -> tuple[Array, Array]:
        """The two parts of the derivative of exp at H, along diag(diagonal) + [[0, off_diagonal], .]."""
        up, low = self.row_vectors, self.col_vectors
        left = off_diagonal @ low + diagonal[: self.m, None] * up
        right = off_diagonal.T @ up + diagonal[self.m :, None] * low
        W = (up.T @ left + low.T @ right) * self.differences
        up_W, low_W = up @ W, low @ W
        return np.concatenate([np.sum(up_W * up, axis=1), np.sum(low_W * low, axis=1)]), up_W @ low.T


def divided_differences(values: Array) -> Array:
    """(e^a - e^b) / (a - b) for all pairs, e^a where they agree."""
    middle = (values[:, None] + values) / 2
    half = (values[:, None] - values) / 2
    # (e^a - e^b) / (a - b) = e^middle sinh(half) / half, without cancellation
    ratio = np.ones_like(half)
    np.divide(np.sinh(half), half, out=ratio, where=np.abs(half) > EQUAL_EIGENVALUES)
    result: Array = np.exp(middle) * ratio
    return result


class DualPoint:
    """phi at one choice of multipliers (d, Z): its value, gradient, Hessian, and the matrices P^k.

    ``diagonal`` and ``off_diagonal`` are those of P^k.
    """

    def __init__(self, log: BipartiteMatrix, multipliers: BipartiteMatrix, bound: float) -> None:
        self.multipliers, self.bound = multipliers, bound
        self.log = log.minus(multipliers)
        self.blocks = [BlockExponential(h, B) for h, B in zip(self.log.diagonal, self.log.off_diagonal, strict=True)]
        with np.errstate(over="ignore", invalid="ignore"):  # of a trial step far too long, which phi then refuses
            parts = [block.parts(np.exp(block.eigenvalues)) for block in self.blocks]
            self.diagonal = np.stack([diagonal for diagonal, _ in parts])
            self.off_diagonal = np.stack([off_diagonal for _, off_diagonal in parts])
            d, Z = multipliers
            self.phi = float(self.diagonal.sum() + bound * d.sum() + np.abs(Z).sum())

    def residual(self) -> tuple[BipartiteMatrix, BipartiteMatrix]:
        """-(gradient of phi) on the free coordinates, 0 elsewhere; and the indicator of the free coordinates.

        d is free where it is positive or its constraint is violated, Z where it is not 0 or its constraint is violated.
        """
        d, Z = self.multipliers
        excess = self.diagonal - self.bound
        free_d = (d > 0) | (excess > 0)
        entries = 2 * self.off_diagonal
        sign = np.where(Z != 0, np.sign(Z), np.sign(entries))
        free_Z = (Z != 0) | (np.abs(entries) > 1)
        free = BipartiteMatrix(free_d.astype(np.float64), free_Z.astype(np.float64))
        return BipartiteMatrix(excess * free_d, (entries - sign) * free_Z), free

    def newton_direction(self, residual: BipartiteMatrix, free: BipartiteMatrix) -> BipartiteMatrix:
        """Hessian of phi on the free coordinates, solved for ``residual`` by preconditioned conjugate gradients."""
        preconditioner = self._inverse_hessian_diagonal(free)
        solution = residual.zeros()
        left = residual
        direction = scaled = preconditioner.times(left)
        strength = left.dot(scaled)
        goal = max(CG_SMALLEST_REDUCTION, min(CG_REDUCTION, residual.max_abs())) ** 2 * strength
        for _ in range(CG_STEPS):
            image = self.hessian_product(direction).times(free)
            curvature = direction.dot(image)
            if curvature <= 0 or strength <= goal:
                break
            solution = solution.plus(direction, strength / curvature)
            left = left.plus(image, -strength / curvature)
            scaled = preconditioner.times(left)
            strength, before = left.dot(scaled), strength
            direction = scaled.plus(direction, strength / before)
        return solution

    def hessian_product(self, direction: BipartiteMatrix) -> BipartiteMatrix:
        """The Hessian of phi times ``direction``."""
        parts = [
            block.derivative(d, Z)
            for block, d, Z in zip(self.blocks, direction.diagonal, direction.off_diagonal, strict=True)
        ]
        return BipartiteMatrix(np.stack([d for d, _ in parts]), 2 * np.stack([Z for _, Z in parts]))

    def _inverse_hessian_diagonal(self, free: BipartiteMatrix) -> BipartiteMatrix:
        """1 / Hessian_aa by the midpoint rule: Q_aa^2 and 2 (Q_ii Q_jj + Q_ij^2) with Q = exp(H / 2)."""
        halves = [block.parts(np.exp(block.eigenvalues / 2)) for block in self.blocks]
        diagonal, off_diagonal = np.stack([q for q, _ in halves]), np.stack([Q for _, Q in halves])
        m = off_diagonal.shape[1]
        outer = diagonal[:, :m, None] * diagonal[:, None, m:]
        return BipartiteMatrix(free.diagonal / diagonal**2, free.off_diagonal / (2 * (outer + off_diagonal**2)))


@dataclass(frozen=True, eq=False)
class MatrixProjection:
    """The projected matrices: their logarithm (h, B), P_12, the multipliers, and the largest violation left."""

    log: BipartiteMatrix
    off_diagonal: Array
    multipliers: BipartiteMatrix
    violation: float
    evaluations: int


def project_matrix_entropy(log: BipartiteMatrix, bound: float, start: BipartiteMatrix, tol: float) -> MatrixProjection:
    """argmin of Delta(P^k, exp(H^k)) over P^k_aa <= ``bound``, |P^k_ij| <= 1/2; H = ``log``, multipliers ``start``.

    Ends when no constraint is violated, or left slack with a nonzero multiplier, by more than ``tol``.
    """
    point = DualPoint(log, start, bound)
    evaluations = 1
    for _ in range(MAX_NEWTON_STEPS):
        residual, free = point.residual()
        violation = residual.max_abs()
        if violation <= tol:
            return MatrixProjection(point.log, point.off_diagonal, point.multipliers, violation, evaluations)
        direction = point.newton_direction(residual, free)
        point, used = _line_search(log, bound, point, direction, residual)
        evaluations += used
    raise SolverError(f"the projection did not reach {tol:g}: take smaller steps (eta) or a larger tol.")


def _line_search(
    log: BipartiteMatrix, bound: float, point: DualPoint, direction: BipartiteMatrix, residual: BipartiteMatrix
) -> tuple[DualPoint, int]:
    """Backtracking on the projected Newton direction: the first of 1, 1/2, 1/4, ... that meets the Armijo rule."""
    length = 1.0
    for used in range(1, MAX_HALVINGS + 1):
        moved = _step_within_signs(point, direction, length, residual)
        trial = DualPoint(log, moved, bound)
        decrease = residual.dot(moved.minus(point.multipliers))
        if trial.phi <= point.phi - ARMIJO * decrease + PHI_ROUNDING * abs(point.phi):
            return trial, used
        length /= 2
    raise SolverError("the projection's line search found no descent: take smaller steps (eta).")


def _step_within_signs(
    point: DualPoint, direction: BipartiteMatrix, length: float, residual: BipartiteMatrix
) -> BipartiteMatrix:
    """Multipliers moved along ``direction`` and clipped at zero: d >= 0, and Z keeps the sign it has or takes."""
    d, Z = point.multipliers.plus(direction, length)
    old = point.multipliers.off_diagonal
    sign = np.where(old != 0, np.sign(old), np.sign(residual.off_diagonal))
    return BipartiteMatrix(np.maximum(d, 0.0), np.where(Z * sign > 0, Z, 0.0))
