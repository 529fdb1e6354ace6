"""An upper bound on sup <C, M> over the convex version space, read off a factored best response."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor
from scipy.sparse.linalg import svds

from surefill.spaces.grams import Matrix
from surefill.spaces.version_space import VersionSpace

DENSE_SIDE = 400
"""Shorter side up to which all singular values are computed; beyond, Lanczos finds the largest few."""

VERIFIED_SIDE = 3000
"""Shorter side up to which the norm that Lanczos found is proved by a Cholesky factorisation."""

FLOOR = 1e-2
"""Smallest y_i, as a share of their mean: rows without weight may have none."""

RAISED_FLOOR = 1e-6
"""The same for y after it was raised; where B has low rank and rows of zeros, nothing would be left of it there."""


@dataclass(frozen=True, eq=False)
class DualBound:
    """No member of the version space exceeds ``value`` against C.

    ``directions`` (m + n rows) are where the factored response could still gain, ``strengths`` - 1 how much: all
    strengths are at most 1 exactly if the response is the best.
    """

    value: float
    strengths: NDArray[np.float64]
    directions: Matrix


def bound_from_response(
    space: VersionSpace, C: Matrix, U: Matrix, V: Matrix, ball: float, box: Matrix | None = None
) -> DualBound:
    """(K/2) sum(y) + sum|A| + sqrt(beta sum_S Z_x^2 / w_x) >= sup over V of <C, M>, C = B + Z + A.

    Z_x = ball w_x (u_i . v_j) on S and A = ``box`` hold the multipliers of the response U V', and
    y = ((B v)_i . u_i / K, (B' u)_j . v_j / K) those of its rows. With D = diag(y), diag(y) - [[0, B], [B', 0]] is
    PSD exactly if |D1^-1/2 B D2^-1/2|_2 <= 1, so y times that norm is valid whatever y was; where few singular
    values exceed the others, y is first raised where their vectors live.
    """
    seen, K = space.observations, space.matrix_class.radius
    m = space.shape[0]
    entries = np.einsum("xk,xk->x", U[seen.rows], V[seen.cols])
    Z = ball * seen.weights * entries
    B = C.astype(np.float64) if box is None else C - box
    B[seen.rows, seen.cols] -= Z
    y = np.concatenate([np.einsum("ik,ik->i", B @ V, U), np.einsum("jk,jk->j", B.T @ U, V)]) / K
    y = np.maximum(y, FLOOR * np.abs(y).mean())
    rest = np.sqrt(space.beta * np.sum(Z**2 / seen.weights)) + (0.0 if box is None else np.abs(box).sum())
    if not y.any():
        y = np.ones_like(y)
    left, strengths, right = top_singular(_scaled(B, y, m))
    root = np.sqrt(y)
    directions = np.concatenate([left / root[:m, None], right / root[m:, None]])
    plain = _dual_norm(B, y, m, strengths[0])
    raised = _raise_where_needed(y, left, strengths, right)
    raised_norm = _dual_norm(B, raised, m) if raised is not None else plain
    return DualBound(float(K * min(plain, raised_norm) + rest), strengths, directions)


def top_singular(B: Matrix, count: int = 12) -> tuple[Matrix, NDArray[np.float64], Matrix]:
    """The largest singular values of B, in falling order, with their vectors as columns."""
    if min(B.shape) <= DENSE_SIDE:
        left, values, right = np.linalg.svd(B, full_matrices=False)
        return left[:, :count], values[:count], right[:count].T
    left, values, right = svds(B, k=count, v0=np.ones(min(B.shape)), tol=1e-4)
    order = np.argsort(-values)
    return left[:, order], values[order].astype(np.float64), right[order].T


def spectral_norm_bound(B: Matrix, guess: float | None = None) -> float:
    """At least |B|_2: raised until t^2 I - B'B has a Cholesky factor, where that is affordable."""
    norm = float(top_singular(B, 2)[1][0]) if guess is None else guess
    if min(B.shape) <= DENSE_SIDE:
        return norm * (1 + 1e-10)
    norm *= 1 + 1e-4
    if min(B.shape) > VERIFIED_SIDE:
        return norm * (1 + 1e-3)
    gram = B.T @ B if B.shape[1] <= B.shape[0] else B @ B.T
    while True:
        try:
            cho_factor(norm**2 * np.eye(len(gram)) - gram, overwrite_a=True)
            return norm
        except LinAlgError:
            norm *= 1 + 1e-3


def _scaled(B: Matrix, y: NDArray[np.float64], m: int) -> Matrix:
    """D1^-1/2 B D2^-1/2."""
    root = np.sqrt(y)
    return B / root[:m, None] / root[m:]


def _dual_norm(B: Matrix, y: NDArray[np.float64], m: int, guess: float | None = None) -> float:
    """(1/2) sum(y) |D1^-1/2 B D2^-1/2|_2 >= sup of <B, M> over max-norm(M) <= 1, for every y > 0."""
    return 0.5 * float(y.sum()) * spectral_norm_bound(_scaled(B, y, m), guess)


def _raise_where_needed(
    y: NDArray[np.float64], left: Matrix, strengths: NDArray[np.float64], right: Matrix
) -> NDArray[np.float64] | None:
    """s y + sum_k (s_k - s) |a_k| sum|a_k| over singular values s_k above s, a_k = sqrt(y) (left_k, right_k) / sqrt(2).

    diag(|a| sum|a|) - a a' is PSD, so this takes the excess of the first few away at less than s_1 sum(y) where
    their vectors are uneven. None if the best s is the largest value itself.
    """
    a = np.abs(np.sqrt(y)[:, None] * np.concatenate([left, right])) / np.sqrt(2)
    costs = a.sum(axis=0) ** 2
    totals = [s * y.sum() + np.sum((strengths[:k] - s) * costs[:k]) for k, s in enumerate(strengths)]
    best = int(np.argmin(totals))
    if best == 0:
        return None
    excess = strengths[:best] - strengths[best]
    raised: NDArray[np.float64] = strengths[best] * y + a[:, :best] @ (excess * a[:, :best].sum(axis=0))
    np.maximum(raised, RAISED_FLOOR * raised.mean(), out=raised)
    return raised
