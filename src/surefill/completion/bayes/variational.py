"""One side of the Bayesian factor model: what is believed of its groups, and the regressions that update it.

With f_t = (1, q_j) for an entry t of row i, x_i = (b_i, p_i), noise variance s2 / (s_i t_j), and everything else held
fixed, the best q(x_i) = N(x_i, diag(v_i)) is

    x_i = (F + E + s2 L)^-1 (sum_t w_t (r_t - c_j) f_t + s2 L m_i),     v_ia = s2 / (F + E + s2 L)_aa
    F = sum_t w_t E[f_t] E[f_t]',   E = diag(sum_t w_t Var f_t),   L the prior's precision, m_i its mean,
    w_t = c_t E s_i E t_j:

the row's ridge regression, its penalty the uncertainty of the columns it was seen at. Columns likewise. How quiet a row
is, s_i, is learnt as :mod:`surefill.completion.bayes.noise_precision` says.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np

from surefill.arrays import Array, IntArray
from surefill.completion.bayes.noise_precision import Quietness
from surefill.completion.grouped_regression import Side, as_features, lent, overlaid
from surefill.data import Groups, Observations
from surefill.errors import InputError
from surefill.kernels.group_sums import sum_errors
from surefill.registry import storable

LINK_PENALTY = 3.0
LINK_STEPS = 2
START_PRECISION = 10.0
PRIOR_VARIANCE = 0.1
LEAST_NOISE = 1e-8
SETTLING_STEPS = 4
TINY = float(np.finfo(float).tiny)


@storable
@dataclass(frozen=True, eq=False)
class Belief:
    """q(x_g) = N(mean_g, diag(variance_g)) of each group g, and the prior x_g ~ N(m_g, precision^-1), where

        m_g = sum of link_h over the n_g groups h of the other side that g was seen at / sqrt(n_g):

    which cells were seen says something about a row before any value does. ``mean`` and ``variance`` have a line for
    each of ``ids`` and a last one for groups without entries; ``link`` has the other side's lines. ``quietness`` is
    what is believed of the groups' noise.
    """

    ids: IntArray
    mean: Array
    variance: Array
    precision: Array
    link: Array
    quietness: Quietness

    def __post_init__(self) -> None:
        tables, width = (self.mean, self.variance), self.mean.shape[1]
        fits = all(table.shape == (len(self.ids) + 1, width) for table in tables) and self.link.shape[1] == width
        fits = fits and self.precision.shape == (width, width) and not (np.diff(self.ids) <= 0).any()
        fits = fits and len(self.quietness.draws) == len(self.mean)
        if not fits or not all(np.isfinite(table).all() for table in (*tables, self.precision, self.link)):
            raise InputError("a side of a factor completion needs sorted ids and finite tables of matching sizes.")

    @classmethod
    def start(cls, side: VariationalSide, rank: int, n_other: int, rng: np.random.Generator) -> Self:
        """Small random factors, no biases, no link, noise alike."""
        ids, width = side.groups.ids, rank + 1
        mean = np.zeros((len(ids) + 1, width))
        mean[:-1, 1:] = rng.normal(0, 0.1, (len(ids), rank))
        variance, precision = np.full_like(mean, PRIOR_VARIANCE / 10), START_PRECISION * np.eye(width)
        return cls(ids, mean, variance, precision, np.zeros((n_other + 1, width)), Quietness.unknown(side.draws))

    def overlaid(self, new: Self) -> Self:
        """This belief with the groups of ``new`` added or put in place."""
        tables, others = ((b.mean, b.variance, b.quietness.draws, b.quietness.errors) for b in (self, new))
        both = [overlaid(self.ids, old, new.ids, other) for old, other in zip(tables, others, strict=True)]
        (ids, mean), (_, variance), (_, draws), (_, errors) = both
        quietness = replace(self.quietness, draws=draws, errors=errors)
        return replace(self, ids=ids, mean=mean, variance=variance, quietness=quietness)

    def linked_to(self, ids: IntArray, new_ids: IntArray) -> Self:
        """The link re-ordered from the other side's groups ``ids`` to ``new_ids``, none to those unknown."""
        return replace(self, link=lent(ids, self.link, new_ids))


@dataclass(frozen=True, eq=False)
class Solved:
    """A side's belief, the expected squared error of its entries, and its part of the bound on the evidence."""

    belief: Belief
    error: float
    bound: float


@dataclass(frozen=True, eq=False)
class VariationalSide(Side):
    """The regressions of the groups of one side, and what they teach about the prior and the noise.

    ``scatter`` has the squared deviations of each entry's draws from their mean, on [-1, 1].
    """

    scatter: Array

    @classmethod
    def _of(
        cls, observations: Observations, groups: Groups, other: IntArray, other_ids: IntArray, target: Array
    ) -> Self:
        side = Side._of(observations, groups, other, other_ids, target)
        scatter = observations.unit.squared_error_to_unit(observations.scatter[groups.order])
        return cls(side.groups, side.other, side.target, side.weight, scatter)

    def solve(self, prior: Belief, fixed: Belief, noise: float, quietness: Quietness) -> Solved:
        """The best belief of this side's groups under ``prior`` given the other side's, at a quietness."""
        weighted = self._weighted(quietness.mean, fixed)
        P, prior_means = noise * prior.precision, self.prior_means(prior.link)
        spread, squares, of_biases = weighted._moments(fixed)
        pull = prior_means @ P
        solution, value = weighted.regress(fixed.mean, spread, P, pull)
        unseen = np.diag(np.linalg.inv(prior.precision))
        variance = np.vstack([noise / (squares + np.diag(P)), unseen])
        x = solution[:-1]
        error = value - np.sum(x * (x @ P - 2 * pull)) + of_biases + np.sum(variance[:-1] * squares)
        error += np.dot(weighted.weight / self.weight, self._within)
        belief = Belief(self.groups.ids, solution, variance, prior.precision, prior.link, quietness)
        return Solved(belief, float(error), self._bound(belief, prior_means) + quietness.bound)

    def settle(self, prior: Belief, fixed: Belief, noise: float) -> Belief:
        """The belief of groups of whose noise nothing is known yet, and how quiet they are, by turns."""
        quietness = Quietness.unknown(self.draws, prior.quietness.strength)
        for _ in range(SETTLING_STEPS):
            belief = self.solve(prior, fixed, noise, quietness).belief
            quietness = quietness.after(self.errors(belief, fixed, noise))
        return self.solve(prior, fixed, noise, quietness).belief

    def errors(self, belief: Belief, fixed: Belief, noise: float) -> Array:
        """E of the squared errors over each group's entries, each times the other group's quietness over the noise."""
        total = np.empty(len(self.groups))
        tables = belief.mean, belief.variance, fixed.mean, fixed.variance
        quiet = fixed.quietness.mean[self.other]
        self.over(sum_errors, self.weight * quiet, self.target, *tables, total)
        return (total + np.add.reduceat(self._within * quiet, self.groups.starts[:-1])) / noise

    def covariances(self, prior: Belief, fixed: Belief, noise: float) -> Array:
        """s2 (F + E + s2 L)^-1 of each group, and last the prior's L^-1."""
        weighted = self._weighted(lent(prior.ids, prior.quietness.mean, self.groups.ids), fixed)
        return noise * weighted.inverses_of(fixed.mean, weighted._moments(fixed)[0], noise * prior.precision)

    def _weighted(self, quiet: Array, fixed: Belief) -> Self:
        """The same entries with weights c_t E s_i E t_j; ``quiet`` has the E s_i of this side's groups."""
        weight = self.weight * np.repeat(quiet[:-1], self.groups.sizes) * fixed.quietness.mean[self.other]
        return replace(self, weight=weight)

    @cached_property
    def draws(self) -> Array:
        """How many draws each group has."""
        return np.asarray(np.add.reduceat(self.weight, self.groups.starts[:-1]))

    @cached_property
    def _within(self) -> Array:
        """Squared error that no completion can lower, of repeats that differ, and a floor under the noise."""
        return self.scatter + LEAST_NOISE * self.weight

    def _moments(self, fixed: Belief) -> tuple[Array, Array, float]:
        """Of each group the diagonals of E and F + E; of all, the variance of the other side's biases."""
        width = fixed.mean.shape[1]
        both = self.totals(np.hstack([fixed.variance, as_features(fixed.mean) ** 2]), self.weight)
        spread, squares = both[:, :width].copy(), both[:, width:]
        of_biases = float(spread[:, 0].sum())
        spread[:, 0] = 0.0
        return spread, squares + spread, of_biases

    def prior_means(self, link: Array) -> Array:
        """m_g of each group."""
        return self.totals(link, self._once) / self._root_sizes

    def learned(self, belief: Belief, across: VariationalSide) -> Belief:
        """``belief`` with the link and precision that fit its groups better; ``across`` is the other side."""
        link, prior_means = self._fitted_link(belief, across)
        linked = replace(belief, link=link)
        covariance = self._scatter(linked, prior_means) / (len(self.groups) + 1)
        return replace(linked, precision=np.asarray(np.linalg.inv(covariance), dtype=np.float64))

    def _bound(self, belief: Belief, prior_means: Array) -> float:
        """This side's part of the lower bound on the evidence, less a constant."""
        log_det = np.linalg.slogdet(belief.precision)[1]
        fit = (len(self.groups) + 1) * log_det - np.sum(belief.precision * self._scatter(belief, prior_means))
        return float(fit + np.log(belief.variance[:-1]).sum()) / 2

    def _scatter(self, belief: Belief, prior_means: Array) -> Array:
        """E sum_g (x_g - m_g)(x_g - m_g)' + 3 sum_h link_h link_h', and one more group of a standard variance."""
        away, link = belief.mean[:-1] - prior_means, belief.link
        own = np.diag(belief.variance[:-1].sum(axis=0) + PRIOR_VARIANCE)
        return np.asarray(away.T @ away + LINK_PENALTY * link.T @ link + own)

    def _fitted_link(self, belief: Belief, across: VariationalSide) -> tuple[Array, Array]:
        """A few steps of conjugate gradients, one system per factor, on sum_g |x_g - m_g|^2 + 3 sum_h |link_h|^2.

        From the link as it was; gives the new one and its m_g.
        """
        link, m = belief.link, self.prior_means(belief.link)
        r = self._transposed(belief.mean[:-1] - m, across) - LINK_PENALTY * link
        d, rr = r, np.sum(r * r, axis=0)
        for _ in range(LINK_STEPS):
            Bd = self.prior_means(d)
            Ad = self._transposed(Bd, across) + LINK_PENALTY * d
            step = rr / np.maximum(np.sum(d * Ad, axis=0), TINY)
            link, m, r = link + step * d, m + step * Bd, r - step * Ad
            before, rr = rr, np.sum(r * r, axis=0)
            d = r + rr / np.maximum(before, TINY) * d
        return link, m

    def _transposed(self, table: Array, across: VariationalSide) -> Array:
        """The transpose of :meth:`prior_means`, from the groups of this side to those of the other."""
        nothing = np.zeros(table.shape[1])
        return np.vstack([across.totals(np.vstack([table / self._root_sizes, nothing]), across._once), nothing])

    @cached_property
    def _once(self) -> Array:
        return np.ones(len(self.other))

    @cached_property
    def _root_sizes(self) -> Array:
        return np.sqrt(self.groups.sizes)[:, None]
