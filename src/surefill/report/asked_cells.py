"""Cells with all that decides whether a tolerance keeps them, asked once for all tolerances."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from surefill.arrays import Array, Indices
from surefill.estimators import Answer, PartialCompletion
from surefill.guarantee import Selection
from surefill.guarantee.plan import exposure


@dataclass(frozen=True, eq=False)
class AskedCells:
    """What is said of cells at the tolerance asked for, their weights and the largest losses they can have."""

    answer: Answer
    weight: Array
    largest_loss: Array

    @classmethod
    def of(cls, result: PartialCompletion, rows: Indices, cols: Indices) -> Self:
        """Ask a result about the cells (rows[t], cols[t])."""
        answer = result.answer(rows, cols)
        return cls(answer, result.weights.at(rows, cols), result.loss.largest_at(answer.value))

    def refusals(self, selection: Selection) -> NDArray[np.int8]:
        """Why each cell is not kept by ``selection``, as positions in ``REFUSALS``; 0 where it is."""
        exposed = exposure(self.weight, self.largest_loss, selection.tolerance)
        return selection.refusals(self.answer.risk, self.answer.confidence, exposed)
