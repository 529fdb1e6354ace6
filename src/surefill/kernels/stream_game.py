"""The factored online game, one observation after the other: push, pull, remember.

U and V are the adversary's factors; slot 0 of an axis holds them as they are now, slots 1 to S snapshots of the past in
a ring. Memory is per row and per column, and nothing depends on how observations are cut into batches.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from surefill.kernels.compile import compiled
from surefill.kernels.stream_random import random_below, random_sign

TIME, ROWS, COLS, TAKEN, LAST = range(5)
"""Places of the clock: observations so far, rows, columns, snapshots taken, and the time of the last one."""


class GameState(NamedTuple):
    """What the game remembers.

    ``U`` and ``V`` are (rows, 1 + S, rank) and (columns, 1 + S, rank), with room to grow; ``born_rows``, ``born_cols``
    how many snapshots had been taken when each appeared; ``centre`` the mean rows of U and V at the last
    snapshot; ``sample`` a uniform sample of the cells observed, two numbers each; ``clock`` the counters above.
    """

    U: NDArray[np.float32]
    V: NDArray[np.float32]
    born_rows: NDArray[np.int64]
    born_cols: NDArray[np.int64]
    centre: NDArray[np.float64]
    sample: NDArray[np.int64]
    clock: NDArray[np.int64]


class GameRules(NamedTuple):
    """alpha, theta, K of the game; step sizes and counts of the play; ``key`` of its random numbers."""

    alpha: float
    theta: float
    K: float
    step: float
    decay: float
    spread: float
    pairs: int
    pace: int
    memory: int
    entropic: bool
    key: np.uint64


@compiled
def average(i: int, j: int, state: GameState, rules: GameRules) -> float:
    """Mbar_ij: the mean of the snapshots taken since both row and column are there, recent ones weighing more."""
    U, V, taken = state.U, state.V, state.clock[TAKEN]
    n_slots, rank = U.shape[1] - 1, U.shape[2]
    first = max(taken - n_slots, state.born_rows[i], state.born_cols[j])
    total, mass, weight = 0.0, 0.0, 1.0
    for k in range(taken - 1, first - 1, -1):
        slot = 1 + k % n_slots
        product = 0.0
        for q in range(rank):
            product += U[i, slot, q] * V[j, slot, q]
        total += weight * product
        mass += weight
        weight *= 1.0 - rules.decay
    if mass > 0.0:
        return total / mass
    for q in range(rank):
        total += U[i, 0, q] * V[j, 0, q]
    return total


@compiled
def confidence_of(M: float, alpha: float, entropic: bool) -> float:
    """The best c in [0, 1] against M: of c (1 - log c) - alpha c M, or of c - c^2 / 2 - alpha c M."""
    if M <= 0.0:
        return 1.0
    return np.exp(-alpha * M) if entropic else max(0.0, 1.0 - alpha * M)


@compiled
def _into_ball(u: Any, K: float) -> None:
    square = 0.0
    for q in range(len(u)):
        square += u[q] * u[q]
    if square > K:
        shrink = np.sqrt(K / square)
        for q in range(len(u)):
            u[q] *= shrink


@compiled
def _push(i: int, j: int, state: GameState, rules: GameRules) -> None:
    """One step up on C_ij M_ij, C as the averages have it, then back into the ball."""
    c = rules.step * confidence_of(average(i, j, state, rules), rules.alpha, rules.entropic)
    u, v = state.U[i, 0], state.V[j, 0]
    for q in range(len(u)):
        old = u[q]
        u[q] += c * v[q]
        v[q] += c * old
    _into_ball(u, rules.K)
    _into_ball(v, rules.K)


@compiled
def _shrink_product(u: Any, v: Any, strength: float) -> None:
    """u becomes argmin |u' - u|^2 / 2 + (strength / 2) (u' . v)^2."""
    product, square = 0.0, 0.0
    for q in range(len(u)):
        product += u[q] * v[q]
        square += v[q] * v[q]
    factor = strength * product / (1.0 + strength * square)
    for q in range(len(u)):
        u[q] -= factor * v[q]


@compiled
def _appear(F: Any, born: Any, first: int, last: int, towards: Any, rules: GameRules, side: int, taken: int) -> None:
    """Rows ``first`` to ``last`` as ignorance has them: along the other side's mean, and a little to all sides."""
    rank = F.shape[2]
    length = np.sqrt((towards * towards).sum())
    for i in range(first, last):
        square = 0.0
        for q in range(rank):
            noise = random_sign(rules.key, (np.int64(1) << np.int64(62)) + (2 * i + side) * rank + q)
            F[i, 0, q] = towards[q] / max(length, 1e-12) + rules.spread * noise
            square += F[i, 0, q] ** 2
        for q in range(rank):
            F[i, 0, q] *= np.sqrt(rules.K / square)
        born[i] = taken


@compiled
def grow(m: int, n: int, state: GameState, rules: GameRules) -> None:
    """Let the matrix have at least m rows and n columns; the arrays have room for them."""
    clock = state.clock
    _appear(state.U, state.born_rows, clock[ROWS], m, state.centre[1], rules, 0, clock[TAKEN])
    _appear(state.V, state.born_cols, clock[COLS], n, state.centre[0], rules, 1, clock[TAKEN])
    clock[ROWS], clock[COLS] = max(clock[ROWS], m), max(clock[COLS], n)


@compiled
def _remember(i: int, j: int, state: GameState, rules: GameRules, draw: int) -> Any:
    """Put the cell into the uniform sample of all cells so far (reservoir); how many the sample holds."""
    t = state.clock[TIME]
    place = t if t < rules.memory else random_below(rules.key, draw, t + 1)
    if place < rules.memory:
        state.sample[place, 0], state.sample[place, 1] = i, j
    return min(t + 1, rules.memory)


@compiled
def _take_snapshot(state: GameState) -> None:
    clock = state.clock
    m, n, slot = clock[ROWS], clock[COLS], 1 + clock[TAKEN] % (state.U.shape[1] - 1)
    state.U[:m, slot] = state.U[:m, 0]
    state.V[:n, slot] = state.V[:n, 0]
    state.centre[:] = 0.0
    for i in range(m):
        state.centre[0] += state.U[i, 0]
    for j in range(n):
        state.centre[1] += state.V[j, 0]
    state.centre[0] /= m
    state.centre[1] /= n
    clock[TAKEN] += 1
    clock[LAST] = clock[TIME]


@compiled
def play(rows: Any, cols: Any, state: GameState, rules: GameRules, before: Any) -> None:
    """Observe the cells one by one; ``before`` gets C at each before it is learnt, 0 where row or column is new."""
    clock, strength = state.clock, 2.0 * rules.step * rules.theta
    for x in range(len(rows)):
        i, j = rows[x], cols[x]
        if i < clock[ROWS] and j < clock[COLS]:
            before[x] = confidence_of(average(i, j, state, rules), rules.alpha, rules.entropic)
        else:
            before[x] = 0.0
            grow(i + 1, j + 1, state, rules)
        draw = clock[TIME] * (3 * rules.pairs + 1)
        held = _remember(i, j, state, rules, draw)
        for k in range(rules.pairs):
            draw += 3
            _push(
                random_below(rules.key, draw - 2, clock[ROWS]),
                random_below(rules.key, draw - 1, clock[COLS]),
                state,
                rules,
            )
            a, b = i, j
            if k > 0:
                place = random_below(rules.key, draw, held)
                a, b = state.sample[place, 0], state.sample[place, 1]
            u, v = state.U[a, 0], state.V[b, 0]
            _shrink_product(u, v, strength)
            _shrink_product(v, u, strength)
        clock[TIME] += 1
        if (clock[TIME] - clock[LAST]) * 2 * rules.pairs >= rules.pace * (clock[ROWS] + clock[COLS]):
            _take_snapshot(state)


@compiled
def averages_at(rows: Any, cols: Any, state: GameState, rules: GameRules, out: Any) -> None:
    """out[x] = Mbar at the cells (rows[x], cols[x])."""
    for x in range(len(rows)):
        out[x] = average(rows[x], cols[x], state, rules)
