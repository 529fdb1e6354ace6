"""How noisy rows and columns are by how high and how often they were seen, before any of their losses is known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from surefill.arrays import Array, IntArray
from surefill.data import Groups, Observations
from surefill.data.groups import locate
from surefill.risk.backfitting import hats, knots_for
from surefill.risk.noise_factors import NoiseFactors

PSEUDO_DRAWS = 5.0
"""Draws of the mean of all that the mean of a row (or column) is drawn by."""

N_KNOTS = 8
"""Knots of each curve, quantiles of the cells; their differences are penalised like those of the prediction's curve."""


@dataclass(frozen=True, eq=False)
class LineSummaries:
    """(sum of the draws + 5 mean) / (n_g + 5) and log(1 + n_g) of each row and column, n_g its draws.

    The tables end with a line for rows and columns without draws.
    """

    row_ids: IntArray
    of_rows: Array
    col_ids: IntArray
    of_cols: Array

    @classmethod
    def of(cls, observations: Observations) -> Self:
        """Of these draws."""
        by_row, by_col = observations.by_row, observations.by_col
        return cls(by_row.ids, _summaries(by_row, observations), by_col.ids, _summaries(by_col, observations))

    def at(self, rows: IntArray, cols: IntArray) -> Array:
        """Both numbers of the row, then of the column, of each pair (rows[t], cols[t])."""
        lines = self.of_rows[locate(self.row_ids, rows)], self.of_cols[locate(self.col_ids, cols)]
        return np.column_stack(lines)


def _summaries(groups: Groups, observations: Observations) -> Array:
    counts = groups.take(observations.counts).astype(np.float64)
    values = groups.take(observations.values).astype(np.float64)
    n, total = (np.append(np.add.reduceat(each, groups.starts[:-1]), 0.0) for each in (counts, counts * values))
    mean = total.sum() / n.sum()
    return np.column_stack([(total + PSEUDO_DRAWS * mean) / (n + PSEUDO_DRAWS), np.log1p(n)])


@dataclass(frozen=True, eq=False)
class LineCurves:
    """Curves of the four numbers of :class:`LineSummaries`: ``heights`` at ``knots``, linear between, flat beyond.

    Each has mean 0 over the cells it was learnt from, so that a row of which nothing is known is like most.
    """

    knots: tuple[Array, ...]
    heights: tuple[Array, ...]

    @classmethod
    def flat(cls, lines: Array) -> Self:
        """Of no effect, with knots for these summaries of cells."""
        knots = tuple(knots_for(each, N_KNOTS) for each in lines.T)
        return cls(knots, tuple(np.zeros(len(each)) for each in knots))

    @property
    def sizes(self) -> tuple[int, ...]:
        """Knots of each curve."""
        return tuple(len(each) for each in self.knots)

    def features(self, lines: Array) -> Array:
        """Values of the hat functions of all curves."""
        return np.column_stack([hats(x, knots) for x, knots in zip(lines.T, self.knots, strict=True)])

    def learnt(self, coefficients: Array, lines: Array, weight: Array) -> tuple[Self, float]:
        """The curves with these heights less their mean over ``lines``, and the sum of these means."""
        parts = np.split(coefficients, np.cumsum(self.sizes)[:-1])
        curves = zip(lines.T, self.knots, parts, strict=True)
        means = [float(np.average(np.interp(x, knots, part), weights=weight)) for x, knots, part in curves]
        heights = tuple(part - mean for part, mean in zip(parts, means, strict=True))
        return type(self)(self.knots, heights), sum(means)

    def applied(
        self, rows: NoiseFactors, cols: NoiseFactors, summaries: LineSummaries
    ) -> tuple[NoiseFactors, NoiseFactors]:
        """The factors of rows and columns times what their summaries say of them."""
        of_rows = summaries.of_rows[locate(summaries.row_ids, rows.ids)]
        of_cols = summaries.of_cols[locate(summaries.col_ids, cols.ids)]
        return rows.times(np.exp(self._sum(of_rows, 0))), cols.times(np.exp(self._sum(of_cols, 2)))

    def _sum(self, lines: Array, first: int) -> Array:
        """The sum of two curves, the ``first`` and the next."""
        return np.asarray(
            sum(np.interp(lines[:, k], self.knots[first + k], self.heights[first + k]) for k in (0, 1)), dtype=float
        )
