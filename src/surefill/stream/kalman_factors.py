"""The completion of a stream: biases and factors, learnt one value at a time by Kalman filters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from surefill.arrays import Array, Indices, as_stored, size_needed, with_capacity
from surefill.data.units import UnitMap
from surefill.errors import InputError, invalid_parameter, is_seed
from surefill.kernels.counter_random import stream_key
from surefill.kernels.kalman_filter import (
    HIGH,
    LOW,
    N_COLS,
    N_LEARNT,
    N_ROWS,
    NOISE,
    SCALE,
    FilterParameters,
    FilterState,
    expert_weights,
    filter_values,
    mix_experts,
    predictions_at,
)

# Variances are on the scale of values in [-1, 1]. Figures are prequential RMSEs on MovieLens 100K by time (0.9425 with
# the constants as they are), and on a 60 x 50 matrix of rank 2 drawn 6000 times with noise 0.05 (0.282).

RANDOM_STREAM = 2
"""Number of this model's random stream; :class:`FactoredGame` uses another of the same seed."""

FIRST_NOISE = 0.2
"""Noise variance before any error was made; from 0.05 to 0.8 the RMSE stays within 0.001, and 0.278 to 0.290."""

BIAS_VARIANCE = 0.05
"""Prior variance of the biases; 0.025 gives 0.947 and 0.270, 0.1 gives 0.942 and 0.297."""

FACTOR_VARIANCES = (0.06, 0.4)
"""Prior variances of the experts' factors, the small one for ratings (0.950 with 0.03, 0.946 with 0.12), the large one
for plain low-rank matrices (0.322 with 0.2, 0.286 with 0.8)."""

FORGETTING = 0.001
"""Share of the prior covariance that returns with each update of a row; none gives 0.949, 0.002 gives 0.941."""

NOISE_SHARE = 0.8
"""Share of the mean squared error that is noise, the rest being still to learn; 0.6 gives 0.941, 1 gives 0.946."""

INIT_SCALE = 0.1
"""Half-width of the initial factors; 0.025 to 0.1 within 0.001, 0.4 gives 0.973."""

LOSS_FORGETTING = 0.0005
"""Discount of the experts' losses with each observation; from 0 to 0.005 the RMSE stays within 0.0003."""


MOST_FACTORS = 1000
"""Of a model: each row and column then takes 8 megabytes of covariances, and a value some milliseconds."""


@dataclass
class KalmanFactors:
    """value = mean + b_i + c_j + p_i . q_j, a Kalman filter for each row and column (``kernels/kalman_filter.py``).

    The prior variance of the factors that suits differs from data to data (ratings are mostly biases, a plain low-rank
    matrix has none), so two experts learn side by side, one with a small and one with a large prior variance, and
    their predictions are mixed by exponential weights exp(-loss / (2 v)) on the squared errors each made so far.

    One observation costs O(rank^2); memory is O((m + n) rank^2) numbers in single precision. The noise variance is
    estimated from the errors.

    Parameters
    ----------
    bounds : (low, high), the range of values. When None it is learnt: predictions are clipped to the range seen so
        far, and the internal scale doubles whenever a value lies further out, predictions staying as they were.
    rank : number of factors.
    random_state : seed of the initial factors.
    """

    bounds: tuple[float, float] | None = None
    rank: int = 10
    random_state: int = 0

    def __post_init__(self) -> None:
        if not (is_seed(self.rank) and 1 <= self.rank <= MOST_FACTORS):
            raise invalid_parameter("KalmanFactors", "rank", f"a whole number from 1 to {MOST_FACTORS}", self.rank)
        width = int(self.rank) + 1
        # mean, noise, offset, scale, low, high; low > high stands for no range yet
        scalars = np.array([0.0, FIRST_NOISE, 0.0, 0.0, np.inf, -np.inf])
        if self.bounds is not None:
            unit = UnitMap(float(self.bounds[0]), float(self.bounds[1]))
            scalars[2:] = unit.centre, unit.half_width, unit.low, unit.high
        self._experts = [
            FilterState(
                X=np.zeros((0, width), np.float32),
                Y=np.zeros((0, width), np.float32),
                A=np.zeros((0, width, width), np.float32),
                B=np.zeros((0, width, width), np.float32),
                scalars=scalars.copy(),
                counters=np.zeros(3, np.int64),
            )
            for _ in FACTOR_VARIANCES
        ]
        self._losses = np.zeros(len(FACTOR_VARIANCES) + 1)

    def parameters(self, expert: int) -> FilterParameters:
        """The parameters of one expert's filters."""
        return FilterParameters(
            bias_variance=BIAS_VARIANCE,
            factor_variance=FACTOR_VARIANCES[expert],
            forgetting=FORGETTING,
            noise_share=NOISE_SHARE,
            init_scale=INIT_SCALE,
            fixed_range=self.bounds is not None,
            key=stream_key(int(self.random_state), RANDOM_STREAM),
        )

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns there are."""
        counters = self._experts[0].counters
        return int(counters[N_ROWS]), int(counters[N_COLS])

    @property
    def n_learnt(self) -> int:
        """How many values were learnt."""
        return int(self._experts[0].counters[N_LEARNT])

    @property
    def range(self) -> tuple[float, float]:
        """(low, high): the bounds given, or the range seen so far, (inf, -inf) before any value."""
        scalars = self._experts[0].scalars
        return float(scalars[LOW]), float(scalars[HIGH])

    def learn(self, rows: Indices, cols: Indices, values: Array) -> Array:
        """Learn the values in order; returns what was predicted for each before it was learnt."""
        counters = self._experts[0].counters
        m, n = size_needed(rows, counters[N_ROWS]), size_needed(cols, counters[N_COLS])
        predicted, mixed = np.empty((len(self._experts), len(values))), np.empty(len(values))
        for k, state in enumerate(self._experts):
            self._experts[k] = state._replace(
                X=with_capacity(state.X, m),
                A=with_capacity(state.A, m),
                Y=with_capacity(state.Y, n),
                B=with_capacity(state.B, n),
            )
            filter_values(rows, cols, values, self._experts[k], self.parameters(k), predicted[k])
        mix_experts(predicted, values, LOSS_FORGETTING, self._losses, mixed)
        return mixed

    def predict(self, rows: Indices, cols: Indices) -> Array:
        """Values at the cells; an index of -1 stands for a row or column never seen, and leaves its terms out."""
        predicted, weights = np.empty((len(self._experts), len(rows))), np.empty(len(self._experts))
        for k, state in enumerate(self._experts):
            predictions_at(rows, cols, state, predicted[k])
        expert_weights(self._losses, weights)
        mixed: Array = (weights[:, None] * predicted).sum(axis=0)
        return mixed

    def state(self) -> dict[str, Any]:
        """The whole state, as arrays without their spare capacity."""
        return {
            "losses": self._losses.copy(),
            "experts": {str(k): _without_spare(state) for k, state in enumerate(self._experts)},
        }

    def restore(self, state: dict[str, Any]) -> Self:
        """Go on from a :meth:`state` of a model with the same parameters; returns the model itself."""
        width = int(self.rank) + 1
        for k, empty in enumerate(self._experts):
            stored = state["experts"][str(k)]
            restored = FilterState(
                **{name: as_stored(stored[name], old.dtype).copy() for name, old in empty._asdict().items()}
            )
            m, n = int(restored.counters[N_ROWS]), int(restored.counters[N_COLS])
            expected = ((m, width), (n, width), (m, width, width), (n, width, width), (6,), (3,))
            # the kernels index by these counters without looking
            if restored.counters.min() < 0 or tuple(array.shape for array in restored) != expected:
                raise InputError("this state belongs to a model with other parameters.")
            finite = (*restored[:4], restored.scalars[:LOW])
            known = all(np.isfinite(array).all() for array in finite) and not np.isnan(restored.scalars).any()
            # a scale below zero would be doubled for ever
            if not known or restored.scalars[[NOISE, SCALE]].min() < 0:
                raise InputError("this state holds numbers that no model has.")
            self._experts[k] = restored
        if len({tuple(expert.counters.tolist()) for expert in self._experts}) > 1:
            raise InputError("this state holds experts that learnt different values.")
        self._losses = as_stored(state["losses"], np.dtype(np.float64)).copy()
        if self._losses.shape != (len(FACTOR_VARIANCES) + 1,) or not (self._losses >= 0).all():
            raise InputError("this state holds losses that no model has.")
        return self


def _without_spare(state: FilterState) -> dict[str, Any]:
    m, n = int(state.counters[N_ROWS]), int(state.counters[N_COLS])
    sizes = {"X": m, "A": m, "Y": n, "B": n}
    return {name: array[: sizes.get(name)].copy() for name, array in state._asdict().items()}
