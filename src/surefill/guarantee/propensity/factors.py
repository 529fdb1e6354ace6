"""The factor model of the pattern: rows and columns that are observed together more often than their margins say."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit

from surefill.arrays import Array, Indices, IntArray, is_grid
from surefill.data import Groups, Observations
from surefill.errors import InputError
from surefill.guarantee.propensity.base import MOST_LIKELY
from surefill.guarantee.propensity.cell_sample import CellSample, CellSampler
from surefill.guarantee.propensity.marginal import MarginalPropensity
from surefill.kernels.least_squares import biased_products, solve_groups
from surefill.kernels.pattern_responses import pattern_responses
from surefill.kernels.weight_grid import log_odds_on_grid
from surefill.parallel import over_ranges
from surefill.registry import storable

RANK = 6
"""Factors. On MovieLens 100K 4, 6, 10 and 16 gain .31, .31, .29 and .27 nats per held-out location."""

DRAWS = 3
"""Unobserved cells drawn per observed one: an estimate's variance is 1 + 1/3 times that with all of them."""

BIAS_PENALTY = 16.0
"""Prior precision of a line's change of log odds: margins are shrunk already, and change only where factors ask it."""

START = 0.3
"""Standard deviation of the first factors, about that of fitted ones; 0 is a saddle point."""

LEAST_CURVATURE = 0.02
"""Smallest second derivative assumed of a cell's log likelihood, which shortens steps and moves no stationary point."""


@storable
@dataclass(frozen=True, eq=False)
class InteractionScaling:
    """phi(g, x) = c + k(g) x: how much of an interaction x to believe where margins alone say log odds g.

    k(g) = k_0 + k_1 (g - high), not below 0, g clipped to [low, high], with coefficients of its own for x < 0 and for
    x > 0: ``coefficients`` are (c, k_0-, k_0+, k_1-, k_1+). Factors of rare rows and columns are shrunk the most, and
    what is left of their interactions stands for more.

    Examples
    --------
    >>> import numpy as np
    >>> scaling = InteractionScaling(np.array([0.0, 1.0, 0.5, 0.0, -0.1]), low=-5.0, high=0.0)
    >>> scaling.of(np.array([0.0, 0.0, -5.0]), np.array([-2.0, 2.0, 2.0]))
    array([-2.,  1.,  2.])
    """

    coefficients: Array
    low: float
    high: float

    def features(self, g: Array, x: Array) -> Array:
        """The columns of which phi is a combination, where k is not below 0."""
        away, below, above = np.clip(g, self.low, self.high) - self.high, np.minimum(x, 0), np.maximum(x, 0)
        return np.stack([np.ones_like(x), below, above, away * below, away * above], axis=-1)

    def of(self, g: Array, x: Array) -> Array:
        """phi at each pair."""
        c, *slopes = self.coefficients
        away, positive = np.clip(g, self.low, self.high) - self.high, x > 0
        k = np.where(positive, slopes[1], slopes[0]) + np.where(positive, slopes[3], slopes[2]) * away
        return np.asarray(c + np.maximum(k, 0) * x)


@storable
@dataclass(frozen=True, eq=False)
class FactorPropensity:
    """logit p_ij = g_ij + phi(g_ij, x_ij), capped at p = 0.95.

        g_ij = a_i + b_j of the marginal model,   x_ij = alpha_i + beta_j + <u_i, v_j>

    phi is a :class:`InteractionScaling`. The lines of ``rows`` are (alpha_i, u_i), those of ``cols`` (beta_j, v_j).

    Examples
    --------
    >>> import numpy as np
    >>> margins = MarginalPropensity(np.zeros(1), np.zeros(2))
    >>> factors = np.array([[0.0, 1.0]]), np.array([[0.0, 0.0], [0.0, -2.0]])
    >>> scaling = InteractionScaling(np.array([0.0, 1.0, 1.0, 0.0, 0.0]), low=-1.0, high=1.0)
    >>> FactorPropensity(margins, *factors, scaling).at([0, 0], [0, 1])
    array([0.5       , 0.11920292])
    """

    marginal: MarginalPropensity
    rows: Array
    cols: Array
    scaling: InteractionScaling

    def __post_init__(self) -> None:
        margins = len(self.marginal.row_logit), len(self.marginal.col_logit)
        fits = (len(self.rows), len(self.cols)) == margins and self.rows.shape[1:] == self.cols.shape[1:]
        if not (fits and self.rows.ndim == 2 and self.scaling.coefficients.shape == (5,)):
            raise InputError("chances by factors need a line of each row and column, all of one width.")

    def at(self, rows: ArrayLike, cols: ArrayLike) -> Array:
        """Probabilities at the cells (rows[t], cols[t])."""
        return np.asarray(np.minimum(expit(self.logit_at(rows, cols)), MOST_LIKELY))

    def logit_at(self, rows: ArrayLike, cols: ArrayLike) -> Array:
        """g_ij + phi(g_ij, x_ij) at the cells (rows[t], cols[t]); on a grid where given ``np.ix_(rows, cols)``."""
        i, j = np.asarray(rows), np.asarray(cols)
        if is_grid(i, j):
            return self._logit_on_grid(i[:, 0], j[0])
        i, j = np.broadcast_arrays(i, j)
        g = self.marginal.logit_at(i, j)  # first: it refuses cells outside the table, which compiled code would not
        x = biased_products(self.rows, self.cols, i.ravel(), j.ravel()).reshape(i.shape)
        return g + self.scaling.of(g, x)

    def _logit_on_grid(self, i: IntArray, j: IntArray) -> Array:
        u, v, (constant, *slopes) = self.rows[i], self.cols[j], self.scaling.coefficients
        x = u[:, 1:] @ v[:, 1:].T
        x += u[:, :1] + v[:, 0]
        margins = self.marginal.row_logit[i], self.marginal.col_logit[j]
        low, high = self.scaling.low, self.scaling.high
        log_odds_on_grid(x, *margins, constant, np.array(slopes[:2]), np.array(slopes[2:]), low, high)
        return x


class Interactions(NamedTuple):
    """x_ij = alpha_i + beta_j + <u_i, v_j>: lines (alpha_i, u_i) and (beta_j, v_j)."""

    rows: Array
    cols: Array

    def at(self, rows: Indices, cols: Indices) -> Array:
        """x at the cells (rows[t], cols[t])."""
        return biased_products(self.rows, self.cols, rows, cols)


@dataclass(frozen=True, eq=False)
class Contrast:
    """Cells looked at and found observed, and draws of cells not observed: a case-control sample of the pattern.

    A cell is looked at and found with odds v e / (1 + (1 - s) e) against not being found at all, e = p / (1 - p), where
    v is the share ``looked_at`` and s the ``share`` of observed cells that are among ``found`` or known and left out. A
    cell in this sample, where unobserved ones occur ``rates`` times each, is one found with these odds over its rate.
    """

    rows: Indices
    cols: Indices
    found: Array
    rates: Array
    base: Array
    looked_at: float
    share: float

    @classmethod
    def of(
        cls,
        found: Observations,
        marginal: MarginalPropensity,
        looked_at: float,
        share: float,
        rng: np.random.Generator,
        *left_out: Observations,
    ) -> Contrast:
        """``found``, and cells drawn by the odds of ``marginal`` that are neither found nor left out.

        The whole table is taken where that is hardly more than what would be drawn.
        """
        (m, n), n_draws = found.shape, DRAWS * len(found)
        sampler = CellSampler.of(np.exp(marginal.row_logit), np.exp(marginal.col_logit))
        if m * n <= 2 * n_draws:
            drawn, rates = CellSample.whole((m, n), found, *left_out), np.ones(len(found))
        else:
            drawn = sampler.draw(n_draws, rng).outside(found, *left_out)
            rates = n_draws * sampler.rate(found.rows, found.cols)
        rows: Indices = np.append(found.rows, drawn.rows).astype(np.int64)
        cols: Indices = np.append(found.cols, drawn.cols).astype(np.int64)
        labels = np.repeat([1.0, 0.0], [len(found), len(drawn.rows)])
        base = marginal.logit_at(rows, cols)
        return cls(rows, cols, labels, np.append(rates, drawn.rates), base, looked_at, share)

    def derivatives(self, logits: Array) -> tuple[Array, Array]:
        """Of each cell's log likelihood in logit p: the first, and the expected second with its sign changed."""
        odds = np.exp(logits)
        slope = 1 / (1 + (1 - self.share) * odds)  # d log(v e / (1 + (1 - s) e)) / d log e
        odds *= self.looked_at * slope
        chance = odds / (odds + self.rates)
        return (self.found - chance) * slope, chance * (1 - chance) * slope**2

    def log_likelihood(self, logits: Array) -> Array:
        """Of each cell in the sample."""
        odds = np.exp(logits)
        odds *= self.looked_at / (1 + (1 - self.share) * odds)
        return np.asarray(np.log(np.where(self.found > 0, odds, self.rates) / (odds + self.rates)))


def factor_path(
    contrast: Contrast,
    penalties: list[float],
    sweeps: list[int],
    start: Interactions,
) -> Iterator[Interactions]:
    """Interactions on top of the margins, alpha_i + beta_j + <u_i, v_j>, for one penalty after the other.

    Each maximises log likelihood - penalty (sum_i f_i |u_i|^2 + sum_j g_j |v_j|^2) / 2 - 16 (|alpha|^2 + |beta|^2) / 2,
    f and g the roots of the lines' numbers of cells over their mean (a weighted trace norm, Salakhutdinov and Srebro
    2010), by weighted least squares for all rows, then all columns. O(N rank^2) per sweep.
    """
    by_row = GroupedContrast.of(contrast, contrast.rows, contrast.cols)
    by_col = GroupedContrast.of(contrast, contrast.cols, contrast.rows)
    rows, cols = start.rows, start.cols
    for penalty, n_sweeps in zip(penalties, sweeps, strict=True):
        for _ in range(n_sweeps):
            rows = by_row.newton(rows, cols, penalty)
            cols = by_col.newton(cols, rows, penalty)
        yield Interactions(rows, cols)


def random_start(shape: tuple[int, int], rng: np.random.Generator) -> Interactions:
    """Small random factors, and no change of the margins."""
    rows, cols = (START * rng.standard_normal((lines, RANK + 1)) for lines in shape)
    rows[:, 0] = cols[:, 0] = 0.0
    return Interactions(rows, cols)


@dataclass(frozen=True, eq=False)
class GroupedContrast:
    """The cells of a contrast grouped by row (or column)."""

    groups: Groups
    line: Indices
    other: Indices
    found: Array
    rates: Array
    base: Array
    shares: tuple[float, float]

    @classmethod
    def of(cls, contrast: Contrast, lines: Indices, others: Indices) -> GroupedContrast:
        """Grouped by ``lines``."""
        groups = Groups.of(lines)
        found, rates, base = (groups.take(table) for table in (contrast.found, contrast.rates, contrast.base))
        shares = contrast.looked_at, contrast.share
        return cls(groups, groups.take(lines), groups.take(others), found, rates, base, shares)

    def newton(self, own: Array, fixed: Array, penalty: float, mean_size: float | None = None) -> Array:
        """One Newton step for (bias, factors) of every line, those of the others fixed; 0 for lines without cells.

        ``mean_size`` is the mean number of cells of all lines, where these are a part of them.
        """
        starts, target, weight = self.groups.starts, np.empty(len(self.line)), np.empty(len(self.line))
        tables: tuple[Any, ...] = (self.line, self.other, self.found, self.rates, self.base, own, fixed)
        tables += (*self.shares, LEAST_CURVATURE, target, weight)
        over_ranges(lambda first, last: pattern_responses(starts[first], starts[last], *tables), starts)
        features = fixed.copy()
        features[:, 0] = 1.0
        n_groups, k = len(self.groups), own.shape[1]
        sizes = self.groups.sizes / (self.groups.sizes.mean() if mean_size is None else mean_size)
        penalties = np.repeat(penalty * np.sqrt(sizes)[:, None], k, axis=1)
        penalties[:, 0] = BIAS_PENALTY
        solution, value = np.zeros((n_groups, k)), np.empty(n_groups)
        problem = target, weight, features, penalties, np.zeros((k, k)), np.zeros((n_groups, k)), solution, value
        over_ranges(lambda first, last: solve_groups(first, last, starts, self.other, *problem), starts)
        result = np.zeros_like(own)
        result[self.groups.ids] = solution
        return result
