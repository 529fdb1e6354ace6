"""A factor model with biases that learns one value at a time: a Kalman filter for each row and each column.

With x_i = (b_i, p_i) of row i, y_j = (c_j, q_j) of column j, f = (1, q_j) and g = (1, p_i), the model is

    value = mean + b_i + c_j + p_i . q_j + noise,      x_i ~ N(., A_i),  y_j ~ N(., B_j),

linearised at the present factors. An error e changes both sides by their own share of the variance s,

    s = f' A f + g' B g + noise,   x_i += A f e / s,   y_j += B g e / s,   A -= (A f)(A f)' / s,   B -= (B g)(B g)' / s,

and then A := (1 - d) A + d P lets the past fade towards the prior P: values may drift, and no variance exceeds it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from surefill.kernels.compile import compiled
from surefill.kernels.counter_random import random_sign

MEAN, NOISE, OFFSET, SCALE, LOW, HIGH = range(6)
"""Places of the scales: mean and noise in internal units; a value v is internally (v - offset) / scale; its range."""

TIME, ROWS, COLS = range(3)


class FilterState(NamedTuple):
    """``X``, ``Y`` hold (bias, factors) of rows and columns, ``A``, ``B`` their covariances; room to grow."""

    X: NDArray[np.float32]
    Y: NDArray[np.float32]
    A: NDArray[np.float32]
    B: NDArray[np.float32]
    scales: NDArray[np.float64]
    clock: NDArray[np.int64]


class FilterRules(NamedTuple):
    """Prior variances of biases and factors, how fast the past fades, the noise's share, and the random key."""

    bias_variance: float
    factor_variance: float
    fading: float
    noise_share: float
    spread: float
    fixed_range: bool
    key: np.uint64


@compiled
def raw_prediction(i: int, j: int, state: FilterState) -> float:
    """mean + b_i + c_j + p_i . q_j in internal units; an index of -1 leaves its side out."""
    total = state.scales[MEAN]
    if i >= 0:
        total += state.X[i, 0]
    if j >= 0:
        total += state.Y[j, 0]
    if i >= 0 and j >= 0:
        for q in range(1, state.X.shape[1]):
            total += state.X[i, q] * state.Y[j, q]
    return total  # type: ignore[no-any-return]


@compiled
def prediction(i: int, j: int, state: FilterState) -> float:
    """The same in the user's units, cut to the range; NaN where no range is known yet."""
    scales = state.scales
    value = scales[OFFSET] + scales[SCALE] * raw_prediction(i, j, state)
    return min(max(value, scales[LOW]), scales[HIGH]) if scales[LOW] <= scales[HIGH] else np.nan


@compiled
def _appear(X: Any, A: Any, first: int, last: int, rules: FilterRules, side: int) -> None:
    """Rows ``first`` to ``last`` as the prior has them, the factors a little off zero so that they can part."""
    width = X.shape[1]
    for i in range(first, last):
        A[i] = 0.0
        for q in range(width):
            A[i, q, q] = rules.factor_variance if q > 0 else rules.bias_variance
            X[i, q] = rules.spread * random_sign(rules.key, (2 * i + side) * width + q) if q > 0 else 0.0


@compiled
def _rescale_side(X: Any, A: Any, size: int, ratio: float) -> None:
    root = np.sqrt(ratio)
    for i in range(size):
        for q in range(X.shape[1]):
            by = ratio if q == 0 else root
            X[i, q] *= by
            for p in range(X.shape[1]):
                A[i, q, p] *= by
                A[i, p, q] *= by


@compiled
def _widen(value: float, state: FilterState, rules: FilterRules) -> None:
    """Take ``value`` into the range; the scale doubles where it must, and what is predicted stays as it was."""
    scales = state.scales
    if scales[LOW] > scales[HIGH]:
        scales[OFFSET] = value
    scales[LOW], scales[HIGH] = min(scales[LOW], value), max(scales[HIGH], value)
    far = abs(value - scales[OFFSET])
    if far <= scales[SCALE]:
        return
    if scales[SCALE] == 0.0:
        scales[SCALE] = far
        return
    ratio = 1.0
    while far > scales[SCALE]:
        scales[SCALE] *= 2.0
        ratio *= 0.5
    scales[MEAN] *= ratio
    scales[NOISE] *= ratio * ratio
    _rescale_side(state.X, state.A, state.clock[ROWS], ratio)
    _rescale_side(state.Y, state.B, state.clock[COLS], ratio)


@compiled
def _times(A: Any, f: Any, out: Any) -> float:
    """out = A f; returns f' A f."""
    form = 0.0
    for p in range(len(f)):
        total = 0.0
        for q in range(len(f)):
            total += A[p, q] * f[q]
        out[p] = total
        form += total * f[p]
    return form


@compiled
def _correct(x: Any, A: Any, Af: Any, error: float, s: float, rules: FilterRules) -> None:
    """x += A f e / s, A -= (A f)(A f)' / s, and A fades towards its prior."""
    keep = 1.0 - rules.fading
    for p in range(len(Af)):
        x[p] += Af[p] * error / s
        for q in range(len(Af)):
            A[p, q] = keep * (A[p, q] - Af[p] * Af[q] / s)
        A[p, p] += rules.fading * (rules.factor_variance if p > 0 else rules.bias_variance)


@compiled
def learn(rows: Any, cols: Any, values: Any, state: FilterState, rules: FilterRules, before: Any) -> None:
    """Learn the values one by one; ``before`` gets the prediction of each before it is learnt."""
    scales, clock, width = state.scales, state.clock, state.X.shape[1]
    f, g, Af, Bg = np.ones(width), np.ones(width), np.empty(width), np.empty(width)
    for x in range(len(rows)):
        i, j = rows[x], cols[x]
        before[x] = prediction(i if i < clock[ROWS] else -1, j if j < clock[COLS] else -1, state)
        if not rules.fixed_range:
            _widen(values[x], state, rules)
        _appear(state.X, state.A, clock[ROWS], i + 1, rules, 0)
        _appear(state.Y, state.B, clock[COLS], j + 1, rules, 1)
        clock[ROWS], clock[COLS] = max(clock[ROWS], i + 1), max(clock[COLS], j + 1)
        clock[TIME] += 1
        if scales[SCALE] == 0.0:
            continue
        error = (values[x] - scales[OFFSET]) / scales[SCALE] - raw_prediction(i, j, state)
        for q in range(1, width):
            f[q], g[q] = state.Y[j, q], state.X[i, q]
        s = _times(state.A[i], f, Af) + _times(state.B[j], g, Bg) + max(rules.noise_share * scales[NOISE], 1e-6)
        scales[NOISE] += (error * error - scales[NOISE]) / min(clock[TIME] + 20.0, 2000.0)
        scales[MEAN] += error / clock[TIME] if clock[TIME] <= 100 else 0.0
        _correct(state.X[i], state.A[i], Af, error, s, rules)
        _correct(state.Y[j], state.B[j], Bg, error, s, rules)


def learn_reference(rows: Any, cols: Any, values: Any, state: FilterState, rules: FilterRules, before: Any) -> None:
    """Readable twin of `learn`."""
    (X, Y, A, B, scales, clock), width = state, state.X.shape[1]
    prior = np.diag(np.append(rules.bias_variance, np.full(width - 1, rules.factor_variance)))
    for x, (i, j, value) in enumerate(zip(rows.tolist(), cols.tolist(), values.tolist(), strict=True)):
        before[x] = prediction(i if i < clock[ROWS] else -1, j if j < clock[COLS] else -1, state)
        if not rules.fixed_range:
            _widen(value, state, rules)
        _appear(X, A, clock[ROWS], i + 1, rules, 0)
        _appear(Y, B, clock[COLS], j + 1, rules, 1)
        clock[:] = clock[TIME] + 1, max(clock[ROWS], i + 1), max(clock[COLS], j + 1)
        if scales[SCALE] == 0.0:
            continue
        error = (value - scales[OFFSET]) / scales[SCALE] - raw_prediction(i, j, state)
        f, g = np.append(1.0, Y[j, 1:]), np.append(1.0, X[i, 1:])
        Af, Bg = A[i] @ f, B[j] @ g
        s = f @ Af + g @ Bg + max(rules.noise_share * scales[NOISE], 1e-6)
        scales[NOISE] += (error**2 - scales[NOISE]) / min(clock[TIME] + 20, 2000)
        scales[MEAN] += error / clock[TIME] if clock[TIME] <= 100 else 0.0
        X[i] += Af * error / s
        Y[j] += Bg * error / s
        A[i] = (1 - rules.fading) * (A[i] - np.outer(Af, Af) / s) + rules.fading * prior
        B[j] = (1 - rules.fading) * (B[j] - np.outer(Bg, Bg) / s) + rules.fading * prior


@compiled
def predictions_at(rows: Any, cols: Any, state: FilterState, out: Any) -> None:
    """out[x] = the prediction at (rows[x], cols[x]) in the user's units; -1 stands for a row or column never seen."""
    for x in range(len(rows)):
        out[x] = prediction(rows[x], cols[x], state)
