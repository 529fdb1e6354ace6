"""MP 1 over a convex set that holds the squares of all adversaries: one convex program, and a certified C."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from surefill.coverage.conic import counts_confidence
from surefill.loop import Status
from surefill.spaces.conic import Attempt, attempts, first_tight, load_cvxpy, plan_for
from surefill.spaces.relaxed_squares import Triangles, scaled_squares
from surefill.spaces.version_space import VersionSpace

TRIANGLE_LIMIT = 24
"""Rows plus columns up to which triangles are added: beyond, they gain a part in a thousand and cost several solves."""

TRIANGLES = 200
"""Triangles added at once."""

ROUNDING = 1e-10
ENOUGH = 1e-5
"""A round of triangles that covers no more than this share in addition is the last."""


@dataclass(frozen=True, eq=False)
class RelaxedAnswer:
    """C with sum_x C_x M_x^2 <= ``bound`` <= gamma |C| for all M in V; ``triangles`` for the next round, if any."""

    C: NDArray[np.float64]
    bound: float
    lost: float
    triangles: Triangles | None
    gained: float = np.inf


class RelaxedProgram:
    """max |C| with <C, Z> <= gamma |C| for all Z in R, R holding every M o M; a solver for ``loop.run``.

    Its dual is min over lambda >= 0, N in lambda R of sum_x max(0, 1 + lambda gamma - N_x), a semidefinite program as
    for MP 2, and C the multiplier of the hinge. Each step solves it with the triangles that the last answer violated. C
    is repaired: mixed with counts / max(counts), which has (gamma - beta) |C0| to spare, until its bound holds.
    """

    task = "covering against all squares"

    def __init__(self, space: VersionSpace, gamma: float) -> None:
        self.space, self.gamma = space, gamma

    def init(self) -> RelaxedAnswer:
        """The program without triangles."""
        return self._solve(Triangles.none())

    def step(self, state: RelaxedAnswer) -> RelaxedAnswer:
        """Solve again with more triangles, and keep the better C."""
        assert state.triangles is not None  # terminate() ends where there are none
        new = self._solve(state.triangles)
        gained = float(new.C.sum() / state.C.sum()) - 1
        best = new if gained > 0 else state
        return RelaxedAnswer(best.C, best.bound, best.lost, new.triangles, gained)

    def measure(self, state: RelaxedAnswer) -> float:
        """The certified coverage."""
        return float(state.C.sum())

    def terminate(self, state: RelaxedAnswer) -> Status | None:
        """Converged when no triangle is violated, or the last ones brought nothing; large matrices take none."""
        if sum(self.space.shape) > TRIANGLE_LIMIT or state.triangles is None:
            return Status.CONVERGED
        return Status.CONVERGED if state.gained < ENOUGH else None

    def _solve(self, triangles: Triangles) -> RelaxedAnswer:
        answers = self._answers(triangles, plan_for(self.space.shape))
        return first_tight(answers, lambda answer: answer.lost, 1e-3)

    def _answers(self, triangles: Triangles, plan: tuple[Attempt, ...]) -> Iterator[RelaxedAnswer]:
        """A repaired answer from each attempt; ``lost`` is the share of coverage that the repair cost."""
        cp = load_cvxpy()
        scale, hinge = cp.Variable(nonneg=True), cp.Variable(self.space.shape, nonneg=True)
        model = scaled_squares(self.space, scale, triangles)
        covers = hinge >= 1 + scale * self.gamma - model.matrix
        for _ in attempts(cp.Problem(cp.Minimize(cp.sum(hinge)), [covers, *model.constraints]), plan):
            found = np.clip(covers.dual_value, 0.0, 1.0)
            C, bound = make_feasible(self.space, self.gamma, found, model.bound(found))
            lost = 1 - float(C.sum()) / max(float(found.sum()), 1e-300)
            yield RelaxedAnswer(C, bound, lost, model.tightened(TRIANGLES, float(scale.value)))


def make_feasible(
    space: VersionSpace, gamma: float, C: NDArray[np.float64], bound: float
) -> tuple[NDArray[np.float64], float]:
    """(1 - t) C + t C0 with the smallest t that certifies a bound of at most gamma times its sum; that bound.

    ``bound`` is taken 1e-10 larger: its eigenvalues are known to about 1e-13.

    C0 = counts / max(counts) has sum_x C0_x M_x^2 = |C0| sum_S w_x M_x^2 <= beta |C0|, so (gamma - beta) |C0| to spare.
    """
    C0 = counts_confidence(space)
    counted = float(C0.sum())
    bound *= 1 + ROUNDING
    excess = max(0.0, bound - gamma * float(C.sum()))
    t = excess / (excess + (gamma - space.beta) * counted)
    mixed = (1 - t) * C + t * C0
    if mixed.sum() < counted:
        return C0, space.beta * counted
    return mixed, (1 - t) * bound + t * space.beta * counted
