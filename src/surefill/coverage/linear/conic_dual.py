"""MP 2 as one convex program: its dual gives the adversary, the dual's multipliers the confidence."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from surefill.arrays import Array
from surefill.coverage.closed_form import cover_against, make_feasible, relative_gap
from surefill.spaces.conic_model import Attempt, ScaledMember, attempts, load_cvxpy
from surefill.spaces.version_space import VersionSpace


@dataclass(frozen=True, eq=False)
class ConicAnswer:
    """A feasible C, since no member of V exceeds ``bound`` <= gamma |C|, and a member M that proves ``upper_bound``."""

    C: Array
    bound: float
    M: Array
    upper_bound: float

    @property
    def gap(self) -> float:
        """(upper_bound - |C|) / upper_bound: how much larger, at most, another coverage could be."""
        return relative_gap(float(self.C.sum()), self.upper_bound)


def solve_conic(space: VersionSpace, gamma: float, plan: tuple[Attempt, ...]) -> Iterator[ConicAnswer]:
    """min over lambda >= 0, N in lambda V of sum_x max(0, 1 + lambda gamma - N_x): the dual of MP 2.

    C is the multiplier of the hinge and M = N / lambda the adversary, both repaired so that what is said of
    them holds whatever the solver's accuracy. One answer comes from each attempt of ``plan``. Needs
    sqrt(beta) < gamma < min(K, 1), outside of which the answer is known; docs/mathematics.md has the
    derivation.
    """
    cp = load_cvxpy()
    scale, hinge = cp.Variable(nonneg=True), cp.Variable(space.shape, nonneg=True)
    model = ScaledMember(space, scale)
    covers = hinge >= 1 + scale * gamma - model.matrix
    problem = cp.Problem(cp.Minimize(cp.sum(hinge)), [covers, *model.constraints])
    for _ in attempts(problem, plan):
        C = np.clip(covers.dual_value, 0.0, 1.0)
        C, bound = make_feasible(space, gamma, C, model.bound(C), float(np.sqrt(space.beta)))
        M = model.member()
        yield ConicAnswer(C, bound, M, cover_against(M, gamma))
