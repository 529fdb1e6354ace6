"""MP 2 over the convex class in factored form: one adversary at full width, and a certificate every round."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from surefill.arrays import Array, Floats
from surefill.coverage.closed_form import relative_gap
from surefill.coverage.linear.factored_confidence import FactoredConfidence
from surefill.coverage.linear.factored_dual import ITERATIONS, SHARPEN, DualIterate, FactoredDual, WarmStart
from surefill.loop import Status
from surefill.registry import storable
from surefill.spaces.augmented_lagrangian import Multipliers
from surefill.spaces.certificates import DualBound, bound_from_response
from surefill.spaces.requirements import CONVEX_CLASS, SolverRequirements
from surefill.spaces.saddle_escape import escape_saddle
from surefill.spaces.separation_oracle import FACTORED_SOLVER
from surefill.spaces.stage import SERIAL_WORK, one_core_if
from surefill.spaces.version_space import VersionSpace

COVER_ALL_STAGES = 10
"""Stages given to the proof that C = 1 is feasible, while no adversary against it is known."""

ROUNDING = 1e-9
"""Share by which an excess over gamma |C| is taken larger before it is repaired, so that rounding cannot undo it."""


@storable
@dataclass(frozen=True, eq=False)
class CertifiedState:
    """The state of a :class:`CertifiedDualSolver`: the iterate, the best feasible C and the best upper bound so far.

    ``bound`` <= gamma |C| holds for ``confidence``, whose ball had the multipliers ``ball``; ``left``, ``right`` are
    the member of the version space that proves ``upper_bound``.
    """

    iterate: DualIterate
    rounds: int
    confidence: FactoredConfidence | None
    coverage: float
    bound: float
    ball: Array
    upper_bound: float
    left: Floats
    right: Floats

    @property
    def gap(self) -> float:
        """(upper_bound - |C|) / upper_bound."""
        return relative_gap(self.coverage, self.upper_bound)


class CertifiedDualSolver(FactoredDual):
    """A solver for ``loop.run``: each round moves the adversary, certifies the C it leaves and bounds the optimum.

    The class is convex, so one adversary of full width is enough; a stationary point that is not the optimum shows
    in the certificate, whose directions of gain lead away from it. The smoothing falls until it costs less than
    half the gap asked for.
    """

    task = "solving for the largest certified coverage"
    needs = SolverRequirements("the certified factored solver", (*FACTORED_SOLVER.requirements, CONVEX_CLASS))

    def __init__(
        self,
        space: VersionSpace,
        gamma: float,
        gap: float,
        rng: np.random.Generator,
        deadline: float,
        warm: WarmStart | None,
    ) -> None:
        super().__init__(space, gamma, deadline, None if warm is None else warm.merged())
        self.gap, self.rng = gap, rng

    def init(self) -> CertifiedState:
        """A first adversary; nothing is proved but 0 <= |C| <= m n, unless it proves that C = 1 is feasible."""
        iterate = self.initialise(1, self.rng)
        m, n = self.space.shape
        zero = np.zeros((m, 1)), np.zeros((n, 1))
        start = CertifiedState(iterate, 0, None, -1.0, 0.0, np.zeros(1), float(m) * n, *zero)
        return start if self.warm is not None else self._cover_all(start)

    def _cover_all(self, start: CertifiedState) -> CertifiedState:
        """C = 1 if no member's mean over all cells exceeds gamma; decided by further stages against C = 1."""
        state, cells = start, self.space.shape[0] * self.space.shape[1]
        for _ in range(COVER_ALL_STAGES):
            point = self.stage(1).spheres.point(state.iterate.variables)
            left, right = self.lagrangian.members(point)
            if float(left.sum(axis=0) @ right.sum(axis=0)) > self.gamma * cells:
                return state
            everything = FactoredConfidence(
                point.left, point.right, 1, 0.0, self.gamma, 1.0, 0.0, self.space.observations
            )
            # The stages maximise <1, M> itself, so the multipliers are those of lambda = 1.
            multipliers = state.iterate.multipliers
            bound = self._certify(everything.dense(), replace(everything, scale=1.0), multipliers).value
            if bound <= self.gamma * cells:
                return replace(state, confidence=everything, coverage=float(cells), bound=bound, left=left, right=right)
            state = replace(state, iterate=self.respond_to_ones(state.iterate, ITERATIONS))
        return state

    def step(self, state: CertifiedState) -> CertifiedState:
        """Run one stage, certify, and keep the better C and the better upper bound."""
        iterate, point, confidence, _ = self.run_stage(state.iterate)
        left, right = self.lagrangian.members(point)
        upper_bound = self.upper_bound(left, right, 1, iterate.scale)
        if upper_bound < state.upper_bound or state.confidence is None:
            state = replace(state, upper_bound=min(upper_bound, state.upper_bound), left=left, right=right)
        C = confidence.dense()
        found = self._certify(C, confidence, iterate.multipliers)
        feasible, coverage, bound = self._make_feasible(confidence, float(C.sum()), found.value)
        if coverage > state.coverage:
            ball = iterate.multipliers.ball
            state = replace(state, confidence=feasible, coverage=coverage, bound=bound, ball=ball)
        too_smooth = 1 - float(C.sum()) / state.upper_bound > self.gap / 2
        iterate = replace(iterate, mu=iterate.mu * SHARPEN if too_smooth else iterate.mu)
        # Every other round, so that a stage can settle between two escapes.
        if state.rounds % 2 == 0:
            rows = iterate.variables.reshape(sum(self.space.shape), self.width + 1)
            iterate = replace(iterate, variables=escape_saddle(rows, found, self.gap / 5).ravel())
        return replace(state, iterate=iterate, rounds=state.rounds + 1)

    def measure(self, state: CertifiedState) -> float:
        """The certified gap."""
        return state.gap

    def terminate(self, state: CertifiedState) -> Status | None:
        """Converged when the certified gap is the one asked for."""
        return Status.CONVERGED if state.gap <= self.gap else None

    def _certify(self, C: Array, confidence: FactoredConfidence, multipliers: Multipliers) -> DualBound:
        """A bound that no member exceeds against C, from the response that left it and its multipliers."""
        U, V = confidence.left.astype(np.float64), confidence.right.astype(np.float64)
        unit = 1 / max(confidence.scale, 1e-9)  # the dual's gradient is lambda C
        box = None if multipliers.box is None else unit * np.sign(U @ V.T) * multipliers.box[0]
        with one_core_if(C.size * U.shape[1] < SERIAL_WORK):
            return bound_from_response(self.space, C, U, V, 2 * unit * float(multipliers.ball[0]), box)

    def _make_feasible(
        self, confidence: FactoredConfidence, total: float, bound: float
    ) -> tuple[FactoredConfidence, float, float]:
        """(1 - t) C + t C0 with the smallest t that certifies a bound of at most gamma times its sum; sum and bound.

        As :func:`surefill.coverage.closed_form.make_feasible`, by sums alone: C stays a formula.
        """
        counts, root = self.space.observations.counts, float(np.sqrt(self.space.beta))
        counted = float(counts.sum() / counts.max())
        excess = max(0.0, bound - self.gamma * total) * (1 + ROUNDING)
        share = excess / (excess + (self.gamma - root) * counted)
        if (1 - share) * total + share * counted < counted:
            share = 1.0
        coverage = (1 - share) * total + share * counted
        return replace(confidence, share=share), coverage, (1 - share) * bound + share * root * counted
