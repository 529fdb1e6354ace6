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
from surefill.registry import storable
from surefill.spaces.conic_model import INTERIOR_POINT, ScaledMember, attempts, load_cvxpy
from surefill.spaces.version_space import VersionSpace

MAX_CELLS = 9
"""Cells up to which branching ends in seconds; the number of boxes doubles with every cell."""

MAX_SPLITS = 600
"""Boxes split at most: seconds, at two small semidefinite programs a split."""

EXIT_PENALTY = 100.0
"""Penalty per unit of leaving the box: so boxes without members are feasible too, and get a bound like all others."""


@storable
@dataclass(frozen=True, eq=False)
class BranchNode:
    """A box {M : low <= M <= high}, what no member in it exceeds, and the cell and value at which to split it.

    That cell is the one where the relaxation's square is most too large.
    """

    low: Array
    high: Array
    bound: float
    cell: tuple[int, int]
    split: float


class BoxRelaxation:
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
        gain = cp.sum(cp.multiply(C, Z)) - EXIT_PENALTY * cp.sum(spare)
        self.problem = cp.Problem(cp.Minimize(-gain), limits)

    def node(self, low: Array, high: Array) -> BranchNode:
        """The box with its bound, which is negative, or nearly, where it holds no member."""
        self.low.value, self.high.value, self.slope.value, self.offset.value = low, high, low + high, -low * high
        next(attempts(self.problem, INTERIOR_POINT))
        M, Z = np.clip(self.member.matrix.value, low, high), self.squares.matrix.value
        i, j = np.unravel_index(int(np.argmax(self.C * (Z - M**2))), M.shape)
        crosses = low[i, j] < 0 < high[i, j]
        split = 0.0 if crosses else (M[i, j] + (low[i, j] + high[i, j]) / 2) / 2
        return BranchNode(low, high, self._bound(low, high), (int(i), int(j)), float(split))

    def _bound(self, low: Array, high: Array) -> float:
        """sup over R of <C - p, Z> + sup over V of <p (low + high) - a + b, M> + sum(a high - b low - p low high).

        p, a, b >= 0 are the multipliers of secant, upper and lower limit; each sup by its own repaired bound.
        """
        p, a, b = (np.maximum(limit.dual_value, 0.0) for limit in (self._secant, self._below, self._above))
        linear = p * (low + high) - a + b
        constant = float(np.sum(a * high - b * low - p * low * high))
        return self.squares.bound(self.C - p) + self.member.bound(linear) + constant


@storable
@dataclass(frozen=True, eq=False)
class BranchState:
    """The state of a :class:`BranchAndBoundSolver`: boxes that together hold V up to signs, and how many were made.

    ``heap`` is a binary heap of (-bound, number, node), the largest bound first.
    """

    heap: tuple[tuple[float, int, BranchNode], ...]
    made: int


class BranchAndBoundSolver:
    """Halve the box with the largest bound until no bound exceeds ``target``; a solver for ``loop.run``.

    Rows and columns may change sign without leaving V or changing the squares, so the entries of a spanning tree
    of rows and columns, the heaviest under C, are taken as non-negative.
    """

    task = "branching on the entries of the strongest adversary"

    def __init__(self, space: VersionSpace, C: Array, target: float) -> None:
        self.space, self.target, self.relaxation = space, target, BoxRelaxation(space, C)
        self.largest_entry = min(space.matrix_class.radius, 1.0)
        self.tree = _heaviest_tree(C)

    def init(self) -> BranchState:
        """The box of the whole version space, up to signs."""
        low = np.where(self.tree, 0.0, -self.largest_entry)
        whole = self.relaxation.node(low, np.full(self.space.shape, self.largest_entry))
        return _with_nodes(BranchState((), 0), [whole])

    def step(self, state: BranchState) -> BranchState:
        """Split the box with the largest bound."""
        heap = list(state.heap)
        worst = heapq.heappop(heap)[2]
        low, high = worst.low.copy(), worst.high.copy()
        low[worst.cell] = high[worst.cell] = worst.split
        halves = [self.relaxation.node(worst.low, high), self.relaxation.node(low, worst.high)]
        return _with_nodes(BranchState(tuple(heap), state.made), halves)

    def measure(self, state: BranchState) -> float:
        """The largest bound."""
        return -state.heap[0][0]

    def terminate(self, state: BranchState) -> Status | None:
        """Converged when no member can exceed the target."""
        return Status.CONVERGED if self.measure(state) <= self.target else None


def can_branch(shape: tuple[int, int]) -> bool:
    """Whether a matrix is small enough to branch on."""
    return shape[0] * shape[1] <= MAX_CELLS


def certify_by_branching(
    space: VersionSpace, C: Array, gamma: float, slack: float, time_limit: float | None = None
) -> float:
    """At least sup over V of sum_x C_x M_x^2; at most (1 + slack) gamma |C| if that is true and boxes suffice."""
    search = BranchAndBoundSolver(space, C, (1 + slack) * gamma * float(C.sum()))
    return search.measure(run(search, max_steps=MAX_SPLITS, time_limit=time_limit).state)


def _with_nodes(state: BranchState, nodes: list[BranchNode]) -> BranchState:
    """The state with more boxes; their numbers decide between equal bounds."""
    heap = list(state.heap)
    for number, node in enumerate(nodes, start=state.made):
        heapq.heappush(heap, (-node.bound, number, node))
    return BranchState(tuple(heap), state.made + len(nodes))


def _heaviest_tree(C: Array) -> NDArray[np.bool_]:
    """Cells of the spanning tree of rows and columns with the largest sum of C."""
    m, n = C.shape
    graph: Any = np.zeros((m + n, m + n))
    graph[:m, m:] = -(1.0 + C)
    return np.asarray(minimum_spanning_tree(graph).toarray()[:m, m:] != 0)
