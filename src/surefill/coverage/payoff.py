"""The smoothed dual of MP 2 as a function of T factored adversaries, swept in blocks of rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from surefill.kernels.mixtures import smooth_hinge
from surefill.spaces.ascent import HELD_CELLS
from surefill.spaces.limits import row_blocks
from surefill.spaces.sphere import Floats

MAX_SWEEPS = 60


class CoveragePayoff:
    """min over lambda >= 0 of sum_x phi_mu(1 + lambda (gamma - M_x)), M = (1/T) sum_t M^t, and its gradient -lambda C.

    Up to 5 10^7 cells M and C are held; beyond, each sweep makes them again. ``scale`` is the last lambda, where
    the next search for it starts.
    """

    def __init__(self, shape: tuple[int, int], gamma: float, count: int, dtype: type) -> None:
        self.shape, self.gamma, self.count = shape, gamma, count
        self.mu, self.scale = 1.0, 1.0
        self.blocks = row_blocks(*shape)
        self.held = shape[0] * shape[1] <= HELD_CELLS
        rows = shape[0] if self.held else self.blocks[0].stop
        self.M, self.C = np.empty((rows, shape[1]), dtype), np.empty((rows, shape[1]), dtype)
        self.accuracy = 1e-9 if dtype is np.float64 else 1e-7

    def __call__(self, left: Floats, right: Floats) -> tuple[float, Floats, Floats]:
        """The value at the best lambda, and its gradient."""
        value = self.solve_scale(left, right)
        pull = self.scale / self.count
        d_left, d_right = np.empty_like(left), np.zeros_like(right)
        for rows in self.blocks:
            C = self.C[rows] if self.held else self._sweep_block(left, right, rows)[1]
            d_left[rows] = C @ right
            d_right += C.T @ left[rows]
        d_left *= -pull
        d_right *= -pull
        return value, d_left, d_right

    def of_matrix(self, M: Floats) -> tuple[float, Floats]:
        """The value at the best lambda for one matrix held whole, and its gradient -lambda C."""
        self.M = M
        value = self._newton(lambda fresh: smooth_hinge(M, self.scale, self.gamma, self.mu, self.C))
        return value, self.C * self.C.dtype.type(-self.scale)

    def solve_scale(self, left: Floats, right: Floats) -> float:
        """The best lambda, kept in ``scale``; the value there."""
        return self._newton(lambda fresh: self._sweep(left, right, fresh))

    def _newton(self, sweep: Callable[[bool], Any]) -> float:
        """A safeguarded Newton search for the lambda at which the slope vanishes."""
        low, high, scale = 0.0, np.inf, max(self.scale, 1e-3)
        enough = self.accuracy * self.gamma * self.shape[0] * self.shape[1]
        for tried in range(MAX_SWEEPS):
            self.scale = scale
            value, slope, curvature = sweep(tried == 0)
            if slope > 0:
                high = scale
            else:
                low = scale
            if abs(slope) <= enough or high * (1 - 1e-12) <= low or high < 1e-9:
                break
            scale = scale - slope / curvature if curvature > 0 else np.inf
            if not low < scale < high:
                scale = (low + high) / 2 if high < np.inf else 2 * low
        return float(value)

    def _sweep(self, left: Floats, right: Floats, fresh: bool) -> Any:
        """Value, slope and curvature in lambda over all cells."""
        totals = np.zeros(3)
        if self.held:
            if fresh:
                np.matmul(left / left.dtype.type(self.count), right.T, out=self.M)
            totals += smooth_hinge(self.M, self.scale, self.gamma, self.mu, self.C)
        else:
            for rows in self.blocks:
                totals += self._sweep_block(left, right, rows)[0]
        return totals

    def _sweep_block(self, left: Floats, right: Floats, rows: slice) -> tuple[Any, Floats]:
        """The sums over some rows, and C there, in memory that the next block reuses."""
        M, C = self.M[: rows.stop - rows.start], self.C[: rows.stop - rows.start]
        np.matmul(left[rows] / left.dtype.type(self.count), right.T, out=M)
        return np.array(smooth_hinge(M, self.scale, self.gamma, self.mu, C)), C
