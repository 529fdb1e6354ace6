"""The promise: settled on cells that blocks report, few enough for one machine, then tested on the cells set aside."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from surefill.blocks import Blocks
from surefill.distributed.answer_block import EstimateColumns
from surefill.distributed.learning import gathered
from surefill.estimators.fitting import MOST_LIKE_OBSERVED, POPULATION
from surefill.guarantee import (
    Calibration,
    ConformalScores,
    Guarantee,
    Population,
    Selection,
    SelectionPlan,
    select,
    state_guarantee,
)
from surefill.guarantee.plan import within
from surefill.losses import ClippedLoss
from surefill.spaces.confidence_matrix import some_cells


@dataclass(frozen=True, eq=False)
class CalibratedSelection:
    """The kept set, what is promised of it, and the scores of intervals."""

    plan: SelectionPlan
    calibration: Calibration
    selection: Selection
    guarantee: Guarantee
    scores: ConformalScores


@dataclass(frozen=True)
class Asked:
    """What is to be promised."""

    tolerance: float
    delta: float
    sensitivity: float
    floor: float
    random_state: int


def make_promise(
    blocks: Blocks,
    columns: EstimateColumns,
    loss: ClippedLoss,
    asked: Asked,
    shape: tuple[int, int],
    n_cells: int,
    n_training: int,
) -> CalibratedSelection:
    """Settle the plan without the calibration cells, then look at these, once."""
    weights = columns.target.weights(_NO_ROWS, shape)
    population = _population(blocks, columns, loss, asked, shape, n_cells - n_training, n_training)
    plan = SelectionPlan(
        tolerance=asked.tolerance,
        delta=asked.delta,
        floor=asked.floor,
        n_calibration=n_cells - n_training,
        n_observed=n_cells,
        population=population,
        loss=loss.loss,
        sensitivity=asked.sensitivity,
        leaves_out_calibration=weights.leaves_out_calibration,
    )
    cells = gathered(blocks.each("calibration_cells", columns, loss))
    error = cells.pop("error")
    calibration = Calibration(**cells)
    selection = select(plan, calibration)
    guarantee = state_guarantee(plan, selection, calibration, weights, loss, shape=shape)
    scores = ConformalScores.of(error, loss.loss.error_scale(calibration.risk), calibration.weight)
    return CalibratedSelection(plan, calibration, selection, guarantee, scores)


_NO_ROWS = {"row_logit": np.zeros(0), "row_pattern": np.zeros((0, 7)), "row_factor": np.zeros(0)}
"""Rows without any, where only the words of weights are asked for."""


def _population(
    blocks: Blocks,
    columns: EstimateColumns,
    loss: ClippedLoss,
    asked: Asked,
    shape: tuple[int, int],
    n_calibration: int,
    n_training: int,
) -> Population:
    """The supported cells that the promise is about, or cells that stand for them."""
    if columns.target.aim == "observed":
        share = min(1.0, MOST_LIKE_OBSERVED / n_training)
        cells = gathered(blocks.each("population_trained", columns, loss, share))
        supported = within(0.0, cells["confidence"], 0.0, asked.floor)
        none = np.zeros(np.count_nonzero(supported), dtype=bool)
        count, weight = n_calibration / len(supported), np.ones(len(none))
        return Population.of(cells["risk"][supported], weight, cells["largest_loss"][supported], count, none, None)
    rows, cols = some_cells(shape, POPULATION, asked.random_state)
    count = shape[0] * shape[1] / len(rows)
    order = np.argsort(rows, kind="stable")
    cells = gathered(blocks.each("population_outside", columns, loss, rows[order], cols[order]))
    supported = within(0.0, cells["confidence"], 0.0, asked.floor)
    kept = {name: table[supported] for name, table in cells.items()}
    missing = count * np.count_nonzero(cells["missing"])
    return Population.of(kept["risk"], kept["weight"], kept["largest_loss"], count, kept["missing"], missing)
