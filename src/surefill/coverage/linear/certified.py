"""MP 2 over the convex class in factored form: one adversary at full width, and a certificate every round."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from surefill.arrays import Floats
from surefill.coverage.linear.factored_confidence import FactoredConfidence
from surefill.coverage.linear.factored_dual import ITERATIONS, SHARPEN, Game, WarmStart
from surefill.loop import Status
from surefill.spaces.certificate import DualBound, bound_from_response
from surefill.spaces.saddle_escape import follow_gains
from surefill.spaces.stage import SERIAL_WORK, one_core_if
from surefill.spaces.version_space import VersionSpace

ALL_STAGES = 10
"""Stages given to the proof that C = 1 is feasible, while no adversary against it is known."""


@dataclass(frozen=True, eq=False)
class Bracket:
    """The best feasible C and the best proof from above so far, and the variables to go on from.

    ``bound`` <= gamma |C| holds for ``confidence``; ``left``, ``right`` are the member that proves ``upper``.
    """

    variables: NDArray[np.float64]
    mu: float
    rounds: int
    confidence: FactoredConfidence | None
    coverage: float
    bound: float
    upper: float
    left: Floats
    right: Floats
    multipliers: NDArray[np.float64]

    @property
    def gap(self) -> float:
        """(upper - |C|) / upper."""
        return max(0.0, self.upper - self.coverage) / self.upper if self.upper > 0 else 0.0


class CertifiedGame(Game):
    """A solver for ``loop.run``: each round moves the adversary, certifies the C it leaves and bounds the optimum.

    The class is convex, so one adversary of full width is enough; a stationary point that is not the optimum shows
    in the certificate, whose directions of gain lead away from it. The smoothing falls until it costs less than
    half the gap asked for.
    """

    task = "solving for the largest certified coverage"

    def __init__(
        self,
        space: VersionSpace,
        gamma: float,
        gap: float,
        rng: np.random.Generator,
        deadline: float,
        warm: WarmStart | None,
    ) -> None:
        super().__init__(space, gamma, 1, deadline, None if warm is None else warm.merged())
        self.gap, self.rng = gap, rng

    def init(self) -> Bracket:
        """The opening, with nothing proved but 0 <= |C| <= m n, unless it proves that all cells can be covered."""
        variables, mu = self.open(self.rng)
        m, n = self.space.shape
        nothing = np.zeros((m, 1)), np.zeros((n, 1))
        start = Bracket(variables, mu, 0, None, -1.0, 0.0, float(m) * n, *nothing, np.zeros(1))
        return start if self.warm is not None else self._cover_all(start)

    def _cover_all(self, start: Bracket) -> Bracket:
        """C = 1 if no member's mean over all cells exceeds gamma; decided by going on with the opening."""
        state, cells = start, self.space.shape[0] * self.space.shape[1]
        for _ in range(ALL_STAGES):
            point = self.stage.spheres.point(state.variables)
            left, right = self.stage.limits.members(point)
            if float(left.sum(axis=0) @ right.sum(axis=0)) > self.gamma * cells:
                return state
            everything = FactoredConfidence(
                point.left, point.right, 1, 0.0, self.gamma, 1.0, 0.0, self.space.observations
            )
            bound = self._certify(everything.dense(), replace(everything, scale=1.0)).value
            if bound <= self.gamma * cells:
                return replace(state, confidence=everything, coverage=float(cells), bound=bound, left=left, right=right)
            state = replace(state, variables=self.stage.run(state.variables, self.ones(), ITERATIONS)[0])
        return state

    def step(self, state: Bracket) -> Bracket:
        """Play one stage, certify, and keep the better of old and new on either side."""
        variables, point, confidence = self.play(state.variables, state.mu)
        left, right = self.stage.limits.members(point)
        upper = self.upper_bound(left, right)
        if upper < state.upper or state.confidence is None:
            state = replace(state, upper=min(upper, state.upper), left=left, right=right)
        C = confidence.dense()
        found = self._certify(C, confidence)
        feasible, coverage, bound = self._make_feasible(confidence, float(C.sum()), found.value)
        if coverage > state.coverage:
            ball = self.stage.limits.ball.copy()
            state = replace(state, confidence=feasible, coverage=coverage, bound=bound, multipliers=ball)
        blunt = 1 - float(C.sum()) / state.upper > self.gap / 2
        if state.rounds % 2 == 0:
            rows = variables.reshape(sum(self.space.shape), self.width + 1)
            variables = follow_gains(rows, found, self.gap / 5).ravel()
        return replace(
            state, variables=variables, rounds=state.rounds + 1, mu=state.mu * SHARPEN if blunt else state.mu
        )

    def measure(self, state: Bracket) -> float:
        """The certified gap."""
        return state.gap

    def terminate(self, state: Bracket) -> Status | None:
        """Converged when the certified gap is the one asked for."""
        return Status.CONVERGED if state.gap <= self.gap else None

    def _certify(self, C: NDArray[np.float64], confidence: FactoredConfidence) -> DualBound:
        """No member exceeds this against C; the multipliers are those of the stage."""
        U, V = confidence.left.astype(np.float64), confidence.right.astype(np.float64)
        limits, unit = self.stage.limits, 1 / max(confidence.scale, 1e-9)
        box = None if limits.box is None else unit * np.sign(U @ V.T) * limits.box[0]
        with one_core_if(C.size * U.shape[1] < SERIAL_WORK):
            return bound_from_response(self.space, C, U, V, 2 * unit * float(limits.ball[0]), box)

    def _make_feasible(
        self, confidence: FactoredConfidence, total: float, bound: float
    ) -> tuple[FactoredConfidence, float, float]:
        """(1 - t) C + t C0 with the smallest t that certifies a bound of at most gamma times its sum; sum and bound.

        C0 = counts / max(counts) has (gamma - sqrt(beta)) |C0| to spare, by Cauchy-Schwarz.
        """
        counts, root = self.space.observations.counts, float(np.sqrt(self.space.beta))
        counted = float(counts.sum() / counts.max())
        excess = max(0.0, bound - self.gamma * total) * (1 + 1e-9)
        share = excess / (excess + (self.gamma - root) * counted)
        if (1 - share) * total + share * counted < counted:
            share = 1.0
        coverage = (1 - share) * total + share * counted
        return replace(confidence, share=share), coverage, (1 - share) * bound + share * root * counted
