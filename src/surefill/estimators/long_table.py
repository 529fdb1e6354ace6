"""A fitted completer as a long table, block by block, so that it never sits in memory whole."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from surefill.errors import InputError, invalid_parameter
from surefill.estimators.partial_completer import PartialCompleter

Entries = Literal["kept", "missing", "all"]
BLOCK_CELLS = 1 << 18
"""Cells per block of the table: a few tens of megabytes with all columns."""

MOST_CELLS = 10**11
"""Cells beyond which listing a table is refused: it would take days and terabytes."""


def iterate_table(completer: PartialCompleter, entries: Entries = "kept") -> Iterator[dict[str, NDArray[Any]]]:
    """Blocks of (row, column, value, confidence, risk, keep, observed), row by row.

    ``value`` is what was observed where ``observed``, and the completion elsewhere. ``entries`` says which cells to
    list: "kept" the observed and the kept ones, "missing" all that were not observed, "all" every cell.

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
    """
    if entries not in ("kept", "missing", "all"):
        raise invalid_parameter("iterate_table", "entries", "'kept', 'missing' or 'all'", entries)
    m, n = completer.observations_.shape
    if m * n > MOST_CELLS:
        raise InputError(f"a table of {m} x {n} cells is too long to list; ask predict about the entries you need.")
    for start in range(0, m * n, BLOCK_CELLS):
        cells = np.arange(start, min(start + BLOCK_CELLS, m * n))
        yield _block(completer, cells // n, cells % n, entries)


def _block(
    completer: PartialCompleter, rows: NDArray[np.int64], cols: NDArray[np.int64], entries: Entries
) -> dict[str, NDArray[Any]]:
    observations, result = completer.observations_, completer.result_
    position = observations.find(rows, cols)
    observed = position >= 0
    answer = result.answer(rows, cols)
    wanted = {"kept": observed | answer.keep, "missing": ~observed, "all": np.full(len(rows), True)}[entries]
    columns = (rows, cols, position, observed, answer.value, answer.confidence, answer.risk, answer.keep)
    rows, cols, position, observed, value, confidence, risk, keep = (column[wanted] for column in columns)
    value = np.where(observed, observations.values[position], value)
    return {
        "row": observations.row_names(rows),
        "column": observations.col_names(cols),
        "value": value,
        "confidence": confidence,
        "risk": risk,
        "keep": keep,
        "observed": observed,
    }
