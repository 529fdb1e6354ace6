"""The variational update of the factors of all rows given those of the columns, or the reverse, in one pass.

Groups g are the rows (or the columns). An entry t of g has a value r_t, a count c_t and a scatter. Its column (or row)
j has factors of means z = (z_0, ..., z_k-1) and variances w, and a noise precision t_j. With f = (1, z_1, ...),

    A = sum_t c_t t_j f f',   b = sum_t c_t t_j (r_t - z_0) f,   E = diag(sum_t c_t t_j w),   E_00 = 0,
    x_g = (A + E + P)^-1 (b + pull_g),     v_ga = noise / (s_g (A + E + P)_aa),
    e_g = sum_t c_t t_j E (r_t - x_0 - z_0 - sum_{a >= 1} x_a z_a)^2 + t_j scatter_t + c_t t_j least_noise.

Each j has one row in the table of :func:`regressors_of`, (sqrt(t_j) f, sqrt(t_j) z_0; t_j w), both parts padded with
zeros to whole lanes. An entry stores only its value and its j, and gathers the rest from that table. The errors e_g
follow from the same sums, without another pass.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from surefill.arrays import Array, Floats, IntArray
from surefill.kernels.compile import compiled, compiled_sums
from surefill.kernels.eight_systems import solve_systems
from surefill.kernels.gram import CHUNK, add_gram, whole_lanes
from surefill.kernels.least_squares import cholesky, substitute
from surefill.kernels.line_sums import add_lines
from surefill.kernels.registers import LANES, fill, load, multiply_add, store, zeros


class GroupedEntries(NamedTuple):
    """The entries of all groups; those of group g are starts[g] <= t < starts[g + 1].

    Attributes
    ----------
    starts : one item per group, and the number of entries at the end.
    other : j of each entry.
    values, shift, scale : r_t = (values_t - shift) scale.
    counts, scatter : c_t, and the squared deviations of an entry's draws from their mean; one item per entry, or a
        single one that holds for all.
    """

    starts: NDArray[np.int64]
    other: IntArray
    values: Floats
    counts: Floats
    scatter: Floats
    shift: float
    scale: float


class GroupPrior(NamedTuple):
    """P, pull and s_g of each group, the noise variance, and the least noise that is added to every draw."""

    precision: Array
    pull: Floats
    noise_precision: Array
    noise: float
    least_noise: float


class GroupPosterior(NamedTuple):
    """x_g, v_g and e_g of each group, to be written."""

    mean: Floats
    variance: Floats
    errors: Array


def regressors_of(mean: Floats, variance: Floats, noise_precision: Array, dtype: Any) -> Floats:
    """The table with the row (sqrt(t_j) (1, z_1, ...), sqrt(t_j) z_0, 0, ...; t_j w, 0, ...) for each j."""
    k = mean.shape[1]
    width = whole_lanes(k + 1)
    lines: Floats = np.zeros((len(mean), width + whole_lanes(k)), dtype)
    t = noise_precision.astype(dtype)[:, None]
    np.multiply(mean, np.sqrt(t), out=lines[:, :k], casting="same_kind")
    lines[:, k] = lines[:, 0]
    lines[:, 0] = np.sqrt(t[:, 0])
    np.multiply(variance, t, out=lines[:, width : width + k], casting="same_kind")
    return lines


@compiled
def _gather(
    first: int,
    size: int,
    k: int,
    other: IntArray,
    values: Floats,
    counts: Floats,
    shift: float,
    scale: float,
    lines: Floats,
    stride: int,
    width: int,
    gathered: Floats,
) -> None:
    """Copy the regressors of the entries first <= t < first + size, with r_t - z_0 in place of z_0, times sqrt(c_t)."""
    each, once, end = len(counts) > 1, len(counts) == 1 and counts[0] == 1, len(lines)
    roots = np.empty(2, lines.dtype)
    for t in range(size):
        begin, into = other[first + t] * stride, t * stride
        if begin < 0:
            begin += end
        for a in range(0, stride, LANES):
            store(gathered, into + a, load(lines, begin + a))
        gathered[into + k] = lines[begin] * ((values[first + t] - shift) * scale) - lines[begin + k]
        if not once:
            count = counts[first + t if each else 0]
            roots[0], roots[1] = np.sqrt(count), count
            for a in range(0, stride, LANES):
                scaled = multiply_add(load(gathered, into + a), fill(roots, int(a >= width)), zeros(roots))
                store(gathered, into + a, scaled)


@compiled
def _scatter_of(first: int, last: int, other: IntArray, scatter: Floats, regressors: Floats) -> float:
    """sum_t t_j scatter_t."""
    total, each = 0.0, len(scatter) > 1
    if each or scatter[0] > 0:
        for t in range(first, last):
            total += regressors[other[t], 0] ** 2 * scatter[t if each else 0]
    return total


@compiled
def _moments(
    first: int,
    last: int,
    other: IntArray,
    values: Floats,
    counts: Floats,
    shift: float,
    scale: float,
    regressors: Floats,
    gathered: Floats,
    gram: Array,
    spread: Array,
) -> None:
    """A, b and sum_t c_t t_j (r_t - z_0)^2 of one group in the lower triangle of ``gram``; the sum of c_t t_j w."""
    stride, width, k = regressors.shape[1], gram.shape[0], len(spread)
    lines, room = regressors.reshape(-1), np.empty(LANES * LANES, regressors.dtype)
    gram[:], spread[:] = 0.0, 0.0
    for begin in range(first, last, CHUNK):
        size = min(CHUNK, last - begin)
        _gather(begin, size, k, other, values, counts, shift, scale, lines, stride, width, gathered)
        add_gram(gathered, stride, size, room, gram)
        add_lines(gathered, width, stride, size, room, spread)


@compiled
def _normal_equations(gram: Array, spread: Array, prior: Array, pull: Floats, system: Array) -> None:
    """The lower triangle of A + E + P, and b + pull in the last row."""
    k = len(spread)
    for a in range(k):
        for d in range(a + 1):
            system[a, d] = gram[a, d] + prior[a, d]
        if a > 0:
            system[a, a] += spread[a]
        system[k, a] = gram[k, a] + pull[a]


@compiled_sums
def _expected_errors(gram: Array, spread: Array, x: Array, v: Array) -> float:
    """sum_t c_t t_j E (.)^2 of e_g, from the moments."""
    k = len(x)
    total: float = gram[k, k] + spread[0]
    for a in range(k):
        of_line = gram[a, a] * x[a] - 2 * gram[k, a]
        for d in range(a):
            of_line += 2 * gram[a, d] * x[d]
        total += x[a] * of_line + v[a] * gram[a, a]
        if a > 0:
            total += spread[a] * (x[a] * x[a] + v[a])
    return total


@compiled
def update_groups(
    first: int, last: int, entries: GroupedEntries, regressors: Floats, prior: GroupPrior, posterior: GroupPosterior
) -> None:
    """Write x_g, v_g and e_g of the groups first <= g < last into ``posterior``.

    nnz (k^2 / 2 + 2 k) + groups k^3 / 6 multiply-adds; 2 k + 1 numbers are gathered per entry.
    """
    starts, other, values, counts, scatter, shift, scale = entries
    k, stride = posterior.mean.shape[1], regressors.shape[1]
    width = (k + LANES) // LANES * LANES
    gathered, grams = np.empty(CHUNK * stride, regressors.dtype), np.empty((LANES, width, width))
    spreads, scatters = np.empty((LANES, k)), np.empty(LANES)
    systems, solutions = np.zeros((k + 1, k, LANES)), np.empty((k, LANES))
    for block in range(first, last, LANES):
        n = min(LANES, last - block)
        for lane in range(n):
            span = starts[block + lane], starts[block + lane + 1]
            _moments(*span, other, values, counts, shift, scale, regressors, gathered, grams[lane], spreads[lane])
            scatters[lane] = _scatter_of(*span, other, scatter, regressors)
        _solve_lanes(block, n, grams, spreads, scatters, prior, systems, solutions, posterior)


@compiled
def _solve_lanes(
    block: int,
    n: int,
    grams: Array,
    spreads: Array,
    scatters: Array,
    prior: GroupPrior,
    systems: Array,
    solutions: Array,
    posterior: GroupPosterior,
) -> None:
    """x_g, v_g and e_g of the groups block <= g < block + n, at most eight, from their moments."""
    precision, pull, noise_precision, noise, least_noise = prior
    mean, variance, errors = posterior
    k = mean.shape[1]
    x, v = np.empty(k), np.empty(k)
    for lane in range(n):
        g = block + lane
        _normal_equations(grams[lane], spreads[lane], precision, pull[g], systems[:, :, lane])
        for a in range(k):
            variance[g, a] = noise / (noise_precision[g] * systems[a, a, lane])
    for lane in range(n, LANES):
        for a in range(k):
            systems[a, a, lane] = 1.0  # lanes without a group solve a system that is not singular
    solve_systems(systems, solutions)
    for lane in range(n):
        g = block + lane
        for a in range(k):
            x[a], v[a] = solutions[a, lane], variance[g, a]
            mean[g, a] = x[a]
        errors[g] = _expected_errors(grams[lane], spreads[lane], x, v) + scatters[lane]
        errors[g] = max(errors[g], 0.0) + least_noise * grams[lane, 0, 0]


def moments_width(k: int) -> int:
    """Numbers that :func:`sum_moments` writes for a group: the triangle of (k + 1) x (k + 1), E and the scatter.

    >>> moments_width(11)
    90
    """
    return (k + 1) * (k + 2) // 2 + k + 1


@compiled
def sum_moments(
    first: int, last: int, entries: GroupedEntries, regressors: Floats, k: int, lines: IntArray, total: Array
) -> None:
    """Write A, b, sum_t c_t t_j (r_t - z_0)^2, sum_t c_t t_j w and sum_t t_j scatter_t of g into ``total[lines[g]]``.

    They are sums over entries, so that those of parts of a table add up; :func:`update_from_moments` continues.
    """
    starts, other, values, counts, scatter, shift, scale = entries
    stride = regressors.shape[1]
    width = (k + LANES) // LANES * LANES
    gathered, gram, spread = np.empty(CHUNK * stride, regressors.dtype), np.empty((width, width)), np.empty(k)
    for g in range(first, last):
        _moments(starts[g], starts[g + 1], other, values, counts, shift, scale, regressors, gathered, gram, spread)
        line, at = total[lines[g]], 0
        for a in range(k + 1):
            for d in range(a + 1):
                line[at] = gram[a, d]
                at += 1
        for a in range(k):
            line[at + a] = spread[a]
        line[at + k] = _scatter_of(starts[g], starts[g + 1], other, scatter, regressors)


def sum_moments_reference(
    first: int, last: int, entries: GroupedEntries, regressors: Floats, k: int, lines: IntArray, total: Array
) -> None:
    """The readable twin of :func:`sum_moments`."""
    starts, other, values, counts, scatter, shift, scale = entries
    c, q = (np.broadcast_to(each, len(other)) for each in (counts, scatter))
    for g in range(first, last):
        t = slice(starts[g], starts[g + 1])
        f, y, w, t_j = _regressors(regressors[other[t]].astype(np.float64), k)
        both = np.column_stack([f, (values[t] - shift) * scale * np.sqrt(t_j) - y])
        gram = (both.T * c[t]) @ both
        total[lines[g]] = np.r_[gram[np.tril_indices(k + 1)], c[t] @ w, t_j @ q[t]]


@compiled
def update_from_moments(first: int, last: int, moments: Array, prior: GroupPrior, posterior: GroupPosterior) -> None:
    """As :func:`update_groups`, from the ``moments`` of :func:`sum_moments`, a line for each group."""
    k = posterior.mean.shape[1]
    width = (k + LANES) // LANES * LANES
    grams, spreads, scatters = np.zeros((LANES, width, width)), np.empty((LANES, k)), np.empty(LANES)
    systems, solutions = np.zeros((k + 1, k, LANES)), np.empty((k, LANES))
    for block in range(first, last, LANES):
        n = min(LANES, last - block)
        for lane in range(n):
            line, at = moments[block + lane], 0
            for a in range(k + 1):
                for d in range(a + 1):
                    grams[lane, a, d] = line[at]
                    at += 1
            for a in range(k):
                spreads[lane, a] = line[at + a]
            scatters[lane] = line[at + k]
        _solve_lanes(block, n, grams, spreads, scatters, prior, systems, solutions, posterior)


def update_groups_reference(
    first: int, last: int, entries: GroupedEntries, regressors: Floats, prior: GroupPrior, posterior: GroupPosterior
) -> None:
    """The readable twin of :func:`update_groups`."""
    starts, other, values, counts, scatter, shift, scale = entries
    precision, pull, noise_precision, noise, least_noise = prior
    c, q = (np.broadcast_to(each, len(other)) for each in (counts, scatter))
    for g in range(first, last):
        t = slice(starts[g], starts[g + 1])
        f, y, w, t_j = _regressors(regressors[other[t]].astype(np.float64), len(precision))
        y, c_t = (values[t] - shift) * scale * np.sqrt(t_j) - y, c[t]
        E = np.diag(np.r_[0.0, (c_t @ w)[1:]])
        A, b = (f.T * c_t) @ f + E + precision, f.T @ (c_t * y)
        x, v = np.linalg.solve(A, b + pull[g]), noise / (noise_precision[g] * np.diag(A))
        squares = (y - f @ x) ** 2 + f**2 @ v + w[:, 0] + w[:, 1:] @ (x[1:] ** 2 + v[1:])
        posterior.mean[g], posterior.variance[g] = x, v
        posterior.errors[g] = c_t @ squares + t_j @ q[t] + least_noise * c_t @ t_j


def _regressors(lines: Array, k: int) -> tuple[Array, Array, Array, Array]:
    """sqrt(t_j) f, sqrt(t_j) z_0, t_j w and t_j, from rows of :func:`regressors_of`."""
    width = whole_lanes(k + 1)
    return lines[:, :k], lines[:, k], lines[:, width : width + k], lines[:, 0] ** 2


@compiled
def invert_updates(
    first: int, last: int, entries: GroupedEntries, regressors: Floats, s: Array, precision: Array, inverse: Floats
) -> None:
    """Write (A + E + P)^-1 / s_g of the groups first <= g < last into ``inverse``, whatever the values are."""
    starts, other, values, counts, _, shift, scale = entries
    k, stride = precision.shape[0], regressors.shape[1]
    width = (k + LANES) // LANES * LANES
    gathered, gram, spread = np.empty(CHUNK * stride, regressors.dtype), np.empty((width, width)), np.empty(k)
    system, column = np.empty((k + 1, k)), np.empty(k)
    no_pull = np.zeros(k, regressors.dtype)
    for g in range(first, last):
        _moments(starts[g], starts[g + 1], other, values, counts, shift, scale, regressors, gathered, gram, spread)
        _normal_equations(gram, spread, precision, no_pull, system)
        cholesky(system[:k])
        for a in range(k):
            column[:] = 0.0
            column[a] = 1 / s[g]
            substitute(system[:k], column)
            inverse[g, a] = column


def invert_updates_reference(
    first: int, last: int, entries: GroupedEntries, regressors: Floats, s: Array, precision: Array, inverse: Floats
) -> None:
    """The readable twin of :func:`invert_updates`."""
    starts, other, counts = entries.starts, entries.other, entries.counts
    c = np.broadcast_to(counts, len(other))
    for g in range(first, last):
        t = slice(starts[g], starts[g + 1])
        f, _, w, _ = _regressors(regressors[other[t]].astype(np.float64), len(precision))
        E = np.diag(np.r_[0.0, (c[t] @ w)[1:]])
        inverse[g] = np.linalg.inv((f.T * c[t]) @ f + E + precision) / s[g]
