"""What an error costs: its square, its size, or whether it is beyond a distance."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from surefill.arrays import Array
from surefill.data import BoundsSource, Observations
from surefill.data.compact import mean_by_counts
from surefill.errors import InputError, invalid_parameter, is_number
from surefill.registry import storable


class Loss(ABC):
    """A loss l(|M_x - y|) >= 0 that grows with the error's size, and its words.

    Attributes
    ----------
    degree : the power of the error's size that the loss grows with; 0 for a chance.
    has_limit : whether the loss is bounded whatever the values are.
    mean_name, name, units : in sentences, such as "mean squared error", "squared error", "the data's squared units".
    expected_name : what a risk is, such as "expected squared error".

    Examples
    --------
    >>> import numpy as np
    >>> seen = Observations([0, 0, 1], [0, 1, 1], [1.0, 2.0, 4.0])
    >>> for loss in (SquaredError(), AbsoluteError(), Misclassification(0.5)):
    ...     print(loss.mean_name, loss.at(seen, np.array([1.0, 4.0, 3.75])))
    mean squared error [0.     4.     0.0625]
    mean absolute error [0.   2.   0.25]
    share of errors beyond 0.5 [0. 1. 0.]
    """

    degree: float
    has_limit: bool = False
    name: str
    mean_name: str
    expected_name: str
    units: str

    @abstractmethod
    def at(self, observations: Observations, predicted: ArrayLike) -> Array:
        """The loss at each observed cell of predicting ``predicted``: the mean over the cell's draws, or more."""

    @abstractmethod
    def of(self, error: float) -> float:
        """l(error), the loss of one error of this size."""

    @abstractmethod
    def variance(self, mean: ArrayLike) -> Array:
        """Variance of the losses of normal errors whose mean loss is ``mean``."""

    @abstractmethod
    def error_scale(self, risk: Array) -> Array:
        """The size of a typical error where the expected loss is ``risk``; intervals are as wide in proportion."""

    @property
    def size_loss(self) -> Loss:
        """The loss whose expectation is learnt: this one, unless it is a chance."""
        return self

    def largest(self, error: Any) -> Any:
        """No loss is larger where no error is beyond ``error``."""
        return self.of(error)

    def default_tolerance(self, observations: Observations) -> float:
        """Half the mean loss of the best constant: kept entries then have at most half of it."""
        constant = self._best_constant(observations)
        mean = mean_by_counts(self.at(observations, constant), observations.counts)
        if mean == 0:
            raise InputError(
                f"the {self.mean_name} of predicting {constant:g} everywhere is 0, so a tolerance must be given."
            )
        return mean / 2

    def _best_constant(self, observations: Observations) -> float:
        order = np.argsort(observations.values, kind="stable")
        running = np.cumsum(observations.counts[order])
        return float(observations.values[order][np.searchsorted(running, running[-1] / 2)])


@storable
@dataclass(frozen=True)
class SquaredError(Loss):
    """l = (M_x - y)^2, the paper's loss. A cell drawn repeatedly has the mean over its draws, exactly.

    Examples
    --------
    >>> SquaredError().at(Observations([0, 0], [0, 0], [1.0, 3.0]), [2.0])
    array([1.])
    """

    degree = 2.0
    name = "squared error"
    mean_name = "mean squared error"
    expected_name = "expected squared error"
    units = "the data's squared units"

    def at(self, observations: Observations, predicted: ArrayLike) -> Array:
        """(predicted_x - mean_x)^2 + scatter_x / count_x."""
        return observations.squared_errors(predicted)

    def of(self, error: float) -> float:
        """error^2."""
        return error**2

    def variance(self, mean: ArrayLike) -> Array:
        """2 mean^2, that of a chi-squared variable."""
        return np.asarray(2.0 * np.asarray(mean) ** 2)

    def error_scale(self, risk: Array) -> Array:
        """sqrt(risk)."""
        return np.sqrt(risk)

    def default_tolerance(self, observations: Observations) -> float:
        """Half the variance of the draws: kept entries then explain at least half of it."""
        if observations.variance == 0:
            raise InputError(
                f"all values to learn from equal {observations.values[0]:g}, so a tolerance must be given."
            )
        return observations.variance / 2


@storable
@dataclass(frozen=True)
class AbsoluteError(Loss):
    """l = |M_x - y|.

    Of a cell drawn repeatedly the mean and the scatter of its draws are kept, not the draws. Its loss is the root of
    their mean squared error, by Jensen's inequality never less than their mean absolute error, and equal to it where
    the draws agree: a promise about it holds for the draws all the more.

    Examples
    --------
    >>> AbsoluteError().at(Observations([0, 0, 1], [0, 0, 1], [1.0, 3.0, 5.0]), [2.0, 2.0])
    array([1., 3.])
    """

    degree = 1.0
    name = "absolute error"
    mean_name = "mean absolute error"
    expected_name = "expected absolute error"
    units = "the data's units"

    def at(self, observations: Observations, predicted: ArrayLike) -> Array:
        """sqrt((predicted_x - mean_x)^2 + scatter_x / count_x)."""
        return np.sqrt(observations.squared_errors(predicted))

    def of(self, error: float) -> float:
        """|error|."""
        return abs(error)

    def variance(self, mean: ArrayLike) -> Array:
        """(pi / 2 - 1) mean^2, that of a half-normal variable."""
        return np.asarray((np.pi / 2 - 1) * np.asarray(mean) ** 2)

    def error_scale(self, risk: Array) -> Array:
        """The risk itself."""
        return risk


@storable
@dataclass(frozen=True)
class Misclassification(Loss):
    """l = 1 where |M_x - y| > distance, else 0: whether a value is missed by more than ``distance``.

    With distance 0.5 on whole numbers: whether rounding the prediction misses the value. It is at most 1, so that
    nothing need be known about the range of values. Of a cell drawn repeatedly with different values only mean and
    scatter are known; its loss is min(1, mean squared error / distance^2), by Markov's inequality never less than the
    share of its draws that are missed.

    Examples
    --------
    >>> Misclassification(0.5).at(Observations([0, 1, 2], [0, 1, 2], [1.0, 3.0, 5.0]), [1.4, 3.6, 5.0])
    array([0., 1., 0.])
    """

    distance: float

    degree = 0.0
    has_limit = True
    units = "a share of the entries"

    def __post_init__(self) -> None:
        if not (is_number(self.distance) and 0 <= self.distance < np.inf):
            raise invalid_parameter("Misclassification", "distance", "a number of at least 0", self.distance)

    @property
    def name(self) -> str:  # type: ignore[override]
        """Of one error."""
        return f"error beyond {self.distance:g}"

    @property
    def mean_name(self) -> str:  # type: ignore[override]
        """Of several."""
        return f"share of errors beyond {self.distance:g}"

    @property
    def expected_name(self) -> str:  # type: ignore[override]
        """Of an error to come."""
        return f"chance of an error beyond {self.distance:g}"

    def at(self, observations: Observations, predicted: ArrayLike) -> Array:
        """1 where missed; of draws that differ an upper bound on the share missed."""
        missed = np.abs(np.asarray(predicted, dtype=np.float64) - observations.values) > self.distance
        with np.errstate(divide="ignore", invalid="ignore"):
            at_most = np.minimum(observations.squared_errors(predicted) / np.square(self.distance), 1.0)
        return np.where(observations.scatter > 0, at_most, missed.astype(np.float64))

    def of(self, error: float) -> float:
        """1 beyond the distance, else 0."""
        return float(abs(error) > self.distance)

    @property
    def size_loss(self) -> Loss:
        """The absolute error, from which the chance follows."""
        return AbsoluteError()

    def largest(self, error: Any) -> Any:
        """1."""
        return 1.0

    def variance(self, mean: ArrayLike) -> Array:
        """mean (1 - mean), that of a coin."""
        share = np.clip(mean, 0.0, 1.0)
        return np.asarray(share * (1.0 - share))

    def error_scale(self, risk: Array) -> Array:
        """1 for all entries: the chance of a large error does not say how large errors are."""
        return np.ones(np.shape(risk))


SQUARED = SquaredError()
"""The loss where none is named."""

LOSSES: dict[str, Loss] = {"squared": SQUARED, "absolute": AbsoluteError()}
"""Losses that are known by a name."""


def choose_loss(given: object, of: str = "PartialCompleter") -> Loss:
    """The loss that the user named or gave.

    Examples
    --------
    >>> choose_loss("absolute").mean_name, choose_loss("beyond:0.5")
    ('mean absolute error', Misclassification(distance=0.5))
    """
    if isinstance(given, Loss):
        return given
    kind, _, distance = given.partition(":") if isinstance(given, str) else ("", "", "")
    if isinstance(given, str) and given in LOSSES:
        return LOSSES[given]
    if kind == "beyond" and _is_distance(distance):
        return Misclassification(float(distance))
    expected = "'squared', 'absolute', 'beyond:DISTANCE', or a loss such as Misclassification(0.5)"
    raise invalid_parameter(of, "loss", expected, given)


def _is_distance(text: str) -> bool:
    try:
        return 0 <= float(text) < np.inf
    except ValueError:
        return False


@storable
@dataclass(frozen=True)
class ClippedLoss:
    """min(l(|M_x - y|), L) with L the loss of the largest error, from a prediction to the far end of the bounds.

    With bounds that hold, nothing is clipped. Where no more is known than the range of the values seen, errors beyond
    the largest count as that one, so that what is promised of the clipped loss needs no assumption on the values.
    ``predicted_range`` is the least and the largest prediction at a training cell; all predictions are clipped to it.

    Examples
    --------
    >>> bounded = ClippedLoss(SquaredError(), (1.0, 5.0), BoundsSource.SCALE, (2.0, 4.5))
    >>> bounded.largest_error, bounded.largest
    (3.5, 12.25)
    >>> bounded.condition
    'values lie in [1, 5] (the scale they were seen on)'
    >>> ClippedLoss(SquaredError(), (1.0, 5.0), BoundsSource.SEEN, (2.0, 4.5)).clipping
    'Errors beyond 3.5 count as 3.5: bounds were not given.'
    """

    loss: Loss
    bounds: tuple[float, float]
    bounds_from: BoundsSource
    predicted_range: tuple[float, float]

    @property
    def largest_error(self) -> float:
        """The largest distance from a prediction to a value within the bounds."""
        (low, high), (least, most) = self.bounds, self.predicted_range
        return max(most - low, high - least)

    @property
    def largest(self) -> float:
        """L."""
        return float(self.loss.largest(self.largest_error))

    def largest_at(self, predicted: Array) -> Array:
        """The largest loss of each prediction, clipped to its range; L for all where bounds are only what was seen."""
        if not self.rests_on_bounds:
            return np.full(np.shape(predicted), self.largest)
        (low, high), inside = self.bounds, np.clip(predicted, *self.predicted_range)
        return np.asarray(self.loss.largest(np.maximum(inside - low, high - inside)))

    def at(self, observations: Observations, predicted: Array) -> Array:
        """The clipped loss at each observed cell, of predictions clipped to their range."""
        return np.minimum(self.loss.at(observations, np.clip(predicted, *self.predicted_range)), self.largest)

    @property
    def rests_on_bounds(self) -> bool:
        """Whether what is said of the loss assumes that values lie within the bounds."""
        return not self.loss.has_limit and self.bounds_from is not BoundsSource.SEEN

    @property
    def condition(self) -> str:
        """What is assumed of the values, in words; empty where nothing is."""
        low, high = self.bounds
        how = f" ({self.bounds_from.value})" if self.bounds_from is BoundsSource.SCALE else ""
        return f"values lie in [{low:g}, {high:g}]{how}" if self.rests_on_bounds else ""

    @property
    def clipping(self) -> str:
        """What large errors count as, in one sentence; empty where they count as they are."""
        if self.loss.has_limit or self.rests_on_bounds:
            return ""
        most = f"{self.largest_error:.4g}"
        return f"Errors beyond {most} count as {most}: bounds were not given."
