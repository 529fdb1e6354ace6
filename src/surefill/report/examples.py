"""Missing cells drawn at random, to show by name what is kept, what is refused, and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from surefill.arrays import Array, Indices
from surefill.data import Observations
from surefill.estimators import PartialCompletion
from surefill.guarantee import Selection
from surefill.guarantee.selection import REFUSALS
from surefill.report.asked_cells import AskedCells
from surefill.spaces.confidence_matrix import some_cells

DRAWN = 20_000
"""Cells drawn to find examples among: of a set that holds one in a thousand there are then twenty."""

KEPT_SHOWN, REFUSED_SHOWN = 6, 2
"""Examples shown of kept cells, and of those refused for each reason."""


@dataclass(frozen=True, eq=False)
class Examples:
    """Cells in the order drawn, and by tolerance (``refusals[k]``) whether they are kept or why not.

    They hold, for each tolerance, the first cells drawn that it keeps and that it refuses for each reason.
    """

    rows: Indices
    cols: Indices
    value: Array
    confidence: Array
    risk: Array
    refusals: NDArray[np.int8]

    def shown(self, tolerance: int) -> tuple[Indices, Indices]:
        """Positions of the kept cells and of the refused ones to show at one of the tolerances."""
        kept, *refused = (_first(self.refusals[tolerance], reason) for reason in range(len(REFUSALS)))
        return kept, np.concatenate(refused)


def draw_examples(result: PartialCompletion, observations: Observations, selections: Sequence[Selection]) -> Examples:
    """Examples among missing cells that are drawn at random, each as likely as the other."""
    rows, cols = some_cells(observations.shape, DRAWN)
    order = np.random.default_rng(0).permutation(len(rows))
    missing = order[observations.find(rows[order], cols[order]) < 0]
    rows, cols = rows[missing], cols[missing]
    asked = AskedCells.of(result, rows, cols)
    refusals = np.stack([asked.refusals(each) for each in selections])
    firsts = [_first(line, reason) for line in refusals for reason in range(len(REFUSALS))]
    used = np.unique(np.concatenate(firsts))
    answer = asked.answer
    return Examples(
        rows[used], cols[used], answer.value[used], answer.confidence[used], answer.risk[used], refusals[:, used]
    )


def _first(refusals: NDArray[np.int8], reason: int) -> Indices:
    """The first cells that are refused for a reason, or kept."""
    return np.flatnonzero(refusals == reason)[: REFUSED_SHOWN if reason else KEPT_SHOWN]
