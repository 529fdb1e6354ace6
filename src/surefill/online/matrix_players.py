"""The matrix player A_M: matrix multiplicative weights on gamma_t(M) = G(C_t, M) - theta f_t(M).

The paper embeds (M^1, M^2) in X = diag(P, N) of size 4 (m + n), with M^k = P^k_12 - N^k_12. X stays block diagonal,
with blocks P^1, P^2, N^1, N^2 of size m + n, and N^k = D P^k D with D = diag(I, -I): the start, the gradients and the
limits are symmetric under this exchange, and the projection is unique. So M^k = 2 P^k_12, and P^1, P^2 are enough:

    tr P^1 + tr P^2 <= K (m + n),    P^k_aa <= K,    |2 P^k_12| <= 1.

With zero observations also P^2 = D P^1 D, so M^2 = -M^1, and one block with trace at most K (m + n) / 2 is enough.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from surefill.online.parameters import RegretConstants, matrix_constants
from surefill.online.simplex import Array
from surefill.online.spectral import Bipartite, Limits, project


class MatrixState(NamedTuple):
    """The player's memory: log P = diag(log_diagonal) + [[0, log_across], .], P_12, and the last step's multipliers.

    Arrays have one leading axis for the completions: two, or one with zero observations. ``missed`` is how far the
    last projection was from its limits.
    """

    log_diagonal: Array
    log_across: Array
    across: Array
    held_diagonal: Array
    held_across: Array
    missed: Array


class MatrixPlayer(Protocol):
    """Who chooses M_t = (M^1_t, M^2_t) against C_t."""

    @property
    def constants(self) -> RegretConstants:
        """Of its regret bound."""
        ...

    def init(self) -> MatrixState:
        """M_1 = (0, 0)."""
        ...

    def played(self, state: MatrixState) -> tuple[Array, Array]:
        """M^1_t and M^2_t."""
        ...

    def update(self, state: MatrixState, C: Array, cell: tuple[int, int], value: float, eta: float) -> MatrixState:
        """After ``value`` was seen at ``cell``, a step of length ``eta`` along the gradient of gamma_t."""
        ...


@dataclass(frozen=True)
class MatrixMultiplicativeWeights:
    """X_(t+1) = argmin of Delta(X, exp(log X_t + eta L_t)) over K_X, in one or two blocks of size m + n.

    Each step is solved until no limit is exceeded, or missed where it binds, by more than ``tolerance``.
    """

    shape: tuple[int, int]
    K: float
    theta: float
    observations: str = "values"
    tolerance: float = 1e-8

    @property
    def constants(self) -> RegretConstants:
        """D = K (m + n) log(4 (m + n)), G = 4 K (1 + 8 theta)^2."""
        return matrix_constants(self.shape, self.K, self.theta)

    @property
    def limits(self) -> Limits:
        """Of trace and diagonal, for the blocks that are kept."""
        return Limits(self.K * sum(self.shape) * self._count / 2, self.K)

    @property
    def _count(self) -> int:
        return 2 if self.observations == "values" else 1

    def init(self) -> MatrixState:
        """P^k = (K / 2) I."""
        (m, n), count = self.shape, self._count
        return MatrixState(
            log_diagonal=np.full((count, m + n), math.log(self.K / 2)),
            log_across=np.zeros((count, m, n)),
            across=np.zeros((count, m, n)),
            held_diagonal=np.zeros((count, m + n)),
            held_across=np.zeros((count, m, n)),
            missed=np.zeros(1),
        )

    def played(self, state: MatrixState) -> tuple[Array, Array]:
        """2 P^1_12 and 2 P^2_12, or M and -M."""
        first = 2 * state.across[0]
        return (first, 2 * state.across[1]) if self._count == 2 else (first, -first)

    def update(self, state: MatrixState, C: Array, cell: tuple[int, int], value: float, eta: float) -> MatrixState:
        """log P^k += eta [[0, A^k], .], A^k = +-C - 2 theta (M^k_x - o) e_x, then the projection."""
        i, j = cell
        target = value if self._count == 2 else 0.0
        pushed = state.log_across.copy()
        for k, side in enumerate((1.0, -1.0)[: self._count]):
            pushed[k] += eta * side * C
            pushed[k, i, j] -= eta * 2 * self.theta * (2 * state.across[k, i, j] - target)
        held = Bipartite(state.held_diagonal, state.held_across)
        found = project(Bipartite(state.log_diagonal, pushed), self.limits, held, self.tolerance)
        return MatrixState(*found.log, found.across, *found.multipliers, np.array([found.residual]))
