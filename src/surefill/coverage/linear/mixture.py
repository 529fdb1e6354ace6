"""MP 2 with the adversaries' rank limited: a mixture of thin adversaries, checked by fresh best responses."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from surefill.arrays import Floats
from surefill.coverage.linear.factored_confidence import FactoredConfidence
from surefill.coverage.linear.factored_dual import SHARPEN, DualIterate, DualStage, FactoredDual, Ones, WarmStart
from surefill.coverage.linear.sampled_stage import SampledStage
from surefill.loop import Status, generator_at
from surefill.registry import storable
from surefill.spaces.adversary import FactoredAdversary
from surefill.spaces.alternating_oracle import AlternatingOracle
from surefill.spaces.augmented_lagrangian import Multipliers
from surefill.spaces.separation_oracle import alternates, best_responses
from surefill.spaces.version_space import VersionSpace

FIRST_ADVERSARIES, SAMPLED_ADVERSARIES = 12, 16
"""Adversaries that the mixture starts with, in whole sweeps and in sampled stages."""

SAMPLED_CELLS = 500_000
"""Cells from which stages are sampled: 30 blocks. In smaller tables whole sweeps of L-BFGS cost little, and a block
is too much of the table for its steps to average."""

ROUND_ITERATIONS = 60
"""Iterations of L-BFGS between checks, where stages are not sampled."""

START_SWEEPS = 3
"""Sweeps of alternating responses to C = 1 that a sampled cold start begins with."""

SMOOTHING_VISITS, FIRST_VISITS, ROUND_VISITS = 40, 240, 100
"""Steps of every line in the stages before the finest smoothing, in the first at it, and in each later one. With 160
instead of 240 in the first the excess found on MovieLens 100K was 7% instead of 5%."""

SAMPLED_CHECKS = 6
"""Checks after which stages are whole sweeps of L-BFGS: what sampled steps have not reached by then is below their
noise. MovieLens 100K and 1M need two checks and one."""

FIRST_STEP, ROUND_STEP = 0.1, 0.05
"""Angle by which a line moves per step in the first stages, and in the stages after a check."""

FINEST_MU = 0.16
"""Smoothing at which the mixture is checked; sharper confidences need more adversaries to be safe."""

CHECKS, CONFIRMATIONS = 4, 6
"""Fresh starts per round, and once more before an answer is given."""

RESPONSE_TOL = 2e-3
"""Tolerance of the fresh best responses, below every gap worth asking of a search."""

STALLED = 0.7
"""Share of the last excess above which whole sweeps alone no longer get better, and the responses found join."""

TIGHTEN, AIMED = 2.0, 0.5
"""Where fresh searches exceed gamma by at most twice the tolerance, C is solved again for a gamma smaller by so much
that half the tolerance is left if means fall in proportion. With 3/4 MovieLens 100K missed the tolerance and needed
another round."""


@storable
@dataclass(frozen=True, eq=False)
class MixtureState:
    """The state of a :class:`MixtureSolver`: the iterate, the confidence it leaves, and the last check of that.

    ``random`` is the state of the random generator; ``left``, ``right`` are the members whose mean proves
    ``upper_bound``; ``strongest`` is the strongest adversary that fresh starts found, None before a check;
    ``confirmed`` says whether two checks in a row found nothing beyond the tolerance, ``checks`` how many rounds ended
    in one.
    """

    gamma: float
    iterate: DualIterate
    random: dict[str, Any]
    confidence: FactoredConfidence | None
    coverage: float
    upper_bound: float
    left: Floats
    right: Floats
    strongest: FactoredAdversary | None = None
    confirmed: bool = False
    checks: int = 0

    @property
    def excess(self) -> float:
        """By what share the strongest adversary found exceeds gamma; infinite before any check."""
        return math.inf if self.strongest is None else self.strongest.mean / self.gamma - 1


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

    @property
    def sampled(self) -> bool:
        """Whether stages take gradients from blocks of cells; the box of K > 1 needs whole sweeps."""
        return alternates(self.space) and self.lagrangian.cells >= SAMPLED_CELLS

    def init(self) -> MixtureState:
        """First adversaries, before any confidence."""
        iterate = self.initialise(SAMPLED_ADVERSARIES if self.sampled else FIRST_ADVERSARIES, self.rng)
        m, n = self.space.shape
        zero = np.zeros((m, 1)), np.zeros((n, 1))
        return MixtureState(self.gamma, iterate, dict(self.rng.bit_generator.state), None, 0.0, float(m) * n, *zero)

    def start_cold(self, count: int, rng: np.random.Generator) -> DualIterate:
        """Best responses to C = 1."""
        if not self.sampled:
            return super().start_cold(count, rng)
        oracle = AlternatingOracle(self.space, Ones(self.space.shape), count, rng, 0.0, self.deadline)
        start = oracle.init()
        left, right, sigma = oracle.sweep(start.left, start.right, start.sigma, START_SWEEPS)
        return DualIterate(oracle.spheres.variables(left, right), Multipliers(sigma / count))

    def step(self, state: MixtureState) -> MixtureState:
        """Run one stage; at the finest smoothing, look for stronger adversaries and let them join."""
        rng = generator_at(state.random)
        sampled = self.sampled and state.checks < SAMPLED_CHECKS
        stage = self._sample(state, rng) if sampled else self.run_stage(state.iterate, ROUND_ITERATIONS)
        new = replace(self._bounds(stage, state), random=dict(rng.bit_generator.state))
        if stage.iterate.mu > FINEST_MU:
            return replace(new, iterate=replace(stage.iterate, mu=max(FINEST_MU, stage.iterate.mu * SHARPEN)))
        found = self._respond(stage, CHECKS, rng)
        new = replace(new, strongest=found[0], checks=state.checks + 1)
        if new.excess <= TIGHTEN * self.tol:
            tight = stage if new.excess <= self.tol else self._tighten(stage, new.excess)
            again = self._respond(tight, CONFIRMATIONS, rng)[0]
            if tight is stage:
                again = max(found[0], again, key=lambda one: one.value)
            new = replace(new, confidence=tight.confidence, coverage=tight.confidence.coverage, strongest=again)
            new = replace(new, confirmed=new.excess <= self.tol)
        # Sampled stages are short: what joins costs less than more steps without it.
        if not new.confirmed and (sampled or new.excess > STALLED * state.excess):
            new = replace(new, iterate=self._join(new.iterate, found))
        return replace(new, random=dict(rng.bit_generator.state))

    def _tighten(self, stage: DualStage, excess: float) -> DualStage:
        """The C that the same mixture leaves at a smaller gamma, so that what was found stays within the tolerance.

        A mean found at gamma (1 + e) moves in proportion to gamma; a share e of gamma costs lambda gamma e of coverage.
        """
        target = self.gamma * (1 + AIMED * self.tol) / (1 + excess)
        return self.reach(stage.iterate, stage.point, self.dual(stage.iterate, target))

    def _sample(self, state: MixtureState, rng: np.random.Generator) -> DualStage:
        """A stage of stochastic steps, annealed once the smoothing is finest; then the best lambda by whole sweeps."""
        iterate, m = state.iterate, self.space.shape[0]
        X = iterate.variables.reshape(sum(self.space.shape), iterate.count, self.width + 1).astype(np.float32)
        # The state given must not change, and steps are taken in place.
        stage = SampledStage(
            self.lagrangian, X[:m].copy(), X[m:].copy(), iterate.multipliers.ball, iterate.scale, iterate.mu, self.gamma
        )
        finest, checked = iterate.mu <= FINEST_MU, state.strongest is not None or self.warm is not None
        visits = (ROUND_VISITS if checked else FIRST_VISITS) if finest else SMOOTHING_VISITS
        stage.run(visits, ROUND_STEP if checked else FIRST_STEP, finest, rng, self.deadline)
        variables = np.concatenate([stage.X, stage.Y]).ravel()
        point = self.stage(iterate.count).spheres.point(variables)
        reached = replace(iterate, variables=variables, multipliers=Multipliers(stage.ball), scale=stage.scale)
        return self.reach(reached, point, self.dual(reached))

    def _bounds(self, stage: DualStage, state: MixtureState) -> MixtureState:
        """The state after a stage and before any check."""
        left, right = self.lagrangian.members(stage.point)
        upper_bound, iterate = state.upper_bound, stage.iterate
        # In large tables the bound costs as much as epochs, and a blunt mixture's is soon beaten.
        if iterate.mu <= FINEST_MU or not self.sampled:
            upper_bound = min(upper_bound, self.upper_bound(left, right, iterate.count, iterate.scale))
        coverage = stage.confidence.coverage
        bounds = coverage, max(upper_bound, coverage)
        return MixtureState(self.gamma, stage.iterate, state.random, stage.confidence, *bounds, left, right)

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
