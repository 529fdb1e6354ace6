"""A matrix of any size as at most 384 x 384 squares, each a mean of the cells under it, and what of each is kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from surefill.arrays import Array, Indices
from surefill.data import Observations
from surefill.estimators import PartialCompletion
from surefill.guarantee import Selection
from surefill.guarantee.selection import REFUSALS
from surefill.report.asked_cells import AskedCells
from surefill.report.colours import Bytes

MOST_SQUARES = 384 * 384
"""Squares of a map: the page holds one layer for each tolerance."""

LONGEST_SIDE = 1024
"""Squares along one side: about the pixels of a screen."""

CELLS_PER_SQUARE = 8
"""Cells drawn from a large square: about a million in all."""

LEVELS = 256
"""Levels of a layer, a byte each."""


@dataclass(frozen=True, eq=False)
class MapLayer:
    """One number for each square, as one of 256 levels; ``scale`` is the number that each level stands for."""

    title: str
    squares: Array
    scale: Array

    @classmethod
    def even(cls, title: str, squares: Array, low: float, high: float) -> Self:
        """Levels at equal distances."""
        return cls(title, squares, np.linspace(low, high, LEVELS))

    @classmethod
    def by_quantiles(cls, title: str, squares: Array) -> Self:
        """Levels that stand for equally many squares each."""
        return cls(title, squares, np.quantile(squares, np.linspace(0, 1, LEVELS)))

    @property
    def levels(self) -> Bytes:
        """The nearest level of each square; of those equally near, the middle one."""
        between = (self.scale[1:] + self.scale[:-1]) / 2
        first, last = (np.searchsorted(between, self.squares, side=side) for side in ("left", "right"))
        return np.asarray((first + last) // 2, dtype=np.uint8)


@dataclass(frozen=True, eq=False)
class HeatMap:
    """Layers over the same squares; square (a, b) holds ``rows[a]`` x ``cols[b]`` of the matrix.

    Means are over all cells of a square where ``exact``, else over cells drawn from it at random.

    Attributes
    ----------
    kept : tolerances x squares, how many of the cells looked at are kept.
    refusal : tolerances x squares, why most of the others are not, as positions in ``REFUSALS``.
    """

    rows: tuple[Indices, ...]
    cols: tuple[Indices, ...]
    layers: dict[str, MapLayer]
    kept: Bytes
    refusal: Bytes
    exact: bool

    @property
    def shape(self) -> tuple[int, int]:
        """Squares down and across."""
        return len(self.rows), len(self.cols)

    @property
    def single(self) -> bool:
        """Whether every square is one cell."""
        return all(len(group) == 1 for group in (*self.rows, *self.cols))

    @property
    def looked_at(self) -> Array:
        """How many cells of each square were looked at."""
        if not self.exact:
            return np.full(self.shape, float(CELLS_PER_SQUARE))
        down, across = (
            np.array([len(group) for group in groups], dtype=np.float64) for groups in (self.rows, self.cols)
        )
        return np.outer(down, across)

    def kept_levels(self, tolerance: int) -> Bytes:
        """The share kept of each square at one of the tolerances, as levels."""
        return np.asarray(np.round((LEVELS - 1) * (self.kept[tolerance] / self.looked_at)), dtype=np.uint8)


def draw_heat_map(
    result: PartialCompletion,
    observations: Observations,
    row_order: Indices,
    col_order: Indices,
    selections: Sequence[Selection],
) -> HeatMap:
    """Confidence, observed share, risk and value of every square, and how much of it each selection keeps.

    Rows and columns are cut, in the given order, into groups whose sizes differ by at most one. Squares of at most 8
    cells are looked at whole, of larger ones 8 cells are drawn, with replacement; the observed share is always exact.
    """
    m, n = observations.shape
    height, width = squares_for(m, n)
    rows, cols = np.array_split(row_order, height), np.array_split(col_order, width)
    exact = -(-m // height) * -(-n // width) <= CELLS_PER_SQUARE
    rng = np.random.default_rng(0)
    lines = [_line(result, group, cols, None if exact else rng, selections) for group in rows]
    confidence, risk, value = (np.array(layer) for layer in zip(*(line[0] for line in lines), strict=True))
    kept, refusal = (np.stack(layer, axis=1) for layer in zip(*(line[1:] for line in lines), strict=True))
    observed, expected = _observed_shares(observations, rows, cols), result.loss.loss.expected_name
    layers = {
        "confidence": MapLayer.even("Confidence", confidence, 0.0, 1.0),
        "risk": MapLayer.by_quantiles(expected[0].upper() + expected[1:], risk),
        "observed": MapLayer.even("Observed", observed, 0.0, float(observed.max())),
        "value": MapLayer.even("Value", value, float(value.min()), float(value.max())),
    }
    return HeatMap(tuple(rows), tuple(cols), layers, kept, refusal, exact)


def squares_for(m: int, n: int) -> tuple[int, int]:
    """How many squares down and across: one for each cell where they fit, the longer side shortened first.

    >>> squares_for(40, 40), squares_for(943, 1682), squares_for(1_000_000, 20)
    ((40, 40), (384, 384), (1024, 20))
    """
    shorter = min(m, n) if m * n <= MOST_SQUARES else min(m, n, int(MOST_SQUARES**0.5))
    longer = min(max(m, n), MOST_SQUARES // shorter, LONGEST_SIDE)
    return (shorter, longer) if m <= n else (longer, shorter)


def _line(
    result: PartialCompletion,
    rows: Indices,
    col_groups: list[Indices],
    rng: np.random.Generator | None,
    selections: Sequence[Selection],
) -> tuple[list[Array], Bytes, Bytes]:
    """The squares of one group of rows: means of confidence, risk and value, and what each selection keeps and why."""
    width, sizes = len(col_groups), np.array([len(group) for group in col_groups])
    in_order = np.concatenate(col_groups)
    if rng is None:
        square = np.tile(np.repeat(np.arange(width), sizes), len(rows))
        cells = np.repeat(rows, len(in_order)), np.tile(in_order, len(rows))
    else:
        square = np.repeat(np.arange(width), CELLS_PER_SQUARE)
        place = (np.cumsum(sizes) - sizes)[square] + (rng.random(len(square)) * sizes[square]).astype(np.int64)
        cells = rows[rng.integers(len(rows), size=len(square))], in_order[place]
    asked = AskedCells.of(result, *cells)
    count, answer = np.bincount(square, minlength=width), asked.answer
    means = [np.bincount(square, layer, width) / count for layer in (answer.confidence, answer.risk, answer.value)]
    by_reason = np.stack([_by_reason(asked.refusals(each), square, width) for each in selections])
    refused = np.where(by_reason[..., 1:].any(axis=2), 1 + by_reason[..., 1:].argmax(axis=2), 0)
    return means, by_reason[..., 0].astype(np.uint8), refused.astype(np.uint8)


def _by_reason(refusals: NDArray[np.int8], square: Indices, width: int) -> Indices:
    """Squares x reasons: how many cells of each square are kept or refused."""
    return np.bincount(square * len(REFUSALS) + refusals, minlength=width * len(REFUSALS)).reshape(width, -1)


def _observed_shares(observations: Observations, rows: list[Indices], cols: list[Indices]) -> Array:
    """The share of each square's cells that were observed."""
    (m, n), height, width = observations.shape, len(rows), len(cols)
    row_group, col_group = np.empty(m, np.int64), np.empty(n, np.int64)
    for group_of, groups in ((row_group, rows), (col_group, cols)):
        group_of[np.concatenate(groups)] = np.repeat(np.arange(len(groups)), [len(group) for group in groups])
    square = row_group[observations.rows] * width + col_group[observations.cols]
    seen = np.bincount(square, minlength=height * width).reshape(height, width)
    return np.asarray(seen / np.outer([len(group) for group in rows], [len(group) for group in cols]))
