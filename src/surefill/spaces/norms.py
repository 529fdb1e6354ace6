"""The max-norm and the trace norm, each with a certificate from above and one from below."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from surefill.arrays import Array
from surefill.errors import InputError
from surefill.spaces.conic_model import attempts, check_size, first_tight, load_cvxpy, plan_for
from surefill.spaces.grams import factor_gram, max_norm_of_factors, trace_norm_of_factors


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
    whose witness is B = sqrt(p) P Q^T sqrt(q) with P S Q^T the singular value decomposition. Up to 150 rows
    and columns.

    >>> round(float(max_norm([[1.0, 1.0], [1.0, -1.0]])), 6)
    1.414214
    """
    A = as_matrix(M, "M")
    check_size(A.shape)
    size = float(np.abs(A).max())
    if size == 0:
        return NormValue(0.0, 0.0, np.zeros((A.shape[0], 1)), np.zeros((A.shape[1], 1)), np.zeros(A.shape))
    return first_tight(_max_norm_bounds(A, size), lambda norm: norm.upper - norm.lower, target=1e-6 * size)


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
    """``given`` as a finite two-dimensional array of floats, of ``shape`` when that is told."""
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
        U, V = factor_gram(G[:m, :m], A, G[m:, m:])
        outer = np.sqrt(np.outer(y[:m] / y[:m].sum(), y[m:] / y[m:].sum()))
        P, s, Qt = np.linalg.svd(outer * A, full_matrices=False)
        lower = float(s.sum())
        yield NormValue(lower, max(lower, max_norm_of_factors(U, V)), U, V, outer * (P @ Qt))
