"""A fitted completer as a long table, block by block, so that it never sits in memory whole."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefill.arrays import Indices, row_blocks
from surefill.data import Observations
from surefill.errors import InputError, invalid_parameter, is_number
from surefill.estimators.partial_completer import PartialCompleter
from surefill.estimators.result import Answer
from surefill.parallel import current_map

Entries = Literal["kept", "missing", "all"]
Columns = dict[str, NDArray[Any]]

BLOCK_CELLS, TILE_CELLS = 1 << 19, 1 << 16
"""Cells per block of the table, a few tens of megabytes with all columns, and per piece of it that one core computes:
half a megabyte for each array on the way stays in its cache."""

MOST_CELLS = 10**11
"""Cells beyond which listing a table is refused: it would take days and terabytes."""


def iterate_table(
    completer: PartialCompleter,
    entries: Entries = "kept",
    *,
    rows: ArrayLike | None = None,
    level: float | None = None,
) -> Iterator[Columns]:
    """Blocks of (row, column, value, confidence, risk, keep, observed), each of whole rows, row by row.

    ``value`` is what was observed where ``observed``, and the completion elsewhere.

    Parameters
    ----------
    entries : cells to list: "kept" the observed and the kept ones, "missing" all that were not observed, "all" every
        cell.
    rows : labels of the rows to list, positions where there are no labels; all when None.
    level : adds columns low and high, ends of intervals that hold a new observation with this probability; see
        :meth:`surefill.PartialCompleter.predict_interval`.

    Examples
    --------
    >>> import surefill as sf
    >>> sim = sf.datasets.make_low_rank((60, 50), rank=2, n_draws=2000, noise=0.1, random_state=0)
    >>> completer = sf.PartialCompleter(tolerance=0.1, confidence="posterior").fit(sim.observations)
    >>> block = next(sf.estimators.iterate_table(completer, entries="missing"))
    >>> list(block)
    ['row', 'column', 'value', 'confidence', 'risk', 'keep', 'observed']
    >>> bool(block["observed"].any())
    False
    >>> next(sf.estimators.iterate_table(completer, "all", rows=[7], level=0.9))["high"].shape
    (50,)
    """
    seen = completer.observations_
    positions = None if rows is None else seen.row_index(rows)
    for _, block in iterate_cells(completer, entries, positions, level):
        yield with_labels(block, seen)


def with_labels(block: Columns, seen: Observations) -> Columns:
    """A block with the labels of rows and columns in place of their positions."""
    return block | {"row": seen.row_names(block["row"]), "column": seen.col_names(block["column"])}


def iterate_cells(
    completer: PartialCompleter, entries: Entries, rows: Indices | None = None, level: float | None = None
) -> Iterator[tuple[Indices, Columns]]:
    """Positions of some rows, and a block of all their cells that are listed, by positions; each cell is asked once."""
    if entries not in ("kept", "missing", "all"):
        raise invalid_parameter("iterate_table", "entries", "'kept', 'missing' or 'all'", entries)
    if level is not None and not (is_number(level) and 0 < level < 1):
        raise invalid_parameter("iterate_table", "level", "a number above 0 and below 1, or None", level)
    m, n = completer.observations_.shape
    if rows is not None and rows.size and not 0 <= rows.min() <= rows.max() < m:
        raise InputError(f"rows must be positions from 0 to {m - 1}; got {rows.min()} to {rows.max()}.")
    count = m if rows is None else len(rows)
    if count * n > MOST_CELLS:
        raise InputError(f"a table of {count} x {n} cells is too long to list; ask predict about the entries you need.")
    every = np.arange(m) if rows is None else rows
    for part in row_blocks(count, n, BLOCK_CELLS):
        listed = every[part]
        tiles = [listed[tile] for tile in row_blocks(len(listed), n, TILE_CELLS)]
        found = current_map().map(lambda tile: _block(completer, tile, entries, level), tiles)
        yield listed, {name: np.concatenate([block[name] for block in found]) for name in found[0]}


def _block(completer: PartialCompleter, listed: Indices, entries: Entries, level: float | None) -> Columns:
    observations, result = completer.observations_, completer.result_
    n = observations.shape[1]
    grid = result.answer_block(listed, np.arange(n))
    position = observations.find_in_rows(listed).ravel()
    observed, keep = position >= 0, grid.keep.ravel()
    wanted = {"kept": observed | keep, "missing": ~observed, "all": np.full(len(keep), True)}[entries]
    cells = np.flatnonzero(wanted)
    rows, cols, position, observed = listed[cells // n], cells % n, position[cells], observed[cells]
    value, confidence, risk = (each.ravel()[cells] for each in (grid.value, grid.confidence, grid.risk))
    answer = Answer(value, confidence, risk, keep[cells])
    block = {
        "row": rows,
        "column": cols,
        "value": np.where(observed, observations.values[position], answer.value),
        "confidence": answer.confidence,
        "risk": answer.risk,
        "keep": answer.keep,
        "observed": observed,
    }
    if level is not None:
        ends = result.interval_around(answer, rows, cols, level)
        block |= dict(zip(("low", "high"), ends, strict=True))
    return block
