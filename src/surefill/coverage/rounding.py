"""Rounding at random: a confidence to a set of entries, and factors to signs as in the proof of the relaxation."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefill.arrays import Array
from surefill.errors import InputError
from surefill.spaces.confidence_matrix import Confidence, DenseConfidence


def round_confidence(C: ArrayLike | Confidence, rng: np.random.Generator | int) -> NDArray[np.bool_]:
    """A random set A with P(x in A) = C_x for every entry and |A| = floor or ceil of |C| (the paper's section 2.4).

    So the expected sum of squared errors over A is sum_x C_x error_x. Entries of confidence 0 and 1 are never in
    doubt; the others are laid end to end in random order, and those are kept that hold one of the marks
    1 - u, 2 - u, ... with u uniform on [0, 1): systematic sampling, O(m n).

    Parameters
    ----------
    C : a matrix in [0, 1]^(m x n), or a confidence; the answer is a dense m x n array, and so is C on the way.
    rng : a random generator, or a seed for one.

    >>> kept = round_confidence([[1.0, 0.5], [0.0, 0.5]], 0)
    >>> int(kept.sum()), bool(kept[0, 0]), bool(kept[1, 0])
    (2, True, False)
    """
    matrix = DenseConfidence(np.asarray(C.dense() if hasattr(C, "dense") else C, dtype=np.float64)).dense()
    generator, chances = np.random.default_rng(rng), matrix.ravel()
    kept: NDArray[np.bool_] = np.equal(chances, 1)
    doubtful = generator.permutation(np.flatnonzero((chances > 0) & (chances < 1)))
    kept[doubtful] = _holds_mark(chances[doubtful], generator.random())
    return kept.reshape(matrix.shape)


def _holds_mark(lengths: Array, u: float) -> NDArray[np.bool_]:
    """Whether each of the intervals, laid end to end from 0, holds one of 1 - u, 2 - u, ...: floor(end + u) steps."""
    marks = np.floor(np.cumsum(lengths) + u)
    return np.diff(marks, prepend=0.0) > 0


def sign_round(
    U: ArrayLike, V: ArrayLike, rng: np.random.Generator | int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """u~_i = sign(u_i . w) u_i and v~_j = sign(v_j . w) v_j with w uniform on the sphere (Proposition 16).

    M~ = U~ V~^T is M = U V^T with some rows and columns negated: entries keep their size, factors their row norms
    and the matrix its rank, so M~ is in every version space around zero that M is in.

    Examples
    --------
    >>> import numpy as np
    >>> U, V = np.array([[1.0], [-1.0]]), np.array([[0.5]])
    >>> left, right = sign_round(U, V, rng=0)
    >>> np.abs(left @ right.T)
    array([[0.5],
           [0.5]])
    """
    left, right = _as_factors(U, V)
    w = np.random.default_rng(rng).normal(size=left.shape[1])
    return left * np.where(left @ w < 0, -1.0, 1.0)[:, None], right * np.where(right @ w < 0, -1.0, 1.0)[:, None]


def expected_sign_rounded(U: ArrayLike, V: ArrayLike) -> NDArray[np.float64]:
    """E[M~_x] = |M_x| (1 - 2 theta_x/pi), theta_x in [0, pi/2] the angle between the lines of u_i and v_j.

    By Lemma 17 that is at least 2 M_x^2 / (pi |u_i| |v_j|), and so at least 2 M_x^2 / (pi K) where K bounds the
    products of row norms.

    Examples
    --------
    >>> expected_sign_rounded([[1.0, 0.0]], [[1.0, 0.0], [0.0, 1.0]])
    array([[1., 0.]])
    """
    left, right = _as_factors(U, V)
    M = left @ right.T
    norms = np.outer(np.linalg.norm(left, axis=1), np.linalg.norm(right, axis=1))
    cosine = np.divide(np.abs(M), norms, out=np.zeros_like(M), where=norms > 0)
    return np.asarray(np.abs(M) * (1 - 2 * np.arccos(np.minimum(cosine, 1.0)) / np.pi))


def _as_factors(U: ArrayLike, V: ArrayLike) -> tuple[Array, Array]:
    left, right = np.asarray(U, dtype=np.float64), np.asarray(V, dtype=np.float64)
    if left.ndim != 2 or right.ndim != 2 or left.shape[1] != right.shape[1]:
        raise InputError(f"factors must be m x k and n x k; got shapes {left.shape} and {right.shape}.")
    return left, right
