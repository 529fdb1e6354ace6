"""The range of the values of cells that lie in blocks, and how it is known."""

from __future__ import annotations

from dataclasses import dataclass

from surefill.blocks import Blocks
from surefill.data import BoundsSource, UnitMap
from surefill.data.bounds import describe_bounds, recognised_step
from surefill.errors import InputError
from surefill.registry import storable

MOST_VALUES = 64
"""Distinct values beyond which values lie on no scale: the longest has 41."""


@storable
@dataclass(frozen=True)
class SeenValues:
    """The range of some cells' values, how it is known and in which words, and half the variance of their draws."""

    bounds: tuple[float, float]
    source: BoundsSource
    words: str
    n_cells: int
    half_variance: float

    @classmethod
    def of(cls, blocks: Blocks, table: str, given: tuple[float, float] | None) -> SeenValues:
        """Those of the cells of a table."""
        ends, values, n_draws, total = blocks.total("values_seen", table, MOST_VALUES)
        (n_cells,) = blocks.total("count_cells", table)
        low, high = float(ends.numbers[0]), -float(ends.numbers[1])
        (squares,) = blocks.total("squares", table, total / n_draws)
        bounds, source = (low, high), BoundsSource.SEEN
        if given is not None:
            bounds, source = given, BoundsSource.GIVEN
        elif values.is_whole and len(values.values) and recognised_step(values.values, values.counts) is not None:
            on_scale = (float(values.values[0]), float(values.values[-1])) == bounds
            source = BoundsSource.SCALE if on_scale else BoundsSource.SEEN
        words = describe_bounds(bounds, source, values.values)
        return cls(bounds, source, words, int(n_cells), squares / n_draws / 2)

    @property
    def unit(self) -> UnitMap:
        """The map to [-1, 1]."""
        if not self.bounds[0] < self.bounds[1]:
            raise InputError(f"all observed values equal {self.bounds[0]:g}: give bounds (--bounds LOW HIGH).")
        return UnitMap(*self.bounds)
