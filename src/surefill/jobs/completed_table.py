"""The table of a fitted completer, from its cells to a file."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import numpy as np

from surefill.arrays import Array, Indices, row_blocks
from surefill.data import Observations
from surefill.estimators import PartialCompleter, load, long_table
from surefill.estimators.long_table import Columns, iterate_cells, with_labels
from surefill.io import write_table
from surefill.io.writers import bytes_per_line, check_table_target
from surefill.jobs.digits import choose_digits, rounded
from surefill.jobs.table_size import (
    LONG_EXACT,
    Confirm,
    TableSize,
    could_be_large,
    expected_lines,
    settle_size,
)
from surefill.jobs.write_options import Layout, WriteOptions
from surefill.loop import Progress
from surefill.waiting import Watcher, watched

ADDED_COLUMNS = {"confidence", "risk", "keep", "observed", "low", "high"}
"""Columns that a completed table has beside those of the file it was made from."""

WIDE_CELLS = 1 << 21
"""Cells of a wide table that are written at once: 16 megabytes, and row groups of parquet that are not tiny."""


@dataclass(frozen=True)
class WrittenTable:
    """What :func:`write_completed` wrote.

    Attributes
    ----------
    lines : written to ``output``.
    layout : "long" or "wide".
    digits : after the point of completed values.
    rows_written : how many rows were asked for, all where none were named.
    missing_cells : cells of these rows that were not observed.
    filled_cells : those of them that are kept, whether among the top n of their row or not.

    Examples
    --------
    >>> from pathlib import Path
    >>> WrittenTable(Path("filled.csv"), 480, "long", 2, 30, 120, 60).filled_cells
    60
    """

    output: Path
    lines: int
    layout: Layout
    digits: int
    rows_written: int
    missing_cells: int
    filled_cells: int


@watched
def write_completed(
    model: PartialCompleter | str | Path,
    output: str | Path,
    write: WriteOptions | None = None,
    *,
    confirm: Confirm | None = None,
    progress: Watcher = None,
) -> WrittenTable:
    """Write the trusted part of a fitted completer, or of one that was saved, to a file.

    Parameters
    ----------
    model : a fitted completer, or a file that one was saved to.
    output : the table to write; its suffix says how, see :func:`surefill.io.write_table`.
    write : which cells, with how many digits, long or wide; the kept and observed ones, long, where None.
    confirm : called with the expected :class:`TableSize` of a table of more than 100 MB; InputError where it is not
        true. When None, tables of up to a gigabyte are written.
    progress : True for a bar, or a function that is called after each block.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import surefill as sf
    >>> sim = sf.datasets.make_low_rank((60, 50), rank=2, n_draws=2000, noise=0.1, random_state=0)
    >>> completer = sf.PartialCompleter(tolerance=0.1, confidence="posterior").fit(sim.observations)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     options = sf.jobs.WriteOptions(top_n=3)
    ...     done = sf.jobs.write_completed(completer, Path(folder) / "best.csv", options)
    >>> done.lines <= 3 * 60
    True
    """
    check_table_target(output)
    completer = model if isinstance(model, PartialCompleter) else load(model)
    options = (write or WriteOptions()).in_layout("long")
    rows = options.rows_of(completer.observations_)
    options.check_size(completer.observations_, len(rows), Path(output))
    return write_rows(completer, output, options, rows, confirm, progress)


def write_rows(
    completer: PartialCompleter,
    output: str | Path,
    options: WriteOptions,
    rows: Indices,
    confirm: Confirm | None,
    progress: Watcher,
) -> WrittenTable:
    """Write the rows at these positions; what could be refused without a fit has been looked at."""
    seen, layout = completer.observations_, options.layout or "long"
    table = _Table(completer, options, rows, progress)
    blocks = table.wide_blocks() if layout == "wide" else table.long_blocks()
    names = {} if layout == "wide" else _column_names(seen, options.level is not None)
    exact = set(_wide_names(seen)[1]) if layout == "wide" else LONG_EXACT
    if could_be_large(rows, seen.shape[1], options):
        lines = expected_lines(seen, rows, options, completer.result_)
        first, blocks = _with_lines(blocks)
        settle_size(TableSize(Path(output), lines, lines * bytes_per_line(output, first, exact=exact)), confirm)
    lines = write_table(output, blocks, columns=names, exact=exact)
    missing = len(rows) * seen.shape[1] - int(np.isin(seen.rows, rows).sum())
    return WrittenTable(Path(output), lines, layout, table.digits, len(rows), missing, table.filled)


class _Table:
    """The blocks of a completed table, with progress and a count of the missing cells that are filled."""

    def __init__(self, completer: PartialCompleter, options: WriteOptions, rows: Indices, progress: Watcher) -> None:
        self._completer, self._options, self._rows, self._progress = completer, options, rows, progress
        self._seen = completer.observations_
        self.digits = choose_digits(self._seen.values, completer.result_) if options.digits is None else options.digits
        self.filled = 0

    def _cells(self) -> Iterator[tuple[Indices, Columns]]:
        """Positions of some rows, and those of their cells that are written, values rounded."""
        options, bounds, start = self._options, self._completer.result_.bounds, time.perf_counter()
        n_blocks = len(row_blocks(len(self._rows), self._seen.shape[1], long_table.BLOCK_CELLS))
        cells = iterate_cells(self._completer, options.entries, self._rows, options.level)
        for step, (rows, block) in enumerate(cells, 1):
            self.filled += int((block["keep"] & ~block["observed"]).sum())
            listed = block if options.top_n is None else top_of_rows(block, options.top_n)
            yield rows, rounded(listed, self.digits, bounds)
            if callable(self._progress):
                seconds = time.perf_counter() - start
                self._progress(Progress("writing", step, n_blocks, seconds, step / n_blocks))

    def long_blocks(self) -> Iterator[Columns]:
        """A line for each cell."""
        for _, block in self._cells():
            yield with_labels(block, self._seen)

    def wide_blocks(self) -> Iterator[Columns]:
        """A line for each row, NaN where a cell is not written."""
        waiting: list[tuple[Indices, Array]] = []
        for rows, block in self._cells():
            waiting.append((rows, _pivoted(rows, block, self._seen.shape)))
            if sum(matrix.size for _, matrix in waiting) >= WIDE_CELLS:
                yield self._wide_block(waiting)
                waiting = []
        if waiting:
            yield self._wide_block(waiting)

    def _wide_block(self, parts: list[tuple[Indices, Array]]) -> Columns:
        rows, values = (np.concatenate(each) for each in zip(*parts, strict=True))
        first, columns = _wide_names(self._seen)
        return {first: self._seen.row_names(rows), **dict(zip(columns, values.T, strict=True))}


def top_of_rows(block: Columns, n: int) -> Columns:
    """The n largest values among each row's kept cells that were not observed, the largest first.

    >>> keep = np.array([True, True, True, False, True])
    >>> block = {"row": np.zeros(5, int), "column": np.arange(5), "value": np.array([3.0, 1, 5, 9, 3]),
    ...          "keep": keep, "observed": np.array([False, False, True, False, False])}
    >>> top_of_rows(block, 2)["column"]
    array([0, 4])
    """
    filled = np.flatnonzero(block["keep"] & ~block["observed"])
    row = block["row"][filled]
    turn = np.cumsum(np.diff(row, prepend=row[:1]) != 0)
    order = np.lexsort((-block["value"][filled], turn))
    rank = np.arange(len(order)) - np.searchsorted(turn, turn)
    chosen = filled[order[rank < n]]
    return {name: column[chosen] for name, column in block.items()}


def _pivoted(rows: Indices, block: Columns, shape: tuple[int, int]) -> Array:
    """The values of a block as a matrix of these rows and all columns, NaN elsewhere."""
    order = np.argsort(rows)
    line = order[np.searchsorted(rows, block["row"], sorter=order)]
    matrix = np.full((len(rows), shape[1]), np.nan)
    matrix[line, block["column"]] = block["value"]
    return matrix


def _with_lines(blocks: Iterator[Columns]) -> tuple[Columns, Iterator[Columns]]:
    """The first block that has lines, or the last there is, and all blocks as before."""
    begun: list[Columns] = []
    for block in blocks:
        begun.append(block)
        if len(next(iter(block.values()))):
            break
    return begun[-1], chain(begun, blocks)


def _wide_names(seen: Observations) -> tuple[str, list[str]]:
    """What the columns of a wide table are called: that of row labels, then those of values."""
    columns, first = [str(label) for label in seen.col_names(np.arange(seen.shape[1])).tolist()], seen.names[0]
    while first in columns:
        first += "_"
    return first, columns


def _column_names(seen: Observations, with_intervals: bool) -> dict[str, str]:
    """The file's own column names, unless they would clash with those added."""
    names = dict(zip(("row", "column", "value"), seen.names, strict=True))
    added = ADDED_COLUMNS if with_intervals else ADDED_COLUMNS - {"low", "high"}
    return {} if added & set(names.values()) else names
