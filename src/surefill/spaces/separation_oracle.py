"""The separation oracle in factored form: best responses U V' to a confidence of any size."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surefill.arrays import Floats
from surefill.loop import Status, run
from surefill.registry import storable
from surefill.spaces.adversary import FactoredAdversary
from surefill.spaces.alternating_oracle import AlternatingOracle
from surefill.spaces.augmented_lagrangian import AugmentedLagrangian, Multipliers
from surefill.spaces.certificates import bound_from_response
from surefill.spaces.classes import MaxNorm
from surefill.spaces.requirements import Requirement, SolverRequirements
from surefill.spaces.spheres import Point, Spheres
from surefill.spaces.stage import SERIAL_WORK, LinearObjective, Stage, as_array_if_small, one_core_if
from surefill.spaces.version_space import VersionSpace

STAGE_ITERATIONS = 50
"""Iterations of L-BFGS between updates of the multipliers."""

MAX_STAGES = 100
"""Stages after which a search ends; a certificate to 1e-3 took 15 to 32 at 170 x 12, and 37 to 52 at 160 x 3."""

DOUBLE_CELLS = 1_000_000
"""Cells up to which a full-width response is computed in double precision, for a tight certificate."""

FACTORED_SOLVER = SolverRequirements(
    "the factored solver",
    (
        Requirement(
            "a max-norm class",
            lambda space: isinstance(space.matrix_class, MaxNorm),
            lambda space: space.matrix_class.description,
            "give MaxNorm(K)",
        ),
        Requirement(
            "beta > 0, since it scales its adversaries into the ball",
            lambda space: space.beta > 0,
            lambda space: f"beta = {space.beta:g}",
            "give a small beta, or method='conic' for a small matrix",
        ),
    ),
)
"""What best responses, and all solvers built on them, can be found for."""


def factored_space(space: VersionSpace) -> tuple[VersionSpace, MaxNorm]:
    """The same version space by its smallest K and rank, and its class; an error where it cannot be factored."""
    FACTORED_SOLVER.check(space)
    assert isinstance(space.matrix_class, MaxNorm)  # required above
    tight = space.matrix_class.within_box(space.shape)
    return replace(space, matrix_class=tight), tight


@storable
@dataclass(frozen=True, eq=False)
class ResponseState:
    """The state of a :class:`ResponseSolver`: where it goes on from, and the last members, the best first.

    ``gained`` is the share by which the last stage raised the best value, ``excess`` what the best had to be divided
    by to be a member; it is large while the multipliers still move.
    """

    variables: Floats
    multipliers: Multipliers
    responses: tuple[FactoredAdversary, ...] = ()
    gained: float = math.inf
    excess: float = 1.0


class ResponseSolver:
    """max <C, U V'> from ``starts`` random starts at once, by the method of multipliers; a solver for ``loop.run``.

    It ends when a stage gains less than ``tol``, and, for the convex class, the certified bound is as near.
    """

    task = "looking for the strongest adversary"

    def __init__(
        self,
        space: VersionSpace,
        C: Any,
        starts: int,
        rng: np.random.Generator,
        tol: float,
        deadline: float = math.inf,
    ) -> None:
        space, matrix_class = factored_space(space)
        (m, n), self.rank = space.shape, matrix_class.rank
        double = self.rank is None and m * n <= DOUBLE_CELLS
        dtype: type = np.float64 if double else np.float32
        self.space, self.starts, self.rng, self.tol = space, starts, rng, tol
        self.C = as_array_if_small(C, space.shape, dtype)
        self.total = sum_of(self.C)
        spheres = Spheres(space.shape, matrix_class.K, starts, self.rank or full_width(space.shape), dtype)
        self.stage = Stage(spheres, AugmentedLagrangian(space), deadline)
        self.objective = LinearObjective(self.C, space.shape, m * n / max(self.total, 1e-300), starts, dtype)

    def init(self) -> ResponseState:
        """Random directions; the zero matrix, already converged, where C is zero everywhere."""
        if self.total == 0:
            m, n = self.space.shape
            zero = FactoredAdversary(np.zeros((m, 1)), np.zeros((n, 1)), 0.0, math.nan, 0.0)
            return ResponseState(np.zeros(0), Multipliers.zeros(0), (zero,) * self.starts, 0.0)
        return ResponseState(self.stage.spheres.random(self.rng), Multipliers.zeros(self.starts))

    def step(self, state: ResponseState) -> ResponseState:
        """One stage of L-BFGS, and the members it leads to."""
        variables, multipliers, point = self.stage.run(
            state.variables, state.multipliers, self.objective, STAGE_ITERATIONS
        )
        responses, order = self._members(point)
        if self.rank is None and isinstance(self.C, np.ndarray):
            known = state.responses[0].bound if state.responses else math.inf
            bound = min(known, self._bound(multipliers, point, int(order[0])))
            responses[0] = replace(responses[0], bound=max(bound, responses[0].value))
        before = state.responses[0].value if state.responses else 0.0
        gained = (responses[0].value - before) / max(responses[0].value, 1e-300)
        excess = float(self.stage.lagrangian.excess(point)[order[0]])
        return ResponseState(variables, multipliers, tuple(responses), gained, excess)

    def measure(self, state: ResponseState) -> float:
        """The largest mean found."""
        return state.responses[0].mean

    def terminate(self, state: ResponseState) -> Status | None:
        """Converged when neither the value nor its certificate has far to go."""
        if state.gained > self.tol or state.excess > 1 + 10 * self.tol:
            return None
        best = state.responses[0]
        has_no_bound = self.rank is not None or math.isinf(best.bound)
        return Status.CONVERGED if has_no_bound or best.bound <= best.value * (1 + self.tol) else None

    def _members(self, point: Point) -> tuple[list[FactoredAdversary], NDArray[np.int64]]:
        """The matrices at ``point`` scaled into the version space, the strongest first, and that order."""
        left, right = self.stage.lagrangian.members(point)
        parts = [self.stage.spheres.columns(t) for t in range(self.starts)]
        values = [-self.objective(left[:, part], right[:, part])[0] / self.objective.factor for part in parts]
        order = np.argsort(-np.array(values), kind="stable")
        ordered = ((parts[t], values[t]) for t in order)
        return [FactoredAdversary(left[:, p], right[:, p], value, value / self.total) for p, value in ordered], order

    def _bound(self, multipliers: Multipliers, point: Point, t: int) -> float:
        """The certificate that the multipliers at ``point`` give, in units of <C, M>."""
        unit = self.starts / self.objective.weight
        U, V = point.factors(t)
        box = None if multipliers.box is None else unit * np.sign(U @ V.T) * multipliers.box[t]
        with one_core_if(self.C.size * U.shape[1] < SERIAL_WORK):
            # The derivative of sigma (q - beta) in M_x is 2 sigma w_x M_x.
            return bound_from_response(self.space, self.C, U, V, 2 * unit * multipliers.ball[t], box).value


def best_responses(
    space: VersionSpace,
    C: Any,
    *,
    starts: int = 1,
    rng: np.random.Generator,
    tol: float = 1e-3,
    time_limit: float | None = None,
) -> tuple[FactoredAdversary, ...]:
    """max <C, U V'> over |u_i|, |v_j| <= sqrt(K), |M_x| <= 1, sum_S w_x M_x^2 <= beta, from fresh random starts.

    ``C`` is a non-negative matrix or anything with ``block(rows, cols)``. The factors have the class's rank as
    their width, or else min(m, n), enough for the convex class; there the first answer's ``bound`` is certified. Every
    answer is exactly a member. The best comes first.
    """
    tight, deadline = factored_space(space)[0], deadline_after(time_limit)
    if alternates(tight):
        return run(AlternatingOracle(tight, C, starts, rng, tol, deadline), max_steps=MAX_STAGES).state.responses
    solver = ResponseSolver(space, C, starts, rng, tol, deadline)
    return run(solver, max_steps=MAX_STAGES, time_limit=time_limit).state.responses


def alternates(space: VersionSpace) -> bool:
    """Whether rows can answer columns exactly: a small rank, and K <= 1, which implies the box |M_x| <= 1."""
    return space.matrix_class.rank is not None and space.matrix_class.radius <= 1


def full_width(shape: tuple[int, int]) -> int:
    """Columns enough for every matrix of the class, and at least 8 or m + n, so that a search has room to turn in."""
    return max(min(shape), min(sum(shape), 8))


def sum_of(C: Any) -> float:
    """|C| of a matrix or of a confidence."""
    return float(C.sum(dtype=np.float64)) if isinstance(C, np.ndarray) else float(C.coverage)


def deadline_after(seconds: float | None) -> float:
    """The reading of ``time.perf_counter`` in ``seconds``, infinite where there is no limit."""
    return math.inf if seconds is None else time.perf_counter() + seconds
