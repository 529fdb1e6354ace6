"""The largest sum_x C_x M_x^2 over the version space of a tiny matrix, by branch and bound."""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.csgraph import minimum_spanning_tree

from surefill.arrays import Array
from surefill.coverage.quadratic.relaxation import scaled_squares
from surefill.loop import Status, run
from surefill.spaces.conic_model import INTERIOR_POINT, ScaledMember, attempts, load_cvxpy
from surefill.spaces.version_space import VersionSpace

MOST_CELLS = 9
"""Cells up to which branching ends in seconds; the number of boxes doubles with every cell."""

MOST_BOXES = 600

PRICE = 100.0
"""What leaving the box costs per unit: boxes without members then have a bound too, and no solver's word is taken."""


@dataclass(frozen=True, eq=False)
class Box:
    """{M : low <= M <= high}, what no member in it exceeds, and where the relaxation's square is most too large."""

    low: Array
    high: Array
    bound: float
    cell: tuple[int, int]
    cut: float


class Relaxation:
    """max sum_x C_x Z_x over M in V, low <= M <= high, Z in R and Z <= (low + high) M - low high, entry by entry.

    The last is the secant of the square over [low, high], which no square exceeds there. Solved with the box as
    parameters; the bound is repaired from the dual variables.
    """

    def __init__(self, space: VersionSpace, C: Array) -> None:
        cp = load_cvxpy()
        self.C, shape = C, space.shape
        self.member, self.squares = ScaledMember(space, 1.0), scaled_squares(space, 1.0)
        self.low, self.high, self.slope, self.offset = (cp.Parameter(shape) for _ in range(4))
        M, Z = self.member.matrix, self.squares.matrix
        spare = cp.Variable(shape, nonneg=True)
        self._secant = cp.multiply(self.slope, M) + self.offset + spare >= Z
        self._below, self._above = self.high + spare >= M, self.low - spare <= M
        limits = [self._secant, self._below, self._above, *self.member.constraints, *self.squares.constraints]
        gain = cp.sum(cp.multiply(C, Z)) - PRICE * cp.sum(spare)
        self.problem = cp.Problem(cp.Minimize(-gain), limits)

    def box(self, low: Array, high: Array) -> Box:
        """The box with its bound, which is negative, or nearly, where it holds no member."""
        self.low.value, self.high.value, self.slope.value, self.offset.value = low, high, low + high, -low * high
        next(attempts(self.problem, INTERIOR_POINT))
        M, Z = np.clip(self.member.matrix.value, low, high), self.squares.matrix.value
        i, j = np.unravel_index(int(np.argmax(self.C * (Z - M**2))), M.shape)
        crosses = low[i, j] < 0 < high[i, j]
        cut = 0.0 if crosses else (M[i, j] + (low[i, j] + high[i, j]) / 2) / 2
        return Box(low, high, self._bound(low, high), (int(i), int(j)), float(cut))

    def _bound(self, low: Array, high: Array) -> float:
        """sup over R of <C - p, Z> + sup over V of <p (low + high) - a + b, M> + sum(a high - b low - p low high).

        p, a, b >= 0 are the multipliers of secant, upper and lower limit; each sup by its own repaired bound.
        """
        p, a, b = (np.maximum(limit.dual_value, 0.0) for limit in (self._secant, self._below, self._above))
        linear = p * (low + high) - a + b
        constant = float(np.sum(a * high - b * low - p * low * high))
        return self.squares.bound(self.C - p) + self.member.bound(linear) + constant


@dataclass(frozen=True, eq=False)
class Frontier:
    """Boxes that together hold the version space up to signs, the largest bound first, and how many were made."""

    heap: list[tuple[float, int, Box]]
    made: int


class Branching:
    """Halve the box with the largest bound until no bound exceeds ``target``; a solver for ``loop.run``.

    Rows and columns may change sign without leaving V or changing the squares, so the entries of a spanning tree
    of rows and columns, the heaviest under C, are taken as non-negative.
    """

    task = "branching on the entries of the strongest adversary"

    def __init__(self, space: VersionSpace, C: Array, target: float) -> None:
        self.space, self.target, self.relaxation = space, target, Relaxation(space, C)
        self.reach = min(space.matrix_class.radius, 1.0)
        self.tree = _heaviest_tree(C)

    def init(self) -> Frontier:
        """The box of the whole version space, up to signs."""
        low = np.where(self.tree, 0.0, -self.reach)
        whole = self.relaxation.box(low, np.full(self.space.shape, self.reach))
        return self._with(Frontier([], 0), [whole])

    def step(self, state: Frontier) -> Frontier:
        """Split the box with the largest bound."""
        worst = heapq.heappop(state.heap)[2]
        low, high = worst.low.copy(), worst.high.copy()
        low[worst.cell] = high[worst.cell] = worst.cut
        halves = [self.relaxation.box(worst.low, high), self.relaxation.box(low, worst.high)]
        return self._with(state, halves)

    def _with(self, state: Frontier, boxes: list[Box]) -> Frontier:
        for number, box in enumerate(boxes, start=state.made):
            heapq.heappush(state.heap, (-box.bound, number, box))
        return Frontier(state.heap, state.made + len(boxes))

    def measure(self, state: Frontier) -> float:
        """The largest bound."""
        return -state.heap[0][0]

    def terminate(self, state: Frontier) -> Status | None:
        """Converged when no member can exceed the target."""
        return Status.CONVERGED if self.measure(state) <= self.target else None


def branches_reach(shape: tuple[int, int]) -> bool:
    """Whether a matrix is small enough to branch on."""
    return shape[0] * shape[1] <= MOST_CELLS


def certify_by_branching(
    space: VersionSpace, C: Array, gamma: float, slack: float, time_limit: float | None = None
) -> float:
    """At least sup over V of sum_x C_x M_x^2; at most (1 + slack) gamma |C| if that is true and boxes suffice."""
    search = Branching(space, C, (1 + slack) * gamma * float(C.sum()))
    return search.measure(run(search, max_steps=MOST_BOXES, time_limit=time_limit).state)


def _heaviest_tree(C: Array) -> NDArray[np.bool_]:
    """Cells of the spanning tree of rows and columns with the largest sum of C."""
    m, n = C.shape
    graph: Any = np.zeros((m + n, m + n))
    graph[:m, m:] = -(1.0 + C)
    return np.asarray(minimum_spanning_tree(graph).toarray()[:m, m:] != 0)
