"""The separation oracle for a class with a rank: rows and columns of U V' answer each other exactly, in turns.

    max <C, U V'>  over  |u_i|, |v_j| <= sqrt(K),  sum_S w_x M_x^2 <= beta

For a fixed multiplier sigma of the ball, the best rows given the columns are independent small concave problems, and so
are the best columns given the rows; each half-sweep also moves sigma towards a ball that is met exactly.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from surefill.arrays import Array, Floats, Indices, IntArray, row_blocks
from surefill.kernels.alternating_response import respond_rows
from surefill.loop import Status
from surefill.parallel import over_ranges
from surefill.registry import storable
from surefill.spaces.adversary import FactoredAdversary
from surefill.spaces.augmented_lagrangian import AugmentedLagrangian
from surefill.spaces.spheres import Spheres
from surefill.spaces.stage import SERIAL_WORK, as_array_if_small, one_core_if, rows_of
from surefill.spaces.version_space import VersionSpace

SWEEPS = 5
"""Sweeps between two looks at the values."""

SIGMA_POWER, LARGEST_RATIO = 0.5, 10.0
"""sigma is multiplied by (q / beta)^0.5 after each half-sweep, the ratio at most 10 or 1/10: powers from 0.25 to 1 do
equally well after ten sweeps on MovieLens 100K, and 1 oscillates before."""


@storable
@dataclass(frozen=True, eq=False)
class AlternatingState:
    """The state of an :class:`AlternatingOracle`: factors side by side, multipliers, and the last members, best first.

    ``gained`` is the share by which the last sweeps raised the best value.
    """

    left: Floats
    right: Floats
    sigma: Array
    responses: tuple[FactoredAdversary, ...] = ()
    gained: float = math.inf


class AlternatingOracle:
    """max <C, U V'> from ``starts`` random starts at once by exact alternating responses; a solver for ``loop.run``.

    For classes with a rank and K <= 1, where no entry can leave the box. It ends when a step gains less than ``tol``.
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
        assert space.matrix_class.rank is not None
        self.space, self.starts, self.rank, self.rng, self.tol = space, starts, space.matrix_class.rank, rng, tol
        self.K, self.deadline = space.matrix_class.radius, deadline
        self.C = as_array_if_small(C, space.shape, np.float32)
        self.total = float(C.sum(dtype=np.float64)) if isinstance(C, np.ndarray) else float(C.coverage)
        self.lagrangian = AugmentedLagrangian(space)
        seen = self.lagrangian
        self.by_row = _grouped(seen.rows, seen.cols, seen.weights, space.shape[0])
        self.by_col = _grouped(seen.cols, seen.rows, seen.weights, space.shape[1])
        self.spheres = Spheres(space.shape, self.K, starts, self.rank, np.float32)

    def init(self) -> AlternatingState:
        """Random directions; the zero matrix, already converged, where C is zero everywhere."""
        m, n = self.space.shape
        if self.total == 0:
            zero = FactoredAdversary(np.zeros((m, 1)), np.zeros((n, 1)), 0.0, math.nan, 0.0)
            return AlternatingState(np.zeros((m, 1)), np.zeros((n, 1)), np.zeros(0), (zero,) * self.starts, 0.0)
        point = self.spheres.point(self.spheres.random(self.rng))
        # At a member that only the ball holds, sigma = <C, M> / (2 beta); the spheres hold it too, so a part of that.
        sigma = np.full(self.starts, self.K * self.total / (8 * self.space.beta))
        return AlternatingState(point.left, point.right, sigma)

    def step(self, state: AlternatingState) -> AlternatingState:
        """Some sweeps, and the members they lead to."""
        left, right, sigma = self.sweep(state.left, state.right, state.sigma, SWEEPS)
        responses = self._members(left, right)
        before = state.responses[0].value if state.responses else 0.0
        gained = (responses[0].value - before) / max(responses[0].value, 1e-300)
        return AlternatingState(left, right, sigma, responses, gained)

    def measure(self, state: AlternatingState) -> float:
        """The largest mean found."""
        return state.responses[0].mean

    def terminate(self, state: AlternatingState) -> Status | None:
        """Converged when the best value has not far to go."""
        return Status.CONVERGED if state.responses and state.gained <= self.tol else None

    def sweep(self, left: Floats, right: Floats, sigma: Array, sweeps: int) -> tuple[Floats, Floats, Array]:
        """All rows given the columns, then all columns given the rows, ``sweeps`` times unless time is over."""
        m, n = self.space.shape
        with one_core_if(float(m) * n * left.shape[1] < SERIAL_WORK):
            for _ in range(sweeps):
                left, sigma = self._respond(self.times(right), right, self.by_row, sigma)
                right, sigma = self._respond(self.transposed_times(left), left, self.by_col, sigma)
                if time.perf_counter() > self.deadline:
                    break
        return left, right, sigma

    def times(self, right: Floats) -> Floats:
        """C V."""
        m, n = self.space.shape
        return np.concatenate([rows_of(self.C, rows, n, np.float32) @ right for rows in row_blocks(m, n)])

    def transposed_times(self, left: Floats) -> Floats:
        """C' U."""
        m, n = self.space.shape
        total = np.zeros((n, left.shape[1]), left.dtype)
        for rows in row_blocks(m, n):
            total += rows_of(self.C, rows, n, np.float32).T @ left[rows]
        return total

    def _respond(self, G: Floats, across: Floats, seen: Grouped, sigma: Array) -> tuple[Floats, Array]:
        """The responses of all lines of a side, and sigma after them."""
        new, squares = np.empty_like(G), np.empty((len(G), self.starts))
        # each line costs its observations and one small solve
        work = seen.starts + self.rank * np.arange(len(seen.starts))
        over_ranges(
            lambda first, last: respond_rows(
                first, last, G, across, seen.starts, seen.others, seen.weights, sigma, self.K, new, squares
            ),
            work * self.starts,
        )
        ratio = np.clip(squares.sum(axis=0) / self.space.beta, 1 / LARGEST_RATIO, LARGEST_RATIO)
        return new, sigma * ratio**SIGMA_POWER

    def _members(self, left: Floats, right: Floats) -> tuple[FactoredAdversary, ...]:
        """The matrices scaled exactly into the version space, the strongest first."""
        point = self.spheres.point(self.spheres.variables(left, right))
        left, right = self.lagrangian.members(point)
        parts = [self.spheres.columns(t) for t in range(self.starts)]
        products = self.times(right)
        values = [float(np.einsum("ik,ik->", products[:, p], left[:, p], dtype=np.float64)) for p in parts]
        order = np.argsort(-np.array(values), kind="stable")
        ordered = [(left[:, parts[t]], right[:, parts[t]], values[t]) for t in order]
        return tuple(FactoredAdversary(U, V, value, value / self.total) for U, V, value in ordered)


@dataclass(frozen=True, eq=False)
class Grouped:
    """Observed cells by line: line i was seen at others[starts[i]:starts[i + 1]], with these weights."""

    starts: Indices
    others: Indices
    weights: Array


def _grouped(lines: IntArray, others: IntArray, weights: Array, size: int) -> Grouped:
    order = np.lexsort((others, lines))
    starts = np.concatenate([[0], np.cumsum(np.bincount(lines, minlength=size))])
    return Grouped(starts, np.ascontiguousarray(others[order], np.int64), weights[order])
