"""How much noisier than expected each row (or column) is: means of squared residuals, shrunk by how little was seen."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefill.data import Groups
from surefill.data.groups import IntArray, locate
from surefill.errors import InputError

Array = NDArray[np.float64]

CREDIBILITIES = (*(2.0**power for power in range(15)), 1e9)
"""How many draws the prior may count for; with the last one, rows (or columns) do not differ."""


@dataclass(frozen=True, eq=False)
class NoiseFactors:
    """``factors[g]`` multiplies the risk in the row (or column) ``ids[g]``; the last one, 1, is for all others."""

    ids: IntArray
    factors: Array

    def __post_init__(self) -> None:
        positive = bool(np.isfinite(self.factors).all() and (self.factors > 0).all())
        if len(self.factors) != len(self.ids) + 1 or not positive:
            raise InputError("noise factors need one finite number above 0 per row or column, and one for the rest.")

    def at(self, indices: ArrayLike) -> Array:
        """The factor of each given row (or column)."""
        found: Array = self.factors[locate(self.ids, np.asarray(indices))]
        return found


@dataclass(frozen=True, eq=False)
class NoiseSide:
    """The rows (or columns) of a sample: ``group`` is that of each entry, ``weight`` how many draws the entry is."""

    ids: IntArray
    group: NDArray[np.int64]
    weight: Array

    @classmethod
    def of(cls, indices: IntArray, counts: NDArray[np.int64]) -> NoiseSide:
        """Entries grouped by ``indices``."""
        groups = Groups.of(indices)
        return cls(groups.ids, groups.locate(indices), counts.astype(np.float64))

    def shrunk(self, ratio: Array) -> tuple[Array, Array]:
        """a_g = (k + sum_t w_t s_t) / (k + sum_t w_t) of each group, and for each entry the same without itself.

        s_t is the entry's ``ratio`` of squared residual to what is expected of it whichever its group, over the mean
        of all, so that factors lie around 1; k, the credibility, is how many draws the prior a_g = 1 counts for. This
        is the mean of the posterior where residuals are normal and a_g is from an inverse gamma distribution of mean 1.
        """
        s = ratio / np.average(ratio, weights=self.weight)
        k = self.credibility(s)
        factors = (k + self._sums(self.weight * s)) / (k + self._sums(self.weight))
        return np.append(factors, 1.0), self._left_out(s, k)

    def credibility(self, ratio: Array) -> float:
        """The k of ``CREDIBILITIES`` with the least sum_t w_t (log a_t + s_t / a_t), a_t without the entry itself."""
        loss = []
        for k in CREDIBILITIES:
            a = self._left_out(ratio, k)
            loss.append(float(self.weight @ (np.log(a) + ratio / a)))
        return CREDIBILITIES[int(np.argmin(loss))]

    def _left_out(self, ratio: Array, k: float) -> Array:
        total, size = self._sums(self.weight * ratio)[self.group], self._sums(self.weight)[self.group]
        others: Array = np.maximum(total - self.weight * ratio, 0.0)
        return (k + others) / (k + size - self.weight)

    def _sums(self, of_entry: Array) -> Array:
        return np.bincount(self.group, of_entry, len(self.ids)).astype(np.float64)
