"""A stage of the factored dual by stochastic gradients from blocks of rows and columns, instead of whole sweeps.

    min over lambda >= 0, M^t in V of  sum_x phi_mu(1 + lambda (gamma - M_x)),   M = (1/T) sum_t M^t

An epoch splits the rows and the columns into random groups; every pair of groups is a block of cells, visited once, so
that the blocks' gradients add up to the whole one. A step moves the factors of the block's rows and columns by Adam on
their spheres, the multipliers of the balls by the mean squares seen lately, and lambda by Newton's method on averages.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from surefill.arrays import Array, Floats, Indices
from surefill.kernels.factored_sums import smooth_hinge
from surefill.kernels.sampled_steps import add_ball, normalized_steps
from surefill.spaces.augmented_lagrangian import AugmentedLagrangian
from surefill.spaces.stage import one_core_if

BLOCK_SIDE = 128
"""Rows and columns of a block. After 40 epochs on MovieLens 100K at one step, 256 left an excess of 11% and 128 of
3.5%; 64 costs 1.5 times as much per epoch."""

DECAY, SQUARE_DECAY = 0.8, 0.9
"""Decay of Adam's first and second moment per visit of a line: the groups change, so averages must be short."""

LAST_STEP = 0.003
"""Step, an angle, at the end of an annealed stage."""

HELD_SHARE = 0.6
"""Share of an annealed stage before its step begins to fall."""

BALL_GAIN, BALL_RATE, LARGEST_FACTOR = 4.0, 0.1, 10.0
"""A ball exceeded by a share e acts with sigma (1 + 4 e), at most 10 sigma, and sigma grows by exp(0.1 e) per visit of
all lines. The first term damps the second, as in an augmented Lagrangian; without it sigma oscillates."""

MEMORY_RATE = 0.4
"""Share of the running averages of mean squares and slopes replaced per visit of all lines."""

SCALE_RATE, SCALE_CHANGE = 0.5, 0.05
"""Share of Newton's step in log lambda taken per visit of all lines, and the largest."""

SMALLEST_SCALE = 1.0
"""Least lambda within a stage: at lambda near 0 C is 1 everywhere and adversaries feel no pull."""


@dataclass(eq=False)
class SampledStage:
    """T adversaries on spheres, moved in place: ``X`` (m x T x (r + 1)) and ``Y`` (n x T x (r + 1)) of unit rows.

    ``ball`` are the multipliers sigma_t of sum_S w (M^t)^2 <= beta, ``scale`` is lambda, ``mu`` the smoothing.
    """

    lagrangian: AugmentedLagrangian
    X: Floats
    Y: Floats
    ball: Array
    scale: float
    mu: float
    gamma: float

    def __post_init__(self) -> None:
        self.momenta = np.zeros_like(self.X), np.zeros_like(self.Y)
        self.squares = np.zeros(self.X.shape[:2], np.float32), np.zeros(self.Y.shape[:2], np.float32)
        self.mean_squares = np.full(len(self.ball), self.lagrangian.space.beta)
        self.slopes = np.zeros(2)

    def run(self, visits: int, step: float, annealed: bool, rng: np.random.Generator, deadline: float) -> None:
        """About ``visits`` steps of every line; past ``deadline`` the epoch begun is the last."""
        (m, n), total = self.lagrangian.space.shape, 0.0
        share = 1 / np.sqrt(_groups(m) * _groups(n))  # of a visit of all lines that one block is
        with one_core_if(True):  # a block's products are far too small for two
            while total < visits and time.perf_counter() < deadline:
                for block in epoch_blocks(self.lagrangian, rng):
                    total += share
                    left = max(0.0, 1 - total / visits) / (1 - HELD_SHARE) if annealed else 1.0
                    self._visit(block, LAST_STEP + (step - LAST_STEP) * min(1.0, left), share)

    def _visit(self, block: Block, step: float, share: float) -> None:
        """One stochastic step on a block."""
        (m, n), count = self.lagrangian.space.shape, len(self.ball)
        A, B = _factors(self.X, block.rows), _factors(self.Y, block.cols)
        M = (A / np.float32(count)) @ B.T
        C = np.empty_like(M)
        _, slope, curvature = smooth_hinge(M, self.scale, self.gamma, self.mu, C)
        weight = np.float32(-self.scale / count)
        dA, dB = weight * (C @ B), weight * (C.T @ A)
        squares = np.zeros(count)
        excess = self.mean_squares / self.lagrangian.space.beta - 1
        acting = self.ball * np.clip(1 + BALL_GAIN * excess, 0.0, LARGEST_FACTOR)
        add_ball(A, B, block.seen_rows, block.seen_cols, block.weights, acting, dA, dB, squares)
        for side, (variables, lines, gradient) in enumerate(((self.X, block.rows, dA), (self.Y, block.cols, dB))):
            moments = self.momenta[side], self.squares[side]
            rates = np.float32(step), np.float32(DECAY), np.float32(SQUARE_DECAY)
            normalized_steps(variables, lines, gradient, *moments, *rates)
        blocks = _groups(m) * _groups(n)
        self._move_ball(squares, float(block.weights.sum()), blocks, share)
        self._move_scale(np.array([slope, curvature]) / M.size, share)

    def _move_ball(self, squares: Array, mass: float, blocks: int, share: float) -> None:
        """The running mean squares, weighed by how much of the sample the block holds, and sigma after them."""
        if mass > 0:
            replaced = min(0.5, MEMORY_RATE * share * mass * blocks)
            self.mean_squares += replaced * (squares / mass - self.mean_squares)
        excess = np.clip(self.mean_squares / self.lagrangian.space.beta - 1, -1.0, 1.0)
        self.ball = self.ball * np.exp(BALL_RATE * share * excess)

    def _move_scale(self, slopes: Array, share: float) -> None:
        """Newton's step for log lambda on the running slope and curvature."""
        self.slopes += MEMORY_RATE * share * (slopes - self.slopes)
        slope, curvature = self.slopes
        change = -SCALE_RATE * slope / max(curvature * self.scale, 1e-9)
        self.scale *= float(np.exp(share * np.clip(change, -2 * SCALE_CHANGE, 2 * SCALE_CHANGE)))
        self.scale = max(self.scale, SMALLEST_SCALE)


@dataclass(frozen=True, eq=False)
class Block:
    """Rows and columns drawn together, and the observed cells among them by their places in these."""

    rows: Indices
    cols: Indices
    seen_rows: Indices
    seen_cols: Indices
    weights: Array


def epoch_blocks(lagrangian: AugmentedLagrangian, rng: np.random.Generator) -> Iterator[Block]:
    """All pairs of random groups of rows and of columns, along diagonals: neighbours share neither."""
    m, n = lagrangian.space.shape
    row_groups, row_group, row_place = _split(m, rng)
    col_groups, col_group, col_place = _split(n, rng)
    across = len(col_groups)
    key = row_group[lagrangian.rows] * across + col_group[lagrangian.cols]
    order = np.argsort(key, kind="stable")
    starts = np.concatenate([[0], np.cumsum(np.bincount(key, minlength=len(row_groups) * across))])
    rows, cols = row_place[lagrangian.rows[order]], col_place[lagrangian.cols[order]]
    weights = lagrangian.weights[order]
    for shift in range(across):
        for a, group in enumerate(row_groups):
            b = (a + shift) % across
            here = slice(starts[a * across + b], starts[a * across + b + 1])
            yield Block(group, col_groups[b], rows[here], cols[here], weights[here])


def _groups(size: int) -> int:
    """How many groups of about ``BLOCK_SIDE`` lines there are."""
    return max(1, round(size / BLOCK_SIDE))


def _split(size: int, rng: np.random.Generator) -> tuple[list[Indices], Indices, Indices]:
    """Random groups of lines, and for every line its group and its place in it."""
    groups = np.array_split(rng.permutation(size), _groups(size))
    group, place = np.empty(size, np.int64), np.empty(size, np.int64)
    for number, lines in enumerate(groups):
        group[lines], place[lines] = number, np.arange(len(lines))
    return groups, group, place


def _factors(X: Floats, lines: Indices) -> Floats:
    """The factors of some lines, T matrices side by side."""
    return np.ascontiguousarray(X[lines, :, :-1]).reshape(len(lines), -1)
