"""Certificates: factors that prove a norm's upper bound, and dual bounds on sup <C, M> over classes and version spaces.

Every bound holds whatever numbers it is given: a solver's accuracy decides only how tight it is.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse

from surefill.arrays import Array
from surefill.spaces.spectral_norm import Sparse, norm_with_margin, top_singular

if TYPE_CHECKING:
    from surefill.spaces.version_space import VersionSpace

FLOOR = 1e-2
"""Smallest y_i, as a share of their mean: rows without weight may have none, and y must be positive to be scaled."""

RAISED_FLOOR = 1e-6
"""The same for y after it was raised; where B has low rank and rows of zeros, nothing would be left of it there."""


def factor_gram(W1: Array, M: Array, W2: Array) -> tuple[Array, Array]:
    """U, V with [U; V] [U; V]^T = [[W1, M], [M^T, W2]] + s I, so that U V^T = M whatever W1 and W2 are.

    s >= 0 is the smallest shift that makes the sum positive semidefinite.
    """
    eigenvalues, Q = np.linalg.eigh(np.block([[W1, M], [M.T, W2]]))
    F = Q * np.sqrt(eigenvalues + max(0.0, -eigenvalues[0]))
    return F[: len(M)], F[len(M) :]


def bound_dual_max_norm(B: Array, y: Array) -> float:
    """(1/2) sum(y + s) >= sup of <B, M> over max-norm(M) <= 1, if diag(y + s) - [[0, B], [B^T, 0]] is PSD.

    s is the smallest shift of y that makes it so. With M = U V^T and rows of U, V at most 1 long, the product
    of that matrix with [U; V] [U; V]^T is at least 0 and at most sum(y + s) - 2 <B, M>.
    """
    m, n = B.shape
    slack = np.diag(y) - np.block([[np.zeros((m, m)), B], [B.T, np.zeros((n, n))]])
    shift = max(0.0, -float(np.linalg.eigvalsh(slack)[0]))
    return float(np.sum(y + shift)) / 2


def max_norm_of_factors(U: Array, V: Array) -> float:
    """|U|_{2,inf} |V|_{2,inf} >= max-norm(U V^T) (the paper's definition of the max-norm)."""
    return float(np.linalg.norm(U, axis=1).max() * np.linalg.norm(V, axis=1).max())


def trace_norm_of_factors(U: Array, V: Array) -> float:
    """|U|_F |V|_F >= trace-norm(U V^T)."""
    return float(np.linalg.norm(U) * np.linalg.norm(V))


def bound_max_norm(M: Array) -> tuple[float, float]:
    """max(|M|_inf, trace-norm(M) / sqrt(m n)) <= max-norm(M) <= min over some factors of |U|_{2,inf} |V|_{2,inf}.

    The factors tried are (M, I), (I, M^T) and the balanced ones of the singular value decomposition.
    """
    P, s, Qt = np.linalg.svd(M, full_matrices=False)
    U, V = P * np.sqrt(s), Qt.T * np.sqrt(s)
    m, n = M.shape
    low = max(float(np.abs(M).max()), trace_norm_of_factors(U, V) / np.sqrt(m * n))
    high = min(max_norm_of_factors(U, V), *(float(np.linalg.norm(M, axis=axis).max()) for axis in (0, 1)))
    return low, max(low, high)


@dataclass(frozen=True, eq=False)
class DualBound:
    """A bound on sup <C, M>: no member M of the class exceeds ``value``.

    ``directions`` (m + n rows, one column each) are where the factored response could still gain,
    ``singular_values`` - 1 how much: all are at most 1 exactly if the response is the best.
    """

    value: float
    singular_values: Array
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
    scaled = _scaled(B, y, m)
    left, singular_values, right = top_singular(scaled)
    root = np.sqrt(y)
    directions = np.concatenate([left / root[:m, None], right / root[m:, None]])
    plain = 0.5 * float(y.sum()) * norm_with_margin(scaled, float(singular_values[0]))
    raised = _raise_where_needed(y, left, singular_values, right)
    raised_norm = _dual_norm(B, raised, m) if raised is not None else plain
    return DualBound(K * min(plain, raised_norm), singular_values, directions)


def _scaled(B: Array | Sparse, y: Array, m: int) -> Array | Sparse:
    """D1^-1/2 B D2^-1/2."""
    root = np.sqrt(y)
    if isinstance(B, np.ndarray):
        return B / root[:m, None] / root[m:]
    return sparse.csr_array(sparse.diags_array(1 / root[:m]) @ B @ sparse.diags_array(1 / root[m:]))


def _dual_norm(B: Array | Sparse, y: Array, m: int) -> float:
    """(1/2) sum(y) |D1^-1/2 B D2^-1/2|_2 >= sup of <B, M> over max-norm(M) <= 1, for every y > 0."""
    return 0.5 * float(y.sum()) * norm_with_margin(_scaled(B, y, m))


def _raise_where_needed(y: Array, left: Array, singular_values: Array, right: Array) -> Array | None:
    """s y + sum_k (s_k - s) |a_k| sum|a_k| over singular values s_k above s, a_k = sqrt(y) (left_k, right_k) / sqrt(2).

    diag(|a| sum|a|) - a a' is PSD, so this takes the excess of the first few away at less than s_1 sum(y) where
    their vectors are uneven. None if the best s is the largest value itself.
    """
    a = np.abs(np.sqrt(y)[:, None] * np.concatenate([left, right])) / np.sqrt(2)
    costs = a.sum(axis=0) ** 2
    totals = [s * y.sum() + np.sum((singular_values[:k] - s) * costs[:k]) for k, s in enumerate(singular_values)]
    best = int(np.argmin(totals))
    if best == 0:
        return None
    excess = singular_values[:best] - singular_values[best]
    raised: Array = singular_values[best] * y + a[:, :best] @ (excess * a[:, :best].sum(axis=0))
    return np.asarray(np.maximum(raised, RAISED_FLOOR * raised.mean()))
