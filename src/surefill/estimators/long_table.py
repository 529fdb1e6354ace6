"""A fitted completer as a long table, block by block, so that the whole is never in memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefill.arrays import Indices, row_blocks
from surefill.data import Observations
from surefill.errors import InputError, invalid_parameter, is_number
from surefill.estimators.best_cells import best_cells
from surefill.estimators.kept_cells import KeptCells
from surefill.estimators.partial_completer import PartialCompleter
from surefill.estimators.result import Answer
from surefill.kernels.listing import list_cells
from surefill.parallel import ahead

Entries = Literal["kept", "missing", "all"]
Columns = dict[str, NDArray[Any]]

BLOCK_CELLS = 1 << 20
"""Cells of a block that one core computes at a time: some tens of megabytes with all temporary arrays."""

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
    """Blocks of rows: the positions of the rows, and their listed cells as columns."""
    check_listing(completer, entries, rows, level)
    m, n = completer.observations_.shape
    every = np.arange(m) if rows is None else rows
    blocks = [every[part] for part in row_blocks(len(every), n, BLOCK_CELLS)]
    found = ahead(lambda listed: list_rows(completer, listed, entries, level), blocks)
    for listed, block in zip(blocks, found, strict=True):
        yield listed, block | {"row": listed[block["row"]]}


def check_listing(
    completer: PartialCompleter, entries: Entries, rows: Indices | None = None, level: float | None = None
) -> None:
    """InputError where the table cannot be listed."""
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


def list_rows(completer: PartialCompleter, listed: Indices, entries: Entries, level: float | None) -> Columns:
    """The listed cells of some rows; ``row`` is an index into ``listed``, ``column`` a position."""
    observations, result = completer.observations_, completer.result_
    every = np.arange(observations.shape[1])
    line, seen = observations.in_rows(listed)
    observed = _observed(observations, listed)
    kept = entries == "kept"
    grid = KeptCells(result).block(listed, every, observed) if kept else result.answer_block(listed, every)
    grid.value[line, observations.cols[seen]] = observations.values[seen]
    wanted = {"kept": observed | grid.keep, "missing": ~observed, "all": np.ones_like(observed)}[entries]
    count = np.count_nonzero(wanted)
    places = np.empty((2, count), np.int32)
    value, confidence, risk = np.empty((3, count))
    keep, was_observed = np.empty((2, count), np.bool_)
    grids = grid.value, grid.confidence, grid.risk, grid.keep, observed
    list_cells(wanted, grids, places, (value, confidence, risk, keep, was_observed))
    block: Columns = {
        "row": places[0],
        "column": places[1],
        "value": value,
        "confidence": confidence,
        "risk": risk,
        "keep": keep,
        "observed": was_observed,
    }
    return block if level is None else block | _intervals(completer, listed, block, level)


def list_best(completer: PartialCompleter, listed: Indices, n: int, level: float | None) -> Columns:
    """The ``n`` largest values of each row among its kept cells that were not observed, as :func:`list_rows` does."""
    observations = completer.observations_
    missing, every = ~_observed(observations, listed), np.arange(observations.shape[1])
    line, place, answer = best_cells(completer.result_, listed, every, missing, n)
    block: Columns = {"row": line, "column": place, **vars(answer), "observed": np.zeros(len(line), dtype=np.bool_)}
    return block if level is None else block | _intervals(completer, listed, block, level)


def _observed(observations: Observations, listed: Indices) -> NDArray[np.bool_]:
    """Which cells of some rows were observed."""
    line, seen = observations.in_rows(listed)
    observed = np.zeros((len(listed), observations.shape[1]), dtype=np.bool_)
    observed[line, observations.cols[seen]] = True
    return observed


def _intervals(completer: PartialCompleter, listed: Indices, block: Columns, level: float) -> Columns:
    """Columns low and high; where a value was observed, they are around the prediction."""
    rows, cols = listed[block["row"]], block["column"].astype(np.int64)
    value = block["value"].copy()
    at = np.flatnonzero(block["observed"])
    value[at] = completer.result_.values_at(rows[at], cols[at])
    answer = Answer(value, block["confidence"], block["risk"], block["keep"])
    return dict(zip(("low", "high"), completer.result_.interval_around(answer, rows, cols, level), strict=True))
