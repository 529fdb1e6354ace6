"""A factor model with biases, learnt one value at a time by a Kalman filter per row and column; and mixtures of such.

With x_i = (b_i, p_i) of row i, y_j = (c_j, q_j) of column j, f = (1, q_j) and g = (1, p_i), the model is

    value = mean + b_i + c_j + p_i . q_j + noise,      x_i ~ N(., A_i),  y_j ~ N(., B_j),

linearised at the present factors (an extended Kalman filter). With innovation e and its variance s,

    s = f' A f + g' B g + noise,   x_i += A f e / s,   y_j += B g e / s,   A -= (A f)(A f)' / s,   B -= (B g)(B g)' / s,

and then A := (1 - d) A + d P, stabilised forgetting towards the prior covariance P: values may drift, and no variance
exceeds the prior's. Several filters, the experts, are mixed by the exponentially weighted average of their predictions.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from surefill.kernels.compile import compiled
from surefill.kernels.counter_random import random_uniform

MEAN, NOISE, OFFSET, SCALE, LOW, HIGH = range(6)
"""Indices into ``scalars``: mean and noise variance in internal units, the units, and the range of the values.

A value v is (v - offset) / scale internally.
"""

N_LEARNT, N_ROWS, N_COLS = range(3)
"""Indices into ``counters``."""

SMALLEST_NOISE = 1e-6
"""Lower limit of the noise variance on [-1, 1], so that noise-free data leave the gain finite."""

NOISE_PRIOR_COUNT, NOISE_WINDOW = 20.0, 2000.0
"""The first noise counts as so many squared errors, and the running mean forgets beyond so many."""

MEAN_WINDOW = 100
"""Values that move the overall mean; afterwards the biases take up what changes."""

OUTLIER_FACTOR, OUTLIER_COUNT = 16.0, 20.0
"""Once there are 20, an error counts as at most four standard deviations of the best expert's when mixing."""

SMALLEST_VARIANCE = 1e-300
"""Guards a division by zero where the best expert has made no error at all."""


class FilterState(NamedTuple):
    """``X``, ``Y`` hold (bias, factors) of rows and columns, ``A``, ``B`` their covariances; with room to grow."""

    X: NDArray[np.float32]
    Y: NDArray[np.float32]
    A: NDArray[np.float32]
    B: NDArray[np.float32]
    scalars: NDArray[np.float64]
    counters: NDArray[np.int64]


class FilterParameters(NamedTuple):
    """Parameters of one filter.

    Attributes
    ----------
    bias_variance, factor_variance : prior variances, the diagonal of P.
    forgetting : d, the share of the prior that returns with each update.
    noise_share : share of the mean squared error that is taken for noise.
    init_scale : new factors are uniform on [-init_scale, init_scale].
    fixed_range : whether the range of values was given.
    key : of the random numbers.
    """

    bias_variance: float
    factor_variance: float
    forgetting: float
    noise_share: float
    init_scale: float
    fixed_range: bool
    key: np.uint64


@compiled
def raw_prediction(i: int, j: int, state: FilterState) -> float:
    """mean + b_i + c_j + p_i . q_j in internal units; an index of -1 leaves its terms out."""
    total = state.scalars[MEAN]
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
    """The same in the user's units, clipped to the range; NaN where no range is known yet."""
    scalars = state.scalars
    value = scalars[OFFSET] + scalars[SCALE] * raw_prediction(i, j, state)
    return min(max(value, scalars[LOW]), scalars[HIGH]) if scalars[LOW] <= scalars[HIGH] else np.nan


@compiled
def _initialise_rows(X: Any, A: Any, first: int, last: int, parameters: FilterParameters, axis: int) -> None:
    """Rows ``first`` to ``last`` at the prior; factors off zero, which is a saddle point, at random."""
    width = X.shape[1]
    for i in range(first, last):
        A[i] = 0.0
        for q in range(width):
            A[i, q, q] = parameters.factor_variance if q > 0 else parameters.bias_variance
            noise = random_uniform(parameters.key, (2 * i + axis) * width + q)
            X[i, q] = parameters.init_scale * noise if q > 0 else 0.0


@compiled
def _rescale_rows(X: Any, A: Any, size: int, ratio: float) -> None:
    """Biases times ``ratio``, factors times its root, covariances accordingly: predictions scale by ``ratio``."""
    root = np.sqrt(ratio)
    for i in range(size):
        for q in range(X.shape[1]):
            by = ratio if q == 0 else root
            X[i, q] *= by
            for p in range(X.shape[1]):
                A[i, q, p] *= by
                A[i, p, q] *= by


@compiled
def _extend_range(value: float, state: FilterState) -> None:
    """Extend the range to ``value``; the scale doubles where it must, and predictions stay as they were."""
    scalars = state.scalars
    if scalars[LOW] > scalars[HIGH]:
        scalars[OFFSET] = value
    scalars[LOW], scalars[HIGH] = min(scalars[LOW], value), max(scalars[HIGH], value)
    distance = abs(value - scalars[OFFSET])
    if distance <= scalars[SCALE]:
        return
    if scalars[SCALE] == 0.0:
        scalars[SCALE] = distance
        return
    ratio = 1.0
    while distance > scalars[SCALE]:
        scalars[SCALE] *= 2.0
        ratio *= 0.5
    scalars[MEAN] *= ratio
    scalars[NOISE] *= ratio * ratio
    _rescale_rows(state.X, state.A, state.counters[N_ROWS], ratio)
    _rescale_rows(state.Y, state.B, state.counters[N_COLS], ratio)


@compiled
def _multiply(A: Any, f: Any, out: Any) -> float:
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
def _kalman_update(x: Any, A: Any, Af: Any, error: float, s: float, parameters: FilterParameters) -> None:
    """x += A f e / s, A -= (A f)(A f)' / s, then forgetting towards the prior."""
    keep = 1.0 - parameters.forgetting
    for p in range(len(Af)):
        x[p] += Af[p] * error / s
        for q in range(len(Af)):
            A[p, q] = keep * (A[p, q] - Af[p] * Af[q] / s)
        A[p, p] += parameters.forgetting * (parameters.factor_variance if p > 0 else parameters.bias_variance)


@compiled
def filter_values(
    rows: Any, cols: Any, values: Any, state: FilterState, parameters: FilterParameters, predicted: Any
) -> None:
    """Learn the values one by one; ``predicted`` gets the prediction of each before it is learnt."""
    scalars, counters, width = state.scalars, state.counters, state.X.shape[1]
    f, g, Af, Bg = np.ones(width), np.ones(width), np.empty(width), np.empty(width)
    for x in range(len(rows)):
        i, j = rows[x], cols[x]
        predicted[x] = prediction(i if i < counters[N_ROWS] else -1, j if j < counters[N_COLS] else -1, state)
        if not parameters.fixed_range:
            _extend_range(values[x], state)
        _initialise_rows(state.X, state.A, counters[N_ROWS], i + 1, parameters, 0)
        _initialise_rows(state.Y, state.B, counters[N_COLS], j + 1, parameters, 1)
        counters[N_ROWS], counters[N_COLS] = max(counters[N_ROWS], i + 1), max(counters[N_COLS], j + 1)
        counters[N_LEARNT] += 1
        if scalars[SCALE] == 0.0:  # all values so far are equal: there is nothing to learn but the offset
            continue
        error = (values[x] - scalars[OFFSET]) / scalars[SCALE] - raw_prediction(i, j, state)
        for q in range(1, width):
            f[q], g[q] = state.Y[j, q], state.X[i, q]
        noise = max(parameters.noise_share * scalars[NOISE], SMALLEST_NOISE)
        s = _multiply(state.A[i], f, Af) + _multiply(state.B[j], g, Bg) + noise
        scalars[NOISE] += (error * error - scalars[NOISE]) / min(counters[N_LEARNT] + NOISE_PRIOR_COUNT, NOISE_WINDOW)
        scalars[MEAN] += error / counters[N_LEARNT] if counters[N_LEARNT] <= MEAN_WINDOW else 0.0
        _kalman_update(state.X[i], state.A[i], Af, error, s, parameters)
        _kalman_update(state.Y[j], state.B[j], Bg, error, s, parameters)


def filter_values_reference(
    rows: Any, cols: Any, values: Any, state: FilterState, parameters: FilterParameters, predicted: Any
) -> None:
    """Readable twin of `filter_values`."""
    (X, Y, A, B, scalars, counters), width, d = state, state.X.shape[1], parameters.forgetting
    prior = np.diag(np.append(parameters.bias_variance, np.full(width - 1, parameters.factor_variance)))
    for x, (i, j, value) in enumerate(zip(rows.tolist(), cols.tolist(), values.tolist(), strict=True)):
        predicted[x] = prediction(i if i < counters[N_ROWS] else -1, j if j < counters[N_COLS] else -1, state)
        if not parameters.fixed_range:
            _extend_range(value, state)
        _initialise_rows(X, A, counters[N_ROWS], i + 1, parameters, 0)
        _initialise_rows(Y, B, counters[N_COLS], j + 1, parameters, 1)
        counters[:] = counters[N_LEARNT] + 1, max(counters[N_ROWS], i + 1), max(counters[N_COLS], j + 1)
        if scalars[SCALE] == 0.0:
            continue
        error = (value - scalars[OFFSET]) / scalars[SCALE] - raw_prediction(i, j, state)
        f, g = np.append(1.0, Y[j, 1:]), np.append(1.0, X[i, 1:])
        Af, Bg = A[i] @ f, B[j] @ g
        s = f @ Af + g @ Bg + max(parameters.noise_share * scalars[NOISE], SMALLEST_NOISE)
        scalars[NOISE] += (error**2 - scalars[NOISE]) / min(counters[N_LEARNT] + NOISE_PRIOR_COUNT, NOISE_WINDOW)
        scalars[MEAN] += error / counters[N_LEARNT] if counters[N_LEARNT] <= MEAN_WINDOW else 0.0
        X[i] += Af * error / s
        Y[j] += Bg * error / s
        A[i] = (1 - d) * (A[i] - np.outer(Af, Af) / s) + d * prior
        B[j] = (1 - d) * (B[j] - np.outer(Bg, Bg) / s) + d * prior


@compiled
def predictions_at(rows: Any, cols: Any, state: FilterState, out: Any) -> None:
    """out[x] = the prediction at (rows[x], cols[x]) in the user's units; -1 stands for a row or column never seen."""
    for x in range(len(rows)):
        out[x] = prediction(rows[x], cols[x], state)


@compiled
def expert_weights(losses: Any, out: Any) -> None:
    """w_k proportional to exp(-(loss_k - least) / (2 v)), v = least / count: the posterior under Gaussian errors.

    ``losses`` holds the summed squared errors of the experts, and their count last.
    """
    least = losses[:-1].min()
    variance = max(least / max(losses[-1], 1.0), SMALLEST_VARIANCE)
    for k in range(len(out)):
        out[k] = np.exp(-(losses[k] - least) / (2.0 * variance))
    out /= out.sum()


@compiled
def mix_experts(predicted: Any, values: Any, forgetting: float, losses: Any, mixed: Any) -> None:
    """mixed[x] = sum_k w_k predicted[k, x], exponential weights by the discounted squared errors before x.

    Outlying errors are clipped, so that no single value decides between the experts.
    """
    weights = np.empty(len(predicted))
    for x in range(len(values)):
        expert_weights(losses, weights)
        mixed[x] = 0.0
        for k in range(len(weights)):
            mixed[x] += weights[k] * predicted[k, x]
        if not np.isnan(mixed[x]):
            limit = OUTLIER_FACTOR * losses[:-1].min() / losses[-1] if losses[-1] >= OUTLIER_COUNT else np.inf
            losses *= 1.0 - forgetting
            losses[-1] += 1.0
            for k in range(len(weights)):
                losses[k] += min((predicted[k, x] - values[x]) ** 2, limit)


def mix_experts_reference(predicted: Any, values: Any, forgetting: float, losses: Any, mixed: Any) -> None:
    """Readable twin of `mix_experts`."""
    for x, value in enumerate(values):
        least = losses[:-1].min()
        weights = np.exp(-(losses[:-1] - least) / (2 * max(least / max(losses[-1], 1.0), SMALLEST_VARIANCE)))
        mixed[x] = weights @ predicted[:, x] / weights.sum()
        if not np.isnan(mixed[x]):
            limit = OUTLIER_FACTOR * least / losses[-1] if losses[-1] >= OUTLIER_COUNT else np.inf
            errors = np.minimum((predicted[:, x] - value) ** 2, limit)
            losses[:] = (1 - forgetting) * losses + np.append(errors, 1.0)
