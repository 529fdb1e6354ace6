"""The factored online game, one observation at a time: stochastic gradient and proximal steps, snapshots, a reservoir.

U and V are the adversary's factors. Slot 0 of their second axis holds the present iterate, slots 1 to S a ring buffer
of snapshots. All state is per row or per column, and nothing depends on how observations are split into batches. Inner
functions take arrays one by one: unpacking the named tuple would cost them more than their arithmetic.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from surefill.kernels.compile import compiled
from surefill.kernels.counter_random import random_below, random_uniform

N_OBSERVED, N_ROWS, N_COLS, N_SNAPSHOTS, LAST_SNAPSHOT = range(5)
"""Indices into ``counters``: observations, rows, columns, snapshots, and observations at the last snapshot."""

INIT_COUNTER = np.int64(1) << np.int64(62)
"""First counter of the random numbers for new rows, out of reach of those drawn per observation."""

SMALLEST_NORM = 1e-12
"""Guards a division by the norm of a mean factor that happens to be zero."""


class GameState(NamedTuple):
    """State of the game; U, V, the starts and the reservoir are allocated with room to grow.

    Attributes
    ----------
    U, V : (rows, 1 + S, rank) and (columns, 1 + S, rank), present factors and snapshots.
    row_start, col_start : number of snapshots taken before each row and column appeared.
    mean_factors : (2, rank), the means of the rows of U and of V at the last snapshot.
    reservoir : (size, 2), a uniform sample of the cells observed so far (reservoir sampling), 8 bytes each.
    counters : see the indices above.
    """

    U: NDArray[np.float32]
    V: NDArray[np.float32]
    row_start: NDArray[np.int64]
    col_start: NDArray[np.int64]
    mean_factors: NDArray[np.float64]
    reservoir: NDArray[np.int32]
    counters: NDArray[np.int64]


class GameParameters(NamedTuple):
    """Parameters of the game and of its descent.

    Attributes
    ----------
    alpha, theta, K : of the objective.
    eta : step size.
    decay : weights of the snapshots are (1 - decay)^age.
    init_noise : size of the uniform noise in a new row, relative to its mean direction.
    batch_size : cells sampled per observation, uniformly and from the reservoir, each.
    snapshot_interval : average number of steps of a row or column between two snapshots.
    reservoir_size : capacity of the reservoir.
    entropic : the confidence player is "entropy", not "cube".
    key : of the random numbers.
    """

    alpha: float
    theta: float
    K: float
    eta: float
    decay: float
    init_noise: float
    batch_size: int
    snapshot_interval: int
    reservoir_size: int
    entropic: bool
    key: np.uint64


@compiled
def weighted_average(i: int, j: int, U: Any, V: Any, start: int, n_snapshots: int, decay: float) -> float:
    """Mbar_ij: exponentially weighted average over snapshots ``start`` and later; M_ij before the first of them."""
    n_slots, rank = U.shape[1] - 1, U.shape[2]
    first = max(n_snapshots - n_slots, start)
    total, mass, weight = 0.0, 0.0, 1.0
    slot = 1 + n_snapshots % n_slots
    for _ in range(n_snapshots - first):
        slot = slot - 1 if slot > 1 else n_slots
        product = 0.0
        for q in range(rank):
            product += U[i, slot, q] * V[j, slot, q]
        total += weight * product
        mass += weight
        weight *= 1.0 - decay
    if mass > 0.0:
        return total / mass
    for q in range(rank):
        total += U[i, 0, q] * V[j, 0, q]
    return total


@compiled
def best_confidence(M: float, alpha: float, entropic: bool) -> float:
    """argmax over c in [0, 1] of c (1 - log c) - alpha c M ("entropy"), or of c - c^2 / 2 - alpha c M ("cube")."""
    if M <= 0.0:
        return 1.0
    return np.exp(-alpha * M) if entropic else max(0.0, 1.0 - alpha * M)


@compiled
def _project_onto_ball(F: Any, i: int, K: float) -> None:
    """Scale f_i to |f_i|^2 <= K."""
    square = 0.0
    for q in range(F.shape[2]):
        square += F[i, 0, q] * F[i, 0, q]
    if square > K:
        shrink = np.sqrt(K / square)
        for q in range(F.shape[2]):
            F[i, 0, q] *= shrink


@compiled
def _gradient_step(i: int, j: int, U: Any, V: Any, step: float, K: float) -> None:
    """One step of size ``step`` up the gradient of M_ij = u_i . v_j, projected."""
    for q in range(U.shape[2]):
        old = U[i, 0, q]
        U[i, 0, q] += step * V[j, 0, q]
        V[j, 0, q] += step * old
    _project_onto_ball(U, i, K)
    _project_onto_ball(V, j, K)


@compiled
def _proximal_step(U: Any, i: int, V: Any, j: int, strength: float) -> None:
    """u_i := argmin over u of |u - u_i|^2 / 2 + (strength / 2) (u . v_j)^2."""
    product, square = 0.0, 0.0
    for q in range(U.shape[2]):
        product += U[i, 0, q] * V[j, 0, q]
        square += V[j, 0, q] * V[j, 0, q]
    factor = strength * product / (1.0 + strength * square)
    for q in range(U.shape[2]):
        U[i, 0, q] -= factor * V[j, 0, q]


@compiled
def _initialise_rows(
    F: Any, start: Any, first: int, last: int, mean: Any, parameters: GameParameters, axis: int, n_snapshots: int
) -> None:
    """Rows ``first`` to ``last`` of F: along the other axis's mean factor plus noise, on the sphere of norm sqrt(K).

    M is then near its maximum in a new row: nothing is known of it.
    """
    rank = F.shape[2]
    norm = np.sqrt((mean * mean).sum())
    for i in range(first, last):
        square = 0.0
        for q in range(rank):
            noise = random_uniform(parameters.key, INIT_COUNTER + (2 * i + axis) * rank + q)
            F[i, 0, q] = mean[q] / max(norm, SMALLEST_NORM) + parameters.init_noise * noise
            square += F[i, 0, q] ** 2
        for q in range(rank):
            F[i, 0, q] *= np.sqrt(parameters.K / square)
        start[i] = n_snapshots


@compiled
def grow(m: int, n: int, state: GameState, parameters: GameParameters) -> None:
    """Add rows and columns up to m and n; the arrays are large enough already."""
    counters = state.counters
    rows, cols, taken = counters[N_ROWS], counters[N_COLS], counters[N_SNAPSHOTS]
    _initialise_rows(state.U, state.row_start, rows, m, state.mean_factors[1], parameters, 0, taken)
    _initialise_rows(state.V, state.col_start, cols, n, state.mean_factors[0], parameters, 1, taken)
    counters[N_ROWS], counters[N_COLS] = max(rows, m), max(cols, n)


@compiled
def _reservoir_sample(i: int, j: int, reservoir: Any, t: int, parameters: GameParameters) -> Any:
    """Add the t-th cell to the reservoir, a uniform sample of all cells so far; returns how many it holds."""
    capacity = parameters.reservoir_size
    slot = t if t < capacity else random_below(parameters.key, t * (3 * parameters.batch_size + 1), t + 1)
    if slot < capacity:
        reservoir[slot, 0], reservoir[slot, 1] = i, j
    return min(t + 1, capacity)


@compiled
def _snapshot_if_due(state: GameState, parameters: GameParameters) -> None:
    """Copy the factors into the ring buffer once each row and column took ``snapshot_interval`` steps on average."""
    counters = state.counters
    m, n, t = counters[N_ROWS], counters[N_COLS], counters[N_OBSERVED]
    # a sampled cell is a step of one row and of one column
    if (t - counters[LAST_SNAPSHOT]) * 2 * parameters.batch_size < parameters.snapshot_interval * (m + n):
        return
    slot = 1 + counters[N_SNAPSHOTS] % (state.U.shape[1] - 1)
    state.U[:m, slot] = state.U[:m, 0]
    state.V[:n, slot] = state.V[:n, 0]
    state.mean_factors[:] = 0.0
    for i in range(m):
        state.mean_factors[0] += state.U[i, 0]
    for j in range(n):
        state.mean_factors[1] += state.V[j, 0]
    state.mean_factors[0] /= m
    state.mean_factors[1] /= n
    counters[N_SNAPSHOTS] += 1
    counters[LAST_SNAPSHOT] = t


@compiled
def _matrix_player_step(
    i: int,
    j: int,
    U: Any,
    V: Any,
    row_start: Any,
    col_start: Any,
    reservoir: Any,
    counters: Any,
    held: int,
    parameters: GameParameters,
) -> None:
    """``batch_size`` uniform cells take a gradient step weighted by C, as many observed ones a proximal step to zero.

    The newest cell is always the first of the observed ones.
    """
    m, n, taken = counters[N_ROWS], counters[N_COLS], counters[N_SNAPSHOTS]
    strength = 2.0 * parameters.eta * parameters.theta
    # three random numbers per cell, after the one of the reservoir
    draw = counters[N_OBSERVED] * (3 * parameters.batch_size + 1)
    for k in range(parameters.batch_size):
        draw += 3
        a, b = random_below(parameters.key, draw - 2, m), random_below(parameters.key, draw - 1, n)
        M = weighted_average(a, b, U, V, max(row_start[a], col_start[b]), taken, parameters.decay)
        step = parameters.eta * best_confidence(M, parameters.alpha, parameters.entropic)
        _gradient_step(a, b, U, V, step, parameters.K)
        a, b = i, j
        if k > 0:
            slot = random_below(parameters.key, draw, held)
            a, b = reservoir[slot, 0], reservoir[slot, 1]
        _proximal_step(U, a, V, b, strength)
        _proximal_step(V, b, U, a, strength)


@compiled
def play(rows: Any, cols: Any, state: GameState, parameters: GameParameters, confidence: Any) -> None:
    """Observe the cells one by one; ``confidence`` gets C at each before, 0 where its row or column is new."""
    U, V, row_start, col_start, _, reservoir, counters = state
    for x in range(len(rows)):
        i, j = rows[x], cols[x]
        if i < counters[N_ROWS] and j < counters[N_COLS]:
            start = max(row_start[i], col_start[j])
            M = weighted_average(i, j, U, V, start, counters[N_SNAPSHOTS], parameters.decay)
            confidence[x] = best_confidence(M, parameters.alpha, parameters.entropic)
        else:
            confidence[x] = 0.0
            grow(i + 1, j + 1, state, parameters)
        held = _reservoir_sample(i, j, reservoir, counters[N_OBSERVED], parameters)
        _matrix_player_step(i, j, U, V, row_start, col_start, reservoir, counters, held, parameters)
        counters[N_OBSERVED] += 1
        _snapshot_if_due(state, parameters)


def play_reference(rows: Any, cols: Any, state: GameState, parameters: GameParameters, confidence: Any) -> None:
    """Readable twin of `play`."""
    U, V, row_start, col_start, _, reservoir, counters = state

    def confidence_at(i: int, j: int) -> Any:
        taken, n_slots = int(counters[N_SNAPSHOTS]), U.shape[1] - 1
        ages = range(min(n_slots, taken - max(row_start[i], col_start[j])))
        slots = [1 + (taken - 1 - age) % n_slots for age in ages] or [0]
        weights = (1.0 - parameters.decay) ** np.arange(len(slots))
        M = weights @ (U[i, slots].astype(float) * V[j, slots]).sum(axis=1) / weights.sum()
        return np.clip(np.exp(-parameters.alpha * M) if parameters.entropic else 1 - parameters.alpha * M, 0.0, 1.0)

    def projected(u: Any) -> Any:
        return u * min(1.0, np.sqrt(parameters.K / (u @ u)))

    def proximal(u: Any, v: Any) -> Any:
        return u - (strength * (u @ v) / (1.0 + strength * (v @ v))) * v

    strength, capacity = 2.0 * parameters.eta * parameters.theta, parameters.reservoir_size
    for x, (i, j) in enumerate(zip(rows.tolist(), cols.tolist(), strict=True)):
        known = i < counters[N_ROWS] and j < counters[N_COLS]
        confidence[x] = confidence_at(i, j) if known else 0.0
        grow(i + 1, j + 1, state, parameters)
        t, draw = int(counters[N_OBSERVED]), int(counters[N_OBSERVED]) * (3 * parameters.batch_size + 1)
        slot = t if t < capacity else random_below(parameters.key, draw, t + 1)
        if slot < capacity:
            reservoir[slot] = i, j
        for k in range(parameters.batch_size):
            draw += 3
            a = random_below(parameters.key, draw - 2, counters[N_ROWS])
            b = random_below(parameters.key, draw - 1, counters[N_COLS])
            step, u, v = parameters.eta * confidence_at(a, b), U[a, 0].astype(float), V[b, 0].astype(float)
            U[a, 0], V[b, 0] = projected(u + step * v), projected(v + step * u)
            a, b = reservoir[random_below(parameters.key, draw, min(t + 1, capacity))] if k > 0 else (i, j)
            U[a, 0] = proximal(U[a, 0].astype(float), V[b, 0].astype(float))
            V[b, 0] = proximal(V[b, 0].astype(float), U[a, 0].astype(float))
        counters[N_OBSERVED] += 1
        _snapshot_if_due(state, parameters)


@compiled
def averages_at(rows: Any, cols: Any, state: GameState, parameters: GameParameters, out: Any) -> None:
    """out[x] = Mbar at the cell (rows[x], cols[x])."""
    U, V, row_start, col_start, _, _, counters = state
    for x in range(len(rows)):
        i, j = rows[x], cols[x]
        start = max(row_start[i], col_start[j])
        out[x] = weighted_average(i, j, U, V, start, counters[N_SNAPSHOTS], parameters.decay)
