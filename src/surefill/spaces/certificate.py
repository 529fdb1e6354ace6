"""Upper bounds on sup <C, M> over the max-norm ball and the convex version space, read off a factored response."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg import eigh
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh

from surefill.arrays import Array
from surefill.spaces.version_space import VersionSpace

VERIFIED_SIDE = 6000
"""Shorter side up to which singular values come from the whole Gram matrix; beyond, Lanczos estimates the largest."""

LANCZOS_RESTARTS = 30

MARGIN = 1e-3
"""Added to the norm that Lanczos estimates."""

FLOOR = 1e-2
"""Smallest y_i, as a share of their mean: rows without weight may have none."""

Sparse = sparse.csr_array
"""A matrix that is zero outside the cells it stores."""
RAISED_FLOOR = 1e-6
"""The same for y after it was raised; where B has low rank and rows of zeros, nothing would be left of it there."""


@dataclass(frozen=True, eq=False)
class DualBound:
    """No member of the class exceeds ``value`` against C.

    ``directions`` (m + n rows) are where the factored response could still gain, ``strengths`` - 1 how much: all
    strengths are at most 1 exactly if the response is the best.
    """

    value: float
    strengths: NDArray[np.float64]
    directions: Array


def bound_from_response(
    space: VersionSpace, C: Array, U: Array, V: Array, ball: float, box: Array | None = None
) -> DualBound:
    """(K/2) sum(y) + sum|A| + sqrt(beta sum_S Z_x^2 / w_x) >= sup over V of <C, M>, C = B + Z + A.

    Z_x = ball w_x (u_i . v_j) on S and A = ``box`` hold the multipliers of the response U V'; y is that of
    :func:`bound_over_ball`.
    """
    seen, K = space.observations, space.matrix_class.radius
    entries = np.einsum("xk,xk->x", U[seen.rows], V[seen.cols])
    Z = ball * seen.weights * entries
    B = C.astype(np.float64) if box is None else C - box
    B[seen.rows, seen.cols] -= Z
    rest = np.sqrt(space.beta * np.sum(Z**2 / seen.weights)) + (0.0 if box is None else np.abs(box).sum())
    found = bound_over_ball(B, U, V, K)
    return replace(found, value=float(found.value + rest))


def bound_over_ball(B: Array | Sparse, U: Array, V: Array, K: float, floor: float = FLOOR) -> DualBound:
    """(K/2) sum(y) >= sup of <B, M> over max-norm(M) <= K, read off a response U V' with rows up to sqrt(K) long.

    y = ((B v)_i . u_i / K, (B' u)_j . v_j / K) are the multipliers of its rows. With D = diag(y),
    diag(y) - [[0, B], [B', 0]] is PSD exactly if |D1^-1/2 B D2^-1/2|_2 <= 1, so y times that norm is valid whatever y
    was; where few singular values exceed the others, y is first raised where their vectors live.
    """
    m = B.shape[0]
    y = np.concatenate([np.einsum("ik,ik->i", B @ V, U), np.einsum("jk,jk->j", B.T @ U, V)]) / K
    y = np.maximum(y, floor * np.abs(y).mean())
    if not y.any():
        y = np.ones_like(y)
    left, strengths, right = top_singular(_scaled(B, y, m))
    root = np.sqrt(y)
    directions = np.concatenate([left / root[:m, None], right / root[m:, None]])
    plain = 0.5 * float(y.sum()) * spectral_norm_bound(B, strengths[0])
    raised = _raise_where_needed(y, left, strengths, right)
    raised_norm = _dual_norm(B, raised, m) if raised is not None else plain
    return DualBound(K * min(plain, raised_norm), strengths, directions)


def top_singular(B: Array | Sparse, count: int = 12) -> tuple[Array, NDArray[np.float64], Array]:
    """The largest singular values of B, in falling order, with their vectors as columns.

    They come from B B' or B'B, whichever is smaller: near an optimum the largest value is as manifold as the
    optimum's rank, which a dense eigensolver does not mind and Lanczos cannot resolve.
    """
    wide = B.shape[0] <= B.shape[1]
    across: Any = B if wide else B.T
    squares, vectors = _top_eigen(across, min(count, min(B.shape)))
    values = np.sqrt(np.maximum(squares, 0.0))
    others = across.T @ vectors / np.maximum(values, 1e-8 * values[0] if values[0] > 0 else 1.0)
    return (vectors, values, others) if wide else (others, values, vectors)


def _top_eigen(B: Array | Sparse, count: int) -> tuple[NDArray[np.float64], Array]:
    """The largest eigenvalues of B B', falling, and their vectors; estimates where B has many rows."""
    side = B.shape[0]
    if side <= VERIFIED_SIDE:
        product = B @ B.T
        gram = product if isinstance(product, np.ndarray) else product.toarray()
        squares, vectors = eigh(gram, subset_by_index=[side - count, side - 1])
        return squares[::-1], vectors[:, ::-1]
    operator: Any = LinearOperator((side, side), matvec=lambda v: B @ (B.T @ v), dtype=np.float64)
    try:
        squares, vectors = eigsh(
            operator, k=count, v0=np.ones(side), ncv=min(60, side), tol=1e-3, maxiter=LANCZOS_RESTARTS
        )
    except ArpackNoConvergence as stopped:
        squares, vectors = stopped.eigenvalues, stopped.eigenvectors
        if not len(squares):
            sizes: Any = abs(B)
            return np.array([(sizes @ sizes.sum(axis=0)).max()]), np.full((side, 1), side**-0.5)
    order = np.argsort(-squares)
    return squares[order], vectors[:, order]


def spectral_norm_bound(B: Array | Sparse, found: float | None = None) -> float:
    """At least |B|_2, with a margin for rounding, or for Lanczos; ``found`` where :func:`top_singular` was asked."""
    norm = float(top_singular(B, 1)[1][0]) if found is None else found
    return norm * (1 + (1e-10 if min(B.shape) <= VERIFIED_SIDE else MARGIN))


def _scaled(B: Array | Sparse, y: NDArray[np.float64], m: int) -> Array | Sparse:
    """D1^-1/2 B D2^-1/2."""
    root = np.sqrt(y)
    if isinstance(B, np.ndarray):
        return B / root[:m, None] / root[m:]
    return sparse.csr_array(sparse.diags_array(1 / root[:m]) @ B @ sparse.diags_array(1 / root[m:]))


def _dual_norm(B: Array | Sparse, y: NDArray[np.float64], m: int) -> float:
    """(1/2) sum(y) |D1^-1/2 B D2^-1/2|_2 >= sup of <B, M> over max-norm(M) <= 1, for every y > 0."""
    return 0.5 * float(y.sum()) * spectral_norm_bound(_scaled(B, y, m))


def _raise_where_needed(
    y: NDArray[np.float64], left: Array, strengths: NDArray[np.float64], right: Array
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
    return np.asarray(np.maximum(raised, RAISED_FLOOR * raised.mean()))
