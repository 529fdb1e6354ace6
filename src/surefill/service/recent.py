"""Cells observed after the model in use was fitted."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from surefill.arrays import Array, Indices
from surefill.service.store.observations import Columns

COL_BITS = 32
"""Of the key of a cell, row << 32 | column: both are numbered from 0, and there is memory for fewer than 2^31."""

RUN_RATIO = 4
"""How much longer a run is than the next: cells lie in log_4 of their number runs, and are moved that often times some
five."""


class Run(NamedTuple):
    """Cells in the order of their keys, how often each was observed, and the sum of its values: 20 bytes a cell."""

    keys: Indices
    times: NDArray[np.int32]
    totals: Array

    def find(self, keys: Indices) -> tuple[Indices, NDArray[np.bool_]]:
        """Where each key would be, and whether it is there."""
        at = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        return at, self.keys[at] == keys


class Seen(NamedTuple):
    """How often cells were observed, 0 where never, and the sums of their values."""

    times: Indices
    totals: Array


class RecentCells:
    """Values by row and column, of observations that the model has not seen. One thread adds; any thread may ask.

    The cells lie in sorted runs, each at least four times as long as the next, as in a log-structured merge tree. A sum
    adds the values one by one as they came, so that it does not depend on batches.

    >>> recent = RecentCells()
    >>> recent.add(Columns(["ann", "ann"], ["Alien", "Alien"], [5.0, 4.0]))
    >>> recent.find(["ann", "ann"], ["Alien", "Brazil"])
    Seen(times=array([2, 0]), totals=array([9., 0.]))
    >>> recent.has_col("Alien"), recent.cols_of("ann")
    (True, ['Alien'])
    """

    def __init__(self) -> None:
        self._rows: dict[str, int] = {}
        self._cols: dict[str, int] = {}
        self._runs: list[Run] = []
        self._lock = threading.Lock()

    def add(self, columns: Columns) -> None:
        """Take observations in."""
        rows = [self._rows.setdefault(row, len(self._rows)) for row in columns.rows]
        cols = [self._cols.setdefault(col, len(self._cols)) for col in columns.cols]
        keys, values = _keys(rows, cols), np.array(columns.values, dtype=np.float64)
        with self._lock:
            for run in self._runs:
                at, here = run.find(keys)
                if here.any():
                    np.add.at(run.times, at[here], 1)
                    np.add.at(run.totals, at[here], values[here])
                    keys, values = keys[~here], values[~here]
            if len(keys):
                self._add_run(keys, values)

    def _add_run(self, keys: Indices, values: Array) -> None:
        """Add cells that are in no run."""
        distinct, place = np.unique(keys, return_inverse=True)
        times, totals = np.bincount(place).astype(np.int32), np.zeros(len(distinct))
        np.add.at(totals, place, values)
        last = Run(distinct, times, totals)
        while self._runs and len(self._runs[-1].keys) < RUN_RATIO * len(last.keys):
            last = _merged(self._runs.pop(), last)
        self._runs.append(last)

    def find(self, rows: Sequence[str], cols: Sequence[str]) -> Seen:
        """What was seen of cells."""
        keys = _keys([self._rows.get(row, -1) for row in rows], [self._cols.get(col, -1) for col in cols])
        seen = Seen(np.zeros(len(keys), dtype=np.int64), np.zeros(len(keys)))
        with self._lock:
            for run in self._runs:
                at, here = run.find(keys)
                seen.times[here], seen.totals[here] = run.times[at[here]], run.totals[at[here]]
        return seen

    def has_row(self, row: str) -> bool:
        """Whether anything was seen of a row."""
        return row in self._rows

    def has_col(self, col: str) -> bool:
        """Whether anything was seen of a column."""
        return col in self._cols

    def cols_of(self, row: str) -> list[str]:
        """The columns seen of a row."""
        code = self._rows.get(row)
        if code is None:
            return []
        with self._lock:
            found = [run.keys[slice(*np.searchsorted(run.keys, _keys([code, code + 1], [0, 0])))] for run in self._runs]
        labels = self.cols
        return [labels[key & ((1 << COL_BITS) - 1)] for keys in found for key in keys.tolist()]

    @property
    def cols(self) -> list[str]:
        """All columns of which anything was seen."""
        return list(self._cols)

    @property
    def rows(self) -> list[str]:
        """All rows of which anything was seen."""
        return list(self._rows)


def _keys(rows: list[int], cols: list[int]) -> Indices:
    """Keys of cells, below zero where the row or the column is -1."""
    return np.array(rows, dtype=np.int64) << COL_BITS | np.array(cols, dtype=np.int64)


def _merged(one: Run, other: Run) -> Run:
    keys = np.concatenate([one.keys, other.keys])
    order = np.argsort(keys, kind="stable")  # merges what is sorted already
    times, totals = np.concatenate([one.times, other.times]), np.concatenate([one.totals, other.totals])
    return Run(keys[order], times[order], totals[order])
