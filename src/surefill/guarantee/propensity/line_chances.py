"""How often lines (rows or columns) are observed: posterior means under a prior that is learnt from all of them.

Of a line of n cells, each observed with a mean chance rho and then looked at with probability s, k are seen:

    k ~ Binomial(n, s rho),   rho ~ G,   G = argmax prod over lines of  integral (s rho)^k (1 - s rho)^(n - k) dG(rho)

G is any distribution: the nonparametric maximum-likelihood estimate (Kiefer and Wolfowitz 1956) on a grid, by
expectation maximisation. E[rho | k] is then right on average over the lines with the same k, whatever the true G, where
k / (s n) is too small for k = 0 and too large for rare lines that happened to be seen.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from surefill.arrays import Array, Indices, IntArray
from surefill.guarantee.propensity.base import MOST_LIKELY

GRID_STEP = 0.25
"""Spacing of the grid in sqrt(n) arcsin sqrt(s rho), where every count has standard deviation 1/2."""

MOST_POINTS = 400
"""Points of the grid at most; counts up to 10,000 need no more at that spacing."""

ITERATIONS = 300
"""Steps of expectation maximisation. The prior's variance falls like the counts' own over the number of steps where all
lines are alike, so that equal lines differ by less than a tenth of their sampling error."""


class LineClasses(NamedTuple):
    """Lines with equal counts, which no model of counts can tell apart: at most sqrt(2 N) + 1 classes."""

    counts: Indices
    sizes: Array
    of_line: Indices

    @classmethod
    def of(cls, lines: IntArray, n_lines: int) -> LineClasses:
        """Classes of the ``n_lines`` lines by how often each is among ``lines``."""
        return cls.of_counts(np.bincount(lines, minlength=n_lines))

    @classmethod
    def of_counts(cls, counts: Indices) -> LineClasses:
        """Classes of lines that were seen so often."""
        classes, of_line, sizes = np.unique(counts, return_inverse=True, return_counts=True)
        return cls(classes, sizes.astype(np.float64), of_line)

    def mean_chances(self, n_cells: int, share: float) -> Array:
        """E[rho | k] of each class, for lines of ``n_cells`` cells."""
        q = self._grid(n_cells, share)
        log_likelihood = np.outer(self.counts, np.log(q)) + np.outer(n_cells - self.counts, np.log1p(-q))
        likelihood = np.exp(log_likelihood - log_likelihood.max(axis=1, keepdims=True))
        n_lines, prior = self.sizes.sum(), np.full(len(q), 1 / len(q))
        for _ in range(ITERATIONS):
            # One more line, spread evenly over the grid, keeps every point possible.
            posterior_total = prior * ((self.sizes / (likelihood @ prior)) @ likelihood)
            prior = (posterior_total + 1 / len(q)) / (n_lines + 1)
        return np.asarray((likelihood @ (prior * q)) / (likelihood @ prior) / share)

    def _grid(self, n_cells: int, share: float) -> Array:
        """Chances s rho from three standard deviations below the smallest count to as many above the largest."""
        low, high = self.counts[0], self.counts[-1]
        ends = np.array([max(low - 3 * np.sqrt(low), 0.0), high + 3 * np.sqrt(high + 1)]) / n_cells
        first, last = np.sqrt(n_cells) * np.arcsin(np.sqrt(np.minimum(ends, MOST_LIKELY * share)))
        first = max(first, GRID_STEP / 2)
        size = int(np.clip(np.ceil((last - first) / GRID_STEP) + 1, 2, MOST_POINTS))
        q = np.sin(np.linspace(first, max(first, last), size) / np.sqrt(n_cells)) ** 2
        # Rarer lines, halving down to where all lines together expect half a cell.
        halvings = max(0, int(np.log2(2 * q[0] * n_cells * self.sizes.sum())))
        return np.append(q[0] / 2.0 ** np.arange(halvings, 0, -1), q) if ends[0] == 0 else q
