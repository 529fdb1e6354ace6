"""What the columns and the curves of the main job are learnt from, where rows lie in blocks: completion and risk.

One fold of the training cells is left out of a first fit, and the fit of all goes on from it, as
:class:`surefill.risk.CrossFit` does for many cells. Curves and factors of columns are learnt from the losses of that
fold, all of them or those of sampled rows, at most two million; factors of rows where the rows are.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from surefill.arrays import Array, Floats, IntArray, row_blocks
from surefill.blocks import Blocks
from surefill.completion import BayesianFactorModel
from surefill.completion.bayes.bayesian_model import FIRST_RANK, GROWTH_SWEEPS, SAMPLED_CELLS
from surefill.completion.bayes.blocked_solver import BlockedSolver, BlockedState, Runs
from surefill.completion.bayes.factor_posterior import FactorPosterior
from surefill.data import Observations, UnitMap
from surefill.distributed.parts_block import Part
from surefill.distributed.risk_block import REST, FitColumns, RiskColumns
from surefill.distributed.splitting import as_table
from surefill.kernels.factor_updates import moments_width
from surefill.loop import Outcome, ProgressCallback
from surefill.losses import Loss
from surefill.parallel import one_blas_thread
from surefill.risk import CrossFit, FittedRisk, PriorRisk
from surefill.risk.chance import ChanceOfLargeError
from surefill.risk.cross_fitting import ENOUGH_RESIDUALS, LEAST_SHARE, N_FOLDS, Residuals
from surefill.risk.noise_factors import NoiseFactors
from surefill.risk.prior_risk import HiddenLines
from surefill.risk.risk_model import LEAST_ERROR, learn_losses, unsupported_factor

TRAINING_ROWS = 161
"""The stream by which rows are sampled whose cells are gathered."""


def sampled_rows(
    blocks: Blocks, table: str, n_cells: int, n_cols: int, bounds: tuple[float, float]
) -> tuple[Array, Observations | None]:
    """The cells of some rows, about two million at most, as a table of these rows, and the rows' numbers among all."""
    return as_table(blocks.each("sampled", table, min(1.0, SAMPLED_CELLS / n_cells), TRAINING_ROWS), n_cols, bounds)


def fold_share(n_cells: int) -> float:
    """The share of the training cells that is left out of the first fit."""
    return float(min(1 / N_FOLDS, max(LEAST_SHARE, ENOUGH_RESIDUALS / n_cells)))


def fit_rest(
    blocks: Blocks,
    runs: Runs,
    shape: tuple[int, int],
    unit: UnitMap,
    model: BayesianFactorModel,
    progress: ProgressCallback | None,
    table: str = REST,
) -> tuple[BlockedState, FitColumns]:
    """The completion of the training cells that are not in the fold, or of those of another ``table``."""
    assert model.rank != "auto"
    rank = min(int(model.rank), *shape)
    about = shape, unit, min(rank, FIRST_RANK), model.tol, model.random_state
    solver = BlockedSolver.of(blocks, *about, runs, name=table)
    *_, outcome = model.grow(solver, rank, progress)
    return outcome.state, columns_of_fit(blocks, solver, outcome)


def fit_whole(
    blocks: Blocks,
    runs: Runs,
    shape: tuple[int, int],
    table: str,
    before: tuple[BlockedState, FitColumns],
    model: BayesianFactorModel,
    progress: ProgressCallback | None,
) -> FitColumns:
    """The completion of all training cells, gone on with from that of the others."""
    state, rest = before
    about = shape, rest.unit, rest.cols.mean.shape[1] - 1, model.tol, model.random_state
    solver = BlockedSolver.of(blocks, *about, runs, rest.mean, table)
    with one_blas_thread():
        outcome = solver.adopting(state).run(min(GROWTH_SWEEPS, model.max_sweeps), progress)
    return columns_of_fit(blocks, solver, outcome)


def columns_of_fit(blocks: Blocks, solver: BlockedSolver, outcome: Outcome[BlockedState]) -> FitColumns:
    """The columns of a fit, and their covariances given the rows."""
    state = outcome.state
    _, moments = blocks.total("moments", state.name, None)
    covariances = covariances_of(moments, state.cols, state.noise)
    return FitColumns(state.name, state.cols, covariances, solver.table.mean, state.noise, outcome.status,
                      solver.table.unit)  # fmt: skip


def covariances_of(moments: Array, cols: FactorPosterior, noise: float) -> Floats:
    """s2 (A + E + s2 K)^-1 / t_j of each column, from the sums of its normal equations; last the prior's K^-1."""
    k, P = cols.mean.shape[1], noise * cols.precision
    assert moments.shape[1] == moments_width(k)
    result: Floats = np.empty((len(moments) + 1, k, k), cols.mean.dtype)
    lower, spread = np.tril_indices(k), (k + 1) * (k + 2) // 2
    scale = noise / cols.noise_precision.mean[:-1]
    for here in row_blocks(len(moments), k * k):
        system = np.zeros((len(moments[here]), k, k))
        system[:, lower[0], lower[1]] = moments[here, : len(lower[0])]
        system += np.tril(system, -1).transpose(0, 2, 1)
        system[:, range(1, k), range(1, k)] += moments[here, spread + 1 : spread + k]
        result[here] = np.linalg.inv(system + P) * scale[here, None, None]
    result[-1] = np.linalg.inv(cols.precision)
    return result


def learn_risk(
    blocks: Blocks, fit: FitColumns, loss: Loss, n_fold: int, col_ids: IntArray, progress: ProgressCallback | None
) -> tuple[RiskColumns, PriorRisk, ChanceOfLargeError | None]:
    """Curves and factors of columns from the losses of the fold, then the factors of rows in all blocks."""
    cells = gathered(blocks.each("fold_sample", min(1.0, ENOUGH_RESIDUALS / max(1, n_fold))))
    at = (cells[name] for name in ("rows", "cols", "counts", "size_loss", "predicted", "log_variance"))
    least = float((LEAST_ERROR * fit.unit.half_width) ** loss.size_loss.degree)
    learnt = learn_losses(Residuals(*at), loss.size_loss, least, progress)
    hidden = HiddenLines(
        cells["rows"], cells["cols"], cells["counts"],
        *([cells[of + name] for name in ("from_col", "from_row", "from_none")] for of in ("", "loss_")),
    )  # fmt: skip
    largest = float(loss.largest(fit.unit.high - fit.unit.low))
    prior, hidden_prior = PriorRisk.of(hidden, np.empty(0, np.int64), col_ids, largest)
    prior = replace(prior, of_rows=NoiseFactors.none(np.empty(0, np.int64)))
    curve = learnt.slope, learnt.knots, learnt.heights
    risk = RiskColumns(*curve, learnt.cols, learnt.row_prior, hidden_prior, least)
    blocks.each("learn_row_noise", risk)
    chance = None
    if loss.size_loss is not loss:
        chance = ChanceOfLargeError.fit(learnt.left_out, cells["loss"], cells["counts"].astype(np.float64))
    return risk, prior, chance


def measure_unsupported(
    blocks: Blocks,
    risk: RiskColumns,
    sample: tuple[Array, Observations | None],
    model: BayesianFactorModel,
    loss: Loss,
    progress: ProgressCallback | None,
) -> float | None:
    """How many times larger losses are than expected where nothing ties row and column, on sampled rows."""
    numbers, cells = sample
    if cells is None or len(cells) < 2:
        return None
    hidden = CrossFit(cells, model, random_state=model.random_state, progress=progress, loss=loss).without_blocks()
    if hidden is None:
        return None
    of_rows = [np.concatenate(each) for each in zip(*blocks.each("row_noise_of", numbers), strict=True)]
    ends = (1.0, 0.0, 0.0)
    rows = NoiseFactors(
        np.arange(len(numbers)), *(np.append(each, end) for each, end in zip(of_rows, ends, strict=True))
    )
    curve = risk.slope, risk.knots, risk.heights
    return unsupported_factor(FittedRisk(hidden.evidence, rows, risk.cols, *curve), hidden, loss.size_loss)


def gathered(parts: list[Part]) -> Part:
    """The same arrays of all blocks, one after the other."""
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
