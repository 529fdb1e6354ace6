"""Drifting biases: how far each row is from its mean at each time, a normal process of several time scales.

    e_i(t) = sum_k u_ik(t),   Cov(u_ik(s), u_ik(t)) = (v / K) exp(-|s - t| / tau_k),   k = 0, ..., K - 1,
    tau_k = gap (span / gap)^(k / K)

gap is the median time between successive times of a row, span that between the first and the last time of all: what
lasts for a page of answers, for a sitting, for a day or a season has its own scale. Times of one row that are equal are
one reading, the mean of what the rest of the model leaves of its cells, of precision sum w_t / noise. The posterior is
exact given these (:mod:`surefill.kernels.drift_smoother`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from surefill.arrays import Array, IntArray
from surefill.data import Groups
from surefill.data.groups import locate
from surefill.errors import InputError
from surefill.kernels.drift_smoother import LOG_TWO_PI, Readings, Smoothed, smooth_groups
from surefill.parallel import over_ranges
from surefill.registry import storable

N_SCALES = 4
"""Time scales K: on held-out cells of MovieLens 1M four were better than one, and hardly better than three."""


@dataclass(frozen=True, eq=False)
class Sittings:
    """The distinct times of each row, in order, and which of them each cell belongs to.

    Row ``ids[g]`` has the times ``times[starts[g]:starts[g + 1]]``; cell t was drawn at ``times[of_cell[t]]``.
    """

    ids: IntArray
    starts: NDArray[np.int64]
    times: Array
    of_cell: NDArray[np.int64]

    @classmethod
    def of(cls, rows: IntArray, times: Array) -> Self:
        """The times of cells in these rows."""
        order = np.lexsort((times, rows))
        i, t = rows[order], times[order]
        is_first = np.r_[True, (i[1:] != i[:-1]) | (t[1:] != t[:-1])]
        of_cell = np.empty(len(rows), dtype=np.int64)
        of_cell[order] = np.cumsum(is_first) - 1
        groups = Groups.of(i[is_first])
        return cls(groups.ids, groups.starts, t[is_first], of_cell)

    def scales(self) -> Array:
        """tau_k; all of one size where every row has one time only."""
        gaps = np.diff(self.times)
        within = np.ones(len(gaps), dtype=bool)
        within[self.starts[1:-1] - 1] = False
        span = max(float(np.ptp(self.times)), np.finfo(float).tiny)
        gap = float(np.median(gaps[within])) if within.any() else span
        return gap * (span / gap) ** (np.arange(N_SCALES) / N_SCALES)


@storable
@dataclass(frozen=True, eq=False)
class Drift:
    """e_i(t) given one reading of each sitting: times, readings and their precisions, row by row.

    ``amplitude`` is v / K.

    Examples
    --------
    >>> starts, times = np.array([0, 2]), np.array([0.0, 1.0])
    >>> drift = Drift(np.array([3]), starts, times, np.ones(2), np.full(2, 100.0), np.array([10.0]), 0.5)
    >>> mean, variance = drift.at(np.array([3, 3, 7]), np.array([0.5, 1000.0, 0.5]))
    >>> mean.round(2), variance.round(2)
    (array([0.99, 0.  , 0.  ]), array([0.03, 0.5 , 0.5 ]))
    """

    ids: IntArray
    starts: NDArray[np.int64]
    times: Array
    reading: Array
    precision: Array
    scales: Array
    amplitude: float

    def __post_init__(self) -> None:
        tables = self.times, self.reading, self.precision
        fits = self.starts[:1].tolist() == [0] and not (np.diff(self.starts) < 0).any()
        fits = fits and len(self.starts) == len(self.ids) + 1 and all(len(table) == self.starts[-1] for table in tables)
        if not (fits and self.amplitude > 0 and all(np.isfinite(table).all() for table in tables)):
            raise InputError("the drift of rows needs finite times, readings and precisions of one length.")

    def at(self, rows: IntArray, times: Array) -> tuple[Array, Array]:
        """Mean and variance of e_i(t) at the pairs (rows[n], times[n]); the prior's in a row without readings."""
        asked = Sittings.of(rows, times)
        owner = np.repeat(np.arange(len(asked.ids)), np.diff(asked.starts))
        place = np.repeat(locate(asked.ids, self.ids), np.diff(self.starts))
        known = np.flatnonzero(place >= 0)
        group = np.r_[owner, place[known]]
        none = np.zeros(len(owner))
        t, r, w = (
            np.r_[first, own[known]]
            for first, own in ((asked.times, self.times), (none, self.reading), (none, self.precision))
        )
        order = np.lexsort((t, group))
        starts = np.r_[0, np.cumsum(np.bincount(group, minlength=len(asked.ids)))]
        found = smoothed(starts, t[order], r[order], w[order], self.scales, self.amplitude)
        mean, variance = np.empty(len(t)), np.empty(len(t))
        mean[order], variance[order] = found[:2]
        return mean[asked.of_cell], variance[asked.of_cell]


@dataclass(frozen=True, eq=False)
class DriftUpdate:
    """The new posterior at the sittings, and how far it is from the prior (Kullback-Leibler)."""

    drift: Drift
    mean: Array
    variance: Array
    divergence: float


def updated_drift(
    sittings: Sittings, residual: Array, weight: Array, noise: float, scales: Array, amplitude: float
) -> DriftUpdate:
    """The best posterior of all e_i given what the rest of the model leaves of each cell; ``weight`` is w_t."""
    size = len(sittings.times)
    total = np.bincount(sittings.of_cell, weight, size)
    reading, precision = np.bincount(sittings.of_cell, weight * residual, size) / total, total / noise
    mean, variance, evidence = smoothed(sittings.starts, sittings.times, reading, precision, scales, amplitude)
    expected = LOG_TWO_PI - np.log(precision) + precision * ((reading - mean) ** 2 + variance)
    drift = Drift(sittings.ids, sittings.starts, sittings.times, reading, precision, scales, amplitude)
    return DriftUpdate(drift, mean, variance, float(-0.5 * expected.sum() - evidence))


def smoothed(
    starts: NDArray[np.int64], times: Array, reading: Array, precision: Array, scales: Array, amplitude: float
) -> tuple[Array, Array, float]:
    """Mean and variance of e at each time, and the log density of all readings."""
    readings = Readings(starts, times, reading, precision)
    found = Smoothed(np.empty(len(times)), np.empty(len(times)), np.empty(len(starts) - 1))
    over_ranges(lambda first, last: smooth_groups(first, last, readings, scales, amplitude, found), starts)
    return found.mean, found.variance, float(found.log_density.sum())
