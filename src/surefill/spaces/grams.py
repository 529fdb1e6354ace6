"""Certificates for the norms: factors from an inexact Gram matrix, dual bounds from inexact multipliers."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from surefill.arrays import Array


def factor_gram(W1: Array, M: Array, W2: Array) -> tuple[Array, Array]:
    """U, V with [U; V] [U; V]^T = [[W1, M], [M^T, W2]] + s I, so that U V^T = M whatever W1 and W2 are.

    s >= 0 is the smallest shift that makes the sum positive semidefinite.
    """
    eigenvalues, Q = np.linalg.eigh(np.block([[W1, M], [M.T, W2]]))
    F = Q * np.sqrt(eigenvalues + max(0.0, -eigenvalues[0]))
    return F[: len(M)], F[len(M) :]


def bound_dual_max_norm(B: Array, y: NDArray[np.float64]) -> float:
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
