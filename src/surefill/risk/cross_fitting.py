"""Predictions of every observed cell by completions that did not see it."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefill.completion import Completion, CompletionAlgorithm
from surefill.coverage.algorithms import ConfidenceAlgorithm, ExtendableConfidence
from surefill.data import Observations
from surefill.data.groups import IntArray
from surefill.data.splits import split_folds
from surefill.loop import ProgressCallback
from surefill.risk.count_variance import CountVariance

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Evidence:
    """What is known of entries before their values are: their predictions, and what may tell how good these are."""

    completion: Completion
    spread: CountVariance | None
    confidence: ExtendableConfidence | None

    @classmethod
    def of(
        cls,
        observations: Observations,
        completion: Completion,
        confidence: ConfidenceAlgorithm | None,
        progress: ProgressCallback | None,
    ) -> Self:
        """That of ``completion``, fitted on ``observations``; draws are counted where it has no variance."""
        spread = None if hasattr(completion, "variance") else CountVariance.of(observations)
        fitted = None if confidence is None else confidence.fit(observations, completion, progress)[0]
        return cls(completion, spread, fitted)

    def fold_in(self, observations: Observations) -> Self:
        """What is known of other rows, seen at ``observations``."""
        spread = None if self.spread is None else self.spread.fold_in(observations)
        confidence = None if self.confidence is None else self.confidence.fold_in(observations)
        return replace(self, completion=self.completion.fold_in(observations), spread=spread, confidence=confidence)

    def monotone(self, rows: ArrayLike, cols: ArrayLike) -> Array:
        """log v, and 1 - C where there is a confidence: risk rises with each."""
        source = self.completion if self.spread is None else self.spread
        features = [np.log(source.variance(rows, cols))]  # type: ignore[union-attr]
        if self.confidence is not None:
            features.append(1.0 - self.confidence.at(rows, cols))
        return np.column_stack(features)


@dataclass(frozen=True, eq=False)
class CrossFitted:
    """Every observed cell once, in the order of the folds, as it looked to a completion of the other folds."""

    rows: IntArray
    cols: IntArray
    counts: NDArray[np.int64]
    squared_residuals: Array
    predicted: Array
    monotone: Array

    @classmethod
    def of(
        cls,
        observations: Observations,
        algorithm: CompletionAlgorithm,
        confidence: ConfidenceAlgorithm | None,
        n_folds: int,
        random_state: int,
        progress: ProgressCallback | None,
    ) -> Self:
        """Complete each fold from the others."""
        folds = [
            cls._fold(held_out, Evidence.of(train, algorithm.fit(train, progress), confidence, progress))
            for train, held_out in split_folds(observations, n_folds, random_state)
        ]
        return cls(*(np.concatenate([getattr(fold, field.name) for fold in folds]) for field in fields(cls)))

    @classmethod
    def _fold(cls, cells: Observations, evidence: Evidence) -> Self:
        i, j = cells.rows, cells.cols
        predicted = evidence.completion.at(i, j)
        return cls(i, j, cells.counts, cells.squared_errors(predicted), predicted, evidence.monotone(i, j))
