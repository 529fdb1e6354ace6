"""A sum of K Ornstein-Uhlenbeck processes in each group, given noisy readings of it: filter forwards, smooth backwards.

In each group e(t) = sum_k u_k(t), the u_k independent and stationary with covariance v exp(-|s - t| / tau_k). From
readings r_n = e(t_n) + N(0, 1 / w_n) in order of time, with w_n = 0 at times without a reading, the kernel computes

    mean_n = E e(t_n) and variance_n = Var e(t_n) given all readings of the group,  and  log p(r) of the group,

by the Kalman filter, h = P 1 of the predicted covariance P, S = 1' h + 1 / w, gain h / S, and the modified
Bryson-Frazier smoother, which inverts no matrix: it carries the information of later readings backwards as a vector a
and a matrix A. Cost: a few K^2 multiply-adds per reading.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from surefill.arrays import Array
from surefill.kernels.compile import compiled

LOG_TWO_PI = float(np.log(2 * np.pi))
"""log(2 pi), of the normal density."""


class Readings(NamedTuple):
    """t_n, r_n and w_n of the readings of all groups; those of group g are starts[g] <= n < starts[g + 1]."""

    starts: NDArray[np.int64]
    times: Array
    reading: Array
    precision: Array


class Smoothed(NamedTuple):
    """mean_n and variance_n at each time, and log p(r) of each group, to be written."""

    mean: Array
    variance: Array
    log_density: Array


@compiled
def _filter(
    first: int,
    last: int,
    times: Array,
    reading: Array,
    precision: Array,
    scales: Array,
    amplitude: float,
    decay: Array,
    gain: Array,
    ahead: Array,
    column: Array,
    mean: Array,
    variance: Array,
) -> float:
    """Forwards over one group: gains, innovations e / S and 1 / S, and after each reading 1' m, 1' P 1 and P 1."""
    K = len(scales)
    m, P, h = np.zeros(K), np.zeros((K, K)), np.empty(K)
    for k in range(K):
        P[k, k] = amplitude
    log_density = 0.0
    for n in range(first, last):
        t = n - first
        if n > first:
            for k in range(K):
                decay[t, k] = np.exp((times[n - 1] - times[n]) / scales[k])
            for k in range(K):
                m[k] *= decay[t, k]
                for d in range(K):
                    P[k, d] *= decay[t, k] * decay[t, d]
                P[k, k] += amplitude * (1 - decay[t, k] * decay[t, k])
        total, error = 0.0, reading[n]
        for k in range(K):
            h[k] = 0.0
            for d in range(K):
                h[k] += P[k, d]
            total += h[k]
            error -= m[k]
        # w / (1 + w 1' P 1) is 1 / S, and 0 where nothing was read
        inverse = precision[n] / (1 + precision[n] * total)
        if precision[n] > 0:
            log_density -= 0.5 * (LOG_TWO_PI - np.log(inverse) + error * error * inverse)
        ahead[t, 0], ahead[t, 1] = error * inverse, inverse
        mean[n] = 0.0
        for k in range(K):
            gain[t, k] = h[k] * inverse
            m[k] += gain[t, k] * error
            mean[n] += m[k]
        variance[n] = total * (1 - total * inverse)
        for k in range(K):
            for d in range(K):
                P[k, d] -= gain[t, k] * h[d]
            column[t, k] = h[k] * (1 - total * inverse)
    return log_density


@compiled
def smooth_groups(
    first: int, last: int, readings: Readings, scales: Array, amplitude: float, smoothed: Smoothed
) -> None:
    """Write ``smoothed`` for the groups first <= g < last; ``scales`` are the tau_k, ``amplitude`` is v."""
    starts, times, reading, precision = readings
    mean, variance, log_density = smoothed
    K, longest = len(scales), 0
    for g in range(first, last):
        longest = max(longest, starts[g + 1] - starts[g])
    decay, gain, column = np.ones((longest, K)), np.empty((longest, K)), np.empty((longest, K))
    ahead, a, A = np.empty((longest, 2)), np.empty(K), np.empty((K, K))
    along = np.empty(K)
    for g in range(first, last):
        log_density[g] = _filter(
            starts[g], starts[g + 1], times, reading, precision, scales, amplitude, decay, gain, ahead, column, mean,
            variance,
        )  # fmt: skip
        a[:], A[:] = 0.0, 0.0
        for t in range(starts[g + 1] - starts[g] - 1, -1, -1):
            n = starts[g] + t
            for k in range(K):
                mean[n] += column[t, k] * a[k]
                for d in range(K):
                    variance[n] -= column[t, k] * A[k, d] * column[t, d]
            # a <- 1 e / S + (I - 1 gain') a,  A <- 1 1' / S + (I - 1 gain') A (I - gain 1'), then back in time
            of_a, of_A = 0.0, 0.0
            for k in range(K):
                of_a += gain[t, k] * a[k]
                along[k] = 0.0
                for d in range(K):
                    along[k] += A[k, d] * gain[t, d]
                of_A += gain[t, k] * along[k]
            for k in range(K):
                a[k] = decay[t, k] * (a[k] - of_a + ahead[t, 0])
            for k in range(K):
                for d in range(K):
                    A[k, d] += of_A + ahead[t, 1] - along[k] - along[d]
            for k in range(K):
                for d in range(K):
                    A[k, d] *= decay[t, k] * decay[t, d]


def smooth_groups_reference(
    first: int, last: int, readings: Readings, scales: Array, amplitude: float, smoothed: Smoothed
) -> None:
    """The readable twin of :func:`smooth_groups`: the joint normal distribution of each group's readings."""
    for g in range(first, last):
        n = slice(readings.starts[g], readings.starts[g + 1])
        times, w = readings.times[n], readings.precision[n]
        prior = amplitude * np.exp(-np.abs(times[:, None] - times)[:, :, None] / scales).sum(axis=2)
        read = w > 0
        r, S = readings.reading[n][read], prior[np.ix_(read, read)] + np.diag(1 / w[read])
        gain, log_det = np.linalg.solve(S, prior[read]).T, np.linalg.slogdet(S)[1]
        smoothed.mean[n] = gain @ r
        smoothed.variance[n] = np.diag(prior - gain @ prior[read])
        smoothed.log_density[g] = -0.5 * (len(r) * LOG_TWO_PI + log_det + r @ np.linalg.solve(S, r))
