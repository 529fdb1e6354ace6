"""MP 1 from above by cutting planes: a linear program in C whose constraints are the adversaries found so far."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.optimize import linprog

from surefill.arrays import Array
from surefill.coverage.quadratic.square_search import strongest_squares
from surefill.errors import SolverError
from surefill.loop import Status, generator_at
from surefill.registry import storable
from surefill.spaces.version_space import VersionSpace

STARTS = 6
"""Random starts of each search."""

INWARD = 0.5
"""Where to look first: half-way from the linear program's C to the certified one, where cuts are deeper."""

RETREATS = (0.0, 1 / 4, 1 / 2, 3 / 4)
"""Shares of the certified C to mix in while a search breaks the last C; the certified one itself if all are broken."""


@storable
@dataclass(frozen=True, eq=False)
class CuttingPlaneState:
    """The state of a :class:`CuttingPlaneSolver`: members found (T x m x n), the linear program's C, what it proves.

    ``random`` is the state of the random generator. ``upper_bound`` is at least the optimum of MP 1. ``excess`` is the
    largest mean square found against C, over gamma, in the last search; it is 1 where C = 0.
    """

    random: dict[str, Any]
    cuts: Array
    C: Array
    upper_bound: float
    excess: float = np.inf


class CuttingPlaneSolver:
    """max |C| over C in [0, 1] with sum_x C_x (M^t_x)^2 <= gamma |C| for the cuts M^t so far; for ``loop.run``.

    Fewer constraints than MP 1, so its value is an upper bound, whichever members were found. Each step searches
    for members that break C, first against a mixture of C and the certified C (a point inside), then against C itself.
    """

    task = "looking for adversaries against the linear program's confidence"

    def __init__(
        self,
        space: VersionSpace,
        gamma: float,
        inner: Array,
        gap: float,
        rng: np.random.Generator,
        tol: float = 1e-3,
    ) -> None:
        self.space, self.gamma, self.inner, self.rng = space, gamma, inner, rng
        self.lower, self.gap, self.tol = float(inner.sum()), gap, tol

    def init(self) -> CuttingPlaneState:
        """No cut yet: C = 1."""
        ones = np.ones(self.space.shape)
        random = dict(self.rng.bit_generator.state)
        return CuttingPlaneState(random, np.zeros((0, *self.space.shape)), ones, float(ones.size))

    def step(self, state: CuttingPlaneState) -> CuttingPlaneState:
        """Cut off C if anything found breaks it, and solve again."""
        excess, rng = 0.0, generator_at(state.random)
        for share in (INWARD, 0.0):
            found = self._search((1 - share) * state.C + share * self.inner, rng)
            means = self._means(state.C, found)
            excess = max(excess, float(means.max()) / self.gamma)
            broken = found[means > self.gamma * (1 + self.tol)]
            if len(broken):
                cuts = np.concatenate([state.cuts, broken])
                C, upper_bound = cover_against_all(cuts**2, self.gamma)
                excess = np.inf if C.any() else 1.0
                state = replace(state, cuts=cuts, C=C, upper_bound=min(upper_bound, state.upper_bound))
                break
        return replace(state, random=dict(rng.bit_generator.state), excess=excess)

    def measure(self, state: CuttingPlaneState) -> float:
        """The upper bound."""
        return state.upper_bound

    def terminate(self, state: CuttingPlaneState) -> Status | None:
        """Converged when the bracket is as narrow as asked for, or when no search breaks C."""
        narrow = state.upper_bound - self.lower <= self.gap * state.upper_bound
        return Status.CONVERGED if narrow or np.isfinite(state.excess) else None

    def retreat(self, state: CuttingPlaneState) -> CuttingPlaneState:
        """C, or the first mixture of it with the certified C, that a search does not break; the bound stays."""
        if np.isfinite(state.excess):
            return state
        rng = generator_at(state.random)
        for share in RETREATS:
            C = (1 - share) * state.C + share * self.inner
            excess = float(self._means(C, self._search(C, rng)).max()) / self.gamma
            if excess <= 1 + self.tol:
                return replace(state, C=C, excess=excess)
        return replace(state, C=self.inner, excess=1.0)

    def _search(self, C: Array, rng: np.random.Generator) -> Array:
        return strongest_squares(self.space, C, starts=STARTS, rng=rng)

    def _means(self, C: Array, members: Array) -> Array:
        return np.asarray(np.einsum("ij,tij->t", C, members**2) / C.sum())


def cover_against_all(squares: Array, gamma: float) -> tuple[Array, float]:
    """max |C| over C in [0, 1] with <C, Z^t> <= gamma |C| for all t, by HiGHS; C, and a proof from above.

    For every lambda >= 0 the optimum is at most sum_x max(0, 1 + sum_t lambda_t (gamma - Z^t_x)): the multipliers are
    HiGHS', the bound is computed afresh and holds whatever they are.
    """
    rows = squares.reshape(len(squares), -1) - gamma
    answer = linprog(-np.ones(rows.shape[1]), A_ub=rows, b_ub=np.zeros(len(rows)), bounds=(0, 1), method="highs")
    if answer.x is None:
        raise SolverError(f"the linear program of {len(rows)} cuts was not solved ({answer.message}).")
    multipliers = np.maximum(0.0, -np.asarray(answer.ineqlin.marginals))
    upper_bound = float(np.maximum(0.0, 1 - multipliers @ rows).sum())
    return np.clip(answer.x, 0.0, 1.0).reshape(squares.shape[1:]), upper_bound
