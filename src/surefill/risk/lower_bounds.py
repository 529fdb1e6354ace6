"""Lower bounds of the risks of a whole row or column, by which cells that cannot be kept are skipped.

    log risk_ij >= slope log(v_i + min_j v_j) + curve(M_ij) + log a_i(M_ij) + log b_j(M_ij)    where v_ij >= v_i + v_j,

since the factor of support is at least 1. A row's predictions lie between b_i + min c_j - |p_i| max |q_j| and
b_i + max c_j + |p_i| max |q_j|. The minima of the curve and of the row's factor over that range, and the smallest
factor of any column, bound all its cells at once; likewise for columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from surefill.arrays import Array, IntArray
from surefill.completion.factored_completion import BiasedProduct
from surefill.completion.grouped_regression import reindexed
from surefill.data.groups import locate
from surefill.kernels.candidates import candidates_on_grid
from surefill.kernels.risk_grid import Curve, LineFactors
from surefill.risk.noise_factors import LARGEST_TILT, TINY, NoiseFactors
from surefill.risk.risk_model import FittedRisk

SLACK = 1e-9
"""Allowance for rounding in logarithms of risks."""


class LineRanges(NamedTuple):
    """For each row (or column) ``ids[g]``, and last for all others: its least part of v and the range of M."""

    ids: IntArray
    variance: Array
    low: Array
    high: Array


@dataclass(frozen=True, eq=False)
class RiskLowerBounds:
    """Lower bounds of ``risk``, to be compared with ``limit``, the largest risk that is kept.

    Examples
    --------
    >>> import surefill as sf
    >>> sim = sf.datasets.make_low_rank((60, 50), rank=2, n_draws=2000, noise=0.1, random_state=0)
    >>> result = sf.PartialCompleter(tolerance=0.1, confidence="posterior").fit(sim.observations).result_
    >>> least = RiskLowerBounds.of(result.risk, result.selection.threshold)
    >>> risks = result.answer_block(np.arange(60), np.arange(50)).risk
    >>> bool((least.of_rows(np.arange(60)) <= np.log(risks.min(axis=1))).all())
    True
    """

    risk: FittedRisk
    limit: float
    rows: LineRanges
    cols: LineRanges
    noise: float

    @classmethod
    def of(cls, risk: object, limit: float) -> Self | None:
        """The bounds, or None where none are known for such a risk or completion."""
        if not isinstance(risk, FittedRisk) or limit <= 0 or (risk.chance is not None and risk.chance.slope == 0):
            return None
        completion: Any = risk.evidence.completion
        spread: Any = risk.evidence.spread or completion
        if not (hasattr(spread, "least_variances") and type(completion).block is BiasedProduct.block):
            return None
        (row_ids, x), (col_ids, y) = completion.row_table(), completion.col_table()
        of_rows, of_cols = (
            reindexed(own_ids, least, ids)
            for (own_ids, _), least, ids in zip(
                (spread.row_table(), spread.col_table()), spread.least_variances(), (row_ids, col_ids), strict=True
            )
        )
        rows = LineRanges(row_ids, of_rows, *_predicted_within(completion, x, y))
        cols = LineRanges(col_ids, of_cols, *_predicted_within(completion, y, x))
        return cls(risk, limit, rows, cols, float(spread.unit.squared_error_from_unit(spread.noise)))

    @cached_property
    def log_limit(self) -> float:
        """log of the limit as an expected loss, before that is turned into a chance, with an allowance for rounding."""
        chance = self.risk.chance
        if chance is None:
            return float(np.log(self.limit)) + SLACK
        if self.limit >= 1:
            return np.inf
        return float((np.log(self.limit / (1 - self.limit)) - chance.level) / chance.slope) + SLACK

    def of_rows(self, rows: IntArray) -> Array:
        """A lower bound of the log risks in each row."""
        return self._bounds(self.rows, self.risk.rows, rows, float(self.cols.variance.min()), self._least_factors[1])

    def of_cols(self, cols: IntArray) -> Array:
        """A lower bound of the log risks in each column."""
        return self._bounds(self.cols, self.risk.cols, cols, float(self.rows.variance.min()), self._least_factors[0])

    def candidates(self, rows: IntArray, cols: IntArray, predicted: Array) -> NDArray[np.bool_]:
        """Which cells of a grid may be within the limit, given their predictions."""
        of_rows, of_cols = self.risk.rows.table(rows), self.risk.cols.table(cols)
        of_rows[0] += self._level(self.rows, rows, float(self.cols.variance[locate(self.cols.ids, cols)].min()))
        found = np.empty(predicted.shape, dtype=np.bool_)
        curve, factors = Curve(self.risk.knots, self.risk.heights), LineFactors(of_rows, of_cols, LARGEST_TILT)
        candidates_on_grid(predicted, curve, factors, self.log_limit, found)
        return found

    def _level(self, lines: LineRanges, indices: IntArray, of_others: float) -> Array:
        """slope log v of the smallest variance in each row (or column), in the units that the risk was learnt in."""
        own, shift = lines.variance[locate(lines.ids, indices)], self.risk.evidence.shift
        level = self.risk.slope * (np.log(own + of_others) + shift)
        if any(self.risk.part_powers):
            level += self._level_of_parts(lines, own, of_others)
        return np.asarray(level)

    def _level_of_parts(self, lines: LineRanges, own: Array, of_others: float) -> Array:
        """The same of the powers of the variance's parts, of which the row's least is given with the noise."""
        of_rows = lines is self.rows
        of_row, of_col = (own, of_others) if of_rows else (of_others, own)
        parts = np.maximum(of_row - self.noise, TINY), np.maximum(of_col, TINY)
        powers = self.risk.part_powers
        return np.asarray(
            sum(p * (np.log(part) + self.risk.evidence.shift) for p, part in zip(powers, parts, strict=True))
        )

    def _bounds(
        self, lines: LineRanges, factors: NoiseFactors, indices: IntArray, of_others: float, least_factor: float
    ) -> Array:
        at = locate(lines.ids, indices)
        low, high = lines.low[at], lines.high[at]
        least = self._least_curve(low, high) + _least_factor(factors.table(indices), low, high)
        return self._level(lines, indices, of_others) + least + least_factor

    def _least_curve(self, low: Array, high: Array) -> Array:
        """The minimum of the curve between two predictions: at one of them, or at a knot between."""
        knots, heights = self.risk.knots, self.risk.heights
        least = np.minimum(np.interp(low, knots, heights), np.interp(high, knots, heights))
        for knot, height in zip(knots, heights, strict=True):
            least = np.where((low < knot) & (knot < high), np.minimum(least, height), least)
        return least

    @cached_property
    def _least_factors(self) -> tuple[float, float]:
        """The smallest log factor of any row, and of any column."""
        rows, cols = (
            float(_least_factor(factors.table(np.append(factors.ids, -1)), low.min(), high.max()).min())
            for factors, (_, _, low, high) in ((self.risk.rows, self.rows), (self.risk.cols, self.cols))
        )
        return rows, cols


def _least_factor(table: Array, low: Array, high: Array) -> Array:
    """log a plus the minimum of clip(d (M - c)) for M between two predictions: at one of them."""
    log_a, d, c = table
    at_ends = (np.clip(d * (end - c), -LARGEST_TILT, LARGEST_TILT) for end in (low, high))
    return np.asarray(log_a + np.minimum(*at_ends))


def _predicted_within(completion: BiasedProduct, own: Array, others: Array) -> tuple[Array, Array]:
    """The range of the predictions of each row (or column), from its factors and the largest of the others."""
    reach = np.linalg.norm(own[:, 1:], axis=1) * np.linalg.norm(others[:, 1:], axis=1).max()
    low, high = own[:, 0] + others[:, 0].min() - reach, own[:, 0] + others[:, 0].max() + reach
    return completion._in_units(low), completion._in_units(high)
