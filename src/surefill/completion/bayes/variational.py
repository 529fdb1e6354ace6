"""Variational updates of the Bayesian factor model: the posterior of all rows given the columns, or the reverse.

With f_t = (1, q_j) for an entry t of row i, x_i = (b_i, p_i), noise variance s2 / (s_i t_j), and everything else held
fixed, the best q(x_i) = N(x_i, diag(v_i)) is

    x_i = (F + E + s2 L)^-1 (sum_t w_t (r_t - c_j) f_t + s2 L m_i),     v_ia = s2 / (F + E + s2 L)_aa
    F = sum_t w_t E[f_t] E[f_t]',   E = diag(sum_t w_t Var f_t),   L the prior's precision, m_i its mean,
    w_t = c_t E s_i E t_j:

the row's ridge regression, its penalty the uncertainty of the columns it was seen at. Columns likewise. The noise
precision s_i of a row is learnt as :mod:`surefill.completion.bayes.noise_precision` says.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np

from surefill.arrays import Array, IntArray
from surefill.completion.bayes.noise_precision import NoisePrecision
from surefill.completion.grouped_regression import GroupedRegression, as_features, merged, reindexed
from surefill.data import Observations, UnitMap
from surefill.errors import InputError
from surefill.kernels.group_sums import sum_errors
from surefill.registry import storable

IMPLICIT_PENALTY = 3.0
"""Prior precision of an implicit factor in units of a row's, 3 L: chosen on held-out cells of MovieLens 100k and 1M
(docs/benchmarks.md)."""

IMPLICIT_STEPS = 2
"""Conjugate-gradient steps per sweep on the implicit factors: each raises the bound, and sweeps go on from the last."""

START_PRECISION = 10.0
"""L of the first sweep, times the identity: factors of variance 0.1, as :data:`PRIOR_VARIANCE` says."""

PRIOR_VARIANCE = 0.1
"""Variance, on [-1, 1], of the one pseudo-group from which a precision is learnt beside the groups themselves: ten
factors of it give products of variance 0.1, about that of values spread over the range."""

START_SPREAD = 0.1
"""Standard deviation of the random factors to start from: their products, at rank 10 about 0.03, are small beside the
values, so that the first sweep fits biases and data rather than the start."""

LEAST_NOISE = 1e-8
"""Noise variance, on [-1, 1], added to every draw: data without noise would make the bound infinite."""

NEW_GROUP_STEPS = 4
"""Turns between factors and noise precisions of groups that were not fitted: each brings them some fifty times closer
to where they settle; after four they are within 10^-8 posterior standard deviations (simulated, two noise levels)."""

TINY = float(np.finfo(float).tiny)
"""Keeps 0 / 0 at 0 where conjugate gradients have arrived."""


@storable
@dataclass(frozen=True, eq=False)
class FactorPosterior:
    """q(x_g) = N(mean_g, diag(variance_g)) of each group g, and the prior x_g ~ N(m_g, precision^-1), where

        m_g = intercept + sum of implicit_h over the n_g rows (or columns) h that g was seen at / sqrt(n_g):

    which cells were seen says something about a row before any value does (the implicit factors of SVD++ and of
    constrained probabilistic matrix factorisation), and so does how many: implicit_h ~ N(g_0, .), so that m_g has a
    part sqrt(n_g) g_0. ``mean`` and ``variance`` have a line for each of ``ids`` and a last one for groups without
    entries, of mean 0: how many entries they will have is not known. ``implicit`` has a line for each h and a last one
    for those unknown, g_0. ``noise_precision`` is the posterior of the groups' noise precisions.
    """

    ids: IntArray
    mean: Array
    variance: Array
    precision: Array
    intercept: Array
    implicit: Array
    noise_precision: NoisePrecision

    def __post_init__(self) -> None:
        tables, width = (self.mean, self.variance), self.mean.shape[1]
        fits = all(table.shape == (len(self.ids) + 1, width) for table in tables) and self.implicit.shape[1] == width
        fits = fits and self.precision.shape == (width, width) and self.intercept.shape == (width,)
        fits = fits and not (np.diff(self.ids) <= 0).any()
        fits = fits and len(self.noise_precision.draws) == len(self.mean)
        learnt = self.precision, self.intercept, self.implicit
        if not fits or not all(np.isfinite(table).all() for table in (*tables, *learnt)):
            raise InputError("the rows of a factor completion need sorted ids and finite tables of matching sizes.")

    @classmethod
    def start(cls, regression: VariationalRegression, rank: int, n_other: int, rng: np.random.Generator) -> Self:
        """Small random factors around a small random centre, no biases, no implicit factors, equal noise."""
        ids, width = regression.groups.ids, rank + 1
        mean = np.zeros((len(ids) + 1, width))
        mean[:-1, 1:] = rng.normal(0, START_SPREAD, (len(ids), rank))
        intercept = np.append(0.0, rng.normal(0, START_SPREAD, rank))
        variance, precision = np.full_like(mean, PRIOR_VARIANCE / 10), START_PRECISION * np.eye(width)
        no_implicit, noise_precision = np.zeros((n_other + 1, width)), NoisePrecision.unknown(regression.draws)
        return cls(ids, mean, variance, precision, intercept, no_implicit, noise_precision)

    def widened(self, n_new: int, rng: np.random.Generator) -> Self:
        """The same with ``n_new`` small random factors more, as :meth:`start` has them."""
        size, width = self.mean.shape
        mean = np.vstack([rng.normal(0, START_SPREAD, (size - 1, n_new)), np.zeros(n_new)])
        precision = START_PRECISION * np.eye(width + n_new)
        precision[:width, :width] = self.precision
        return replace(
            self,
            mean=np.hstack([self.mean, mean]),
            variance=np.hstack([self.variance, np.full((size, n_new), PRIOR_VARIANCE / 10)]),
            precision=precision,
            intercept=np.append(self.intercept, rng.normal(0, START_SPREAD, n_new)),
            implicit=np.hstack([self.implicit, np.zeros((len(self.implicit), n_new))]),
        )

    def merged(self, new: Self) -> Self:
        """This posterior with the groups of ``new`` added or put in place."""
        tables, others = ((q.mean, q.variance, q.noise_precision.draws, q.noise_precision.errors) for q in (self, new))
        both = [merged(self.ids, old, new.ids, other) for old, other in zip(tables, others, strict=True)]
        (ids, mean), (_, variance), (_, draws), (_, errors) = both
        noise_precision = replace(self.noise_precision, draws=draws, errors=errors)
        return replace(self, ids=ids, mean=mean, variance=variance, noise_precision=noise_precision)

    def reindexed(self, ids: IntArray, draws: Array) -> Self:
        """The posterior of the groups ``ids``, with that many draws each: the prior's for those unknown.

        A group's noise precision stays what it was: its errors are taken to grow with its draws.
        """
        mean, variance = (reindexed(self.ids, table, ids) for table in (self.mean, self.variance))
        s = reindexed(self.ids, self.noise_precision.mean, ids)
        return replace(
            self,
            ids=ids,
            mean=mean,
            variance=variance,
            noise_precision=self.noise_precision.with_means(s, np.append(draws, 0.0)),
        )

    def with_implicit_reindexed(self, ids: IntArray, new_ids: IntArray) -> Self:
        """The implicit factors of ``ids`` put in the order of ``new_ids``, g_0 for those unknown."""
        return replace(self, implicit=reindexed(ids, self.implicit, new_ids))


@dataclass(frozen=True, eq=False)
class PosteriorUpdate:
    """The groups' new posterior, the expected squared error of their entries, and their part of the lower bound."""

    posterior: FactorPosterior
    error: float
    bound: float


@dataclass(frozen=True, eq=False)
class VariationalRegression(GroupedRegression):
    """The variational updates of all rows (or all columns), and what they teach about the prior and the noise.

    ``scatter`` has the squared deviations of each entry's draws from their mean, on [-1, 1].
    """

    scatter: Array

    @classmethod
    def per_row(cls, observations: Observations, col_ids: IntArray, target: Array, unit: UnitMap) -> Self:
        """One regression per row, on the columns ``col_ids``; ``unit`` is the model's, not that of a few new rows."""
        return cls._with_scatter(GroupedRegression.of_rows(observations, col_ids, target), observations, unit)

    @classmethod
    def per_col(cls, observations: Observations, row_ids: IntArray, target: Array, unit: UnitMap) -> Self:
        """One regression per column, on the rows ``row_ids``."""
        return cls._with_scatter(GroupedRegression.of_cols(observations, row_ids, target), observations, unit)

    @classmethod
    def _with_scatter(cls, plain: GroupedRegression, observations: Observations, unit: UnitMap) -> Self:
        scatter = unit.squared_error_to_unit(observations.scatter[plain.groups.order])
        return cls(plain.groups, plain.other, plain.target, plain.weight, scatter)

    def solve(
        self, prior: FactorPosterior, fixed: FactorPosterior, noise: float, noise_precision: NoisePrecision
    ) -> PosteriorUpdate:
        """The best posterior of the groups under ``prior``, given the others' ``fixed`` and the noise precisions."""
        weighted = self._weighted(noise_precision.mean, fixed)
        P, prior_means = noise * prior.precision, self.prior_means(prior)
        spread, squares, of_biases = weighted._moments(fixed)
        pull = prior_means @ P
        solution, value = weighted.regress(fixed.mean, spread, P, pull)
        unseen = np.diag(np.linalg.inv(prior.precision))
        variance = np.vstack([noise / (squares + np.diag(P)), unseen])
        x = solution[:-1]
        # The regressions' value without what the prior added to it, and with what the variances add.
        error = value - np.sum(x * (x @ P - 2 * pull)) + of_biases + np.sum(variance[:-1] * squares)
        error += np.dot(weighted.weight / self.weight, self._within)
        posterior = FactorPosterior(
            self.groups.ids,
            solution,
            variance,
            prior.precision,
            prior.intercept,
            prior.implicit,
            noise_precision,
        )
        return PosteriorUpdate(posterior, float(error), self._bound(posterior, prior_means) + noise_precision.bound)

    def solve_new_groups(self, prior: FactorPosterior, fixed: FactorPosterior, noise: float) -> FactorPosterior:
        """The posterior of groups that were not fitted, of factors and of noise precisions by turns."""
        noise_precision = NoisePrecision.unknown(self.draws, prior.noise_precision.strength)
        for _ in range(NEW_GROUP_STEPS):
            posterior = self.solve(prior, fixed, noise, noise_precision).posterior
            noise_precision = noise_precision.updated(self.errors(posterior, fixed, noise))
        return self.solve(prior, fixed, noise, noise_precision).posterior

    def errors(self, posterior: FactorPosterior, fixed: FactorPosterior, noise: float) -> Array:
        """e_g: E of the squared errors over each group's entries, each times E t_j / s2 of its column (or row)."""
        total = np.empty(len(self.groups))
        tables = posterior.mean, posterior.variance, fixed.mean, fixed.variance
        t = fixed.noise_precision.mean[self.other]
        self.over(sum_errors, self.weight * t, self.target, *tables, total)
        return (total + np.add.reduceat(self._within * t, self.groups.starts[:-1])) / noise

    def covariances(self, prior: FactorPosterior, fixed: FactorPosterior, noise: float) -> Array:
        """s2 (F + E + s2 L)^-1 of each group, and last the prior's L^-1."""
        s = reindexed(prior.ids, prior.noise_precision.mean, self.groups.ids)
        weighted = self._weighted(s, fixed)
        return noise * weighted.inverses_of(fixed.mean, weighted._moments(fixed)[0], noise * prior.precision)

    def _weighted(self, s: Array, fixed: FactorPosterior) -> Self:
        """The same entries with weights w_t = c_t E s_i E t_j; ``s`` has the E s_i of these groups."""
        weight = self.weight * np.repeat(s[:-1], self.groups.sizes) * fixed.noise_precision.mean[self.other]
        return replace(self, weight=weight)

    @cached_property
    def draws(self) -> Array:
        """How many draws each group has."""
        return np.asarray(np.add.reduceat(self.weight, self.groups.starts[:-1]))

    @cached_property
    def _within(self) -> Array:
        """Squared error that no completion can lower, of repeats that differ, and a floor under the noise."""
        return self.scatter + LEAST_NOISE * self.weight

    def _moments(self, fixed: FactorPosterior) -> tuple[Array, Array, float]:
        """Of each group the diagonals of E and F + E; of all, the weighted variance of the others' biases."""
        width = fixed.mean.shape[1]
        both = self.totals(np.hstack([fixed.variance, as_features(fixed.mean) ** 2]), self.weight)
        spread, squares = both[:, :width].copy(), both[:, width:]
        of_biases = float(spread[:, 0].sum())
        spread[:, 0] = 0.0  # the first feature is the constant 1; the others' biases are in the target
        return spread, squares + spread, of_biases

    def prior_means(self, prior: FactorPosterior) -> Array:
        """m_g of each group."""
        return prior.intercept + self._implicit_means(prior.implicit)

    def _implicit_means(self, implicit: Array) -> Array:
        """sum of implicit_h over the h that a group was seen at / sqrt(n_g)."""
        return self.totals(implicit, self._ones) / self._root_sizes

    def with_learnt_prior(self, posterior: FactorPosterior, across: VariationalRegression) -> FactorPosterior:
        """``posterior`` with better prior means and the best precision; ``across`` regresses the others."""
        refitted, prior_means = self._fitted_prior_means(posterior, across)
        covariance = self._scatter(refitted, prior_means) / (len(self.groups) + 1)
        return replace(refitted, precision=np.asarray(np.linalg.inv(covariance), dtype=np.float64))

    def _bound(self, posterior: FactorPosterior, prior_means: Array) -> float:
        """The factors' part of the lower bound on the evidence, less a constant."""
        log_det = np.linalg.slogdet(posterior.precision)[1]
        fit = (len(self.groups) + 1) * log_det - np.sum(posterior.precision * self._scatter(posterior, prior_means))
        return float(fit + np.log(posterior.variance[:-1]).sum()) / 2

    def _scatter(self, posterior: FactorPosterior, prior_means: Array) -> Array:
        """E sum_g (x_g - m_g)(x_g - m_g)' + 3 (sum_h d_h d_h' + g_0 g_0' + a a'), and one pseudo-group's variance.

        d_h = implicit_h - g_0, and a is the intercept.
        """
        away, common = posterior.mean[:-1] - prior_means, posterior.implicit[-1]
        prior = np.vstack([posterior.implicit[:-1] - common, common, posterior.intercept])
        own = np.diag(posterior.variance[:-1].sum(axis=0) + PRIOR_VARIANCE)
        return np.asarray(away.T @ away + IMPLICIT_PENALTY * prior.T @ prior + own)

    def _fitted_prior_means(
        self, posterior: FactorPosterior, across: VariationalRegression
    ) -> tuple[FactorPosterior, Array]:
        """Lower sum_g |x_g - m_g|^2 + 3 (sum_h |d_h|^2 + |g_0|^2 + |a|^2): the best a and g_0, then better d_h.

        From the implicit factors as they were; gives the new prior and its m_g.
        """
        x, d = posterior.mean[:-1], posterior.implicit - posterior.implicit[-1]
        by_size = np.column_stack([np.ones(len(self.groups)), self._root_sizes])
        gram = by_size.T @ by_size + IMPLICIT_PENALTY * np.eye(2)
        intercept, common = np.linalg.solve(gram, by_size.T @ (x - self._implicit_means(d)))
        of_size = intercept + self._root_sizes * common
        d, m = self._fitted_implicit(x - of_size, d, across)
        return replace(posterior, intercept=intercept, implicit=d + common), m + of_size

    def _fitted_implicit(self, target: Array, implicit: Array, across: VariationalRegression) -> tuple[Array, Array]:
        """A few steps of conjugate gradients on sum_g |target_g - m_g|^2 + 3 sum_h |implicit_h|^2, a system per factor.

        From ``implicit``; gives the new ones and their m_g.
        """
        m = self._implicit_means(implicit)
        r = self._transposed_prior_means(target - m, across) - IMPLICIT_PENALTY * implicit
        d, rr = r, np.sum(r * r, axis=0)
        for _ in range(IMPLICIT_STEPS):
            Bd = self._implicit_means(d)
            Ad = self._transposed_prior_means(Bd, across) + IMPLICIT_PENALTY * d
            step = rr / np.maximum(np.sum(d * Ad, axis=0), TINY)
            implicit, m, r = implicit + step * d, m + step * Bd, r - step * Ad
            before, rr = rr, np.sum(r * r, axis=0)
            d = r + rr / np.maximum(before, TINY) * d
        return implicit, m

    def _transposed_prior_means(self, table: Array, across: VariationalRegression) -> Array:
        """The transpose of :meth:`_implicit_means`, from these groups to the others."""
        zeros = np.zeros(table.shape[1])
        return np.vstack([across.totals(np.vstack([table / self._root_sizes, zeros]), across._ones), zeros])

    @cached_property
    def _ones(self) -> Array:
        return np.ones(len(self.other))

    @cached_property
    def _root_sizes(self) -> Array:
        return np.sqrt(self.groups.sizes)[:, None]
