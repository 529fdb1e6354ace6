"""A block of rows in the main job: its place among all rows, its tables of cells, and what was learnt of its rows.

What is learnt of rows is kept in named parts, dictionaries of arrays, which are saved and read again like the states of
a fit. Everything random is a hash of the seed, of a row's number among all rows and of a column, so that it does not
depend on how rows are parted into blocks.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surefill.arrays import Array, Indices, IntArray
from surefill.cluster.checkpoints import PART
from surefill.cluster.shards import shard_folder
from surefill.cluster.stored_block import StoredBlock
from surefill.completion.bayes.row_block import WHOLE, BlockCells
from surefill.data import Observations
from surefill.distributed.merging import Histogram, Least
from surefill.io.numpy_files import read_npy
from surefill.kernels.counter_random import cell_uniforms, stream_key

Part = dict[str, NDArray[Any]]

SOME_VALUES = 171
"""A stream of random numbers."""

DRAWS_OF_A_ROW = 1 << 31
"""Numbers that each row has in a stream of its own draws."""


class PartsBlock(StoredBlock):
    """The block ``index`` of a folder of shards, with parts."""

    def __init__(self, folder: Path, index: int) -> None:
        super().__init__(folder, index)
        self._folder = folder
        self._parts: dict[str, Part] = {}
        self._seed, self._n, self._first, self._bounds = 0, 0, 0, (-1.0, 1.0)

    def place(self, seed: int, n_cols: int, first_row: int) -> None:
        """The seed of all that is random, the columns of the table, and which of all rows is the first one here."""
        self._seed, self._n, self._first = seed, n_cols, first_row

    @property
    def _m(self) -> int:
        return len(self._cells[WHOLE].row_ids)

    def get(self, name: str) -> dict[str, Any]:
        """A part, or a state of a fit."""
        return self._parts[name] if name in self._parts else super().get(name)

    def put(self, name: str, table: str, state: dict[str, Any]) -> None:
        """A part, or a state of a fit, that was saved."""
        if table == PART:
            self._parts[name] = state
        else:
            super().put(name, table, state)

    def select_cells(self, table: str, parent: str, part: str, value: int) -> None:
        """``table``: the cells of ``parent`` that have the ``value`` in the part's ``cells``."""
        self._cells[table] = self._cells[parent].select(self._parts[part]["cells"] == value)

    def rows_and_cells(self, table: str) -> tuple[int, int]:
        """Rows of the block, and cells of the table."""
        return self._m, len(self._cells[table])

    def count_cells(self, table: str) -> tuple[int]:
        """Cells of the table."""
        return (len(self._cells[table]),)

    def some_values(self, share: float) -> Array:
        """Values of a share of all cells."""
        return self._cells[WHOLE].values[self._coins(SOME_VALUES, WHOLE) < share]

    def values_seen(self, table: str, most: int) -> tuple[Least, Histogram, int, float]:
        """The least value and minus the largest, the values of cells whose draws agree, draws, and their sum."""
        cells = self._cells[table]
        counts, scatter = (np.broadcast_to(each, len(cells)) for each in (cells.counts, cells.scatter))
        values = cells.values.astype(np.float64)
        ends = np.array([values.min(initial=np.inf), (-values).min(initial=np.inf)])
        return Least(ends), Histogram.of(values[scatter == 0], most), int(counts.sum()), float(values @ counts)

    def repeats(self, table: str) -> tuple[int, int]:
        """Draws, and cells whose draws differ."""
        cells = self._cells[table]
        counts, scatter = (np.broadcast_to(each, len(cells)) for each in (cells.counts, cells.scatter))
        return int(counts.sum()), int((scatter > 0).sum())

    def sampled(self, table: str, share: float, stream: int) -> Part:
        """The cells of rows that are drawn with probability ``share``, with the rows' numbers among all.

        Counts and scatter are single ones where they are the same for all cells.
        """
        cells = self._cells[table]
        drawn = self._row_coins(stream, 0) < share
        taken = drawn[self._rows(cells)]
        part = cells.select(taken)
        rows, repeats = self._first + self._rows(part), {"counts": part.counts, "scatter": part.scatter}
        return {"rows": rows, "cols": part.cols, "values": part.values} | repeats

    # Rows, cells and random numbers

    def _rows(self, cells: BlockCells) -> Indices:
        """The row of each cell, by its position in the block."""
        return cells.row_ids[cells.row_of_cell]

    def _keys(self, table: str) -> Indices:
        """i n + j of each cell, rising."""
        cells = self._cells[table]
        return self._rows(cells) * self._n + cells.cols

    def _has(self, table: str, rows: Indices, cols: IntArray) -> NDArray[np.bool_]:
        """Which of these cells the table has."""
        keys, wanted = self._keys(table), rows * self._n + cols
        if not len(keys):
            return np.zeros(len(wanted), dtype=bool)
        return np.asarray(keys[np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)] == wanted)

    def _coins(self, stream: int, table: str) -> Array:
        """A number uniform on [0, 1) for each cell."""
        cells = self._cells[table]
        return cell_uniforms(stream_key(self._seed, stream), self._first, self._n, self._rows(cells), cells.cols)

    def _row_coins(self, stream: int, number: int) -> Array:
        """The number uniform on [0, 1) for each row that is its ``number``-th in a stream of its own."""
        return self._draws_of(stream, np.arange(self._m), np.full(self._m, number))

    def _draws_of(self, stream: int, rows: Indices, numbers: Indices) -> Array:
        return cell_uniforms(stream_key(self._seed, stream), self._first, DRAWS_OF_A_ROW, rows, numbers)

    def _observations(self, table: str, bounds: tuple[float, float] | None = None) -> Observations | None:
        """The cells as a table of the block's rows; None where it has none."""
        cells = self._cells[table]
        if not len(cells):
            return None
        counts, scatter = (np.broadcast_to(each, len(cells)) for each in (cells.counts, cells.scatter))
        shape = self._m, self._n
        return Observations(self._rows(cells), cells.cols, cells.values, shape, bounds, counts=counts, scatter=scatter)

    def _row_labels(self) -> NDArray[Any]:
        labels: NDArray[Any] = read_npy(shard_folder(self._folder, self._index) / "row_labels.npy")
        return labels
