"""The noise precision of each row and column, relative to the others': a gamma prior, its posterior, its strength.

A draw at (i, j) has variance s2 / (s_i t_j), with s_i ~ Gamma(k/2, rate k/2), of mean 1 and variance 2/k, and t_j
likewise: draws follow Student's t around the model, row by row. The row's factors x_i ~ N(m_i, (s_i L)^-1) stray from
their prior's mean in the same measure. With c_i the number of the row's draws and of its factors, and e_i the sum of
the draws' expected squared errors, each times its t_j / s2, and of E (x_i - m_i)' L (x_i - m_i), the posterior is

    q(s_i) = Gamma((k + c_i) / 2, rate (k + e_i) / 2),    E s_i = (k + c_i) / (k + e_i),

and the best strength k solves log(k/2) - psi(k/2) = mean of E s_i - E log s_i - 1 over the rows and one pseudo-row of
strength 16, which keeps k from being learnt from few rows. Where all rows are equally noisy k grows, and the s_i
become 1.
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

START_STRENGTH = 16.0
"""k before anything is known, and that of the pseudo-row: noise then differs by about 18% among rows (half the standard
deviation of log s_i, 0.36). A convention; it counts as one row among all."""

PSEUDO_EXCESS = float(np.log(START_STRENGTH / 2) - digamma(START_STRENGTH / 2))
"""E s - E log s - 1 of the pseudo-row."""

MIN_STRENGTH, MAX_STRENGTH = 0.5, 1e6
"""Range that k is kept in: below the first, s_i of a single draw would range over three orders of magnitude; beyond the
second, all s_i are 1 to within 0.2%."""


@storable
@dataclass(frozen=True, eq=False)
class NoisePrecision:
    """q(s_g) of each group g, and last of one without entries: ``draws`` c_g, ``errors`` e_g, ``strength`` k.

    The factors of a group count among its draws.
    """

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
    def unknown(cls, draws: Array, strength: float = START_STRENGTH) -> Self:
        """All E s_g = 1, of groups with that many draws."""
        expected = np.append(draws, 0.0)
        return cls(expected, expected, strength)

    def updated(self, errors: Array) -> Self:
        """The posterior given the errors, with the strength as it is."""
        return replace(self, errors=np.append(errors, 0.0))

    def with_more(self, n: int) -> Self:
        """The posterior of groups with ``n`` draws more, of errors as expected."""
        return replace(self, draws=self.draws + n * (self.draws > 0), errors=self.errors + n * (self.draws > 0))

    def with_means(self, means: Array, draws: Array) -> Self:
        """The posterior of groups with that many draws whose E s_g are ``means``, or the closest that there is."""
        errors = np.maximum((self.strength + draws) / means - self.strength, 0.0)
        return replace(self, draws=draws, errors=errors)

    def with_best_strength(self) -> Self:
        """The same with the strength that raises the lower bound on the evidence most."""
        return replace(self, strength=best_strength(self.excess, len(self.draws) - 1))

    @property
    def excess(self) -> float:
        """E s_g - E log s_g - 1, summed over the groups: all that the strength is learnt from."""
        excess = self.mean[:-1] - digamma(self.shape[:-1]) + np.log(self._rate[:-1]) - 1
        return float(excess.sum())

    @cached_property
    def mean(self) -> Array:
        """E s_g; 1 for the group without entries."""
        return self.shape / self._rate

    @property
    def bound(self) -> float:
        """These groups' part of the lower bound on the evidence, less what the weighted errors take from it."""
        return bound_with_prior(self.bound_of_groups, len(self.draws) - 1, self.strength)

    @property
    def bound_of_groups(self) -> float:
        """The same without what the prior adds; a sum over the groups."""
        of_groups = gammaln(self.shape) - self.shape * np.log(self._rate) + self.mean * self.errors / 2
        return float(of_groups[:-1].sum())

    @property
    def shape(self) -> Array:
        """(k + c_g) / 2, the shape of each gamma posterior: the variance of log s_g is psi_1 of it."""
        return (self.strength + self.draws) / 2

    @property
    def _rate(self) -> Array:
        return (self.strength + self.errors) / 2


def best_strength(excess: float, n_groups: int) -> float:
    """The strength that raises the bound most, given :attr:`NoisePrecision.excess` of all groups."""
    return _strength_of((excess + PSEUDO_EXCESS) / (n_groups + 1))


def bound_with_prior(of_groups: float, n_groups: int, strength: float) -> float:
    """:attr:`NoisePrecision.bound` from :attr:`NoisePrecision.bound_of_groups` of all groups."""
    half = strength / 2
    of_prior = half * np.log(half) - gammaln(half)
    return float(of_groups + (n_groups + 1) * of_prior - half * (1 + PSEUDO_EXCESS))


def _strength_of(excess: float) -> float:
    """k with log(k/2) - psi(k/2) = excess, which falls as k rises, within limits."""

    def too_weak(log_half: float) -> float:
        return float(log_half - digamma(np.exp(log_half))) - excess

    low, high = np.log(MIN_STRENGTH / 2), np.log(MAX_STRENGTH / 2)
    if too_weak(high) >= 0:
        return MAX_STRENGTH
    return MIN_STRENGTH if too_weak(low) <= 0 else 2 * float(np.exp(brentq(too_weak, low, high)))
