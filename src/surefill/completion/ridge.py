"""The ridge regressions of one side of a factor model, the other side held fixed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from surefill.completion.side import Array, Side

BIAS_PENALTY = 5.0


@dataclass(frozen=True, eq=False)
class RidgeSide(Side):
    """min_x  sum_t c_t (r_t - bias_t - f_t . x)^2 + penalty (5 x_0^2 + sqrt(N_g) |x_1..|^2)  for each group g.

    A group's solution is x_g = (bias, factors); N_g is the number of its draws. The square root lies between a prior
    that is the same for all (N_g^0) and one that grows with the data (N_g^1).
    """

    def solve(self, fixed: Array, penalty: float) -> tuple[Array, float]:
        """The solution of this side given the other side's, and the sum of the groups' problems at it."""
        width = fixed.shape[1]
        ridge = self.ridge(width, penalty)
        return self.regress(fixed, ridge, np.zeros((width, width)), np.zeros_like(ridge))

    def inverses(self, fixed: Array, penalty: float) -> Array:
        """(sum_t c_t f_t f_t' + P)^-1 of each group, P the ridge of a single draw; last P^-1, of no entries.

        The prior is the same for every group, so that only observations lower a variance: with the ridge of the
        regressions, which grows with the draws, a busy row would seem well known even in directions it never saw.
        """
        width = fixed.shape[1]
        prior = np.diag(np.append(BIAS_PENALTY * penalty, np.full(width - 1, penalty)))
        return self.inverses_of(fixed, np.zeros((len(self.groups), width)), prior)

    def penalised(self, solution: Array, penalty: float) -> float:
        """What the penalties of all groups add up to."""
        return float(np.sum(self.ridge(solution.shape[1], penalty) * solution[:-1] ** 2))

    def ridge(self, width: int, penalty: float) -> Array:
        """The diagonal added to each group's normal equations."""
        draws = np.add.reduceat(self.weight, self.groups.starts[:-1])
        ridge: Array = np.outer(np.sqrt(draws), np.full(width, penalty))
        ridge[:, 0] = BIAS_PENALTY * penalty
        return ridge
