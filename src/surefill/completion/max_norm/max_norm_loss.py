"""The empirical risk over the max-norm ball: its value and gradient on factored matrices, and its lower bound."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import sparse

from surefill.arrays import Array, Floats, Indices, row_blocks
from surefill.data import Groups, Observations
from surefill.kernels.bounded_loss import set_row_terms, set_weighted_sums
from surefill.parallel import over_ranges

TINY = 1e-300
"""Keeps quotients finite where a norm or an objective is 0."""

BOX_STIFFNESS = 50.0
"""The box's augmented-Lagrangian parameter, in units of the mean weight of an observed cell, whose own curvature is 2:
large beside it, so that few stages settle the box, and not so large that L-BFGS slows down."""


@dataclass(frozen=True, eq=False)
class EmpiricalRisk:
    """min sum_S w_x (u_x - M_x)^2 over max-norm(M) <= K and |M_x| <= 1, or plus penalty max-norm(M) in place of K.

    Rows and columns without observations are left out: their factors are zero in the answer. Cells are sorted by
    row. ``boxed`` is false where the box is implied (K <= 1) or not asked for. A K beyond sqrt(min(m, n)) max(1, |u|)
    is clipped to it: every matrix of the box, or the exact fit that is zero elsewhere, has a max-norm of at most that.
    """

    shape: tuple[int, int]
    rows: Indices
    cols: Indices
    target: Array
    weight: Array
    K: float | None
    penalty: float | None
    boxed: bool

    @classmethod
    def of(
        cls, observations: Observations, target: Array, K: float | None, penalty: float | None, box: bool
    ) -> EmpiricalRisk:
        """The risk of matrices that should be ``target`` at the observed cells."""
        by_row, by_col = observations.by_row, observations.by_col
        rows, cols = by_row.locate(observations.rows), by_col.locate(observations.cols)
        order = np.lexsort((cols, rows))
        shape, weight = (len(by_row), len(by_col)), observations.weights[order]
        boxed = box and (K is None or K > 1)
        largest = math.sqrt(min(shape)) * max(1.0, float(np.abs(target).max()))
        limit = None if K is None else min(K, largest)
        return cls(shape, rows[order], cols[order], target[order], weight, limit, penalty, boxed)

    @cached_property
    def at_zero(self) -> float:
        """The loss of the zero matrix, which every class contains."""
        return float(self.weight @ self.target**2)

    def loss(self, entries: Array) -> float:
        """sum_S w_x (u_x - M_x)^2."""
        return float(self.weight @ (self.target - entries) ** 2)

    def objective(self, entries: Array, norm: float) -> float:
        """The loss and, where there is one, the penalty of a matrix of max-norm at most ``norm``."""
        return self.loss(entries) + (self.penalty * norm if self.penalty is not None else 0.0)

    def lower_bound(self, residual: Array, dual_norm: float, box: float) -> float:
        """The largest theta (a - h) - theta^2 b over theta >= 0, which no matrix of the class goes below.

        w r^2 >= z r - z^2 / (4 w) for every z; summed with z = 2 theta w r0, r0 any residual, the loss of M is at
        least theta a - theta^2 b - theta <Z, M>, a = 2 <w r0, u>, b = <w r0, r0>, Z = 2 w r0. With Z = A + B,
        sup <Z, M> <= h = K ``dual_norm`` + ``box``, which bound <B, .> over the unit ball and |A|_1. With a penalty,
        theta ``dual_norm`` <= penalty makes penalty max-norm(M) - theta <B, M> at least 0, and h = ``box``.
        """
        pull = 2 * self.weight * residual
        a, b = float(pull @ self.target), self.loss(self.target - residual)
        if self.K is not None:
            slope, most = a - self.K * dual_norm - box, np.inf
        else:
            assert self.penalty is not None
            slope, most = a - box, self.penalty / max(dual_norm, TINY)
        if slope <= 0 or b == 0:
            return 0.0
        theta = min(slope / (2 * b), most)
        return theta * slope - theta**2 * b


class BoundedLoss:
    """The risk and the box's augmented Lagrangian on factored matrices K U V', on all cores, O(cells x width).

    The box is enforced at the observed cells and at those that were found beyond it, each with a multiplier. It holds
    what was last evaluated: ``entries`` M_x and ``slopes`` of the listed cells.
    """

    def __init__(self, risk: EmpiricalRisk) -> None:
        self.risk = risk
        self.stiffness = BOX_STIFFNESS * float(risk.weight.mean()) if risk.boxed else 0.0
        self._list(risk.rows, risk.cols, np.zeros(len(risk.rows)))

    def _list(self, rows: Indices, cols: Indices, multipliers: Array) -> None:
        """Go over these cells from now on, the observed ones among them."""
        order = np.lexsort((cols, rows))
        self.rows, self.cols, self.multipliers = rows[order], cols[order], multipliers[order]
        keys = self.rows * self.risk.shape[1] + self.cols
        self.observed = np.searchsorted(keys, self.risk.rows * self.risk.shape[1] + self.risk.cols)
        self.target, self.weight = np.zeros(len(rows)), np.zeros(len(rows))
        self.target[self.observed], self.weight[self.observed] = self.risk.target, self.risk.weight
        self.by_row, self.by_col = Groups.of(self.rows), Groups.of(self.cols)
        self.entries, self.slopes = np.zeros(len(rows)), np.zeros(len(rows))

    def __call__(self, U: Floats, V: Floats, K: float) -> tuple[float, Floats, Floats, float]:
        """The value f(M), M = K U V', and with G = f'(M) the products G V, G' U and <G, U V'>, its derivative in K."""
        dU, dV, value = np.empty_like(U), np.empty_like(V), np.empty(len(U))
        self.slopes = self.slopes.astype(U.dtype, copy=False)
        over_ranges(
            lambda first, last: set_row_terms(
                first, last, self.by_row.starts, self.cols, self.target, self.weight, self.multipliers,
                self.stiffness, K, U, V, self.entries, self.slopes, dU, value,
            ),
            self.by_row.starts,
        )  # fmt: skip
        starts, order = self.by_col.starts, self.by_col.order
        over_ranges(
            lambda first, last: set_weighted_sums(first, last, starts, order, self.rows, self.slopes, U, dV), starts
        )
        in_K = float(np.einsum("ik,ik->", dU, U, dtype=np.float64))
        return float(value.sum()), dU, dV, in_K

    @property
    def residual(self) -> Array:
        """u - M at the observed cells, where it was last evaluated."""
        return np.asarray(self.target[self.observed] - self.entries[self.observed])

    @property
    def pull(self) -> sparse.csr_array:
        """B = 2 w (u - M) - A, minus the slopes, where it was last evaluated."""
        return sparse.csr_array((-self.slopes.astype(np.float64), (self.rows, self.cols)), shape=self.risk.shape)

    @property
    def next_multipliers(self) -> Array:
        """|A_x|, the box's multiplier of each listed cell after the last evaluation."""
        if not self.stiffness:
            return np.zeros(len(self.multipliers))
        return np.maximum(0.0, self.multipliers + self.stiffness * (np.abs(self.entries) - 1))

    def update_box(self, U: Floats, V: Floats, K: float) -> float:
        """Update the multipliers, list the cells beyond 1 too, and return max(1, max |M_x|); by row blocks."""
        if not self.stiffness:
            return 1.0
        (m, n), following, largest, beyond = self.risk.shape, self.next_multipliers, 1.0, [np.empty(0, np.int64)]
        for block in row_blocks(m, n):
            M = np.abs(K * (U[block] @ V.T))
            largest = max(largest, float(M.max()))
            beyond.append(np.flatnonzero(M > 1) + block.start * n)
        keys = self.rows * n + self.cols
        kept = (following > 0) | (self.weight > 0)
        new = np.setdiff1d(np.concatenate(beyond), keys[kept], assume_unique=True)
        cells = np.concatenate([keys[kept], new])
        self._list(cells // n, cells % n, np.concatenate([following[kept], np.zeros(len(new))]))
        return largest
