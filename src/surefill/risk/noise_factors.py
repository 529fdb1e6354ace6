"""How much noisier than expected each row (or column) is, and whether more so where its predictions are high."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial, reduce
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefill.arrays import Array, IntArray
from surefill.data import Groups
from surefill.data.compact import constant, is_constant, piecewise
from surefill.data.groups import compact_positions, locate
from surefill.errors import InputError
from surefill.parallel import current_map
from surefill.registry import storable

CREDIBILITIES = (*(2.0**power for power in range(15)), 1e9)
"""How many draws the prior may count for; with the last one, rows (or columns) do not differ."""

LARGEST_RATIO, LARGEST_TILT = 5.0, 1.0
"""Losses over their expectation are clipped at the first when slopes are learnt, exponents at the second."""

ENOUGH_TO_CHOOSE = 100_000
"""Entries on which the strength of a prior is chosen, of more: it comes in steps of two."""

TINY, ROUNDING = 1e-300, 1e-12
"""The first keeps divisions by empty sums finite, the second tells a spread of exactly 0 from rounding."""


@storable
@dataclass(frozen=True, eq=False)
class NoiseFactors:
    """a_g exp(d_g (M - c_g)) multiplies the risk of an entry predicted M in the row (or column) ``ids[g]``.

    ``factors`` a, ``slopes`` d and ``centres`` c have a last line, 1, 0 and 0, for rows without data. The exponent is
    clipped to [-1, 1].
    """

    ids: IntArray
    factors: Array
    slopes: Array
    centres: Array

    def __post_init__(self) -> None:
        tables = self.factors, self.slopes, self.centres
        fits = all(len(table) == len(self.ids) + 1 and np.isfinite(table).all() for table in tables)
        if not (fits and (self.factors > 0).all()):
            raise InputError("noise factors need one finite number above 0 per row or column, and one for the rest.")

    @classmethod
    def none(cls, ids: IntArray) -> Self:
        """All 1."""
        nothing = np.zeros(len(ids) + 1)
        return cls(ids, nothing + 1.0, nothing, nothing)

    def times(self, more: Array) -> Self:
        """The same with the factor of each of ``ids`` multiplied by ``more``."""
        return replace(self, factors=np.append(self.factors[:-1] * more, self.factors[-1]))

    def log_at(self, indices: ArrayLike, predicted: Array) -> Array:
        """The log of the factor of each given row (or column), at these predictions."""
        groups = locate(self.ids, np.asarray(indices))
        return self._logs[groups] + _exponent(self.slopes[groups], predicted - self.centres[groups])

    def table(self, indices: IntArray) -> Array:
        """log a, d and c of each given row (or column), three lines."""
        groups = locate(self.ids, indices)
        return np.stack([self._logs[groups], self.slopes[groups], self.centres[groups]])

    @cached_property
    def _logs(self) -> Array:
        return np.log(self.factors)

    def of(self, groups: IntArray, predicted: Array) -> Array:
        """The factors at positions among ``ids``; -1 is a row without data."""

        def of_piece(groups: IntArray, predicted: Array) -> Array:
            return self.factors[groups] * _tilt(self.slopes[groups], predicted - self.centres[groups])

        return piecewise(of_piece, groups, predicted)


@storable
@dataclass(frozen=True)
class NoisePrior:
    """What the factors of a row (or column) are shrunk by: the mean ratio, k, the mean prediction, and k' V."""

    level: float
    credibility: float
    middle: float
    slope: float


@dataclass(frozen=True, eq=False)
class NoiseSide:
    """The rows (or columns) of a sample: each entry's ``group``, ``weight`` in draws, and what was ``predicted``."""

    ids: IntArray
    group: IntArray
    weight: Array
    predicted: Array

    @classmethod
    def of(cls, indices: IntArray, counts: NDArray[Any], predicted: Array) -> Self:
        """Entries grouped by ``indices``."""
        groups = Groups.of(indices)
        each = counts.astype(np.float64, copy=False)
        weight = constant(1.0, len(counts), np.float64) if is_constant(counts) else each
        return cls(groups.ids, compact_positions(groups.ids, indices), weight, predicted)

    def shrunk(self, ratio: Array) -> tuple[NoiseFactors, Array]:
        """The factors of each group, and for each entry those of its group without the entry itself."""
        factors, left_out, _ = self.learnt(ratio)
        return factors, left_out

    def given(self, ratio: Array, prior: NoisePrior) -> NoiseFactors:
        """The factors of groups that a ``prior`` learnt from others is known for."""
        s = ratio / prior.level
        totals, sizes = self._group_sums(s)
        factors = (prior.credibility + totals) / (prior.credibility + sizes)
        sums = self._slope_sums(self._clipped(s, factors), self.predicted - prior.middle)
        slopes, centres = _slopes(sums, prior.credibility, prior.slope)
        return self._factors(factors, slopes, centres + prior.middle)

    def learnt(self, ratio: Array) -> tuple[NoiseFactors, Array, NoisePrior]:
        """As :meth:`shrunk`, and the prior that they are shrunk by.

        s_t is the entry's ``ratio`` of squared residual to what is expected of it whichever its group, over the mean
        of all, so that factors lie around 1; k, the credibility, is how many draws the prior a_g = 1 counts for:

            a_g = (k + sum_t w_t s_t) / (k + sum_t w_t)
            d_g = sum_t w_t (s_t / a_g) (M_t - c_g) / (k' V + sum_t w_t (M_t - c_g)^2),     c_g the mean of the M_t.

        The first is the mean of the posterior where residuals are normal and a_g is from an inverse gamma distribution
        of mean 1. The second is one step of Fisher's scoring from 0 under a normal prior; V is the variance of
        predictions within groups, k' counts draws too, and ratios are clipped at 5, for one outlier would set a slope.
        """
        level = float(np.average(ratio, weights=self.weight))
        s = ratio / level
        k = self.credibility(s)
        totals, sizes = sums = self._group_sums(s)
        left_out = piecewise(partial(self._left_out, sums, k), *self._of_entries(s))
        factors = (k + totals) / (k + sizes)
        still = s[self._some] / left_out[self._some]
        slopes, centres, tilts, of_slopes = self._tilted(self._clipped(s, factors), k, still)
        prior = NoisePrior(level, k, *of_slopes)
        return self._factors(factors, slopes, centres), left_out * tilts, prior

    def _factors(self, factors: Array, slopes: Array, centres: Array) -> NoiseFactors:
        return NoiseFactors(self.ids, np.append(factors, 1.0), np.append(slopes, 0.0), np.append(centres, 0.0))

    def credibility(self, ratio: Array) -> float:
        """The k of ``CREDIBILITIES`` with the least sum_t w_t (log a_t + s_t / a_t), a_t without the entry itself."""
        some, (totals, sizes) = self._some, self._group_sums(ratio)
        group, weight, own = (each[some] for each in self._of_entries(ratio))
        others, n_others = _others(totals, group, weight, own), sizes[group] - weight
        return self._best(own, lambda k: (k + others) / (k + n_others))

    @property
    def _some(self) -> slice:
        """Entries on which the strength of a prior is chosen: all, or a part of very many."""
        return slice(None, None, max(1, len(self.group) // ENOUGH_TO_CHOOSE))

    def _best(self, ratio: Array, left_out: Callable[[float], Array]) -> float:
        """The k with the least loss; of some of the entries the ``ratio`` is given, and ``left_out`` their factors."""
        weight = np.ascontiguousarray(self.weight[self._some])

        def loss(k: float) -> float:
            a = left_out(k)
            return float(weight @ (np.log(a) + ratio / a))

        return CREDIBILITIES[int(np.argmin(current_map().map(loss, CREDIBILITIES)))]

    def _of_entries(self, *of_entry: Array) -> tuple[Any, ...]:
        return self.group, self.weight, *of_entry

    def _group_sums(self, ratio: Array) -> tuple[Array, Array]:
        return self._sums(self.weight * ratio), self._sums(self.weight)

    def _left_out(self, sums: tuple[Array, Array], k: float, group: IntArray, weight: Array, ratio: Array) -> Array:
        """a of each of these entries without the entry itself."""
        totals, sizes = sums
        return (k + _others(totals, group, weight, ratio)) / (k + sizes[group] - weight)

    def _clipped(self, s: Array, factors: Array) -> Array:
        """s, at most five times the factor of its group."""
        return piecewise(lambda s, group: np.minimum(s, LARGEST_RATIO * factors[group]), s, self.group)

    def _slope_sums(self, s: Array, M: Array) -> Array:
        """Sums of w, w M, w M^2, w s and w s M over each group, M the predictions less their middle."""
        w = self.weight
        factors = (), (M,), (M**2,), (s,), (s, M)  # products one at a time: entries may be very many
        return np.stack([self._sums(reduce(np.multiply, each, w)) for each in factors])

    def _tilted(self, s: Array, k: float, ratio: Array) -> tuple[Array, Array, Array, tuple[float, float]]:
        """d_g, c_g, and for each entry exp(d_g (M - c_g)) without itself; ``ratio`` is what is left to explain of some.

        Last the mean of all M, and k' V.
        """
        middle = float(np.average(self.predicted, weights=self.weight))
        w, M = self.weight, self.predicted - middle
        sums = self._slope_sums(s, M)
        within = float(_spreads(sums).sum() / w.sum())

        def others(group: IntArray, w: Array, M: Array, s: Array) -> Array:
            return np.asarray(sums[:, group] - np.stack([w, w * M, w * M**2, w * s, w * s * M]))

        def left_out(sums: Array, k_of_slope: float, M: Array) -> Array:
            slopes, centres = _slopes(sums, k, k_of_slope * within)
            return _tilt(slopes, M - centres)

        entries = self._of_entries(M, s)
        some, M_of_some = others(*(each[self._some] for each in entries)), M[self._some]
        best = self._best(ratio, lambda k_of_slope: left_out(some, k_of_slope, M_of_some))
        slopes, centres = _slopes(sums, k, best * within)
        tilts = piecewise(lambda group, w, M, s: left_out(others(group, w, M, s), best, M), *entries)
        return slopes, centres + middle, tilts, (middle, best * within)

    def _sums(self, of_entry: Array) -> Array:
        return np.bincount(self.group, of_entry, len(self.ids)).astype(np.float64)


def _others(totals: Array, group: IntArray, weight: Array, ratio: Array) -> Array:
    """The sum of its group's w s without the entry itself."""
    return np.asarray(np.maximum(totals[group] - weight * ratio, 0.0))


def _slopes(sums: Array, k: float, prior: float) -> tuple[Array, Array]:
    """d and c of groups of which sums of w, w M, w M^2, w s and w s M are given; ``prior`` is k' V."""
    n, x, _, s, sx = sums
    centres = x / np.maximum(n, TINY)
    covariance, level, spread = sx - s * centres, (k + s) / (k + n), prior + _spreads(sums)
    # Of predictions that do not differ the covariance is 0 but for rounding, and tells nothing.
    slopes = np.divide(covariance, level * spread, out=np.zeros_like(covariance), where=spread > 0)
    return slopes, centres


def _spreads(sums: Array) -> Array:
    """sum_t w_t (M_t - c)^2 of groups; of those of one entry exactly 0."""
    n, x, xx, _, _ = sums
    spread = xx - x**2 / np.maximum(n, TINY)
    return np.asarray(np.where(spread > ROUNDING * xx, spread, 0.0))


def _tilt(slopes: Array, off_centre: Array) -> Array:
    return np.exp(_exponent(slopes, off_centre))


def _exponent(slopes: Array, off_centre: Array) -> Array:
    return np.clip(slopes * off_centre, -LARGEST_TILT, LARGEST_TILT)
