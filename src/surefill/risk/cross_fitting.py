"""Predictions of every observed cell by completions that did not see it."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefill.arrays import Array, IntArray
from surefill.completion import Completion, CompletionAlgorithm
from surefill.confidence.algorithms import ConfidenceAlgorithm, ExtendableConfidence
from surefill.data import Observations
from surefill.data.groups import Groups, locate
from surefill.data.splits import split_folds
from surefill.loop import ProgressCallback
from surefill.registry import storable


@storable
@dataclass(frozen=True, eq=False)
class CountVariance:
    """1 + 1 / (1 + n_i) + 1 / (1 + n_j) with n_i and n_j the draws in row i and column j:

    the variance of a draw, in units of the noise, where rows and columns have an effect each, as varied as the noise,
    and nothing else. The tables end with a 0 for rows and columns without draws.
    """

    row_ids: IntArray
    row_draws: Array
    col_ids: IntArray
    col_draws: Array

    @classmethod
    def of(cls, observations: Observations) -> CountVariance:
        """Count the draws."""
        by_row, by_col = observations.by_row, observations.by_col
        return cls(by_row.ids, _draws(by_row, observations.counts), by_col.ids, _draws(by_col, observations.counts))

    def variance(self, rows: ArrayLike, cols: ArrayLike) -> NDArray[np.float64]:
        """At the pairs (rows[t], cols[t])."""
        of_row = self.row_draws[locate(self.row_ids, np.asarray(rows))]
        of_col = self.col_draws[locate(self.col_ids, np.asarray(cols))]
        return np.asarray(1.0 + 1.0 / (1.0 + of_row) + 1.0 / (1.0 + of_col))

    def fold_in(self, observations: Observations) -> Self:
        """The same for other rows, seen at ``observations``."""
        by_row = observations.by_row
        return replace(self, row_ids=by_row.ids, row_draws=_draws(by_row, observations.counts))


def _draws(groups: Groups, counts: NDArray[np.int64]) -> Array:
    return np.append(np.add.reduceat(counts[groups.order], groups.starts[:-1]), 0).astype(np.float64)


@storable
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
