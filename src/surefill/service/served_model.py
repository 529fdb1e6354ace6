"""A fitted model as it is served: read from its file once, asked by label, never changed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from surefill.arrays import Array, Indices
from surefill.estimators import PartialCompleter, PartialCompletion, load
from surefill.estimators.observing import training_cells
from surefill.guarantee import Guarantee, Reason
from surefill.service.store.models import ModelRecord

LEVEL = 0.9
"""Probability with which an interval holds a new observation, unless another is asked for."""


@dataclass(frozen=True, eq=False)
class ModelAnswer:
    """What a model says of cells, an array each, and whether it has seen row and column."""

    value: Array
    confidence: Array
    risk: Array
    keep: NDArray[np.bool_]
    low: Array
    high: Array
    reason: NDArray[np.str_]
    row_known: NDArray[np.bool_]
    col_known: NDArray[np.bool_]
    observed: Indices
    """Positions among the model's observations, -1 where a cell was not observed."""


@dataclass(frozen=True, eq=False)
class ServedModel:
    """A model in use.

    Attributes
    ----------
    record : its line in the store.
    completer : as it was fitted.
    larger : its result with one more row and column, which stand for all that were never seen.
    """

    record: ModelRecord
    completer: PartialCompleter
    larger: PartialCompletion

    @classmethod
    def load(cls, record: ModelRecord, file: Path) -> Self:
        """Read the file and answer once, so that the first client does not wait for compilation."""
        completer = load(file)
        seen, result = completer.observations_, completer.result_
        (m, n), trained = seen.shape, seen.select(training_cells(result, seen))
        model = cls(record, completer, result.extended((m + 1, n + 1), trained))
        model.answer(seen.row_names(np.array([0])), seen.col_names(np.array([0])), LEVEL)
        return model

    @property
    def guarantee(self) -> Guarantee:
        """What it promises."""
        guarantee: Guarantee = self.completer.result_.guarantee
        return guarantee

    def answer(self, rows: Any, cols: Any, level: float) -> ModelAnswer:
        """Value, confidence, risk, keep, interval and reason at labelled cells.

        A cell is kept where the model keeps it, promises something, and has seen row and column but not the cell.
        """
        seen, larger = self.completer.observations_, self.larger
        m, n = seen.shape
        i, j = seen.locate(rows, cols)
        row_known, col_known = i >= 0, j >= 0
        observed = np.where(row_known & col_known, seen.find(i, j), -1)
        i, j = np.where(row_known, i, m), np.where(col_known, j, n)
        answer = larger.answer(i, j)
        low, high = larger.interval_around(answer, i, j, level)
        reason = np.select(
            [~row_known & ~col_known, ~row_known, ~col_known, observed >= 0],
            [Reason.NEW_BOTH, Reason.NEW_ROW, Reason.NEW_COLUMN, Reason.OBSERVED],
            larger.reasons(i, j, answer),
        )
        keep = answer.keep & row_known & col_known & (observed < 0) & self.guarantee.promised
        return ModelAnswer(
            answer.value, answer.confidence, answer.risk, keep, low, high, reason, row_known, col_known, observed
        )  # fmt: skip
