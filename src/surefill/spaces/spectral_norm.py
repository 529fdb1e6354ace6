"""The largest singular values of a matrix, dense or sparse, and upper bounds on its spectral norm.

The spectral norm is the trace norm's dual, and after scaling by multipliers the max-norm's: every certificate of a
trace-norm or max-norm problem ends in one of these.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, eigh
from scipy.sparse import csr_array
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh

from surefill.arrays import Array

CHOLESKY_SIDE = 2000
"""Shorter side up to which a Cholesky factorisation proves the norm that Lanczos found."""

FAILURE = 1e-9
"""Probability, over the random start, with which the bound beyond that side may fail."""

DENSE_SIDE = 6000
"""Shorter side up to which singular values come from the whole Gram matrix, 288 MB; beyond, Lanczos estimates them."""

LANCZOS_TOLERANCE, LANCZOS_VECTORS, LANCZOS_RESTARTS = 1e-3, 60, 30
"""Relative accuracy asked of ARPACK, its subspace (five times the vectors wanted), and its restarts."""

LANCZOS_MARGIN = 1e-3
"""Share by which a norm that ARPACK estimated is first raised, the accuracy asked of it, before it is proved."""

GRAM_SIDE = 12_000
"""Shorter side up to which a Cholesky factor of the Gram matrix, 1.2 GB, proves a norm; beyond, a ratio does."""

POWER_STEPS = 20
"""Products with |B| |B|' towards its Perron vector, where the ratio of sums is smallest."""

ROUNDING_MARGIN = 1e-10
"""Share added to a norm that came from a dense eigensolver, whose relative error is near 1e-13."""

Sparse = csr_array
"""A matrix that is zero outside the cells it stores."""


class Operator(Protocol):
    """A matrix known by its products with blocks of vectors."""

    @property
    def shape(self) -> tuple[int, int]:
        """(m, n)."""
        ...

    def times(self, right: Array) -> Array:
        """Z X, for n x k X."""
        ...

    def transposed_times(self, left: Array) -> Array:
        """Z' X, for m x k X."""
        ...


@dataclass(frozen=True, eq=False)
class SingularTriplets:
    """Approximate singular values in falling order, with their vectors as columns; none exceeds the true one."""

    left: Array
    values: Array
    right: Array


def lanczos(operator: Operator, steps: int, random_state: int = 0) -> SingularTriplets:
    """Golub-Kahan bidiagonalisation with full reorthogonalisation from a random start, ``steps`` products each way.

    Z V = U B with B upper bidiagonal; the singular values of B are Ritz values, so at most those of Z. The start lies
    on the shorter side, so that as many steps as it is long find them all.
    """
    m, n = operator.shape
    if n > m:
        found = lanczos(Transposed(operator), steps, random_state)
        return SingularTriplets(found.right, found.values, found.left)
    steps = min(steps, m, n)
    U, V, B = np.zeros((m, steps)), np.zeros((n, steps)), np.zeros((steps, steps))
    v, size = np.random.default_rng(random_state).normal(size=n), steps
    v /= np.linalg.norm(v)
    for k in range(steps):
        V[:, k] = v
        u = operator.times(v[:, None])[:, 0]
        u -= U[:, :k] @ (U[:, :k].T @ u)  # twice is enough (Kahan and Parlett): once leaves rounding of the size of |u|
        u -= U[:, :k] @ (U[:, :k].T @ u)
        alpha = float(np.linalg.norm(u))
        B[k, k] = alpha
        if alpha > 0:
            U[:, k] = u / alpha
        w = operator.transposed_times(U[:, [k]])[:, 0]
        w -= V[:, : k + 1] @ (V[:, : k + 1].T @ w)
        w -= V[:, : k + 1] @ (V[:, : k + 1].T @ w)
        beta = float(np.linalg.norm(w))
        if beta <= 1e-14 * max(B[0, 0], alpha) or k + 1 == steps:
            size = k + 1
            break
        B[k, k + 1] = beta
        v = w / beta
    P, values, Qt = np.linalg.svd(B[:size, :size])
    return SingularTriplets(U[:, :size] @ P, values, V[:, :size] @ Qt.T)


@dataclass(frozen=True, eq=False)
class Transposed:
    """Z'."""

    inner: Operator

    @property
    def shape(self) -> tuple[int, int]:
        """(n, m)."""
        return self.inner.shape[1], self.inner.shape[0]

    def times(self, right: Array) -> Array:
        """Z' X."""
        return self.inner.transposed_times(right)

    def transposed_times(self, left: Array) -> Array:
        """Z X."""
        return self.inner.times(left)


@dataclass(frozen=True)
class SpectralNorm:
    """lower <= |E|_2 <= upper; ``standing`` tells whether the upper bound is proved or holds with high probability."""

    lower: float
    upper: float
    standing: Literal["proved", "probable"]


def bound_spectral_norm(matrix: csr_array, steps: int = 250, random_state: int = 0) -> SpectralNorm:
    """Bounds on |E|_2 of a sparse E.

    From below by Lanczos. From above, while the shorter side p is at most 2000, because t^2 I - E'E has a Cholesky
    factor. Beyond, because k steps from a uniformly random start miss more than a share eps of the largest
    eigenvalue of E'E with probability at most 1.648 sqrt(p) exp(-sqrt(eps) (2 k - 1)) (Kuczynski and Wozniakowski,
    1992, Theorem 4.1), here 1e-9: |E|_2 <= lower / sqrt(1 - eps).
    """
    E = matrix if matrix.shape[0] >= matrix.shape[1] else csr_array(matrix.T)
    side, operator = E.shape[1], SparseOperator(E)
    found = lanczos(operator, steps, random_state)
    lower = float(found.values[0]) if len(found.values) else 0.0
    if lower == 0.0:
        return SpectralNorm(0.0, 0.0 if not E.data.any() else float(np.linalg.norm(E.data)), "proved")
    if side <= CHOLESKY_SIDE:
        return SpectralNorm(lower, _proved_from(E, lower), "proved")
    eps = (np.log(1.648 * np.sqrt(side) / FAILURE) / (2 * steps - 1)) ** 2
    return SpectralNorm(lower, float(lower / np.sqrt(1 - eps)), "probable")


@dataclass(frozen=True, eq=False)
class SparseOperator:
    """A sparse matrix as an operator."""

    matrix: csr_array

    @property
    def shape(self) -> tuple[int, int]:
        """(m, n)."""
        return self.matrix.shape

    def times(self, right: Array) -> Array:
        """E X."""
        return np.asarray(self.matrix @ right)

    def transposed_times(self, left: Array) -> Array:
        """E' X."""
        return np.asarray(self.matrix.T @ left)


def _proved_from(E: Any, lower: float, step: float = 1e-8) -> float:
    """The first of slowly rising t >= lower (1 + step) for which a Cholesky factor shows t^2 I - E'E positive definite.

    ``rounding`` bounds the errors of the Gram matrix and of the factorisation.
    """
    product = E.T @ E
    gram = product if isinstance(product, np.ndarray) else product.toarray()
    size = len(gram)
    rounding = size * np.finfo(np.float64).eps * (float(np.trace(gram)) + size * lower**2)
    while True:
        t = np.sqrt((lower * (1 + step)) ** 2 + rounding)
        try:
            slack = -gram
            slack[np.diag_indices(size)] += t**2
            cho_factor(slack, overwrite_a=True, check_finite=False)
        except LinAlgError:
            step *= 10
        else:
            return float(np.sqrt(t**2 + rounding))


def top_singular(B: Array | Sparse, count: int = 12) -> tuple[Array, Array, Array]:
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


def _top_eigen(B: Array | Sparse, count: int) -> tuple[Array, Array]:
    """The largest eigenvalues of B B', falling, and their vectors; estimates where B has many rows."""
    side = B.shape[0]
    if side <= DENSE_SIDE:
        product = B @ B.T
        gram = product if isinstance(product, np.ndarray) else product.toarray()
        squares, vectors = eigh(gram, subset_by_index=[side - count, side - 1])
        return squares[::-1], vectors[:, ::-1]
    operator: Any = LinearOperator((side, side), matvec=lambda v: B @ (B.T @ v), dtype=np.float64)
    try:
        squares, vectors = eigsh(
            operator,
            k=count,
            v0=np.ones(side),
            ncv=min(LANCZOS_VECTORS, side),
            tol=LANCZOS_TOLERANCE,
            maxiter=LANCZOS_RESTARTS,
        )
    except ArpackNoConvergence as stopped:
        squares, vectors = stopped.eigenvalues, stopped.eigenvectors
        if not len(squares):  # nothing converged: |B B'|_2 is at most its largest row sum, |B| |B|' 1
            sizes: Any = abs(B)
            return np.array([(sizes @ sizes.sum(axis=0)).max()]), np.full((side, 1), side**-0.5)
    order = np.argsort(-squares)
    return squares[order], vectors[:, order]


def norm_with_margin(B: Array | Sparse, found: float | None = None) -> float:
    """At least |B|_2; ``found`` is its largest singular value where :func:`top_singular` was asked.

    Up to 6000 on the shorter side the dense eigensolver's value with a margin for rounding. Up to 12000 the least of
    slowly rising t for which t^2 I - B'B has a Cholesky factor, the first a little above Lanczos' value. Beyond,
    :func:`ratio_bound`, which is looser where B has both signs. No bound rests on Lanczos having converged.
    """
    norm = float(top_singular(B, 1)[1][0]) if found is None else found
    if min(B.shape) <= DENSE_SIDE:
        return norm * (1 + ROUNDING_MARGIN)
    if norm > 0 and min(B.shape) <= GRAM_SIDE:
        return _proved_from(B if B.shape[0] >= B.shape[1] else B.T, norm, LANCZOS_MARGIN)
    return ratio_bound(B)


def ratio_bound(B: Array | Sparse) -> float:
    """sqrt(max_i (|B| |B|' x)_i / x_i) >= |B|_2, for every x > 0 (Collatz and Wielandt; Schur's test).

    |B|_2 is at most the norm of |B|, entry by entry, whose square is the spectral radius of |B| |B|'.
    """
    sizes: Any = abs(B)
    x = np.ones(B.shape[0])
    best = np.inf
    for _ in range(POWER_STEPS):
        product = sizes @ (sizes.T @ x)
        best = min(best, float((product / x).max()))
        # a share of the mean keeps x positive where |B| has rows of zeros
        x = product / product.max() + 1e-6 if product.max() > 0 else x
    # sums of non-negative terms have a relative error of at most their number of roundings
    rounding = 4 * sum(B.shape) * np.finfo(np.float64).eps
    return float(np.sqrt(best * (1 + rounding)))
