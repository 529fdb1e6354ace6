"""The confidence player A_C: mirror ascent on r_t(C) = H(C) - alpha <C, M^1_t - M^2_t>."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from scipy.special import logsumexp, xlogy

from surefill.arrays import Array
from surefill.online.parameters import RegretConstants, cube_constants, entropy_constants, matrix_constants
from surefill.online.projections import Bipartite, Limits, project, project_relative_entropy


class ConfidencePlayer(Protocol):
    """Who chooses C_t; ``disagreement`` is M^1 - M^2, m x n."""

    @property
    def alpha(self) -> float:
        """How much disagreement costs."""
        ...

    @property
    def constants(self) -> RegretConstants:
        """Of its regret bound."""
        ...

    def init(self) -> Array:
        """C_1."""
        ...

    def update(self, C: Array, disagreement: Array, eta: float) -> Array:
        """C_(t + 1) from C_t, a step of length ``eta`` along the gradient of r_t."""
        ...

    def support(self, C: Array) -> float:
        """H(C), the size of the support."""
        ...

    def best_reward(self, rounds: int, disagreement: Array) -> float:
        """max over C of sum_t r_t(C) = rounds H(C) - alpha <C, disagreement>, disagreement summed over rounds."""
        ...

    def of_distribution(self, mu: Array) -> Array:
        """C_mu, the confidence that belongs to a sampling distribution."""
        ...

    def to_unit(self, C: Array) -> Array:
        """C as confidences in [0, 1]."""
        ...


@dataclass(frozen=True)
class EntropyPlayer:
    """H(C) = -sum C log C on {C >= e / (mn)^2, sum C = 1}; R = -H, projection in relative entropy."""

    shape: tuple[int, int]
    alpha: float

    @property
    def floor(self) -> float:
        """e^(1 - beta), beta = 2 log(mn); never more than 1 / (mn), which the smallest matrices need."""
        cells = self.shape[0] * self.shape[1]
        return min(math.e / cells**2, 1 / cells)

    @property
    def constants(self) -> RegretConstants:
        """D_R^2 = log(mn), G_R = 2 log(mn) + 2 alpha."""
        return entropy_constants(self.shape, self.alpha)

    def init(self) -> Array:
        """The uniform distribution, to which e^-1 everywhere projects."""
        return np.full(self.shape, 1 / (self.shape[0] * self.shape[1]))

    def update(self, C: Array, disagreement: Array, eta: float) -> Array:
        """C exp(eta (-1 - log C - alpha disagreement)), projected; the common factor e^-eta drops out."""
        log = (1 - eta) * np.log(C) - eta * self.alpha * disagreement
        return project_relative_entropy(np.exp(log - log.max()), self.floor)

    def support(self, C: Array) -> float:
        """The entropy; its exponential is the number of cells of a uniform distribution as broad as C."""
        return float(-xlogy(C, C).sum())

    def best_reward(self, rounds: int, disagreement: Array) -> float:
        """rounds log sum_x exp(-alpha disagreement_x / rounds), attained by the softmax."""
        return float(rounds * logsumexp(-self.alpha * disagreement / rounds))

    def of_distribution(self, mu: Array) -> Array:
        """mu itself."""
        return mu

    def to_unit(self, C: Array) -> Array:
        """min(1, e^H(C) C_x): 1 on the support of a uniform distribution, 0 off it; adds up to at most e^H(C)."""
        return np.minimum(1.0, math.exp(self.support(C)) * C)


@dataclass(frozen=True)
class CubePlayer:
    """H(C) = |C| on [0, (m + n)^(-3/2)]; R = |C|_F^2 / 2, so a gradient step and a clip."""

    shape: tuple[int, int]
    alpha: float

    @property
    def cap(self) -> float:
        """(m + n)^(-3/2), the largest entry."""
        return float(sum(self.shape) ** -1.5)

    @property
    def constants(self) -> RegretConstants:
        """D_R^2 = mn / (2 (m + n)^3), G_R^2 = (1 + 2 alpha)^2 mn."""
        return cube_constants(self.shape, self.alpha)

    def init(self) -> Array:
        """Zero."""
        return np.zeros(self.shape)

    def update(self, C: Array, disagreement: Array, eta: float) -> Array:
        """clip(C + eta (1 - alpha disagreement), 0, cap)."""
        return np.clip(C + eta * (1 - self.alpha * disagreement), 0.0, self.cap)

    def support(self, C: Array) -> float:
        """The sum."""
        return float(C.sum())

    def best_reward(self, rounds: int, disagreement: Array) -> float:
        """cap sum_x max(0, rounds - alpha disagreement_x), attained by the cells where it is positive."""
        return float(self.cap * np.maximum(0.0, rounds - self.alpha * disagreement).sum())

    def of_distribution(self, mu: Array) -> Array:
        """The largest multiple of mu in the cube."""
        multiple: Array = mu * (self.cap / mu.max())
        return multiple

    def to_unit(self, C: Array) -> Array:
        """C / cap."""
        scaled: Array = np.minimum(1.0, C / self.cap)
        return scaled


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
