"""What a risk is and what makes one."""

from __future__ import annotations

from typing import Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefill.arrays import Array
from surefill.completion import Completion
from surefill.confidence import ExtendableConfidence
from surefill.data import Observations
from surefill.loop import ProgressCallback
from surefill.risk.cross_fitting import CrossFit


class Risk(Protocol):
    """The expected loss of every entry against a new observation: the squared error, unless another was asked for.

    Examples
    --------
    >>> import surefill as sf
    >>> sim = sf.datasets.make_low_rank((60, 50), rank=2, n_draws=2000, noise=0.1, random_state=0)
    >>> completer = sf.PartialCompleter(tolerance=0.1, confidence="posterior").fit(sim.observations)
    >>> risk: Risk = completer.result_.risk
    >>> risk.at([0, 1], [3, 4]).shape
    (2,)
    """

    def at(self, rows: ArrayLike, cols: ArrayLike) -> NDArray[np.float64]:
        """Expected losses at the pairs (rows[t], cols[t])."""
        ...

    def given(self, rows: ArrayLike, cols: ArrayLike, predicted: Array, confidence: Array) -> NDArray[np.float64]:
        """The same where the completion's values and the confidences at these pairs are known already.

        Rows and columns may be ``np.ix_(rows, cols)``, a grid, and the others of its shape.
        """
        ...

    def fold_in(
        self,
        observations: Observations,
        completion: Completion | None = None,
        confidence: ExtendableConfidence | None = None,
    ) -> Self:
        """The risk of other rows, seen at ``observations``; their completion and confidence, if known already."""
        ...


@runtime_checkable
class RiskAlgorithm(Protocol):
    """Observations, their completion and completions without a part of them in; a risk out.

    Examples
    --------
    >>> import surefill as sf
    >>> isinstance(sf.risk.RiskModel(), RiskAlgorithm)
    True
    """

    def fit(
        self,
        observations: Observations,
        completion: Completion,
        cross_fit: CrossFit,
        confidence: ExtendableConfidence | None = None,
        floor: float | None = None,
        progress: ProgressCallback | None = None,
    ) -> Risk:
        """Learn how wrong ``completion`` is, by ``cross_fit.loss``; ``confidence`` supports what reaches ``floor``."""
        ...
