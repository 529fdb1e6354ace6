"""Cells observed after the model in use was fitted."""

from __future__ import annotations

from typing import NamedTuple

from surefill.service.store.observations import Columns


class Seen(NamedTuple):
    """How often a cell was observed, and the sum of its values."""

    times: int
    total: float


class RecentCells:
    """Values by row and column, of observations that the model has not seen; some 300 bytes for each.

    >>> recent = RecentCells()
    >>> recent.add(Columns(["ann", "ann"], ["Alien", "Alien"], [5.0, 4.0]))
    >>> recent.find("ann", "Alien"), recent.find("ann", "Brazil"), recent.has_col("Alien")
    (Seen(times=2, total=9.0), None, True)
    """

    def __init__(self) -> None:
        self._rows: dict[str, dict[str, Seen]] = {}
        self._cols: dict[str, str] = {}

    def add(self, columns: Columns) -> None:
        """Take observations in."""
        for row, col, value in zip(*columns, strict=True):
            seen = self._rows.setdefault(row, {})
            before = seen.get(col, Seen(0, 0.0))
            # one string for each column, not one for each observation
            seen[self._cols.setdefault(col, col)] = Seen(before.times + 1, before.total + value)

    def find(self, row: str, col: str) -> Seen | None:
        """What was seen of a cell."""
        of_row = self._rows.get(row)
        return None if of_row is None else of_row.get(col)

    def has_row(self, row: str) -> bool:
        """Whether anything was seen of a row."""
        return row in self._rows

    def has_col(self, col: str) -> bool:
        """Whether anything was seen of a column."""
        return col in self._cols

    def cols_of(self, row: str) -> list[str]:
        """The columns seen of a row."""
        return list(self._rows.get(row, ()))

    @property
    def cols(self) -> list[str]:
        """All columns of which anything was seen."""
        return list(self._cols)

    @property
    def rows(self) -> list[str]:
        """All rows of which anything was seen."""
        return list(self._rows)
