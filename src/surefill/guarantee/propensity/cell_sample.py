"""Cells drawn at random with known rates, to stand for all m n of them in sums over unobserved cells.

A cell is drawn lambda_x times on average, so that a sum over the draws of f_x / lambda_x has expectation sum_x f_x.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from surefill.arrays import Array, Indices, IntArray
from surefill.data import Observations

ALL_CELLS = 2_000_000
"""Tables of up to so many cells are taken whole where the cells of the table are to be summed over."""


class CellSample(NamedTuple):
    """Cells (rows[t], cols[t]) and how often each is drawn on average; 1 where all cells are taken."""

    rows: Indices
    cols: Indices
    rates: Array

    @classmethod
    def whole(cls, shape: tuple[int, int], *outside: Observations) -> CellSample:
        """Every cell once that is in none of ``outside``."""
        kept = np.ones(shape, dtype=bool)
        for seen in outside:
            kept[seen.rows, seen.cols] = False
        rows, cols = np.nonzero(kept)
        return cls(rows, cols, np.ones(len(rows)))

    def outside(self, *seen: Observations) -> CellSample:
        """The draws that are in none of ``seen``."""
        kept = np.ones(len(self.rows), dtype=bool)
        for observations in seen:
            kept &= observations.find(self.rows, self.cols) < 0
        return CellSample(self.rows[kept], self.cols[kept], self.rates[kept])


class CellSampler(NamedTuple):
    """Draws a cell with probability (1 - u) f_i g_j + u / (m n): rows and columns by their weights, or any cell."""

    row_chance: Array
    col_chance: Array
    uniform: float

    @classmethod
    def of(cls, row_weight: Array, col_weight: Array, uniform: float = 0.0) -> CellSampler:
        """f and g in proportion to the weights."""
        return cls(row_weight / row_weight.sum(), col_weight / col_weight.sum(), uniform)

    def rate(self, rows: IntArray, cols: IntArray) -> Array:
        """Probability of each cell per draw."""
        by_weight = self.row_chance[rows] * self.col_chance[cols]
        return np.asarray((1 - self.uniform) * by_weight + self.uniform / (len(self.row_chance) * len(self.col_chance)))

    def draw(self, n_draws: int, rng: np.random.Generator) -> CellSample:
        """``n_draws`` independent draws."""
        (m, n), n_uniform = (len(self.row_chance), len(self.col_chance)), rng.binomial(n_draws, self.uniform)
        # Rows in order and columns shuffled are independent draws in an order that is looked up fast.
        by_weight = n_draws - n_uniform
        rows = np.repeat(np.arange(m), rng.multinomial(by_weight, self.row_chance))
        cols = rng.permutation(np.repeat(np.arange(n), rng.multinomial(by_weight, self.col_chance)))
        rows = np.append(rows, np.sort(rng.integers(m, size=n_uniform)))
        cols = np.append(cols, rng.integers(n, size=n_uniform))
        return CellSample(rows, cols, n_draws * self.rate(rows, cols))
