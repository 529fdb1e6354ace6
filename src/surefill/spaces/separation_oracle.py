"""The separation oracle in factored form: best responses U V' to a confidence of any size."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surefill.arrays import Floats
from surefill.errors import InputError
from surefill.loop import Status, run
from surefill.spaces.augmented_lagrangian import Limits, split
from surefill.spaces.certificate import bound_from_response
from surefill.spaces.classes import MaxNorm
from surefill.spaces.spheres import Point, Spheres
from surefill.spaces.stage import SERIAL_WORK, LinearPayoff, Stage, hold, one_core_if
from surefill.spaces.version_space import VersionSpace

STAGE_ITERATIONS = 50
"""Iterations of L-BFGS between moves of the multipliers."""

MAX_STAGES = 30

DOUBLE_CELLS = 1_000_000
"""Cells up to which a full-width response is computed in double precision, for a tight certificate."""


@dataclass(frozen=True, eq=False)
class FactoredAdversary:
    """A member M = left right' of the version space played against a confidence C; memory per row and column.

    ``value`` = <C, M> and ``mean`` = <C, M> / |C|; no member exceeds ``bound``, which is infinite where none is known.
    """

    left: Floats
    right: Floats
    value: float
    mean: float
    bound: float = math.inf

    @property
    def matrix(self) -> NDArray[np.float64]:
        """All m x n of it; only for matrices small enough to hold."""
        return self.left.astype(np.float64) @ self.right.T.astype(np.float64)

    def __repr__(self) -> str:
        return f"FactoredAdversary(value {self.value:.6g}, bound {self.bound:.6g}, mean {self.mean:.6g})"


def factored_space(space: VersionSpace) -> tuple[VersionSpace, MaxNorm]:
    """The same space by its smallest K and rank, and its class, or a sentence on why it cannot be searched."""
    if not isinstance(space.matrix_class, MaxNorm):
        raise InputError(f"the factored solver knows max-norm classes; got {space.matrix_class.description}.")
    if space.beta == 0:
        raise InputError(
            "the factored solver needs beta > 0, since it scales its adversaries into the ball: give a small beta, "
            "or method='conic' for a small matrix."
        )
    tight = space.matrix_class.within_box(space.shape)
    return replace(space, matrix_class=tight), tight


@dataclass(frozen=True, eq=False)
class Search:
    """Where a search for best responses stands: its last members, best first, and what the best gained.

    ``shrunk`` is how far the best had to be scaled down to be a member; large while multipliers still move.
    """

    variables: NDArray[np.float64]
    responses: tuple[FactoredAdversary, ...] = ()
    gained: float = math.inf
    shrunk: float = 1.0


class ResponseSearch:
    """max <C, U V'> from ``starts`` random starts at once, by the method of multipliers; a solver for ``loop.run``.

    It ends when a stage gains less than ``tolerance``, and, for the convex class, the certified bound is as near.
    """

    task = "looking for the strongest adversary"

    def __init__(
        self, space: VersionSpace, C: Any, starts: int, width: int | None, rng: np.random.Generator, tolerance: float
    ) -> None:
        space, matrix_class = factored_space(space)
        (m, n), self.rank = space.shape, matrix_class.rank
        double = self.rank is None and m * n <= DOUBLE_CELLS
        dtype: type = np.float64 if double else np.float32
        self.space, self.starts, self.rng, self.tolerance = space, starts, rng, tolerance
        self.C = hold(C, space.shape, dtype)
        self.total = sum_of(self.C)
        spheres = Spheres(space.shape, matrix_class.K, starts, self.rank or width or full_width(space.shape), dtype)
        self.stage = Stage(spheres, Limits(space, starts))
        self.payoff = LinearPayoff(self.C, space.shape, m * n / max(self.total, 1e-300), starts, dtype)

    def init(self) -> Search:
        """Random directions; nothing to look for where C is zero everywhere."""
        if self.total == 0:
            m, n = self.space.shape
            nothing = FactoredAdversary(np.zeros((m, 1)), np.zeros((n, 1)), 0.0, math.nan, 0.0)
            return Search(np.zeros(0), (nothing,) * self.starts, 0.0)
        return Search(self.stage.spheres.random(self.rng))

    def step(self, state: Search) -> Search:
        """One stage of L-BFGS, and the members it leads to."""
        variables, point = self.stage.run(state.variables, self.payoff, STAGE_ITERATIONS)
        left, right = self.stage.limits.members(point)
        values = np.array([self._value(left[:, part], right[:, part]) for part in map(self._part, range(self.starts))])
        order = np.argsort(-values, kind="stable")
        best = [
            FactoredAdversary(left[:, p], right[:, p], values[t], values[t] / self.total)
            for t, p in ((t, self._part(t)) for t in order)
        ]
        if self.rank is None and isinstance(self.C, np.ndarray):
            best[0] = replace(best[0], bound=max(self._bound(point, int(order[0])), best[0].value))
        before = state.responses[0].value if state.responses else 0.0
        gained = (best[0].value - before) / max(best[0].value, 1e-300)
        shrunk = float(self.stage.limits.excess(point)[order[0]])
        return Search(variables, tuple(best), gained, shrunk)

    def measure(self, state: Search) -> float:
        """The largest mean found."""
        return state.responses[0].mean

    def terminate(self, state: Search) -> Status | None:
        """Converged when neither the value nor its certificate has far to go."""
        if state.gained > self.tolerance or state.shrunk > 1 + 10 * self.tolerance:
            return None
        best = state.responses[0]
        certified = self.rank is not None or math.isinf(best.bound)
        return Status.CONVERGED if certified or best.bound <= best.value * (1 + self.tolerance) else None

    def _part(self, t: int) -> slice:
        width = self.stage.spheres.width
        return slice(t * width, (t + 1) * width)

    def _value(self, left: Floats, right: Floats) -> float:
        return -self.payoff(left, right)[0] / self.payoff.factor

    def _bound(self, point: Point, t: int) -> float:
        """The certificate that the multipliers at ``point`` give."""
        limits, unit = self.stage.limits, self.starts / self.payoff.pull
        U, V, _ = split(point, t)
        box = None if limits.box is None else unit * np.sign(U @ V.T) * limits.box[t]
        with one_core_if(self.C.size * U.shape[1] < SERIAL_WORK):
            return bound_from_response(self.space, self.C, U, V, 2 * unit * limits.ball[t], box).value


def best_responses(
    space: VersionSpace,
    C: Any,
    *,
    starts: int = 1,
    width: int | None = None,
    rng: np.random.Generator,
    tolerance: float = 1e-3,
    time_limit: float | None = None,
) -> tuple[FactoredAdversary, ...]:
    """max <C, U V'> over |u_i|, |v_j| <= sqrt(K), |M_x| <= 1, sum_S w_x M_x^2 <= beta, from fresh random starts.

    ``C`` is a non-negative matrix or anything with ``block(rows, cols)``. The factors have the class's rank as
    their width, or ``width``, or else min(m, n), enough for the convex class; there the first answer's ``bound``
    is certified. Every answer is exactly a member. The best comes first.
    """
    search = ResponseSearch(space, C, starts, width, rng, tolerance)
    if time_limit is not None:
        search.stage.deadline = time.perf_counter() + time_limit
    return run(search, max_steps=MAX_STAGES, time_limit=time_limit).state.responses


def full_width(shape: tuple[int, int]) -> int:
    """Columns enough for every matrix of the class, and a few to turn in where the matrix is a vector or nearly."""
    return max(min(shape), min(sum(shape), 8))


def sum_of(C: Any) -> float:
    """|C| of a matrix or of a confidence."""
    return float(C.sum(dtype=np.float64)) if isinstance(C, np.ndarray) else float(C.coverage)
