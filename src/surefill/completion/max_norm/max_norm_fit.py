"""What :class:`MaxNormCompletion` returns: factors with bounded rows, and how far from optimal they are at most."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from surefill.arrays import Array
from surefill.completion.effects import subtract_effects
from surefill.completion.factored_completion import StoredProduct
from surefill.completion.grouped_regression import GroupedRegression
from surefill.data import Observations, UnitMap
from surefill.loop import Status
from surefill.registry import storable

BISECTIONS = 60
"""Halvings of the interval for a ridge: more than the 52 bits of its digits."""

RANK_TOL = 1e-10
"""Share of the largest singular value below which one counts as 0."""


@storable
@dataclass(frozen=True, eq=False)
class MaxNormFit(StoredProduct):
    """M_ij = mean + b_i + c_j + u_i . v_j on [-1, 1], rows of U and V at most sqrt(K) long; given in the user's units.

    ``row_solution`` holds (b_i, u_i) for the rows ``row_ids`` and a last row of zeros for all others, ``col_solution``
    the same for columns.

    Attributes
    ----------
    K : limit on the max-norm of U V'; with a penalty, the norm that was chosen by it.
    objective : sum_S w_x (value_x - M_x)^2 on [-1, 1], plus penalty K where there is a penalty.
    lower_bound : no matrix of the convex class has a smaller objective.
    gap : objective - lower_bound.
    status : why the solver stopped.
    has_effects : whether a mean and the shrunken means b_i, c_j were taken off first; they are zero unless asked for.

    Examples
    --------
    >>> import surefill as sf
    >>> sim = sf.datasets.make_low_rank((30, 20), rank=2, n_draws=400, noise=0.1, random_state=0)
    >>> completion = sf.completion.MaxNormCompletion(K=1.0).fit(sim.observations)
    >>> completion.lower_bound <= completion.objective
    True
    """

    unit: UnitMap
    mean: float
    has_effects: bool
    K: float
    penalty: float | None
    objective: float
    lower_bound: float
    status: Status

    @property
    def left(self) -> Array:
        """U, with a last row of zeros."""
        return self.row_solution[:, 1:]

    @property
    def right(self) -> Array:
        """V, with a last row of zeros."""
        return self.col_solution[:, 1:]

    @property
    def gap(self) -> float:
        """objective - lower_bound, how far from the best of the convex class at most."""
        return self.objective - self.lower_bound

    @property
    def relative_gap(self) -> float:
        """gap / objective, 0 where the objective is."""
        return self.gap / self.objective if self.objective > 0 else 0.0

    def fold_in(self, observations: Observations) -> Self:
        """The completion of other rows, the columns as learnt: min sum_t c_t (r_t - u . v_t)^2 over |u|^2 <= K each.

        The objective and its bound remain those of the rows that were fitted.
        """
        rows = GroupedRegression.of_rows(observations, self.col_ids, self.unit.to_unit(observations.values) - self.mean)
        effects, target = subtract_effects(rows, self.col_solution, self.has_effects)
        solution, starts = np.zeros((len(effects), self.col_solution.shape[1])), rows.groups.starts
        solution[:, 0] = effects
        for g in range(len(rows.groups)):
            cells = slice(starts[g], starts[g + 1])
            solution[g, 1:] = ball_regression(self.right[rows.other[cells]], target[cells], rows.weight[cells], self.K)
        return replace(self, shape=observations.shape, row_ids=rows.groups.ids, row_solution=solution)

    def _in_units(self, centred: Array) -> Array:
        return self.unit.from_unit(np.clip(self.mean + centred, -1.0, 1.0))


def ball_regression(features: Array, target: Array, weight: Array, K: float) -> Array:
    """argmin over |x|^2 <= K of sum_t c_t (y_t - f_t . x)^2, the shortest; |x(s)|^2 = K by bisection on the ridge s.

    With sqrt(c) F = P S Q', x(s) = Q (S / (S^2 + s)) P' sqrt(c) y.
    """
    root = np.sqrt(weight)
    P, S, Qt = np.linalg.svd(root[:, None] * features, full_matrices=False)
    S = np.where(RANK_TOL * S.max(initial=0.0) < S, S, 0.0)
    turned = P.T @ (root * target)

    def solution(ridge: float) -> Array:
        return np.asarray(np.divide(S * turned, S**2 + ridge, out=np.zeros_like(S), where=S > 0))

    low, high = 0.0, float(np.linalg.norm(S * turned)) / np.sqrt(K)
    if np.sum(solution(0.0) ** 2) <= K:
        high = 0.0
    for _ in range(BISECTIONS if high else 0):
        middle = (low + high) / 2
        low, high = (middle, high) if np.sum(solution(middle) ** 2) > K else (low, middle)
    return np.asarray(solution(high) @ Qt)
