"""The completion of a stream: factors and biases that learn one value at a time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from surefill.arrays import size_needed, with_capacity
from surefill.data.units import UnitMap
from surefill.errors import InputError, invalid_parameter, is_seed
from surefill.kernels.counter_random import stream_key
from surefill.kernels.kalman_filter import COLS, HIGH, LOW, ROWS, FilterRules, FilterState, learn, predictions_at
from surefill.kernels.running_sums import expert_weights, mix_experts

RANDOM_STREAM = 2
FIRST_NOISE = 0.2
BIAS_VARIANCE = 0.05
FACTOR_VARIANCES = (0.06, 0.4)
FADING = 0.001
LOSS_FADING = 0.0005


@dataclass
class OnlineFactors:
    """value = mean + b_i + c_j + p_i . q_j, every row and column a Kalman filter (see ``kernels/stream_filter.py``).

    How far factors reach differs from data to data (ratings are mostly biases, a plain low-rank matrix has none), so
    two such models learn side by side, one with a small and one with a large prior variance of the factors, and
    their predictions are averaged with weights exp(-loss / (2 v)) by the squared errors each made so far.

    One observation costs O(rank^2); memory is O((m + n) rank^2) numbers in single precision. The noise is
    estimated from the errors; a row's or column's past fades by a thousandth with each of its observations.

    Parameters
    ----------
    bounds : (low, high), the range values may take. When None it is learnt: predictions are cut to the range seen so
        far, and the internal scale doubles whenever a value lies further out, what is predicted staying as it was.
    rank : number of factors.
    random_state : seed of the factors' starts.
    """

    bounds: tuple[float, float] | None = None
    rank: int = 10
    random_state: int = 0

    def __post_init__(self) -> None:
        if not (is_seed(self.rank) and self.rank >= 1):
            raise invalid_parameter("OnlineFactors", "rank", "a whole number of at least 1", self.rank)
        width = int(self.rank) + 1
        scales = np.array([0.0, FIRST_NOISE, 0.0, 0.0, np.inf, -np.inf])
        if self.bounds is not None:
            unit = UnitMap(float(self.bounds[0]), float(self.bounds[1]))
            scales[2:] = unit.centre, unit.half_width, unit.low, unit.high
        self._experts = [
            FilterState(
                X=np.zeros((0, width), np.float32),
                Y=np.zeros((0, width), np.float32),
                A=np.zeros((0, width, width), np.float32),
                B=np.zeros((0, width, width), np.float32),
                scales=scales.copy(),
                clock=np.zeros(3, np.int64),
            )
            for _ in FACTOR_VARIANCES
        ]
        self._losses = np.zeros(len(FACTOR_VARIANCES) + 1)

    def rules(self, expert: int) -> FilterRules:
        """The rules by which one of the models learns."""
        return FilterRules(
            bias_variance=BIAS_VARIANCE,
            factor_variance=FACTOR_VARIANCES[expert],
            fading=FADING,
            noise_share=0.8,
            spread=0.1,
            fixed_range=self.bounds is not None,
            key=stream_key(int(self.random_state), RANDOM_STREAM),
        )

    @property
    def range(self) -> tuple[float, float]:
        """(low, high): the bounds given, or the range seen so far, (inf, -inf) before any value."""
        scales = self._experts[0].scales
        return float(scales[LOW]), float(scales[HIGH])

    def learn(
        self, rows: NDArray[np.int64], cols: NDArray[np.int64], values: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Learn the values in order; returns what was predicted for each before it was learnt."""
        clock = self._experts[0].clock
        m, n = size_needed(rows, clock[ROWS]), size_needed(cols, clock[COLS])
        before, mixed = np.empty((len(self._experts), len(values))), np.empty(len(values))
        for k, state in enumerate(self._experts):
            self._experts[k] = state._replace(
                X=with_capacity(state.X, m),
                A=with_capacity(state.A, m),
                Y=with_capacity(state.Y, n),
                B=with_capacity(state.B, n),
            )
            learn(rows, cols, values, self._experts[k], self.rules(k), before[k])
        mix_experts(before, values, LOSS_FADING, self._losses, mixed)
        return mixed

    def predict(self, rows: NDArray[np.int64], cols: NDArray[np.int64]) -> NDArray[np.float64]:
        """Values at the cells; an index of -1 stands for a row or column never seen, and leaves its side out."""
        out, weights = np.empty((len(self._experts), len(rows))), np.empty(len(self._experts))
        for k, state in enumerate(self._experts):
            predictions_at(rows, cols, state, out[k])
        expert_weights(self._losses, weights)
        mixed: NDArray[np.float64] = (weights[:, None] * out).sum(axis=0)
        return mixed

    def state(self) -> dict[str, Any]:
        """Everything that was learnt, as arrays cut to what is in use."""
        return {
            "losses": self._losses.copy(),
            "experts": {str(k): _in_use(state) for k, state in enumerate(self._experts)},
        }

    def restore(self, state: dict[str, Any]) -> Self:
        """Go on from a :meth:`state` of a model with the same parameters; returns the model itself."""
        width = int(self.rank) + 1
        for k, fresh in enumerate(self._experts):
            stored = state["experts"][str(k)]
            restored = FilterState(**{name: np.array(stored[name], old.dtype) for name, old in fresh._asdict().items()})
            m, n = int(restored.clock[ROWS]), int(restored.clock[COLS])
            expected = ((m, width), (n, width), (m, width, width), (n, width, width), (6,), (3,))
            if tuple(array.shape for array in restored) != expected:
                raise InputError("this state belongs to a model with other parameters.")
            self._experts[k] = restored
        self._losses = np.array(state["losses"])
        return self


def _in_use(state: FilterState) -> dict[str, Any]:
    m, n = int(state.clock[ROWS]), int(state.clock[COLS])
    sizes = {"X": m, "A": m, "Y": n, "B": n}
    return {name: array[: sizes.get(name)].copy() for name, array in state._asdict().items()}
