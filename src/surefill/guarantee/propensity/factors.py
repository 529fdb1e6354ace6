"""The factor model of the pattern: rows and columns that are observed together more often than their margins say."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit

from surefill.arrays import Array, Indices
from surefill.data import Groups, Observations
from surefill.guarantee.propensity.base import MOST_LIKELY
from surefill.guarantee.propensity.cell_sample import CellSample, CellSampler
from surefill.guarantee.propensity.marginal import MarginalPropensity
from surefill.kernels.least_squares import biased_products, solve_groups
from surefill.parallel import over_ranges
from surefill.registry import storable

RANK = 6
"""Factors. On MovieLens 100K 4, 6, 10 and 16 gain .31, .31, .29 and .27 nats per held-out cell: the penalty decides."""

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
class FactorPropensity:
    """logit p_ij = a_i + b_j + <u_i, v_j>, capped at p = 0.95.

    The lines of ``rows`` are (a_i, u_i), those of ``cols`` (b_j, v_j).

    Examples
    --------
    >>> import numpy as np
    >>> FactorPropensity(np.array([[0.5, 1.0]]), np.array([[-0.5, 0.0], [-0.5, -2.0]])).at([0, 0], [0, 1])
    array([0.5       , 0.11920292])
    """

    rows: Array
    cols: Array

    def at(self, rows: ArrayLike, cols: ArrayLike) -> Array:
        """Probabilities at the cells (rows[t], cols[t])."""
        i, j = np.broadcast_arrays(np.asarray(rows), np.asarray(cols))
        logits = biased_products(self.rows, self.cols, i.ravel(), j.ravel()).reshape(i.shape)
        return np.asarray(np.minimum(expit(logits), MOST_LIKELY))


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
            drawn, rates = CellSample.whole((m, n)), np.ones(len(found))
        else:
            drawn, rates = sampler.draw(n_draws, rng), n_draws * sampler.rate(found.rows, found.cols)
        drawn = drawn.outside(found, *left_out)
        rows: Indices = np.append(found.rows, drawn.rows).astype(np.int64)
        cols: Indices = np.append(found.cols, drawn.cols).astype(np.int64)
        labels = np.repeat([1.0, 0.0], [len(found), len(drawn.rows)])
        base = marginal.logit_at(rows, cols)
        return cls(rows, cols, labels, np.append(rates, drawn.rates), base, looked_at, share)

    def derivatives(self, logits: Array) -> tuple[Array, Array]:
        """Of each cell's log likelihood in logit p: the first, and the expected second with its sign changed."""
        return _derivatives(self.found, self.rates, logits, self.looked_at, self.share)

    def log_likelihood(self, logits: Array) -> Array:
        """Of each cell in the sample."""
        odds = np.exp(logits)
        odds *= self.looked_at / (1 + (1 - self.share) * odds)
        return np.asarray(np.log(np.where(self.found > 0, odds, self.rates) / (odds + self.rates)))


def _derivatives(found: Array, rates: Array, logits: Array, looked_at: float, share: float) -> tuple[Array, Array]:
    odds = np.exp(logits)
    slope = 1 / (1 + (1 - share) * odds)  # d log(v e / (1 + (1 - s) e)) / d log e
    odds *= looked_at * slope
    chance = odds / (odds + rates)
    return (found - chance) * slope, chance * (1 - chance) * slope**2


def factor_path(
    contrast: Contrast,
    penalties: list[float],
    sweeps: list[int],
    start: FactorPropensity,
) -> Iterator[FactorPropensity]:
    """Interactions on top of the margins, alpha_i + beta_j + <u_i, v_j>, for one penalty after the other.

    Each maximises log likelihood - penalty (|U|^2 + |V|^2) / 2 - 16 (|alpha|^2 + |beta|^2) / 2, the first two a penalty
    times the trace norm of U V', by weighted least squares for all rows, then all columns. O(N rank^2) per sweep.
    """
    by_row = _Lines.of(contrast, contrast.rows, contrast.cols)
    by_col = _Lines.of(contrast, contrast.cols, contrast.rows)
    rows, cols = start.rows, start.cols
    for penalty, n_sweeps in zip(penalties, sweeps, strict=True):
        for _ in range(n_sweeps):
            rows = by_row.newton(rows, cols, penalty)
            cols = by_col.newton(cols, rows, penalty)
        yield FactorPropensity(rows, cols)


def random_start(shape: tuple[int, int], rng: np.random.Generator) -> FactorPropensity:
    """Small random factors, and no change of the margins."""
    rows, cols = (START * rng.standard_normal((lines, RANK + 1)) for lines in shape)
    rows[:, 0] = cols[:, 0] = 0.0
    return FactorPropensity(rows, cols)


@dataclass(frozen=True, eq=False)
class _Lines:
    """The cells of a contrast grouped by row (or column)."""

    groups: Groups
    line: Indices
    other: Indices
    found: Array
    rates: Array
    base: Array
    shares: tuple[float, float]

    @classmethod
    def of(cls, contrast: Contrast, lines: Indices, others: Indices) -> _Lines:
        groups = Groups.of(lines)
        found, rates, base = (table[groups.order] for table in (contrast.found, contrast.rates, contrast.base))
        shares = contrast.looked_at, contrast.share
        return cls(groups, lines[groups.order], others[groups.order], found, rates, base, shares)

    def newton(self, own: Array, fixed: Array, penalty: float) -> Array:
        """One Newton step for (bias, factors) of every line, those of the others fixed; 0 for lines without cells."""
        interaction = biased_products(own, fixed, self.line, self.other)
        first, second = _derivatives(self.found, self.rates, self.base + interaction, *self.shares)
        weight = np.maximum(second, LEAST_CURVATURE)
        target = interaction - fixed[self.other, 0] + first / weight
        features = fixed.copy()
        features[:, 0] = 1.0
        n_groups, k = len(self.groups), own.shape[1]
        penalties = np.full((n_groups, k), penalty)
        penalties[:, 0] = BIAS_PENALTY
        solution, value, starts = np.zeros((n_groups, k)), np.empty(n_groups), self.groups.starts
        tables = target, weight, features, penalties, np.zeros((k, k)), np.zeros((n_groups, k)), solution, value
        over_ranges(lambda first, last: solve_groups(first, last, starts, self.other, *tables), starts)
        result = np.zeros_like(own)
        result[self.groups.ids] = solution
        return result
