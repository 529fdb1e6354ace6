"""Calibration cells set aside in blocks, and their weights: the columns' part of it.

As :class:`surefill.guarantee.calibration_split.CalibrationSplit`, with coins that are hashes of rows and columns.
Margins need only how many rows were seen how often; the pattern's factors are learnt on sampled rows, at most half a
million cells, and every row is then fitted to the columns' factors where it is; strata are sums over drawn cells and
over all of the second half; raking alternates between rows, where they are, and columns, here.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from surefill.arrays import Array, Indices
from surefill.blocks import Blocks
from surefill.data import Observations
from surefill.distributed.parts_block import Part
from surefill.distributed.split_block import FIRST, SECOND
from surefill.distributed.target_columns import TargetColumns
from surefill.errors import InputError
from surefill.guarantee.calibration_split import ENOUGH_CHANCES, ENOUGH_TO_RAKE
from surefill.guarantee.propensity import Aim
from surefill.guarantee.propensity.calibration import MOST_DRAWS, calibrate_sample
from surefill.guarantee.propensity.cell_sample import ALL_CELLS
from surefill.guarantee.propensity.choice import MOST_LOCATIONS, fit_interactions
from surefill.guarantee.propensity.factors import DRAWS
from surefill.guarantee.propensity.line_chances import LineClasses
from surefill.guarantee.propensity.marginal import MarginalPropensity, class_log_odds
from surefill.guarantee.propensity.raking import PRIOR, SWEEPS
from surefill.guarantee.target_weights import LARGEST_RATE, HeldOutRate

SHARE = 1 - LARGEST_RATE
"""The share of the cells whose locations teach the chances."""

SAMPLED_ROWS = 111
"""The stream by which rows are sampled for the factors of the pattern."""


def split_cells(
    blocks: Blocks, shape: tuple[int, int], n_cells: int, aim: Aim, share: float, seed: int
) -> TargetColumns:
    """Set a ``share`` of the cells aside for calibration in all blocks; what weights need of columns."""
    if aim == "observed":
        blocks.each("hold_out_evenly", share)
        return TargetColumns(aim, np.zeros(shape[1]))
    rows, cols, n_first = _classes(blocks)
    if not 0 < n_first < n_cells:
        raise InputError(f"{n_cells:,} observed cells are too few to set some aside for a promise.")
    row_log_odds, col_log_odds = class_log_odds(rows, cols, SHARE)
    (total_odds,) = blocks.total("set_margins", rows.counts, row_log_odds)
    columns = TargetColumns(aim, col_log_odds[cols.of_line], n_draws=float(DRAWS * n_first))
    columns = _with_pattern(blocks, columns, shape, n_first, total_odds, seed)
    columns = _with_rate(blocks, columns, n_first, share)
    blocks.total("hold_out", columns)
    columns = _calibrated(blocks, columns, shape, n_first, n_cells - n_first, cols.counts[cols.of_line])
    if n_cells - n_first >= ENOUGH_TO_RAKE:
        columns = _raked(blocks, columns, shape, n_cells - n_first, cols.counts[cols.of_line])
    blocks.each("finish_split")
    return columns


def _classes(blocks: Blocks) -> tuple[LineClasses, LineClasses, int]:
    """Rows and columns by how many cells of the first half they have, and how many there are."""
    (rows,) = blocks.total("halve")
    col_counts, n_first = blocks.total("columns_of", FIRST)
    of_rows = LineClasses(rows.values, rows.counts.astype(np.float64), np.empty(0, np.int64))
    return of_rows, LineClasses.of_counts(col_counts), int(n_first)


def _with_pattern(
    blocks: Blocks, columns: TargetColumns, shape: tuple[int, int], n_first: int, total_odds: float, seed: int
) -> TargetColumns:
    """With factors of the pattern, where they make held-out locations of sampled rows clearly likelier."""
    parts = blocks.each("sampled", FIRST, min(1.0, MOST_LOCATIONS / n_first), SAMPLED_ROWS)
    numbers, sample = as_table(parts, shape[1])
    if sample is None:
        return columns
    row_logit = np.concatenate(blocks.each("log_odds_of", numbers))
    found = fit_interactions(sample, MarginalPropensity(row_logit, columns.col_logit), SHARE, seed)
    if found is None:
        return columns
    columns = replace(columns, pattern=found.interactions.cols, scaling=found.scaling)
    whole = shape[0] * shape[1] <= 2 * columns.n_draws
    blocks.each("fit_pattern", columns, total_odds, whole, found.penalty, found.mean_size)
    return columns


def as_table(
    parts: list[Part], n_cols: int, bounds: tuple[float, float] | None = None
) -> tuple[Array, Observations | None]:
    """Numbers of the rows that were gathered, and their cells as a table of these rows alone."""
    rows, cols, values, counts, scatter = (
        np.concatenate([np.broadcast_to(part[name], len(part["rows"])) for part in parts])
        for name in ("rows", "cols", "values", "counts", "scatter")
    )
    numbers, line = np.unique(rows, return_inverse=True)
    if not len(rows):
        return numbers, None
    shape = len(numbers), n_cols
    return numbers, Observations(line, cols, values, shape, bounds, counts=counts, scatter=scatter)


def _with_rate(blocks: Blocks, columns: TargetColumns, n_first: int, share: float) -> TargetColumns:
    chances = blocks.each("sampled_chances", columns, min(1.0, ENOUGH_CHANCES / n_first))
    return replace(columns, rate=HeldOutRate.of(np.concatenate(chances), share))


def _calibrated(
    blocks: Blocks, columns: TargetColumns, shape: tuple[int, int], n_first: int, n_second: int, col_counts: Indices
) -> TargetColumns:
    """With the correction by strata of like chances."""
    m, n = shape
    n_draws = 0 if m * n <= ALL_CELLS else max(ALL_CELLS, min(4 * n_second, MOST_DRAWS))
    parts = blocks.each("chances_outside", columns, n_first + 0.5 * m, col_counts, m, n_draws)
    chances, rates = (np.concatenate([part[name] for part in parts]) for name in ("chances", "rates"))

    def found(edges: Array) -> Array:
        (counts,) = blocks.total("second_in_bins", edges)
        return np.asarray(counts)

    knots, shifts, misfit = calibrate_sample(chances, rates, found, SHARE)
    return replace(columns, knots=knots, shifts=shifts, misfit=misfit)


def _raked(
    blocks: Blocks, columns: TargetColumns, shape: tuple[int, int], n_second: int, col_counts: Indices
) -> TargetColumns:
    """With weights that add up to the cells there are in every row and column."""
    of_cols, total = blocks.total("begin_raking", columns)
    (second, _), typical = blocks.total("columns_of", SECOND), total / n_second
    prior = PRIOR * np.where(second > 0, of_cols / np.maximum(second, 1), typical)
    cells, factor = shape[0] - col_counts, np.ones(shape[1])
    for _ in range(SWEEPS):
        (sums,) = blocks.total("rake", factor, typical)
        factor = (cells + prior) / (sums + prior)
    return replace(columns, col_factor=factor)
