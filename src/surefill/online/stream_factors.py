"""The completion of a stream: factors and biases that learn one value at a time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from surefill.data.units import UnitMap
from surefill.errors import InputError, invalid_parameter, is_seed
from surefill.kernels.stream_filter import (
    COLS,
    HIGH,
    LOW,
    ROWS,
    TIME,
    FilterRules,
    FilterState,
    learn,
    predictions_at,
)
from surefill.kernels.stream_random import stream_key
from surefill.online.stream_arrays import size_needed, with_room

RANDOM_STREAM = 2
FIRST_NOISE = 0.2


@dataclass
class OnlineFactors:
    """value = mean + b_i + c_j + p_i . q_j, every row and column a Kalman filter (see ``kernels/stream_filter.py``).

    One observation costs O(rank^2); memory is O((m + n) rank^2) numbers in single precision. The noise is
    estimated from the errors made so far.

    Parameters
    ----------
    bounds : (low, high), the range values may take. When None it is learnt: predictions are cut to the range seen so
        far, and the internal scale doubles whenever a value lies further out, what is predicted staying as it was.
    rank : number of factors.
    bias_variance, factor_variance : of the prior, on a scale where the range is about [-1, 1].
    fading : share by which a row's or column's past fades towards the prior with each of its observations.
    """

    bounds: tuple[float, float] | None = None
    rank: int = 10
    bias_variance: float = 0.05
    factor_variance: float = 0.07
    fading: float = 0.001
    random_state: int = 0

    def __post_init__(self) -> None:
        if not (is_seed(self.rank) and self.rank >= 1):
            raise invalid_parameter("OnlineFactors", "rank", "a whole number of at least 1", self.rank)
        width = int(self.rank) + 1
        scales = np.array([0.0, FIRST_NOISE, 0.0, 0.0, np.inf, -np.inf])
        if self.bounds is not None:
            unit = UnitMap(float(self.bounds[0]), float(self.bounds[1]))
            scales[2:] = unit.centre, unit.half_width, unit.low, unit.high
        self._state = FilterState(
            X=np.zeros((0, width), np.float32),
            Y=np.zeros((0, width), np.float32),
            A=np.zeros((0, width, width), np.float32),
            B=np.zeros((0, width, width), np.float32),
            scales=scales,
            clock=np.zeros(3, np.int64),
        )

    @property
    def _rules(self) -> FilterRules:
        return FilterRules(
            bias_variance=self.bias_variance,
            factor_variance=self.factor_variance,
            fading=self.fading,
            noise_share=0.8,
            spread=0.1,
            fixed_range=self.bounds is not None,
            key=stream_key(int(self.random_state), RANDOM_STREAM),
        )

    @property
    def range(self) -> tuple[float, float]:
        """(low, high): the bounds given, or the range seen so far, (inf, -inf) before any value."""
        return float(self._state.scales[LOW]), float(self._state.scales[HIGH])

    def learn(
        self, rows: NDArray[np.int64], cols: NDArray[np.int64], values: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Learn the values in order; returns what was predicted for each before it was learnt."""
        state = self._state
        m, n = size_needed(rows, state.clock[ROWS]), size_needed(cols, state.clock[COLS])
        self._state = state._replace(
            X=with_room(state.X, m), A=with_room(state.A, m), Y=with_room(state.Y, n), B=with_room(state.B, n)
        )
        before = np.empty(len(values))
        learn(rows, cols, values, self._state, self._rules, before)
        return before

    def predict(self, rows: NDArray[np.int64], cols: NDArray[np.int64]) -> NDArray[np.float64]:
        """Values at the cells; an index of -1 stands for a row or column never seen, and leaves its side out."""
        out = np.empty(len(rows))
        predictions_at(rows, cols, self._state, out)
        return out

    def state(self) -> dict[str, Any]:
        """Everything that was learnt, as arrays cut to what is in use."""
        m, n = (int(self._state.clock[place]) for place in (ROWS, COLS))
        sizes = {"X": m, "A": m, "Y": n, "B": n}
        return {name: array[: sizes.get(name)].copy() for name, array in self._state._asdict().items()}

    def restore(self, state: dict[str, Any]) -> Self:
        """Go on from a :meth:`state` of a model with the same parameters; returns the model itself."""
        fresh = self._state._asdict()
        restored = FilterState(**{name: np.array(state[name], array.dtype) for name, array in fresh.items()})
        m, n, _ = (int(restored.clock[place]) for place in (ROWS, COLS, TIME))
        width = int(self.rank) + 1
        expected = ((m, width), (n, width), (m, width, width), (n, width, width), (6,), (3,))
        if tuple(array.shape for array in restored) != expected:
            raise InputError("this state belongs to a model with other parameters.")
        self._state = restored
        return self
