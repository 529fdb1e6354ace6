"""How quiet each row and column is: the precision of its noise, relative to the others'.

A draw at (i, j) has variance s2 / (s_i t_j), with s_i ~ Gamma(k/2, rate k/2), of mean 1 and variance 2/k, and t_j
likewise. Of a row with c_i draws, whose expected squared errors, each times its t_j / s2, add up to e_i, the best
belief is

    q(s_i) = Gamma((k + c_i) / 2, rate (k + e_i) / 2),    E s_i = (k + c_i) / (k + e_i),

and the best strength k solves log(k/2) - psi(k/2) = mean of E s_i - E log s_i - 1 over the rows and one more, which
stands for what is usual: little is learnt from few rows. Where all rows are alike k grows, and the s_i become 1.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np
from scipy.optimize import brentq
from scipy.special import digamma, gammaln

from surefill.arrays import Array
from surefill.errors import InputError
from surefill.registry import storable

USUAL_STRENGTH = 16.0
USUAL_EXCESS = float(np.log(USUAL_STRENGTH / 2) - digamma(USUAL_STRENGTH / 2))
LEAST_STRENGTH, MOST_STRENGTH = 0.5, 1e6


@storable
@dataclass(frozen=True, eq=False)
class Quietness:
    """q(s_g) of each group g of a side, and last of one without entries: ``draws`` c_g, ``errors`` e_g, strength k."""

    draws: Array
    errors: Array
    strength: float

    def __post_init__(self) -> None:
        sums = self.draws, self.errors
        fits = self.draws.shape == self.errors.shape and all(np.isfinite(x).all() and x.min() >= 0 for x in sums)
        if not (fits and 0 < self.strength < np.inf):
            raise InputError(
                "the noise of rows and columns needs draws and errors of at least 0, and a strength above 0."
            )

    @classmethod
    def unknown(cls, draws: Array, strength: float = USUAL_STRENGTH) -> Self:
        """All E s_g = 1, of groups with that many draws."""
        seen = np.append(draws, 0.0)
        return cls(seen, seen, strength)

    def after(self, errors: Array) -> Self:
        """The best belief given the errors, with the strength as it is."""
        return replace(self, errors=np.append(errors, 0.0))

    def with_best_strength(self) -> Self:
        """The same with the strength that fits the groups best."""
        excess = self.mean[:-1] - digamma(self._shape[:-1]) + np.log(self._rate[:-1]) - 1
        return replace(self, strength=_strength_of(float(excess.sum() + USUAL_EXCESS) / len(self.draws)))

    @cached_property
    def mean(self) -> Array:
        """E s_g; 1 for the group without entries."""
        return self._shape / self._rate

    @property
    def bound(self) -> float:
        """This side's part of the bound on the evidence, less what the weighted errors take from it."""
        half = self.strength / 2
        of_prior = half * np.log(half) - gammaln(half)
        of_groups = gammaln(self._shape) - self._shape * np.log(self._rate) + self.mean * self.errors / 2
        return float(of_groups[:-1].sum() + len(self.draws) * of_prior - half * (1 + USUAL_EXCESS))

    @property
    def _shape(self) -> Array:
        return (self.strength + self.draws) / 2

    @property
    def _rate(self) -> Array:
        return (self.strength + self.errors) / 2


def _strength_of(excess: float) -> float:
    """k with log(k/2) - psi(k/2) = excess, which falls as k rises, within limits."""

    def too_weak(log_half: float) -> float:
        return float(log_half - digamma(np.exp(log_half))) - excess

    low, high = np.log(LEAST_STRENGTH / 2), np.log(MOST_STRENGTH / 2)
    if too_weak(high) >= 0:
        return MOST_STRENGTH
    return LEAST_STRENGTH if too_weak(low) <= 0 else 2 * float(np.exp(brentq(too_weak, low, high)))
