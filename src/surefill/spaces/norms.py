"""The max-norm and the trace norm, each with a certificate from above and one from below."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from threadpoolctl import threadpool_limits

from surefill.arrays import Array
from surefill.errors import InputError
from surefill.spaces.certificates import factor_gram, max_norm_of_factors, trace_norm_of_factors
from surefill.spaces.conic_model import attempts, check_size, first_tight, load_cvxpy, plan_for

Vector = NDArray[np.float64]

MAX_NORM_ACCURACY = 1e-8
"""Certified gap of the max-norm, as a share of the largest entry, at which no further attempt is made."""

POLISHING_STEPS = 100
"""Multiplicative steps after a solver: the widest gap of 25 sign matrices fell from 2e-7 to 4e-9."""

SMALLEST_SHARE = 1e-14
"""Smallest multiplier, as a share of their sum: one of a row without weight would be 0 and stay so."""


@dataclass(frozen=True, eq=False)
class NormValue:
    """lower <= norm(M) <= upper, with the proofs: M = left right^T and a dual witness.

    Attributes
    ----------
    value : the middle of ``lower`` and ``upper``.
    lower : <witness, M>, where the witness has dual norm at most 1.
    upper : |left|_{2,inf} |right|_{2,inf} for the max-norm, |left|_F |right|_F for the trace norm.

    Examples
    --------
    >>> import surefill as sf
    >>> import numpy as np
    >>> norm = sf.max_norm(np.eye(2))
    >>> norm.lower <= norm.value <= norm.upper
    True
    >>> round(norm.value, 4)
    1.0
    """

    lower: float
    upper: float
    left: Array
    right: Array
    witness: Array

    @property
    def value(self) -> float:
        """The middle of the two bounds."""
        return (self.lower + self.upper) / 2

    def __float__(self) -> float:
        return self.value

    def __repr__(self) -> str:
        return f"NormValue({self.value:.6g}, certified in [{self.lower:.9g}, {self.upper:.9g}])"


def max_norm(M: ArrayLike) -> NormValue:
    """min |U|_{2,inf} |V|_{2,inf} over U V^T = M (the paper's definition of the max-norm).

    Computed as min t with [[W1, M], [M^T, W2]] PSD and diagonal at most t. The multipliers (p, q) of the
    diagonal, made probabilities, give the lower certificate: max-norm(M) >= trace-norm(sqrt(p) M sqrt(q)),
    whose witness is B = sqrt(p) P Q^T sqrt(q) with P S Q^T the singular value decomposition. Solvers of growing
    accuracy are asked until upper - lower is at most 1e-8 of the largest entry. Up to 150 rows and columns.

    >>> round(float(max_norm([[1.0, 1.0], [1.0, -1.0]])), 6)
    1.414214
    """
    A = as_matrix(M, "M")
    check_size(A.shape)
    size = float(np.abs(A).max())
    if size == 0:
        return NormValue(0.0, 0.0, np.zeros((A.shape[0], 1)), np.zeros((A.shape[1], 1)), np.zeros(A.shape))
    return first_tight(_max_norm_bounds(A, size), lambda norm: norm.upper - norm.lower, target=MAX_NORM_ACCURACY * size)


def trace_norm(M: ArrayLike) -> NormValue:
    """Sum of the singular values of M = P S Q^T; factors P sqrt(S) and Q sqrt(S), witness P Q^T.

    >>> round(float(trace_norm([[3.0, 0.0], [0.0, -4.0]])), 6)
    7.0
    """
    A = as_matrix(M, "M")
    P, s, Qt = np.linalg.svd(A, full_matrices=False)
    U, V = P * np.sqrt(s), Qt.T * np.sqrt(s)
    lower = float(s.sum())
    return NormValue(lower, max(lower, trace_norm_of_factors(U, V)), U, V, P @ Qt)


def as_matrix(given: ArrayLike, name: str, shape: tuple[int, int] | None = None) -> Array:
    """``given`` as a finite two-dimensional array of floats, of ``shape`` when that is given."""
    try:
        array = np.array(given, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} must be a matrix of numbers: {error}.") from None
    if array.ndim != 2 or array.size == 0:
        raise InputError(f"{name} must be a matrix with at least one entry; got an array of shape {array.shape}.")
    if shape is not None and array.shape != shape:
        raise InputError(
            f"{name} must be {shape[0]} x {shape[1]} like the observed matrix; got {array.shape[0]} x {array.shape[1]}."
        )
    if not np.isfinite(array).all():
        raise InputError(f"{name} must be finite; it has {int((~np.isfinite(array)).sum())} other entries.")
    return array


def _max_norm_bounds(A: Array, size: float) -> Iterator[NormValue]:
    """Certified bounds from each attempt at the semidefinite program for A / size."""
    cp = load_cvxpy()
    m, n = A.shape
    gram, t = cp.Variable((m + n, m + n), PSD=True), cp.Variable()
    diagonal = cp.diag(gram) <= t
    problem = cp.Problem(cp.Minimize(t), [gram[:m, m:] == A / size, diagonal])
    for _ in attempts(problem, plan_for(A.shape)):
        G, y = size * gram.value, np.maximum(diagonal.dual_value, 0.0)
        solved = factor_gram(G[:m, :m], A, G[m:, m:])
        lower, witness, polished = _polish(A, y[:m], y[m:])
        U, V = min(solved, polished, key=lambda factors: max_norm_of_factors(*factors))
        yield NormValue(lower, max(lower, max_norm_of_factors(U, V)), U, V, witness)


def _polish(A: Array, p: Vector, q: Vector) -> tuple[float, Array, tuple[Array, Array]]:
    """A lower bound, its witness, and factors of A, after multiplicative steps on the multipliers p and q.

    f(p, q) = trace-norm(sqrt(p) A sqrt(q)) <= max-norm(A) for probabilities p and q. With P S Q^T the singular value
    decomposition, A = U V^T for U = p^-1/2 P S^1/2 and V = q^-1/2 Q S^1/2, and the slope of f in p_i is |u_i|^2 / 2.
    A step multiplies p_i by |u_i|^2 and q_j by |v_j|^2, which raises f; where it changes nothing, all rows whose
    p_i > 0 are equally long, and the factors attain the bound.
    """
    with threadpool_limits(limits=1, user_api="blas"):  # small products: a second core is not worth the wait
        for _ in range(POLISHING_STEPS):
            P, s, Qt = np.linalg.svd(_root_outer(p, q) * A, full_matrices=False)
            p, q = P**2 @ s, s @ Qt**2
    p, q = _probabilities(p), _probabilities(q)
    P, s, Qt = np.linalg.svd(_root_outer(p, q) * A, full_matrices=False)
    U, V = P * np.sqrt(s) / np.sqrt(p)[:, None], Qt.T * np.sqrt(s) / np.sqrt(q)[:, None]
    # U V^T is A up to rounding that grows where p or q is small; through the Gram matrix it is A whatever they are.
    return float(s.sum()), _root_outer(p, q) * (P @ Qt), factor_gram(U @ U.T, A, V @ V.T)


def _root_outer(p: Vector, q: Vector) -> Array:
    """sqrt(p_i q_j), p and q made probabilities."""
    return np.sqrt(np.outer(_probabilities(p), _probabilities(q)))


def _probabilities(weights: Vector) -> Vector:
    """Weights divided by their sum, none of them zero."""
    raised = np.maximum(weights, SMALLEST_SHARE * weights.sum())
    return np.asarray(raised / raised.sum())
