"""How small the risks of a row's or a column's cells can be at least, before any of them is looked at.

    log risk_ij >= slope log(v_i + min_j v_j) + curve(M_ij) + log a_i(M_ij) + log b_j(M_ij)    where v_ij >= v_i + v_j,

since the factor of support is at least 1. A row's predictions lie between b_i + min c_j - |p_i| max |q_j| and
b_i + max c_j + |p_i| max |q_j|: the least of the curve and of the row's factor there, with the least factor that any
column can have, bounds all its cells at once. Columns likewise.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from surefill.arrays import Array, IntArray
from surefill.completion.factored_completion import BiasedProduct
from surefill.data.groups import locate
from surefill.kernels.candidates import candidates_on_grid
from surefill.risk.noise_factors import LARGEST_TILT, NoiseFactors
from surefill.risk.risk_model import FittedRisk

SLACK = 1e-9
"""Room for rounding in logarithms of risks."""


class LineRanges(NamedTuple):
    """Of each row (or column) ``ids[g]``, and last of all others: the least part of v, and between what M lies."""

    ids: IntArray
    variance: Array
    low: Array
    high: Array


@dataclass(frozen=True, eq=False)
class LeastRisk:
    """Lower bounds of ``risk`` against ``limit``, the largest risk that counts.

    Examples
    --------
    >>> import surefill as sf
    >>> sim = sf.datasets.make_low_rank((60, 50), rank=2, n_draws=2000, noise=0.1, random_state=0)
    >>> result = sf.PartialCompleter(tolerance=0.1, confidence="posterior").fit(sim.observations).result_
    >>> least = LeastRisk.of(result.risk, result.selection.threshold)
    >>> risks = result.answer_block(np.arange(60), np.arange(50)).risk
    >>> bool((least.of_rows(np.arange(60)) <= np.log(risks.min(axis=1))).all())
    True
    """

    risk: FittedRisk
    limit: float
    rows: LineRanges
    cols: LineRanges

    @classmethod
    def of(cls, risk: object, limit: float) -> Self | None:
        """None where no such bound is known."""
        if not isinstance(risk, FittedRisk) or limit <= 0 or (risk.chance is not None and risk.chance.slope == 0):
            return None
        completion: Any = risk.evidence.completion
        if not (hasattr(completion, "least_variances") and type(completion).block is BiasedProduct.block):
            return None
        (row_ids, x), (col_ids, y) = completion.row_table(), completion.col_table()
        of_rows, of_cols = completion.least_variances()
        rows = LineRanges(row_ids, of_rows, *_predicted_within(completion, x, y))
        return cls(risk, limit, rows, LineRanges(col_ids, of_cols, *_predicted_within(completion, y, x)))

    @cached_property
    def log_limit(self) -> float:
        """The limit as the log of an expected loss, before that is made a chance, with room for rounding."""
        chance = self.risk.chance
        if chance is None:
            return float(np.log(self.limit)) + SLACK
        if self.limit >= 1:
            return np.inf
        return float((np.log(self.limit / (1 - self.limit)) - chance.level) / chance.slope) + SLACK

    def of_rows(self, rows: IntArray) -> Array:
        """A bound of the log risks of each row."""
        return self._bounds(self.rows, self.risk.rows, rows, float(self.cols.variance.min()), self._least_factors[1])

    def of_cols(self, cols: IntArray) -> Array:
        """A bound of the log risks of each column."""
        return self._bounds(self.cols, self.risk.cols, cols, float(self.rows.variance.min()), self._least_factors[0])

    def candidates(self, rows: IntArray, cols: IntArray, predicted: Array) -> NDArray[np.bool_]:
        """Which cells of a grid are not ruled out, given what is predicted there."""
        of_rows, of_cols = self.risk.rows.table(rows), self.risk.cols.table(cols)
        of_rows[0] += self._level(self.rows, rows, float(self.cols.variance[locate(self.cols.ids, cols)].min()))
        found = np.empty(predicted.shape, dtype=np.bool_)
        curve = self.risk.knots, self.risk.heights
        candidates_on_grid(predicted, *curve, of_rows, of_cols, LARGEST_TILT, self.log_limit, found)
        return found

    def _level(self, lines: LineRanges, indices: IntArray, of_others: float) -> Array:
        """slope log of the least variance in each row (or column)."""
        return np.asarray(self.risk.slope * np.log(lines.variance[locate(lines.ids, indices)] + of_others))

    def _bounds(
        self, lines: LineRanges, factors: NoiseFactors, indices: IntArray, of_others: float, least_factor: float
    ) -> Array:
        at = locate(lines.ids, indices)
        low, high = lines.low[at], lines.high[at]
        least = self._least_curve(low, high) + _least_factor(factors.table(indices), low, high)
        return self._level(lines, indices, of_others) + least + least_factor

    def _least_curve(self, low: Array, high: Array) -> Array:
        """The least of the curve between two predictions: at one of them, or at a knot between."""
        knots, heights = self.risk.knots, self.risk.heights
        least = np.minimum(np.interp(low, knots, heights), np.interp(high, knots, heights))
        for knot, height in zip(knots, heights, strict=True):
            least = np.where((low < knot) & (knot < high), np.minimum(least, height), least)
        return least

    @cached_property
    def _least_factors(self) -> tuple[float, float]:
        """The least log factor of any row, and of any column."""
        rows, cols = (
            float(_least_factor(factors.table(np.append(factors.ids, -1)), low.min(), high.max()).min())
            for factors, (_, _, low, high) in ((self.risk.rows, self.rows), (self.risk.cols, self.cols))
        )
        return rows, cols


def _least_factor(table: Array, low: Array, high: Array) -> Array:
    """log a and the least of clip(d (M - c)) for M between two predictions: at one of them."""
    log_a, d, c = table
    at_ends = (np.clip(d * (end - c), -LARGEST_TILT, LARGEST_TILT) for end in (low, high))
    return np.asarray(log_a + np.minimum(*at_ends))


def _predicted_within(completion: BiasedProduct, own: Array, others: Array) -> tuple[Array, Array]:
    """Between what the predictions of each row (or column) lie, by its factors and the largest of the others'."""
    reach = np.linalg.norm(own[:, 1:], axis=1) * np.linalg.norm(others[:, 1:], axis=1).max()
    low, high = own[:, 0] + others[:, 0].min() - reach, own[:, 0] + others[:, 0].max() + reach
    return completion._in_units(low), completion._in_units(high)
