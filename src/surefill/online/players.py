"""The two players of the online game: A_C, mirror ascent on the confidence, and A_M, matrix multiplicative weights.

In round t the confidence player decides on C_t and the matrix player on M_t = (M^1_t, M^2_t); their rewards, both
concave, are

    r_t(C) = H(C) - alpha <C, M^1_t - M^2_t>,
    gamma_t(M) = <C_t, M^1 - M^2> - theta [(M^1_x - o)^2 + (M^2_x - o)^2],    o the value observed at the cell x.

A player is a frozen dataclass of its parameters. ``init`` checks them and gives the first state, ``update`` a new one;
a state is an array or a named tuple of arrays, so that it can be saved and resumed. ``constants`` bound the regret.
``surefill.testing`` has the contract that every player is tested by.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from scipy.special import logsumexp, softmax, xlogy

from surefill.arrays import Array
from surefill.online.parameters import (
    OBSERVATIONS,
    RegretConstants,
    cube_constants,
    entropy_constants,
    matrix_constants,
    require_one_of,
    require_positive,
    require_shape,
)
from surefill.online.projections import BipartiteMatrix, project_matrix_entropy


class ConfidencePlayer(Protocol):
    """A_C of the paper; its state is its decision C_t. ``disagreement`` is M^1 - M^2, m x n."""

    @property
    def alpha(self) -> float:
        """Weight of the disagreement in r_t."""
        ...

    @property
    def constants(self) -> RegretConstants:
        """Constants of the regret bound."""
        ...

    def init(self) -> Array:
        """C_1, after a check of the parameters."""
        ...

    def update(self, C: Array, disagreement: Array, eta: float) -> Array:
        """C_(t + 1) from C_t: a mirror step of size ``eta`` along the gradient of r_t, then the projection."""
        ...

    def support(self, C: Array) -> float:
        """H(C), the effective support size."""
        ...

    def best_reward(self, rounds: int, disagreement: Array) -> float:
        """max over C of sum_t r_t(C) = rounds H(C) - alpha <C, disagreement>, disagreement summed over rounds."""
        ...

    def from_distribution(self, mu: Array) -> Array:
        """C_mu, the confidence matrix of a sampling distribution."""
        ...

    def to_unit(self, C: Array) -> Array:
        """C rescaled to confidences in [0, 1]."""
        ...


@dataclass(frozen=True)
class EntropyPlayer:
    """H(C) = -sum C log C on the simplex {C >= 0, sum C = 1}; mirror map R = -H, projection in relative entropy."""

    shape: tuple[int, int]
    alpha: float

    @property
    def constants(self) -> RegretConstants:
        """D_R^2 = log(mn), G_R = 4 alpha."""
        return entropy_constants(self.shape, self.alpha)

    def init(self) -> Array:
        """The uniform distribution, the maximiser of H."""
        _check_confidence_player(self)
        return np.full(self.shape, 1 / (self.shape[0] * self.shape[1]))

    def update(self, C: Array, disagreement: Array, eta: float) -> Array:
        """C exp(eta (-1 - log C - alpha disagreement)), scaled to the sum 1: a softmax, never 0."""
        log = (1 - eta) * np.log(C) - eta * self.alpha * disagreement
        stepped: Array = softmax(log)
        return stepped

    def support(self, C: Array) -> float:
        """The entropy; its exponential is the number of cells of a uniform distribution with the same entropy."""
        return float(-xlogy(C, C).sum())

    def best_reward(self, rounds: int, disagreement: Array) -> float:
        """rounds log sum_x exp(-alpha disagreement_x / rounds), attained by the softmax."""
        return float(rounds * logsumexp(-self.alpha * disagreement / rounds))

    def from_distribution(self, mu: Array) -> Array:
        """mu itself."""
        return mu

    def to_unit(self, C: Array) -> Array:
        """min(1, e^H(C) C_x): 1 on the support of a uniform distribution, 0 off it; sums to at most e^H(C)."""
        return np.minimum(1.0, math.exp(self.support(C)) * C)


@dataclass(frozen=True)
class CubePlayer:
    """H(C) = |C|_1 on [0, (m + n)^(-3/2)]^X; mirror map R = |C|_F^2 / 2: projected gradient ascent."""

    shape: tuple[int, int]
    alpha: float

    @property
    def cap(self) -> float:
        """(m + n)^(-3/2), the largest entry allowed."""
        return float(sum(self.shape) ** -1.5)

    @property
    def constants(self) -> RegretConstants:
        """D_R^2 = mn / (2 (m + n)^3), G_R^2 = (1 + 2 alpha)^2 mn."""
        return cube_constants(self.shape, self.alpha)

    def init(self) -> Array:
        """Zero, the minimiser of R."""
        _check_confidence_player(self)
        return np.zeros(self.shape)

    def update(self, C: Array, disagreement: Array, eta: float) -> Array:
        """clip(C + eta (1 - alpha disagreement), 0, cap)."""
        return np.clip(C + eta * (1 - self.alpha * disagreement), 0.0, self.cap)

    def support(self, C: Array) -> float:
        """The sum."""
        return float(C.sum())

    def best_reward(self, rounds: int, disagreement: Array) -> float:
        """cap sum_x max(0, rounds - alpha disagreement_x), attained at a vertex of the cube."""
        return float(self.cap * np.maximum(0.0, rounds - self.alpha * disagreement).sum())

    def from_distribution(self, mu: Array) -> Array:
        """The largest multiple of mu in the cube."""
        multiple: Array = mu * (self.cap / mu.max())
        return multiple

    def to_unit(self, C: Array) -> Array:
        """C / cap."""
        scaled: Array = np.minimum(1.0, C / self.cap)
        return scaled


def _check_confidence_player(player: EntropyPlayer | CubePlayer) -> None:
    owner = type(player).__name__
    require_shape(owner, player.shape)
    require_positive(owner, alpha=player.alpha)


class MatrixState(NamedTuple):
    """State of :class:`MatrixMultiplicativeWeights`: log P, P_12, and the multipliers of the last projection.

    Arrays have a leading axis for the completions: two, or one with zero observations. log P is
    diag(``log_diagonal``) + [[0, ``log_off_diagonal``], .], and ``off_diagonal`` is P_12. The multipliers are the next
    projection's starting point; ``violation`` is the largest violation of its constraints that the last one left.
    """

    log_diagonal: Array
    log_off_diagonal: Array
    off_diagonal: Array
    multipliers_diagonal: Array
    multipliers_off_diagonal: Array
    violation: Array


class MatrixPlayer(Protocol):
    """A_M of the paper, with the decision M_t = (M^1_t, M^2_t) against C_t."""

    @property
    def K(self) -> float:
        """Max-norm of the matrices it competes with."""
        ...

    @property
    def theta(self) -> float:
        """Weight of the misfit in gamma_t."""
        ...

    @property
    def constants(self) -> RegretConstants:
        """Constants of the regret bound."""
        ...

    def init(self) -> MatrixState:
        """The state with M_1 = (0, 0), after a check of the parameters."""
        ...

    def decision(self, state: MatrixState) -> tuple[Array, Array]:
        """M^1_t and M^2_t."""
        ...

    def update(self, state: MatrixState, C: Array, cell: tuple[int, int], value: float, eta: float) -> MatrixState:
        """After ``value`` was observed at ``cell``: a step of size ``eta`` along the gradient of gamma_t."""
        ...


@dataclass(frozen=True)
class MatrixMultiplicativeWeights:
    """X_(t+1) = argmin of Delta(X, exp(log X_t + eta L_t)) over K_X, in one or two blocks of size m + n.

    Delta is the matrix relative entropy. The embedding X of the paper, of size 4 (m + n), is kept as the blocks that
    its symmetries leave (docs/mathematics.md, "Blocks instead of the embedding"). Each projection is solved until no
    constraint is violated, or left slack with a positive multiplier, by more than ``tol``.
    """

    shape: tuple[int, int]
    K: float
    theta: float
    observations: str = "zero"
    tol: float = 1e-6

    @property
    def constants(self) -> RegretConstants:
        """D = K (m + n) log(m + n), G = 2 K (1 + b theta)^2, b = 4 with values and 2 with zero observations."""
        return matrix_constants(self.shape, self.K, self.theta, self.observations)

    @property
    def diagonal_bound(self) -> float:
        """K / 2, so that M^k = 2 P^k_12 has max-norm at most K (docs/mathematics.md, "Blocks")."""
        return self.K / 2

    @property
    def _n_blocks(self) -> int:
        return 2 if self.observations == "values" else 1

    def init(self) -> MatrixState:
        """P^k = (K / 2) I."""
        owner = type(self).__name__
        require_shape(owner, self.shape)
        require_positive(owner, K=self.K, theta=self.theta, tol=self.tol)
        require_one_of(owner, "observations", OBSERVATIONS, self.observations)
        (m, n), n_blocks = self.shape, self._n_blocks
        return MatrixState(
            log_diagonal=np.full((n_blocks, m + n), math.log(self.K / 2)),
            log_off_diagonal=np.zeros((n_blocks, m, n)),
            off_diagonal=np.zeros((n_blocks, m, n)),
            multipliers_diagonal=np.zeros((n_blocks, m + n)),
            multipliers_off_diagonal=np.zeros((n_blocks, m, n)),
            violation=np.zeros(1),
        )

    def decision(self, state: MatrixState) -> tuple[Array, Array]:
        """M^k = 2 P^k_12; M^2 = -M^1 with zero observations."""
        first = 2 * state.off_diagonal[0]
        return (first, 2 * state.off_diagonal[1]) if self._n_blocks == 2 else (first, -first)

    def update(self, state: MatrixState, C: Array, cell: tuple[int, int], value: float, eta: float) -> MatrixState:
        """log P^k += eta [[0, A^k], .], A^k = +-C - 2 theta (M^k_x - o) e_x, then the projection."""
        i, j = cell
        target = value if self._n_blocks == 2 else 0.0
        stepped = state.log_off_diagonal.copy()
        for k, sign in enumerate((1.0, -1.0)[: self._n_blocks]):
            stepped[k] += eta * sign * C
            stepped[k, i, j] -= eta * 2 * self.theta * (2 * state.off_diagonal[k, i, j] - target)
        start = BipartiteMatrix(state.multipliers_diagonal, state.multipliers_off_diagonal)
        log = BipartiteMatrix(state.log_diagonal, stepped)
        found = project_matrix_entropy(log, self.diagonal_bound, start, self.tol)
        return MatrixState(*found.log, found.off_diagonal, *found.multipliers, np.array([found.violation]))
