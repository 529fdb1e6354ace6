"""The game of Algorithm ODD, played exactly: dense matrices, sums over rounds, nothing that grows with their number."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from surefill.arrays import Array, Indices
from surefill.errors import InputError
from surefill.online.parameters import GameOptions
from surefill.online.players import (
    ConfidencePlayer,
    CubePlayer,
    EntropyPlayer,
    MatrixMultiplicativeWeights,
    MatrixState,
)
from surefill.online.regret import GameRegret, MatrixRecord, measure_regret
from surefill.spaces.confidence_matrix import DenseConfidence


@dataclass
class Totals:
    """Sums over the rounds t = 1, ..., T.

    ``confidence`` = sum C_t, ``disagreement`` = sum (M^1_t - M^2_t), ``middle`` = sum (M^1_t + M^2_t) / 2, all m x n;
    ``counts`` and ``values`` = how often each cell was seen and the sum of its values; ``squares`` = sum o_t^2,
    ``support`` = sum H(C_t), ``gain`` = sum G(C_t, M_t), ``loss`` = sum f_t(M_t). ``confidence_bound`` and
    ``matrix_bound`` are the regret bounds of the epochs that have ended.
    """

    confidence: Array
    disagreement: Array
    middle: Array
    counts: Array
    values: Array
    squares: float = 0.0
    support: float = 0.0
    gain: float = 0.0
    loss: float = 0.0
    rounds: int = 0
    epoch_rounds: int = 0
    epoch_length: int = 0
    confidence_bound: float = 0.0
    matrix_bound: float = 0.0

    @classmethod
    def none(cls, shape: tuple[int, int]) -> Totals:
        """Before the first round."""
        return cls(np.zeros(shape), np.zeros(shape), np.zeros(shape), np.zeros(shape), np.zeros(shape))


class ExactGame:
    """C_t and M_t are played at once, then a cell x_t and its value o_t are seen, then both players update.

    Where no step was given by hand and no horizon either, the rounds come in epochs, each twice as long as the one
    before, which both players begin anew with the steps that suit its length (the doubling trick).
    """

    def __init__(self, options: GameOptions) -> None:
        self.options = options
        player = EntropyPlayer if options.confidence == "entropy" else CubePlayer
        self.confidence_player: ConfidencePlayer = player(options.shape, options.alpha)
        self.matrix_player = MatrixMultiplicativeWeights(
            options.shape, options.K, options.theta, options.observations, options.tolerance
        )
        self.totals = Totals.none(options.shape)
        self.totals.epoch_length = self._first_epoch()
        self.C: Array = self.confidence_player.init()
        self.matrix_state: MatrixState = self.matrix_player.init()

    @property
    def average(self) -> Array:
        """C-bar, the mean of C_1, ..., C_T; C_1 before the first round."""
        return self.totals.confidence / self.totals.rounds if self.totals.rounds else self.confidence_player.init()

    @property
    def steps(self) -> tuple[float, float]:
        """eta of the confidence player and of the matrix player in this epoch."""
        given = self.options.eta_confidence, self.options.eta_matrix
        constants = self.confidence_player.constants, self.matrix_player.constants
        first, second = (
            constant.step(self.totals.epoch_length) if eta is None else eta
            for eta, constant in zip(given, constants, strict=True)
        )
        return first, second

    def learn(self, rows: Indices, cols: Indices, values: Array) -> None:
        """One round for each observation, in their order; values on [-1, 1]."""
        for i, j, value in zip(rows, cols, values, strict=True):
            self._play(int(i), int(j), float(value))

    def confidence(self) -> DenseConfidence:
        """C-bar as confidences in [0, 1]: min(1, e^H C-bar_x) on the simplex, C-bar_x (m + n)^(3/2) on the cube."""
        return DenseConfidence(self.confidence_player.to_unit(self.average))

    def predict(self, rows: Indices, cols: Indices) -> Array:
        """The mean over rounds and completions of (M^1_t + M^2_t) / 2 at the given cells, on [-1, 1]."""
        if self.options.observations == "zero":
            raise InputError('a game with observations="zero" never looked at values and predicts none.')
        total: Array = self.totals.middle[rows, cols]
        return total / max(1, self.totals.rounds)

    def regret(self) -> GameRegret:
        """Both players' regret so far, beside the theorem's bounds."""
        totals, options = self.totals, self.options
        eta_confidence, eta_matrix = self.steps
        bounds = (
            totals.confidence_bound + self.confidence_player.constants.bound(totals.epoch_rounds, eta_confidence),
            totals.matrix_bound + self.matrix_player.constants.bound(totals.epoch_rounds, eta_matrix),
        )
        earned = totals.support - options.alpha * totals.gain
        best = self.confidence_player.best_reward(totals.rounds, totals.disagreement) if totals.rounds else 0.0
        return measure_regret(totals.rounds, options.alpha, best - earned, self.matrix_record(), bounds)

    def matrix_record(self) -> MatrixRecord:
        """What the matrix player's comparator is computed from."""
        totals, options = self.totals, self.options
        return MatrixRecord(
            K=options.K,
            theta=options.theta,
            zero=options.observations == "zero",
            confidence=totals.confidence,
            counts=totals.counts,
            values=totals.values,
            squares=totals.squares,
            earned=totals.gain - options.theta * totals.loss,
        )

    def state(self) -> dict[str, Any]:
        """Everything the game is: parameters, players' memories and sums, as numbers, words and arrays."""
        sums = {f"total_{field.name}": getattr(self.totals, field.name) for field in fields(self.totals)}
        arrays = {f"matrix_{name}": value for name, value in self.matrix_state._asdict().items()}
        copies = {name: np.array(value) for name, value in {"C": self.C, **sums, **arrays}.items()}
        return {**self.options.as_scalars(), **copies}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> ExactGame:
        """The game that :meth:`state` described; it goes on to the bit as the first would have."""
        game = cls(GameOptions.from_scalars(state))
        for field in fields(game.totals):
            saved = np.array(state[f"total_{field.name}"])
            setattr(game.totals, field.name, saved if saved.ndim else saved.item())
        game.C = np.array(state["C"])
        game.matrix_state = MatrixState(*(np.array(state[f"matrix_{name}"]) for name in MatrixState._fields))
        return game

    def _play(self, i: int, j: int, value: float) -> None:
        target = 0.0 if self.options.observations == "zero" else value
        first, second = self.matrix_player.played(self.matrix_state)
        disagreement = first - second
        self._record((i, j), target, first, second, disagreement)
        eta_confidence, eta_matrix = self.steps
        self.matrix_state = self.matrix_player.update(self.matrix_state, self.C, (i, j), target, eta_matrix)
        self.C = self.confidence_player.update(self.C, disagreement, eta_confidence)
        if self.totals.epoch_rounds == self.totals.epoch_length and self._doubles:
            self._end_epoch()

    def _record(self, cell: tuple[int, int], value: float, first: Array, second: Array, disagreement: Array) -> None:
        totals = self.totals
        totals.confidence += self.C
        totals.disagreement += disagreement
        totals.middle += (first + second) / 2
        totals.counts[cell] += 1
        totals.values[cell] += value
        totals.squares += value**2
        totals.support += self.confidence_player.support(self.C)
        totals.gain += float(np.vdot(self.C, disagreement))
        totals.loss += (first[cell] - value) ** 2 + (second[cell] - value) ** 2
        totals.rounds += 1
        totals.epoch_rounds += 1

    @property
    def _doubles(self) -> bool:
        options = self.options
        return options.horizon is None and (options.eta_confidence is None or options.eta_matrix is None)

    def _first_epoch(self) -> int:
        if self.options.horizon is not None:
            return int(self.options.horizon)
        players = self.confidence_player.constants, self.matrix_player.constants
        return int(np.ceil(max(1.0, *(constants.shortest_horizon for constants in players))))

    def _end_epoch(self) -> None:
        totals, (eta_confidence, eta_matrix) = self.totals, self.steps
        totals.confidence_bound += self.confidence_player.constants.bound(totals.epoch_rounds, eta_confidence)
        totals.matrix_bound += self.matrix_player.constants.bound(totals.epoch_rounds, eta_matrix)
        totals.epoch_rounds, totals.epoch_length = 0, 2 * totals.epoch_length
        self.C = self.confidence_player.init()
        self.matrix_state = self.matrix_player.init()
