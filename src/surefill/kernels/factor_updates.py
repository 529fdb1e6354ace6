"""The variational update of each group's (row's or column's) factors, given those of the others, in one pass.

An entry t of group g has a value r_t, a count c_t and a scatter; its other group j has factors of means
z = (z_0, ..., z_k-1) and variances w, and a noise precision t_j. With f = (1, z_1, ...),

    A = sum_t c_t t_j f f',   b = sum_t c_t t_j (r_t - z_0) f,   E = diag(sum_t c_t t_j w),   E_00 = 0,
    x_g = (A + E + P)^-1 (b + pull_g),     v_ga = noise / (s_g (A + E + P)_aa),
    e_g = sum_t c_t t_j E (r_t - x_0 - z_0 - sum_{a >= 1} x_a z_a)^2 + t_j scatter_t + c_t t_j least_noise.

All that is known of j is in one line, of :func:`regressors_of`: (sqrt(t_j) f, sqrt(t_j) z_0; t_j w), each of both parts
filled up with zeros to whole lanes; entries gather it, so that nothing is kept per entry but its value and its j. The
errors come from the same sums, without another pass. r_t = (values_t - shift) scale. ``counts`` and ``scatter`` have
one item per entry, or a single one for all of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from surefill.arrays import Array, Floats, IntArray
from surefill.kernels.compile import compiled, compiled_sums
from surefill.kernels.eight_systems import solve_systems
from surefill.kernels.gram import CHUNK, add_gram, whole_lanes
from surefill.kernels.least_squares import cholesky, substitute
from surefill.kernels.registers import LANES, add, fill, load, multiply_add, store, zeros


def regressors_of(mean: Floats, variance: Floats, noise_precision: Array, dtype: Any) -> Floats:
    """(sqrt(t_j) (1, z_1, ...), sqrt(t_j) z_0, 0, ...; t_j w, 0, ...) of each line."""
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
    """Copy the lines of the entries first <= t < first + size, with values in the place of z_0, weighed by counts."""
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
def _add_lines(lines: Floats, begin: int, stride: int, size: int, room: Floats, total: Array) -> None:
    """Add the sum of ``size`` lines, which begin ``stride`` after each other, to ``total``."""
    for a in range(0, len(total), LANES):
        s = zeros(lines)
        for t in range(size):
            s = add(s, load(lines, begin + t * stride + a))
        store(room, 0, s)
        for d in range(min(LANES, len(total) - a)):
            total[a + d] += room[d]


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
    """A, b and sum_t c_t t_j (r_t - z_0)^2 of one group, the lower triangle of ``gram``, and E, with E_00 = its sum."""
    stride, width, k = regressors.shape[1], gram.shape[0], len(spread)
    lines, room = regressors.reshape(-1), np.empty(LANES * LANES, regressors.dtype)
    gram[:], spread[:] = 0.0, 0.0
    for begin in range(first, last, CHUNK):
        size = min(CHUNK, last - begin)
        _gather(begin, size, k, other, values, counts, shift, scale, lines, stride, width, gathered)
        add_gram(gathered, stride, size, room, gram)
        _add_lines(gathered, width, stride, size, room, spread)


@compiled
def _normal_equations(gram: Array, spread: Array, prior: Array, pull: Floats, system: Array) -> None:
    """The lower triangle of A + E + P, and b + pull in a last line."""
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
    first: int,
    last: int,
    starts: NDArray[np.int64],
    other: IntArray,
    values: Floats,
    counts: Floats,
    scatter: Floats,
    shift: float,
    scale: float,
    regressors: Floats,
    noise_precision: Array,
    prior: Array,
    pull: Floats,
    noise: float,
    least_noise: float,
    mean: Floats,
    variance: Floats,
    errors: Array,
) -> None:
    """Write x_g, v_g and e_g of the groups first <= g < last into ``mean``, ``variance`` and ``errors``.

    nnz (k^2 / 2 + 2 k) + groups k^3 / 6 multiply-adds; 2 k + 1 numbers are gathered per entry.
    """
    k, stride = mean.shape[1], regressors.shape[1]
    width = (k + LANES) // LANES * LANES
    gathered, grams = np.empty(CHUNK * stride, regressors.dtype), np.empty((LANES, width, width))
    spreads, scatters = np.empty((LANES, k)), np.empty(LANES)
    systems, solutions = np.zeros((k + 1, k, LANES)), np.empty((k, LANES))
    for block in range(first, last, LANES):
        n = min(LANES, last - block)
        for lane in range(n):
            entries = starts[block + lane], starts[block + lane + 1]
            moments = grams[lane], spreads[lane]
            _moments(*entries, other, values, counts, shift, scale, regressors, gathered, *moments)
            scatters[lane] = _scatter_of(*entries, other, scatter, regressors)
        _solve_lanes(
            block, n, grams, spreads, scatters, noise_precision, prior, pull, noise, least_noise,
            systems, solutions, mean, variance, errors,
        )  # fmt: skip


@compiled
def _solve_lanes(
    block: int,
    n: int,
    grams: Array,
    spreads: Array,
    scatters: Array,
    noise_precision: Array,
    prior: Array,
    pull: Floats,
    noise: float,
    least_noise: float,
    systems: Array,
    solutions: Array,
    mean: Floats,
    variance: Floats,
    errors: Array,
) -> None:
    """x_g, v_g and e_g of the groups block <= g < block + n, at most eight, from their moments."""
    k = mean.shape[1]
    x, v = np.empty(k), np.empty(k)
    for lane in range(n):
        g = block + lane
        _normal_equations(grams[lane], spreads[lane], prior, pull[g], systems[:, :, lane])
        for a in range(k):
            variance[g, a] = noise / (noise_precision[g] * systems[a, a, lane])
    for lane in range(n, LANES):
        for a in range(k):
            systems[a, a, lane] = 1.0  # lanes without a group solve something harmless
    solve_systems(systems, solutions)
    for lane in range(n):
        g = block + lane
        for a in range(k):
            x[a], v[a] = solutions[a, lane], variance[g, a]
            mean[g, a] = x[a]
        errors[g] = _expected_errors(grams[lane], spreads[lane], x, v) + scatters[lane]
        errors[g] = max(errors[g], 0.0) + least_noise * grams[lane, 0, 0]


def moments_width(k: int) -> int:
    """How many numbers :func:`sum_moments` writes for a group: the triangle of (k + 1) x (k + 1), E and the scatter.

    >>> moments_width(11)
    90
    """
    return (k + 1) * (k + 2) // 2 + k + 1


@compiled
def sum_moments(
    first: int,
    last: int,
    starts: NDArray[np.int64],
    other: IntArray,
    values: Floats,
    counts: Floats,
    scatter: Floats,
    shift: float,
    scale: float,
    regressors: Floats,
    k: int,
    lines: IntArray,
    total: Array,
) -> None:
    """Write A, b, sum_t c_t t_j (r_t - z_0)^2, E and sum_t t_j scatter_t of group g into ``total[lines[g]]``.

    They are sums over entries: those of parts of a table add up, and :func:`update_from_moments` goes on from them.
    """
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


@compiled
def update_from_moments(
    first: int,
    last: int,
    moments: Array,
    noise_precision: Array,
    prior: Array,
    pull: Floats,
    noise: float,
    least_noise: float,
    mean: Floats,
    variance: Floats,
    errors: Array,
) -> None:
    """As :func:`update_groups`, from the ``moments`` of :func:`sum_moments`, a line for each group."""
    k = mean.shape[1]
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
        _solve_lanes(
            block, n, grams, spreads, scatters, noise_precision, prior, pull, noise, least_noise,
            systems, solutions, mean, variance, errors,
        )  # fmt: skip


def update_groups_reference(
    first: int,
    last: int,
    starts: NDArray[np.int64],
    other: IntArray,
    values: Floats,
    counts: Floats,
    scatter: Floats,
    shift: float,
    scale: float,
    regressors: Floats,
    noise_precision: Array,
    prior: Array,
    pull: Floats,
    noise: float,
    least_noise: float,
    mean: Floats,
    variance: Floats,
    errors: Array,
) -> None:
    """The readable twin of :func:`update_groups`."""
    k = mean.shape[1]
    c, q = (np.broadcast_to(each, len(other)) for each in (counts, scatter))
    for g in range(first, last):
        entries = slice(starts[g], starts[g + 1])
        f, y, w, t = _regressors(regressors[other[entries]].astype(np.float64), k)
        y, c_t = (values[entries] - shift) * scale * np.sqrt(t) - y, c[entries]
        E = np.diag(np.r_[0.0, (c_t @ w)[1:]])
        A, b = (f.T * c_t) @ f + E + prior, f.T @ (c_t * y)
        x, v = np.linalg.solve(A, b + pull[g]), noise / (noise_precision[g] * np.diag(A))
        of_entries = (y - f @ x) ** 2 + f**2 @ v + w[:, 0] + w[:, 1:] @ (x[1:] ** 2 + v[1:])
        errors[g] = c_t @ of_entries + t @ q[entries] + least_noise * c_t @ t
        mean[g], variance[g] = x, v


def _regressors(lines: Array, k: int) -> tuple[Array, Array, Array, Array]:
    """sqrt(t_j) f, sqrt(t_j) z_0, t_j w and t_j of lines of :func:`regressors_of`."""
    width = whole_lanes(k + 1)
    return lines[:, :k], lines[:, k], lines[:, width : width + k], lines[:, 0] ** 2


@compiled
def invert_updates(
    first: int,
    last: int,
    starts: NDArray[np.int64],
    other: IntArray,
    values: Floats,
    counts: Floats,
    regressors: Floats,
    noise_precision: Array,
    prior: Array,
    inverse: Floats,
) -> None:
    """Write (A + E + P)^-1 / s_g of the groups first <= g < last into ``inverse``; values matter not."""
    k, stride = prior.shape[0], regressors.shape[1]
    width = (k + LANES) // LANES * LANES
    gathered, gram, spread = np.empty(CHUNK * stride, regressors.dtype), np.empty((width, width)), np.empty(k)
    system, column = np.empty((k + 1, k)), np.empty(k)
    nothing, zero = np.zeros(k, regressors.dtype), regressors.dtype.type(0)
    for g in range(first, last):
        _moments(starts[g], starts[g + 1], other, values, counts, zero, zero, regressors, gathered, gram, spread)
        _normal_equations(gram, spread, prior, nothing, system)
        cholesky(system[:k])
        for a in range(k):
            column[:] = 0.0
            column[a] = 1 / noise_precision[g]
            substitute(system[:k], column)
            inverse[g, a] = column


def invert_updates_reference(
    first: int,
    last: int,
    starts: NDArray[np.int64],
    other: IntArray,
    values: Floats,
    counts: Floats,
    regressors: Floats,
    noise_precision: Array,
    prior: Array,
    inverse: Floats,
) -> None:
    """The readable twin of :func:`invert_updates`."""
    c = np.broadcast_to(counts, len(other))
    for g in range(first, last):
        entries = slice(starts[g], starts[g + 1])
        f, _, w, _ = _regressors(regressors[other[entries]].astype(np.float64), prior.shape[0])
        E = np.diag(np.r_[0.0, (c[entries] @ w)[1:]])
        inverse[g] = np.linalg.inv((f.T * c[entries]) @ f + E + prior) / noise_precision[g]


@compiled
def sum_lines(first: int, last: int, starts: NDArray[np.int64], other: IntArray, table: Floats, total: Floats) -> None:
    """Write sum_t table[other_t] over the entries t of each group first <= g < last into ``total``.

    Lines of ``table`` have whole lanes, of which ``total`` has the first. nnz k additions.
    """
    stride, k = table.shape[1], total.shape[1]
    lines, gathered = table.reshape(-1), np.empty(CHUNK * stride, table.dtype)
    room, of_group = np.empty(LANES, table.dtype), np.empty(k)
    for g in range(first, last):
        of_group[:] = 0.0
        for begin in range(starts[g], starts[g + 1], CHUNK):
            size = min(CHUNK, starts[g + 1] - begin)
            for t in range(size):
                line = other[begin + t] * stride
                if line < 0:
                    line += len(lines)
                for a in range(0, stride, LANES):
                    store(gathered, t * stride + a, load(lines, line + a))
            _add_lines(gathered, 0, stride, size, room, of_group)
        total[g] = of_group


def sum_lines_reference(
    first: int, last: int, starts: NDArray[np.int64], other: IntArray, table: Floats, total: Floats
) -> None:
    """The readable twin of :func:`sum_lines`."""
    for g in range(first, last):
        total[g] = table[other[starts[g] : starts[g + 1]], : total.shape[1]].sum(axis=0, dtype=np.float64)
