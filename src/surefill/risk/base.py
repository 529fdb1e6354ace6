"""What a risk is and what makes one."""

from __future__ import annotations

from typing import Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefill.completion import Completion, CompletionAlgorithm
from surefill.coverage.algorithms import ConfidenceAlgorithm
from surefill.data import Observations
from surefill.loop import ProgressCallback


class Risk(Protocol):
    """The expected squared error of every entry against a new observation, in the data's squared units."""

    def at(self, rows: ArrayLike, cols: ArrayLike) -> NDArray[np.float64]:
        """Expected squared errors at the pairs (rows[t], cols[t])."""
        ...

    def fold_in(self, observations: Observations) -> Self:
        """The risk of other rows, seen at ``observations``."""
        ...


@runtime_checkable
class RiskAlgorithm(Protocol):
    """Observations, how they are completed, and their completion in; a risk out."""

    def fit(
        self,
        observations: Observations,
        completion_algorithm: CompletionAlgorithm,
        completion: Completion,
        confidence: ConfidenceAlgorithm | None = None,
        progress: ProgressCallback | None = None,
    ) -> Risk:
        """Learn how wrong ``completion`` is where."""
        ...
