"""The risk of a table in blocks whose training cells are few enough for one machine: learnt there, as of one table.

Several folds, each completed without its cells, tell more of how noisy rows are than the one fold that blocks leave out
(docs/benchmarks.md). What is learnt of rows then goes to the blocks that have them.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from surefill.arrays import Array
from surefill.blocks import Blocks
from surefill.completion import BayesianFactorModel
from surefill.data import COMPACT_CELLS, Observations
from surefill.distributed.risk_block import RiskColumns
from surefill.loop import ProgressCallback
from surefill.losses import Loss
from surefill.risk import CrossFit, PriorRisk, RiskModel
from surefill.risk.chance import ChanceOfLargeError
from surefill.risk.cross_fitting import FOLD_FACTORS, MANY_CELLS
from surefill.risk.noise_factors import NoiseFactors
from surefill.risk.risk_model import unsupported_factor

FEW_CELLS = MANY_CELLS
"""Training cells up to which the risk of one table is learnt from several folds: as many as are gathered in any case to
choose the rank."""


def are_few(n_cells: int, model: BayesianFactorModel) -> bool:
    """Whether so many training cells are gathered. Of half a million and more, folds have at most 20 factors, and the
    variances of a completion with more come from another one, which blocks do not have."""
    assert model.rank != "auto"
    return n_cells <= FEW_CELLS and (n_cells < COMPACT_CELLS or int(model.rank) <= FOLD_FACTORS)


def learn_risk(
    blocks: Blocks,
    gathered: tuple[Array, Observations | None],
    model: BayesianFactorModel,
    loss: Loss,
    progress: ProgressCallback | None,
) -> tuple[RiskColumns, PriorRisk, ChanceOfLargeError | None, float | None]:
    """Curves and factors of columns, and the factors of rows, given to their blocks; the risk of lines never seen, and
    how many times larger losses are than expected where nothing ties row and column."""
    numbers, cells = gathered
    assert cells is not None
    folds = CrossFit(cells, model, random_state=model.random_state, progress=progress, loss=loss)
    risk = RiskModel().fit(cells, folds.fold_completion(0), folds, progress=progress)
    hidden, prior = folds.without_blocks(), PriorRisk.measured(folds)
    unsupported = None if hidden is None else unsupported_factor(risk, hidden, loss.size_loss)
    tables = {name + field: getattr(factors, field)
              for name, factors in (("", risk.rows), ("hidden_", prior.of_rows))
              for field in ("factors", "slopes", "centres")}  # fmt: skip
    ids = {"ids": numbers[risk.rows.ids], "hidden_ids": numbers[prior.of_rows.ids]}
    blocks.each("take_row_noise", ids | tables)
    nothing = np.empty(0, np.int64)
    prior = replace(prior, row_ids=nothing, of_rows=NoiseFactors.none(nothing))
    learnt = RiskColumns(risk.slope, risk.knots, risk.heights, risk.cols, part_powers=risk.part_powers)
    return learnt, prior, risk.chance, unsupported
