"""MP 2 with the adversaries' rank limited: a mixture of thin adversaries, checked by fresh best responses."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from surefill.arrays import Floats
from surefill.coverage.linear.factored_confidence import FactoredConfidence
from surefill.coverage.linear.factored_dual import SHARPEN, DualIterate, DualStage, FactoredDual, WarmStart
from surefill.loop import Status, generator_at
from surefill.registry import storable
from surefill.spaces.augmented_lagrangian import Multipliers
from surefill.spaces.separation_oracle import FactoredAdversary, best_responses
from surefill.spaces.version_space import VersionSpace

FIRST_ADVERSARIES = 12
"""Adversaries that the mixture starts with."""

ROUND_ITERATIONS = 60
"""Iterations of L-BFGS between checks."""

FINEST_MU = 0.16
"""Smoothing at which the mixture is checked; sharper confidences need more adversaries to be safe."""

CHECKS, CONFIRMATIONS = 6, 12
"""Fresh starts per round, and once more before an answer is given."""

RESPONSE_TOL = 2e-3
"""Tolerance of the fresh best responses, below every gap worth asking of a search."""

STALLED = 0.7
"""Share of the last excess above which the mixture alone no longer gets better, and the responses found join it."""


@storable
@dataclass(frozen=True, eq=False)
class MixtureState:
    """The state of a :class:`MixtureSolver`: the iterate, the confidence it leaves, and the last check of that.

    ``random`` is the state of the random generator; ``left``, ``right`` are the members whose mean proves
    ``upper_bound``; ``strongest`` is the strongest adversary that fresh starts found, None before a check;
    ``confirmed`` says whether two checks in a row found nothing beyond the tolerance.
    """

    iterate: DualIterate
    random: dict[str, Any]
    confidence: FactoredConfidence | None
    coverage: float
    upper_bound: float
    left: Floats
    right: Floats
    strongest: FactoredAdversary | None = None
    confirmed: bool = False

    @property
    def excess(self) -> float:
        """By what share the strongest adversary found exceeds gamma; infinite before any check."""
        if self.strongest is None or self.confidence is None:
            return math.inf
        return self.strongest.mean / self.confidence.gamma - 1


class MixtureSolver(FactoredDual):
    """A solver for ``loop.run``: T adversaries of the given rank move together; fresh ones join while they gain.

    With a rank the class is not convex and no single adversary is an equilibrium, but a mixture is. All weights are
    equal, since adversaries may come to agree. Ends when fresh starts find nothing above gamma (1 + tol).
    """

    task = "solving for the largest coverage that no adversary found can break"

    def __init__(
        self,
        space: VersionSpace,
        gamma: float,
        tol: float,
        rng: np.random.Generator,
        deadline: float,
        warm: WarmStart | None,
    ) -> None:
        super().__init__(space, gamma, deadline, warm)
        self.tol, self.rng = tol, rng

    def init(self) -> MixtureState:
        """First adversaries, before any confidence."""
        iterate = self.initialise(FIRST_ADVERSARIES, self.rng)
        m, n = self.space.shape
        zero = np.zeros((m, 1)), np.zeros((n, 1))
        return MixtureState(iterate, dict(self.rng.bit_generator.state), None, 0.0, float(m) * n, *zero)

    def step(self, state: MixtureState) -> MixtureState:
        """Run one stage; at the finest smoothing, look for stronger adversaries and let them join."""
        stage, rng = self.run_stage(state.iterate, ROUND_ITERATIONS), generator_at(state.random)
        iterate, confidence = stage.iterate, stage.confidence
        left, right = self.lagrangian.members(stage.point)
        upper_bound = min(state.upper_bound, self.upper_bound(left, right, iterate.count, iterate.scale))
        coverage = confidence.coverage
        new = MixtureState(iterate, state.random, confidence, coverage, max(upper_bound, coverage), left, right)
        if iterate.mu > FINEST_MU:
            return replace(new, iterate=replace(iterate, mu=max(FINEST_MU, iterate.mu * SHARPEN)))
        found = self._respond(stage, CHECKS, rng)
        new = replace(new, strongest=found[0])
        if new.excess <= self.tol:
            again = self._respond(stage, CONFIRMATIONS, rng)[0]
            new = replace(new, strongest=max(found[0], again, key=lambda one: one.value))
            new = replace(new, confirmed=new.excess <= self.tol)
        elif new.excess > STALLED * state.excess:
            new = replace(new, iterate=self._join(iterate, found))
        return replace(new, random=dict(rng.bit_generator.state))

    def measure(self, state: MixtureState) -> float:
        """How far the strongest adversary found exceeds gamma."""
        return state.excess

    def terminate(self, state: MixtureState) -> Status | None:
        """Converged when fresh starts found nothing above gamma (1 + tol), twice."""
        return Status.CONVERGED if state.confirmed else None

    def _respond(self, stage: DualStage, starts: int, rng: np.random.Generator) -> tuple[FactoredAdversary, ...]:
        """Fresh best responses to the stage's confidence, in what time is left."""
        left = None if math.isinf(self.deadline) else max(0.0, self.deadline - time.perf_counter())
        C = stage.confidence if stage.C is None else stage.C
        return best_responses(self.space, C, starts=starts, rng=rng, tol=RESPONSE_TOL, time_limit=left)

    def _join(self, iterate: DualIterate, found: tuple[FactoredAdversary, ...]) -> DualIterate:
        """The responses beside the T adversaries; a multiplier belongs to a share 1/T of the objective."""
        ball = iterate.multipliers.ball
        count = len(ball) + len(found)
        ball = np.concatenate([ball, np.full(len(found), ball.mean())]) * (len(ball) / count)
        old = iterate.variables.reshape(sum(self.space.shape), -1, self.width + 1)
        lefts = np.concatenate([one.left for one in found], axis=1)
        rights = np.concatenate([one.right for one in found], axis=1)
        new = self.stage(len(found)).spheres.variables(lefts, rights)
        joined = np.concatenate([old, new.reshape(len(old), -1, self.width + 1)], axis=1)
        # The box's multipliers start afresh: those of T matrices do not fit the larger mixture.
        return replace(iterate, variables=joined.ravel(), multipliers=Multipliers(ball))
