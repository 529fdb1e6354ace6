"""One small ridge regression per group (row or column): the half-step of alternating least squares.

For each group g with entries t (features f_t, target y_t, weight c_t):

    x_g = argmin_x  sum_t c_t (y_t - f_t . x)^2 + sum_a penalty_ga x_a^2 + x' P x - 2 pull_g . x  =  A_g^-1 b_g
    A_g = sum_t c_t f_t f_t' + diag(penalty_g) + P,   b_g = sum_t c_t y_t f_t + pull_g

P is a prior's precision, the same for all groups; with pull_g = P m_g the group is drawn towards m_g, not to 0.
Cost: nnz k^2 / 2 + groups k^3 / 6 multiply-adds.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from surefill.arrays import Array, IntArray
from surefill.kernels.compile import compiled, compiled_sums


@compiled_sums
def _normal_equations(
    first: int,
    last: int,
    other: IntArray,
    target: Array,
    weight: Array,
    features: Array,
    gathered: Array,
    A: Array,
    b: Array,
) -> None:
    """Lower triangle of A = F' F and b = F' y; the rows sqrt(c_t) (f_t, y_t) are first gathered, transposed.

    Sums over the entries of a group are long and contiguous that way, and the processor takes several terms at a time,
    which it cannot in rank-one updates entry by entry.
    """
    k, size = features.shape[1], last - first
    for t in range(size):
        f = features[other[first + t]]
        root = np.sqrt(weight[first + t])
        for a in range(k):
            gathered[a, t] = root * f[a]
        gathered[k, t] = root * target[first + t]
    for a in range(k):
        for d in range(a + 1):
            total = 0.0
            for t in range(size):
                total += gathered[a, t] * gathered[d, t]
            A[a, d] = total
        total = 0.0
        for t in range(size):
            total += gathered[a, t] * gathered[k, t]
        b[a] = total


@compiled
def _gathering_buffer(first: int, last: int, starts: NDArray[np.int64], k: int) -> Array:
    """Room for the k features and the target of the largest group's entries."""
    longest = 0
    for g in range(first, last):
        longest = max(longest, starts[g + 1] - starts[g])
    return np.empty((k + 1, longest))


@compiled
def _add_prior(A: Array, penalty: Array, prior: Array) -> None:
    """Add diag(penalty) + P to the lower triangle of A."""
    for a in range(A.shape[0]):
        for d in range(a + 1):
            A[a, d] += prior[a, d]
        A[a, a] += penalty[a]


@compiled
def cholesky(A: Array) -> None:
    """Replace the lower triangle of A by L with L L' = A."""
    for a in range(A.shape[0]):
        for d in range(a + 1):
            rest = A[a, d]
            for e in range(d):
                rest -= A[a, e] * A[d, e]
            A[a, d] = np.sqrt(rest) if a == d else rest / A[d, d]


@compiled
def substitute(L: Array, b: Array) -> None:
    """Replace b by (L L')^-1 b."""
    k = len(b)
    for a in range(k):
        rest = b[a]
        for d in range(a):
            rest -= L[a, d] * b[d]
        b[a] = rest / L[a, a]
    for a in range(k - 1, -1, -1):
        rest = b[a]
        for d in range(a + 1, k):
            rest -= L[d, a] * b[d]
        b[a] = rest / L[a, a]


@compiled
def solve_groups(
    first: int,
    last: int,
    starts: NDArray[np.int64],
    other: IntArray,
    target: Array,
    weight: Array,
    features: Array,
    penalty: Array,
    prior: Array,
    pull: Array,
    solution: Array,
    value: Array,
) -> None:
    """Write x_g into ``solution`` and its problem's value, sum_t c_t y_t^2 - x_g . b_g, into ``value``.

    For the groups first <= g < last.
    """
    k = features.shape[1]
    A, right, gathered = np.empty((k, k)), np.empty(k), _gathering_buffer(first, last, starts, k)
    for g in range(first, last):
        b = solution[g]  # solved in place: the right-hand side, then the solution
        _normal_equations(starts[g], starts[g + 1], other, target, weight, features, gathered, A, b)
        _add_prior(A, penalty[g], prior)
        for a in range(k):
            b[a] += pull[g, a]
        cholesky(A)
        right[:] = b
        substitute(A, b)
        value[g] = 0.0
        for t in range(starts[g + 1] - starts[g]):
            value[g] += gathered[k, t] ** 2
        for a in range(k):
            value[g] -= right[a] * b[a]


def solve_groups_reference(
    first: int,
    last: int,
    starts: NDArray[np.int64],
    other: IntArray,
    target: Array,
    weight: Array,
    features: Array,
    penalty: Array,
    prior: Array,
    pull: Array,
    solution: Array,
    value: Array,
) -> None:
    """The readable twin of :func:`solve_groups`."""
    for g in range(first, last):
        entries = slice(starts[g], starts[g + 1])
        f, c = features[other[entries]], weight[entries]
        A, b = (f.T * c) @ f + np.diag(penalty[g]) + prior, f.T @ (c * target[entries]) + pull[g]
        solution[g] = np.linalg.solve(A, b)
        value[g] = c @ target[entries] ** 2 - solution[g] @ b


@compiled
def invert_groups(
    first: int,
    last: int,
    starts: NDArray[np.int64],
    other: IntArray,
    weight: Array,
    features: Array,
    penalty: Array,
    prior: Array,
    inverse: Array,
) -> None:
    """Write A_g^-1 into ``inverse`` for the groups first <= g < last."""
    k = features.shape[1]
    A, unused, gathered = np.empty((k, k)), np.empty(k), _gathering_buffer(first, last, starts, k)
    for g in range(first, last):
        # No target is needed here: the weights stand in for it, and b is not used.
        _normal_equations(starts[g], starts[g + 1], other, weight, weight, features, gathered, A, unused)
        _add_prior(A, penalty[g], prior)
        cholesky(A)
        inverse[g] = np.eye(k)
        for a in range(k):
            substitute(A, inverse[g, a])


def invert_groups_reference(
    first: int,
    last: int,
    starts: NDArray[np.int64],
    other: IntArray,
    weight: Array,
    features: Array,
    penalty: Array,
    prior: Array,
    inverse: Array,
) -> None:
    """The readable twin of :func:`invert_groups`."""
    for g in range(first, last):
        entries = slice(starts[g], starts[g + 1])
        f, c = features[other[entries]], weight[entries]
        inverse[g] = np.linalg.inv((f.T * c) @ f + np.diag(penalty[g]) + prior)


@compiled
def biased_products(left: Array, right: Array, i: IntArray, j: IntArray) -> Array:
    """l_i0 + r_j0 + sum_{a >= 1} l_ia r_ja for each pair of positions; negative ones count from the end."""
    result = np.empty(len(i))
    for t in range(len(i)):
        x, y = left[i[t]], right[j[t]]
        total = x[0] + y[0]
        for a in range(1, len(x)):
            total += x[a] * y[a]
        result[t] = total
    return result


def biased_products_reference(left: Array, right: Array, i: IntArray, j: IntArray) -> Array:
    """The readable twin of :func:`biased_products`."""
    x, y = left[i], right[j]
    return np.asarray(x[:, 0] + y[:, 0] + (x[:, 1:] * y[:, 1:]).sum(axis=1))


@compiled
def quadratic_forms(vectors: Array, matrices: Array, i: IntArray, j: IntArray) -> Array:
    """v_i' S_j v_i for each pair of positions (i, j), S_j symmetric."""
    result = np.empty(len(i))
    for t in range(len(i)):
        v, S = vectors[i[t]], matrices[j[t]]
        total = 0.0
        for a in range(len(v)):
            row = 0.0
            for d in range(len(v)):
                row += S[a, d] * v[d]
            total += v[a] * row
        result[t] = total
    return result


def quadratic_forms_reference(vectors: Array, matrices: Array, i: IntArray, j: IntArray) -> Array:
    """The readable twin of :func:`quadratic_forms`."""
    return np.asarray(np.einsum("ta,tab,tb->t", vectors[i], matrices[j], vectors[i]))


@compiled_sums
def biased_forms(lines: Array, matrices: Array, i: IntArray, j: IntArray) -> Array:
    """f' S_j f with f = (1, x_1, x_2, ...) of the line x = lines[i], S_j symmetric, for each pair of positions (i, j).

    The table is read where it is asked: making f of every line first would cost one prediction as much as a pass.
    """
    result = np.empty(len(i))
    for t in range(len(i)):
        x, S = lines[i[t]], matrices[j[t]]
        total = np.float64(S[0, 0])
        for a in range(1, len(x)):
            below = np.float64(S[a, 0])  # what lies below the diagonal counts twice
            for d in range(1, a):
                below += S[a, d] * x[d]
            total += x[a] * (S[a, a] * x[a] + 2.0 * below)
        result[t] = total
    return result


def biased_forms_reference(lines: Array, matrices: Array, i: IntArray, j: IntArray) -> Array:
    """The readable twin of :func:`biased_forms`."""
    f = np.column_stack([np.ones(len(i)), lines[i][:, 1:]])
    return np.asarray(np.einsum("ta,tab,tb->t", f, matrices[j], f))
