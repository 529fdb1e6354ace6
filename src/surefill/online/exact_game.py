"""Algorithm ODD with dense matrices: both players' exact updates, and sums over the rounds for averages and regret."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np

from surefill.arrays import Array, Indices
from surefill.errors import InputError
from surefill.online.parameters import GameOptions, RegretConstants
from surefill.online.players import (
    ConfidencePlayer,
    CubePlayer,
    EntropyPlayer,
    MatrixMultiplicativeWeights,
    MatrixState,
)
from surefill.online.regret import GameRegret, MatrixRewardSum
from surefill.spaces.confidence_matrix import DenseConfidence


@dataclass
class RoundSums:
    """Sums over the rounds t = 1, ..., T; nothing here grows with T.

    Attributes
    ----------
    confidence, disagreement, midpoint : sum C_t, sum (M^1_t - M^2_t), sum (M^1_t + M^2_t) / 2, all m x n.
    counts, values : how often each cell was observed, and the sum of its values, m x n.
    squares, support, deviation, misfit : sum o_t^2, sum H(C_t), sum G(C_t, M_t), sum f_t(M_t).
    rounds, epoch_rounds, epoch_length : T, rounds of the present epoch, and how many it will have.
    confidence_bound, matrix_bound : regret bounds of the epochs that have ended.
    """

    confidence: Array
    disagreement: Array
    midpoint: Array
    counts: Array
    values: Array
    squares: float = 0.0
    support: float = 0.0
    deviation: float = 0.0
    misfit: float = 0.0
    rounds: int = 0
    epoch_rounds: int = 0
    epoch_length: int = 0
    confidence_bound: float = 0.0
    matrix_bound: float = 0.0

    @classmethod
    def zeros(cls, shape: tuple[int, int]) -> RoundSums:
        """Before the first round."""
        return cls(np.zeros(shape), np.zeros(shape), np.zeros(shape), np.zeros(shape), np.zeros(shape))


class ExactGame:
    """C_t and M_t are decided simultaneously, then a cell x_t and its value o_t are observed, then both players update.

    Step sizes that are not given are those that make the regret's bound smallest after ``horizon`` rounds. With a delta
    and no horizon the rounds come in epochs, each twice as long as the one before, at the start of which both players
    restart with the step sizes for its length (the doubling trick). With neither, steps are the longest worth
    taking (``RegretConstants.longest_step``).
    """

    def __init__(self, options: GameOptions) -> None:
        self.options = options
        player = EntropyPlayer if options.confidence == "entropy" else CubePlayer
        self.confidence_player: ConfidencePlayer = player(options.shape, options.alpha)
        self.matrix_player = MatrixMultiplicativeWeights(
            options.shape, options.K, options.theta, options.observations, options.tol
        )
        self.sums = RoundSums.zeros(options.shape)
        self.sums.epoch_length = self._first_epoch_length()
        self.C: Array = self.confidence_player.init()
        self.matrix_state: MatrixState = self.matrix_player.init()

    @property
    def average(self) -> Array:
        """C-bar, the mean of C_1, ..., C_T; C_1 before the first round."""
        return self.sums.confidence / self.sums.rounds if self.sums.rounds else self.confidence_player.init()

    @property
    def step_sizes(self) -> tuple[float, float]:
        """eta of the confidence player and of the matrix player in this epoch."""
        given = self.options.eta_confidence, self.options.eta_matrix
        constants = self.confidence_player.constants, self.matrix_player.constants
        first, second = (
            self._step_of(constant) if eta is None else eta for eta, constant in zip(given, constants, strict=True)
        )
        return first, second

    def _step_of(self, constants: RegretConstants) -> float:
        if self.options.horizon is None and self.options.delta is None:
            return constants.longest_step
        return constants.step(self.sums.epoch_length)

    def learn(self, rows: Indices, cols: Indices, values: Array) -> None:
        """One round for each observation, in their order; values on [-1, 1]."""
        for i, j, value in zip(rows, cols, values, strict=True):
            self._play_round((int(i), int(j)), float(value))

    def confidence(self) -> DenseConfidence:
        """C-bar as confidences in [0, 1]: min(1, e^H C-bar_x) on the simplex, C-bar_x (m + n)^(3/2) on the cube."""
        return DenseConfidence(self.confidence_player.to_unit(self.average))

    def predict(self, rows: Indices, cols: Indices) -> Array:
        """The mean over rounds of (M^1_t + M^2_t) / 2 at the given cells, on [-1, 1]."""
        if self.options.observations == "zero":
            raise InputError('a game with observations="zero" never looked at values and predicts none.')
        total: Array = self.sums.midpoint[rows, cols]
        return total / max(1, self.sums.rounds)

    def regret(self) -> GameRegret:
        """Both players' regret so far, beside the theorem's bounds."""
        sums, options = self.sums, self.options
        if sums.rounds == 0:
            return GameRegret(0, options.alpha, 0.0, 0.0, 0.0, 0.0, 0.0)
        confidence_bound, matrix_bound = self._epoch_bounds()
        confidence_reward = sums.support - options.alpha * sums.deviation
        matrix_reward = sums.deviation - options.theta * sums.misfit
        lower, upper = self.matrix_reward_sum().best()
        return GameRegret(
            rounds=sums.rounds,
            alpha=options.alpha,
            confidence=self.confidence_player.best_reward(sums.rounds, sums.disagreement) - confidence_reward,
            confidence_theorem_bound=sums.confidence_bound + confidence_bound,
            matrix_lower_bound=lower - matrix_reward,
            matrix_upper_bound=upper - matrix_reward,
            matrix_theorem_bound=sums.matrix_bound + matrix_bound,
        )

    def matrix_reward_sum(self) -> MatrixRewardSum:
        """sum_t gamma_t(M) as a function of M."""
        sums, options = self.sums, self.options
        return MatrixRewardSum(
            K=options.K,
            theta=options.theta,
            zero=options.observations == "zero",
            confidence=sums.confidence,
            counts=sums.counts,
            values=sums.values,
            squares=sums.squares,
        )

    def state(self) -> dict[str, Any]:
        """Both players' states and the sums, as arrays."""
        sums = {f"sum_{field.name}": getattr(self.sums, field.name) for field in fields(self.sums)}
        matrix = {f"matrix_{name}": array for name, array in self.matrix_state._asdict().items()}
        return {name: np.array(value) for name, value in {"C": self.C, **sums, **matrix}.items()}

    def restore(self, state: Mapping[str, Any]) -> Self:
        """Go on from a :meth:`state` of a game with the same options, to the bit; returns the game itself."""
        for field in fields(self.sums):
            saved = np.array(state[f"sum_{field.name}"])
            setattr(self.sums, field.name, saved if saved.ndim else saved.item())
        self.C = np.array(state["C"])
        self.matrix_state = MatrixState(*(np.array(state[f"matrix_{name}"]) for name in MatrixState._fields))
        return self

    def _play_round(self, cell: tuple[int, int], value: float) -> None:
        target = 0.0 if self.options.observations == "zero" else value
        first, second = self.matrix_player.decision(self.matrix_state)
        disagreement = first - second
        self._add_to_sums(cell, target, first, second, disagreement)
        eta_confidence, eta_matrix = self.step_sizes
        self.matrix_state = self.matrix_player.update(self.matrix_state, self.C, cell, target, eta_matrix)
        self.C = self.confidence_player.update(self.C, disagreement, eta_confidence)
        if self.sums.epoch_rounds == self.sums.epoch_length and self._doubles:
            self._end_epoch()

    def _add_to_sums(
        self, cell: tuple[int, int], value: float, first: Array, second: Array, disagreement: Array
    ) -> None:
        sums = self.sums
        sums.confidence += self.C
        sums.disagreement += disagreement
        sums.midpoint += (first + second) / 2
        sums.counts[cell] += 1
        sums.values[cell] += value
        sums.squares += value**2
        sums.support += self.confidence_player.support(self.C)
        sums.deviation += float(np.vdot(self.C, disagreement))
        sums.misfit += (first[cell] - value) ** 2 + (second[cell] - value) ** 2
        sums.rounds += 1
        sums.epoch_rounds += 1

    @property
    def _doubles(self) -> bool:
        options = self.options
        given = options.eta_confidence is not None and options.eta_matrix is not None
        return options.horizon is None and options.delta is not None and not given

    def _first_epoch_length(self) -> int:
        """The horizon, or the shortest for which both players' step sizes are small enough for their bounds."""
        if self.options.horizon is not None:
            return int(self.options.horizon)
        players = self.confidence_player.constants, self.matrix_player.constants
        return int(np.ceil(max(1.0, *(constants.shortest_horizon for constants in players))))

    def _epoch_bounds(self) -> tuple[float, float]:
        """Both players' regret bounds for the present epoch."""
        rounds, (eta_confidence, eta_matrix) = self.sums.epoch_rounds, self.step_sizes
        return (
            self.confidence_player.constants.bound(rounds, eta_confidence),
            self.matrix_player.constants.bound(rounds, eta_matrix),
        )

    def _end_epoch(self) -> None:
        sums, (confidence_bound, matrix_bound) = self.sums, self._epoch_bounds()
        sums.confidence_bound += confidence_bound
        sums.matrix_bound += matrix_bound
        sums.epoch_rounds, sums.epoch_length = 0, 2 * sums.epoch_length
        self.C = self.confidence_player.init()
        self.matrix_state = self.matrix_player.init()
