"""How much noisier than expected each row (or column) is: means of squared residuals, shrunk by how little was seen."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefill.data import Groups
from surefill.data.groups import IntArray, locate
from surefill.errors import InputError

Array = NDArray[np.float64]

LEAST_CREDIBILITY, MOST_CREDIBILITY = 1.0, 1e9


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

        s_t = ``ratio`` is the entry's squared residual over what is expected of it, whichever its group; k, the
        credibility, is how many draws the prior a_g = 1 counts for.
        """
        k = self.credibility(ratio)
        own = self.weight * ratio
        total, size = k + self._sums(own), k + self._sums(self.weight)
        factors = np.append(total / size, 1.0)
        return factors, (total[self.group] - own) / (size[self.group] - self.weight)

    def credibility(self, ratio: Array) -> float:
        """k = variance of a draw's ratio within a group / variance of a_g between groups, both by moments.

        With N_g draws in group g, N in all, and means s_g of the groups (Bühlmann and Straub's estimates),

            within  = sum_t w_t (s_t - s_g)^2 / (entries - groups)
            between = (sum_g N_g (s_g - s)^2 - (groups - 1) within) / (N - sum_g N_g^2 / N)
        """
        draws = self._sums(self.weight)
        mean_of, mean = self._sums(self.weight * ratio) / draws, np.average(ratio, weights=self.weight)
        free, total = len(ratio) - len(self.ids), draws.sum()
        if free == 0 or len(self.ids) < 2:
            return MOST_CREDIBILITY
        within = float(np.sum(self.weight * (ratio - mean_of[self.group]) ** 2)) / free
        spread = float(np.sum(draws * (mean_of - mean) ** 2)) - (len(self.ids) - 1) * within
        between = spread / float(total - np.sum(draws**2) / total)
        if within >= between * MOST_CREDIBILITY:
            return MOST_CREDIBILITY
        return max(within / between, LEAST_CREDIBILITY)

    def _sums(self, of_entry: Array) -> Array:
        return np.bincount(self.group, of_entry, len(self.ids)).astype(np.float64)
