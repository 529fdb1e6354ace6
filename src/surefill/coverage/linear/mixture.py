"""MP 2 with the adversaries' rank limited: a mixture of thin adversaries, checked by fresh best responses."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from surefill.arrays import Floats
from surefill.coverage.linear.factored_confidence import FactoredConfidence
from surefill.coverage.linear.factored_dual import SHARPEN, Game, WarmStart
from surefill.loop import Status
from surefill.spaces.separation_oracle import FactoredAdversary, best_responses
from surefill.spaces.version_space import VersionSpace

FIRST_ADVERSARIES = 12
ROUND_ITERATIONS = 60
"""Iterations of L-BFGS between checks."""

FINEST_MU = 0.16
"""Smoothing at which the mixture is checked; sharper confidences need more adversaries to hold."""

CHECKS, CONFIRMATIONS = 6, 12
"""Fresh starts per round, and once more before an answer is given."""


@dataclass(frozen=True, eq=False)
class Mixture:
    """The confidence that T adversaries leave, and the strongest one that fresh starts found against it."""

    variables: NDArray[np.float64]
    mu: float
    confidence: FactoredConfidence | None
    coverage: float
    upper: float
    left: Floats
    right: Floats
    strongest: FactoredAdversary | None
    held: bool

    @property
    def excess(self) -> float:
        """By what share the strongest adversary found exceeds gamma; infinite before any check."""
        if self.strongest is None or self.confidence is None:
            return math.inf
        return self.strongest.mean / self.confidence.gamma - 1


class SearchedGame(Game):
    """A solver for ``loop.run``: T adversaries of the given rank move together; fresh ones join while they gain.

    With a rank the class is not convex and no single adversary is an equilibrium, but a mixture is. All weights are
    equal, since adversaries may come to agree. Ends when fresh starts find nothing above gamma (1 + tolerance).
    """

    task = "solving for the largest coverage that no adversary found can break"

    def __init__(
        self,
        space: VersionSpace,
        gamma: float,
        tolerance: float,
        rng: np.random.Generator,
        deadline: float,
        warm: WarmStart | None,
    ) -> None:
        super().__init__(space, gamma, FIRST_ADVERSARIES, deadline, warm)
        self.tolerance, self.rng = tolerance, rng

    def init(self) -> Mixture:
        """The opening, before any confidence."""
        variables, mu = self.open(self.rng)
        m, n = self.space.shape
        nothing = np.zeros((m, 1)), np.zeros((n, 1))
        return Mixture(variables, mu, None, 0.0, float(m) * n, *nothing, None, False)

    def step(self, state: Mixture) -> Mixture:
        """Play one stage; at the finest smoothing, look for stronger adversaries and let them join."""
        variables, point, confidence = self.play(state.variables, state.mu, ROUND_ITERATIONS)
        left, right = self.stage.limits.members(point)
        upper = min(state.upper, self.upper_bound(left, right))
        coverage = confidence.coverage
        played = Mixture(variables, state.mu, confidence, coverage, max(upper, coverage), left, right, None, False)
        if state.mu > FINEST_MU:
            return replace(played, mu=max(FINEST_MU, state.mu * SHARPEN))
        found = self._respond(confidence, CHECKS)
        checked = replace(played, strongest=found[0])
        if checked.excess <= self.tolerance:
            again = self._respond(confidence, CONFIRMATIONS)[0]
            checked = replace(checked, strongest=max(found[0], again, key=lambda one: one.value))
            return replace(checked, held=checked.excess <= self.tolerance)
        if checked.excess > 0.7 * state.excess:
            return self._join(checked, found)
        return checked

    def measure(self, state: Mixture) -> float:
        """How far the strongest adversary found exceeds gamma."""
        return state.excess

    def terminate(self, state: Mixture) -> Status | None:
        """Converged when fresh starts found nothing above gamma (1 + tolerance)."""
        return Status.CONVERGED if state.held else None

    def _respond(self, confidence: FactoredConfidence, starts: int) -> tuple[FactoredAdversary, ...]:
        left = None if math.isinf(self.deadline) else max(0.0, self.deadline - time.perf_counter())
        C = self.payoff.C if self.payoff.held else confidence
        return best_responses(self.space, C, starts=starts, rng=self.rng, tolerance=2e-3, time_limit=left)

    def _join(self, state: Mixture, found: tuple[FactoredAdversary, ...]) -> Mixture:
        """Seat the responses beside the T adversaries; a multiplier is a share 1/T of the whole pull."""
        count = self.stage.spheres.count + len(found)
        ball, scale = self.stage.limits.ball, self.payoff.scale
        ball = np.concatenate([ball, np.full(len(found), ball.mean())]) * (len(ball) / count)
        old = state.variables.reshape(sum(self.space.shape), -1, self.width + 1)
        self.seat(count, ball)
        self.payoff.scale = scale
        lefts = np.concatenate([one.left for one in found], axis=1)
        rights = np.concatenate([one.right for one in found], axis=1)
        new = replace(self.stage.spheres, count=len(found)).variables(lefts, rights)
        joined = np.concatenate([old, new.reshape(len(old), -1, self.width + 1)], axis=1)
        return replace(state, variables=joined.ravel())
