"""The posterior of the Bayesian factor model's rows, or columns, and the prior that it was learnt with."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from surefill.arrays import Array, Floats, IntArray, row_blocks
from surefill.completion.bayes.noise_precision import NoisePrecision
from surefill.completion.grouped_regression import merged, reindexed
from surefill.data import Features
from surefill.data.features import FeatureScale
from surefill.errors import InputError
from surefill.registry import storable

IMPLICIT_PENALTY = 3.0
"""Prior precision of an implicit factor in units of a row's, 3 L: chosen on held-out cells of MovieLens 100k and 1M
(docs/benchmarks.md)."""

START_PRECISION = 10.0
"""L of the first sweep, times the identity: factors of variance 0.1, as :data:`PRIOR_VARIANCE` says."""

PRIOR_VARIANCE = 0.1
"""Variance, on [-1, 1], of the one pseudo-group from which a precision is learnt beside the groups themselves: ten
factors of it give products of variance 0.1, about that of values spread over the range."""

START_SPREAD = 0.1
"""Standard deviation of the random factors to start from: their products, at rank 10 about 0.03, are small beside the
values, so that the first sweep fits biases and data rather than the start."""


@storable
@dataclass(frozen=True, eq=False)
class FactorPosterior:
    """q(x_g) = N(mean_g, diag(variance_g)) of each group g, and the prior x_g ~ N(m_g, (s_g precision)^-1), where

        m_g = intercept + sum of implicit_h over the n_g rows (or columns) h that g was seen at / sqrt(n_g):

    which cells were seen says something about a row before any value does (the implicit factors of SVD++ and of
    constrained probabilistic matrix factorisation), and so does how many: implicit_h ~ N(g_0, .), so that m_g has a
    part sqrt(n_g) g_0. Where groups have features f_g, m_g has a part W' f_g more; each line of W, the ``weights``, is
    normal of precision ``ridge`` L, and ``scale`` standardises features. ``mean`` and ``variance`` have a line for each
    of ``ids`` and a last one for groups without entries, of mean 0: how many entries they will have is not known.
    ``implicit`` has a line for each h and a last one for those unknown, g_0. ``noise_precision`` is the posterior of
    the groups' noise precisions s_g: a group that is noisy strays from its m_g in the same measure, since people who
    use more of a scale do so by taste and by mood.
    """

    ids: IntArray
    mean: Floats
    variance: Floats
    precision: Array
    intercept: Array
    implicit: Floats
    noise_precision: NoisePrecision
    weights: Array | None = None
    ridge: float = IMPLICIT_PENALTY
    scale: FeatureScale | None = None

    def __post_init__(self) -> None:
        tables, width = (self.mean, self.variance), self.mean.shape[1]
        fits = all(table.shape == (len(self.ids) + 1, width) for table in tables) and self.implicit.shape[1] == width
        fits = fits and self.precision.shape == (width, width) and self.intercept.shape == (width,)
        fits = fits and not (np.diff(self.ids) <= 0).any()
        fits = fits and len(self.noise_precision.draws) == len(self.mean)
        learnt = self.precision, self.intercept, self.implicit
        if not fits or not all(np.isfinite(table).all() for table in (*tables, *learnt)):
            raise InputError("the rows of a factor completion need sorted ids and finite tables of matching sizes.")

    def widened(self, n_new: int, rng: np.random.Generator) -> Self:
        """The same with ``n_new`` small random factors more, as :meth:`VariationalRegression.start` has them."""
        size, width = self.mean.shape
        mean: Floats = np.zeros((size, n_new), self.mean.dtype)
        mean[:-1] = rng.normal(0, START_SPREAD, (size - 1, n_new))
        precision = START_PRECISION * np.eye(width + n_new)
        precision[:width, :width] = self.precision
        return replace(
            self,
            mean=np.hstack([self.mean, mean]),
            variance=np.hstack([self.variance, np.full_like(mean, PRIOR_VARIANCE / 10)]),
            precision=precision,
            intercept=np.append(self.intercept, rng.normal(0, START_SPREAD, n_new)),
            implicit=np.hstack([self.implicit, np.zeros((len(self.implicit), n_new), mean.dtype)]),
            noise_precision=self.noise_precision.with_more(n_new),
            weights=None if self.weights is None else np.hstack([self.weights, np.zeros((len(self.weights), n_new))]),
        )

    @property
    def coefficients(self) -> Array:
        """a, g_0 and the weights of features, line by line: what m_g has beside implicit factors."""
        weights = [] if self.weights is None else list(self.weights)
        return np.stack([self.intercept, self.implicit[-1], *weights])

    def solved_prior(self, gram: Array, right: Array) -> Array:
        """The best coefficients given the sums of :meth:`VariationalRegression.prior_sums` over all groups."""
        n_weights = 0 if self.weights is None else len(self.weights)
        penalty = [IMPLICIT_PENALTY] * 2 + [self.ridge] * n_weights
        return np.asarray(np.linalg.solve(gram + np.diag(penalty), right))

    def with_prior(self, learnt: Array, implicit: Floats) -> Self:
        """The same with these coefficients and implicit factors."""
        weights = None if self.weights is None else learnt[2:].astype(np.float64)
        return replace(self, intercept=learnt[0], implicit=implicit, weights=weights)

    def with_best_precision(self, scatter: Array, n_groups: int) -> Self:
        """The same with the precision that raises the bound most, given the scatter of groups and of the prior."""
        return replace(self, precision=np.asarray(np.linalg.inv(scatter / (n_groups + 1)), dtype=np.float64))

    def scatter_of_prior(self, of_implicit: Array) -> Array:
        """3 (sum_h d_h d_h' + g_0 g_0' + a a'), and one pseudo-group's variance; ``of_implicit`` is the first sum."""
        common, a = self.implicit[-1], self.intercept
        own = PRIOR_VARIANCE * np.eye(len(a))
        if self.weights is not None:
            own += self.ridge * self.weights.T @ self.weights
        return np.asarray(own + IMPLICIT_PENALTY * (of_implicit + squared(common[None]) + np.outer(a, a)))

    def bound(self, scatter: Array, n_groups: int, log_variance: float) -> float:
        """The factors' part of the lower bound on the evidence, less a constant."""
        log_det = np.linalg.slogdet(self.precision)[1]
        fit = (n_groups + 1) * log_det - np.sum(self.precision * scatter)
        if self.weights is not None:
            fit += (self.weights.size + 1) * np.log(self.ridge) - self.ridge / IMPLICIT_PENALTY
        return float(fit + log_variance) / 2

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
            noise_precision=self.noise_precision.with_means(s, np.append(draws + mean.shape[1], 0.0)),
        )

    def with_unseen(self, features: Features | None) -> Self:
        """This posterior and the groups without entries whose features are known: of mean W' f_g, else as the prior."""
        if features is None or self.scale is None or self.weights is None:
            return self
        known = np.flatnonzero(~np.isnan(features.table).all(axis=1))
        unseen = np.setdiff1d(known, self.ids)
        if not len(unseen):
            return self
        mean = self.scale.standardised(features)[unseen] @ self.weights
        size = len(unseen) + 1
        new = replace(
            self,
            ids=unseen,
            mean=np.vstack([mean, self.mean[-1:]]).astype(self.mean.dtype),
            variance=np.repeat(self.variance[-1:], size, axis=0),
            noise_precision=replace(self.noise_precision, draws=np.zeros(size), errors=np.zeros(size)),
        )
        return self.merged(new)

    def with_implicit_reindexed(self, ids: IntArray, new_ids: IntArray) -> Self:
        """The implicit factors of ``ids`` put in the order of ``new_ids``, g_0 for those unknown."""
        return replace(self, implicit=reindexed(ids, self.implicit, new_ids))


def log_variances(posterior: FactorPosterior) -> float:
    """sum_g sum_a log v_ga."""
    return float(np.log(posterior.variance[:-1]).sum(dtype=np.float64))


def squared(table: Floats, less: Any = 0.0, weights: Array | None = None) -> Array:
    """T' W T in double precision, of the table less another one, or less one line."""
    total = np.zeros((table.shape[1],) * 2)
    for rows in row_blocks(*table.shape):
        away = np.subtract(table[rows], less[rows] if np.ndim(less) > 1 else less, dtype=np.float64)
        total += (away.T if weights is None else away.T * weights[rows]) @ away
    return total
