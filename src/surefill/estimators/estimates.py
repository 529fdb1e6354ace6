"""Value, confidence and risk of entries, computed together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from surefill.arrays import Array, IntArray
from surefill.completion import Completion
from surefill.confidence import ExtendableConfidence, PosteriorConfidence
from surefill.data import Observations
from surefill.risk import PriorRisk, Risk


@dataclass(frozen=True, eq=False)
class Estimates:
    """A completion with its confidence and risk, so that one prediction per entry serves all three.

    Where the row or the column was never observed, the confidence is 0 and the risk is that of the ``prior``.
    """

    completion: Completion
    confidence: ExtendableConfidence
    risk: Risk
    prior: PriorRisk

    def at(self, rows: ArrayLike, cols: ArrayLike) -> EstimatesAt:
        """Predictions, confidences and risks at the pairs (rows[t], cols[t])."""
        i, j = np.asarray(rows), np.asarray(cols)
        predicted, seen = self.completion.at(i, j), self.prior.seen(i, j)
        if seen.all():
            return self._at_seen(i, j, predicted)
        confidence, risk = np.zeros(i.shape), self.prior.at(i, j, predicted)
        _, confidence[seen], risk[seen] = self._at_seen(i[seen], j[seen], predicted[seen])
        return EstimatesAt(predicted, confidence, risk)

    def _at_seen(self, rows: IntArray, cols: IntArray, predicted: Array) -> EstimatesAt:
        if self._posterior_is_of_completion:
            confidence = self.confidence.given(rows, cols, predicted)  # type: ignore[attr-defined]
        else:
            confidence = self.confidence.at(rows, cols)
        return EstimatesAt(predicted, confidence, self.risk.given(rows, cols, predicted, confidence))

    def block(self, rows: IntArray, cols: IntArray) -> EstimatesAt:
        """The same on the grid rows x cols, by matrix products where the parts allow."""
        predicted, confidence = self.completion.block(rows, cols), self.confidence.block(rows, cols)
        i, j = np.ix_(rows, cols)
        risk = self.risk.given(i, j, predicted, confidence)
        if not (self.prior.row_seen(rows).all() and self.prior.col_seen(cols).all()):
            seen = self.prior.seen(i, j)
            confidence, risk = np.where(seen, confidence, 0.0), np.where(seen, risk, self.prior.at(i, j, predicted))
        return EstimatesAt(predicted, confidence, risk)

    def fold_in(self, observations: Observations) -> Estimates:
        """The same for other rows, seen at ``observations``, the completion folded in once."""
        completion = self.completion.fold_in(observations)
        if self._posterior_is_of_completion:
            confidence = self.confidence.fold_in(observations, completion)  # type: ignore[call-arg]
        else:
            confidence = self.confidence.fold_in(observations)
        risk = self.risk.fold_in(observations, completion, confidence)
        return Estimates(completion, confidence, risk, self.prior.fold_in(observations))

    @property
    def _posterior_is_of_completion(self) -> bool:
        """Whether the confidence rests on the very values that the completion gives."""
        return isinstance(self.confidence, PosteriorConfidence) and self.confidence.completion is self.completion


class EstimatesAt(NamedTuple):
    """Predictions, not yet clipped, confidences and risks of entries, an array each."""

    predicted: Array
    confidence: Array
    risk: Array
