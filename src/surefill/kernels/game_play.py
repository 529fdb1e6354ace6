"""The factored online game, one observation after the other: push, pull, remember.

U and V are the adversary's factors; slot 0 of an axis holds them as they are now, slots 1 to S snapshots of the past in
a ring. Memory is per row and per column, and nothing depends on how observations are cut into batches. Inner functions
take arrays one by one: unpacking the state costs them more than their arithmetic.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from surefill.kernels.compile import compiled
from surefill.kernels.counter_random import random_below, random_sign

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
def average(i: int, j: int, U: Any, V: Any, born: int, taken: int, decay: float) -> float:
    """Mbar_ij: the mean of snapshots number ``born`` and later, recent ones weighing more; M before the first."""
    n_slots, rank = U.shape[1] - 1, U.shape[2]
    first = max(taken - n_slots, born)
    total, mass, weight = 0.0, 0.0, 1.0
    slot = 1 + taken % n_slots
    for _ in range(taken - first):
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
def confidence_of(M: float, alpha: float, entropic: bool) -> float:
    """The best c in [0, 1] against M: of c (1 - log c) - alpha c M, or of c - c^2 / 2 - alpha c M."""
    if M <= 0.0:
        return 1.0
    return np.exp(-alpha * M) if entropic else max(0.0, 1.0 - alpha * M)


@compiled
def _into_ball(F: Any, i: int, K: float) -> None:
    square = 0.0
    for q in range(F.shape[2]):
        square += F[i, 0, q] * F[i, 0, q]
    if square > K:
        shrink = np.sqrt(K / square)
        for q in range(F.shape[2]):
            F[i, 0, q] *= shrink


@compiled
def _push(i: int, j: int, U: Any, V: Any, c: float, K: float) -> None:
    """One step of length c up on M_ij, then back into the ball."""
    for q in range(U.shape[2]):
        old = U[i, 0, q]
        U[i, 0, q] += c * V[j, 0, q]
        V[j, 0, q] += c * old
    _into_ball(U, i, K)
    _into_ball(V, j, K)


@compiled
def _pull(U: Any, i: int, V: Any, j: int, strength: float) -> None:
    """u_i becomes argmin |u - u_i|^2 / 2 + (strength / 2) (u . v_j)^2."""
    product, square = 0.0, 0.0
    for q in range(U.shape[2]):
        product += U[i, 0, q] * V[j, 0, q]
        square += V[j, 0, q] * V[j, 0, q]
    factor = strength * product / (1.0 + strength * square)
    for q in range(U.shape[2]):
        U[i, 0, q] -= factor * V[j, 0, q]


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
def _remember(i: int, j: int, sample: Any, t: int, rules: GameRules) -> Any:
    """Put the cell into the uniform sample of all cells so far (reservoir); how many the sample holds."""
    place = t if t < rules.memory else random_below(rules.key, t * (3 * rules.pairs + 1), t + 1)
    if place < rules.memory:
        sample[place, 0], sample[place, 1] = i, j
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
def _move(
    i: int, j: int, U: Any, V: Any, born_rows: Any, born_cols: Any, sample: Any, clock: Any, held: int, rules: GameRules
) -> None:
    """The matrix player's move: ``pairs`` random cells pushed up by C, as many observed ones pulled to zero."""
    m, n, taken, strength = clock[ROWS], clock[COLS], clock[TAKEN], 2.0 * rules.step * rules.theta
    draw = clock[TIME] * (3 * rules.pairs + 1)
    for k in range(rules.pairs):
        draw += 3
        a, b = random_below(rules.key, draw - 2, m), random_below(rules.key, draw - 1, n)
        M = average(a, b, U, V, max(born_rows[a], born_cols[b]), taken, rules.decay)
        _push(a, b, U, V, rules.step * confidence_of(M, rules.alpha, rules.entropic), rules.K)
        a, b = i, j
        if k > 0:
            place = random_below(rules.key, draw, held)
            a, b = sample[place, 0], sample[place, 1]
        _pull(U, a, V, b, strength)
        _pull(V, b, U, a, strength)


@compiled
def play(rows: Any, cols: Any, state: GameState, rules: GameRules, before: Any) -> None:
    """Observe the cells one by one; ``before`` gets C at each before it is learnt, 0 where row or column is new."""
    U, V, born_rows, born_cols, _, sample, clock = state
    for x in range(len(rows)):
        i, j = rows[x], cols[x]
        if i < clock[ROWS] and j < clock[COLS]:
            M = average(i, j, U, V, max(born_rows[i], born_cols[j]), clock[TAKEN], rules.decay)
            before[x] = confidence_of(M, rules.alpha, rules.entropic)
        else:
            before[x] = 0.0
            grow(i + 1, j + 1, state, rules)
        held = _remember(i, j, sample, clock[TIME], rules)
        _move(i, j, U, V, born_rows, born_cols, sample, clock, held, rules)
        clock[TIME] += 1
        if (clock[TIME] - clock[LAST]) * 2 * rules.pairs >= rules.pace * (clock[ROWS] + clock[COLS]):
            _take_snapshot(state)


def play_reference(rows: Any, cols: Any, state: GameState, rules: GameRules, before: Any) -> None:
    """Readable twin of `play`."""
    U, V, born_rows, born_cols, _, sample, clock = state

    def confidence(i: int, j: int) -> Any:
        taken, n_slots = int(clock[TAKEN]), U.shape[1] - 1
        ages = range(min(n_slots, taken - max(born_rows[i], born_cols[j])))
        slots = [1 + (taken - 1 - age) % n_slots for age in ages] or [0]
        weights = (1.0 - rules.decay) ** np.arange(len(slots))
        M = weights @ (U[i, slots].astype(float) * V[j, slots]).sum(axis=1) / weights.sum()
        return np.clip(np.exp(-rules.alpha * M) if rules.entropic else 1 - rules.alpha * M, 0.0, 1.0)

    def into_ball(u: Any) -> Any:
        return u * min(1.0, np.sqrt(rules.K / (u @ u)))

    def pulled(u: Any, v: Any) -> Any:
        return u - (strength * (u @ v) / (1.0 + strength * (v @ v))) * v

    strength = 2.0 * rules.step * rules.theta
    for x, (i, j) in enumerate(zip(rows.tolist(), cols.tolist(), strict=True)):
        known = i < clock[ROWS] and j < clock[COLS]
        before[x] = confidence(i, j) if known else 0.0
        grow(i + 1, j + 1, state, rules)
        t, draws = int(clock[TIME]), int(clock[TIME]) * (3 * rules.pairs + 1)
        place = t if t < rules.memory else random_below(rules.key, draws, t + 1)
        if place < rules.memory:
            sample[place] = i, j
        for k in range(rules.pairs):
            draws += 3
            a = random_below(rules.key, draws - 2, clock[ROWS])
            b = random_below(rules.key, draws - 1, clock[COLS])
            c, u, v = rules.step * confidence(a, b), U[a, 0].astype(float), V[b, 0].astype(float)
            U[a, 0], V[b, 0] = into_ball(u + c * v), into_ball(v + c * u)
            a, b = sample[random_below(rules.key, draws, min(t + 1, rules.memory))] if k > 0 else (i, j)
            U[a, 0] = pulled(U[a, 0].astype(float), V[b, 0].astype(float))
            V[b, 0] = pulled(V[b, 0].astype(float), U[a, 0].astype(float))
        clock[TIME] += 1
        if (clock[TIME] - clock[LAST]) * 2 * rules.pairs >= rules.pace * (clock[ROWS] + clock[COLS]):
            _take_snapshot(state)


@compiled
def averages_at(rows: Any, cols: Any, state: GameState, rules: GameRules, out: Any) -> None:
    """out[x] = Mbar at the cells (rows[x], cols[x])."""
    U, V, born_rows, born_cols, _, _, clock = state
    for x in range(len(rows)):
        i, j = rows[x], cols[x]
        out[x] = average(i, j, U, V, max(born_rows[i], born_cols[j]), clock[TAKEN], rules.decay)
