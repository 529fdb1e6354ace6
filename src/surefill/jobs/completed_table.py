"""The table of a fitted completer, from its cells to a file."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from threading import Lock

import numpy as np

from surefill.arrays import Indices, row_blocks
from surefill.data import Observations
from surefill.estimators import PartialCompleter, best_cells, load, long_table
from surefill.estimators.long_table import Columns, check_listing
from surefill.io import parquet_writer
from surefill.io.files import Block, Coded
from surefill.io.writers import FOLDER, Piece, bytes_per_line, check_table_target, write_pieces
from surefill.jobs.digits import choose_digits, rounded
from surefill.jobs.table_size import (
    LONG_EXACT,
    Confirm,
    TableSize,
    could_be_large,
    expected_lines,
    filled_share,
    settle_size,
)
from surefill.jobs.write_options import Layout, WriteOptions
from surefill.loop import Progress
from surefill.waiting import Watcher, watched

ADDED_COLUMNS = {"confidence", "risk", "keep", "observed", "low", "high"}
"""Columns that a completed table has beside those of the file it was made from."""

FEWEST_PARTS = 8
"""Parts at least of a table of as many blocks: as many cores can write at a time."""

LOOKED_AT = 8
"""Blocks in which lines are looked for, to see how long they are."""

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
    filled_cells : those of them that are kept, whether among the top n of their row or not; of a large table of the
        top n, in which most cells are never looked at, an estimate from a sample of the cells.
    cells, seconds : cells of these rows, and how long it took to look through them and to write.

    Examples
    --------
    >>> from pathlib import Path
    >>> WrittenTable(Path("filled.csv"), 480, "long", 2, 30, 120, 60, 600, 0.1).filled_cells
    60
    """

    output: Path
    lines: int
    layout: Layout
    digits: int
    rows_written: int
    missing_cells: int
    filled_cells: int
    cells: int
    seconds: float


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
    check_listing(completer, options.entries, rows, options.level)
    start = time.perf_counter()
    table = RowBlockTable(completer, options, rows)
    names = {} if layout == "wide" else column_names(seen, options.level is not None)
    exact = set(_wide_names(seen)[1]) if layout == "wide" else LONG_EXACT
    lines = float(len(rows) * seen.shape[1])
    if could_be_large(rows, seen.shape[1], options):
        lines = expected_lines(seen, rows, options, completer.result_)
        size = lines * bytes_per_line(output, table.some_block(), exact=exact)
        settle_size(TableSize(Path(output), lines, size), confirm)
    per_piece = blocks_per_piece(len(table.blocks), lines) if check_table_target(output) == FOLDER else 1
    pieces = table.pieces(per_piece)
    lines = write_pieces(output, pieces, columns=names, exact=exact, written=_reported(len(pieces), progress))
    cells, seconds = len(rows) * seen.shape[1], time.perf_counter() - start
    missing = cells - int(seen.by_row.sizes[np.isin(seen.by_row.ids, rows)].sum())  # by rows: cells may be very many
    done = table.digits, len(rows), missing, table.filled_cells(missing), cells, seconds
    return WrittenTable(Path(output), lines, layout, *done)


def blocks_per_piece(n_blocks: int, lines: float) -> int:
    """How many blocks make a part of a folder: those of about a million lines, but enough parts for many cores.

    >>> blocks_per_piece(500, 95e6), blocks_per_piece(500, 1e6), blocks_per_piece(1, 100)
    (6, 62, 1)
    """
    wanted = round(parquet_writer.LINES_PER_PART * n_blocks / max(lines, 1.0))
    return max(1, min(wanted, n_blocks // FEWEST_PARTS))


def _reported(n_pieces: int, progress: Watcher) -> Callable[[int], None]:
    """Tells who watches how many pieces are written."""
    start = time.perf_counter()

    def written(step: int) -> None:
        if callable(progress):
            progress(Progress("writing", step, n_pieces, time.perf_counter() - start, step / n_pieces))

    return written


class RowBlockTable:
    """The blocks of a completed table, with a count of the missing cells that are filled."""

    def __init__(self, completer: PartialCompleter, options: WriteOptions, rows: Indices) -> None:
        self._completer, self._options, self._rows = completer, options, rows
        self._seen = completer.observations_
        self.digits = choose_digits(self._seen.values, completer.result_) if options.digits is None else options.digits
        self.kept, self._lock = 0, Lock()
        of_long = long_table.BLOCK_CELLS if options.top_n is None else best_cells.BLOCK_CELLS
        cells = WIDE_CELLS if options.layout == "wide" else of_long
        self.blocks = [rows[part] for part in row_blocks(len(rows), self._seen.shape[1], cells)]
        self._columns = self._seen.col_names(np.arange(self._seen.shape[1]))

    def pieces(self, per_piece: int) -> list[Piece]:
        """What makes the blocks, some at a time."""
        return [
            partial(self._piece, self.blocks[first : first + per_piece])
            for first in range(0, len(self.blocks), per_piece)
        ]

    def all_blocks(self) -> Iterator[Block]:
        """All blocks, one after the other."""
        return self._piece(self.blocks)

    def some_block(self) -> Block:
        """The first of some blocks that has lines, or an empty one."""
        for rows in self.blocks[:LOOKED_AT]:
            block, _ = self._block(rows)
            if len(next(iter(block.values()))):
                break
        return block

    def _piece(self, blocks: list[Indices]) -> Iterator[Block]:
        for rows in blocks:
            block, kept = self._block(rows)
            with self._lock:
                self.kept += kept
            yield block

    def _block(self, rows: Indices) -> tuple[Block, int]:
        """The lines of some rows, values rounded, and how many missing cells among them are kept."""
        options, bounds = self._options, self._completer.result_.bounds
        if options.top_n is None:
            block = long_table.list_rows(self._completer, rows, options.entries, options.level)
        else:
            block = long_table.list_best(self._completer, rows, options.top_n, options.level)
        kept = int(np.count_nonzero(block["keep"] & ~block["observed"]))
        listed = rounded(block, self.digits, bounds)
        return (self._wide if options.layout == "wide" else self._long)(rows, listed), kept

    def filled_cells(self, missing: int) -> int:
        """How many of the missing cells are kept: counted, or of the top n from a sample, at least those written."""
        if self._options.top_n is None:
            return self.kept
        return max(self.kept, round(missing * filled_share(self._seen, self._rows, self._completer.result_)))

    def _long(self, rows: Indices, block: Columns) -> Block:
        """A line for each cell."""
        names = {"row": self._seen.row_names(rows), "column": self._columns}
        return block | {name: Coded(block[name], values) for name, values in names.items()}

    def _wide(self, rows: Indices, block: Columns) -> Block:
        """A line for each row, NaN where a cell is not written."""
        matrix = np.full((self._seen.shape[1], len(rows)), np.nan)
        matrix[block["column"], block["row"]] = block["value"]
        first, columns = _wide_names(self._seen)
        return {first: self._seen.row_names(rows), **dict(zip(columns, matrix, strict=True))}


def _wide_names(seen: Observations) -> tuple[str, list[str]]:
    """What the columns of a wide table are called: that of row labels, then those of values."""
    columns, first = [str(label) for label in seen.col_names(np.arange(seen.shape[1])).tolist()], seen.names[0]
    while first in columns:
        first += "_"
    return first, columns


def column_names(seen: Observations, with_intervals: bool) -> dict[str, str]:
    """The file's own column names, unless they would clash with those added."""
    names = dict(zip(("row", "column", "value"), seen.names, strict=True))
    added = ADDED_COLUMNS if with_intervals else ADDED_COLUMNS - {"low", "high"}
    return {} if added & set(names.values()) else names
