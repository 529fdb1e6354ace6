"""A matrix of any size as at most 512 x 512 squares, each the mean of the cells under it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from surefill.data import Observations
from surefill.estimators import PartialCompletion

Array = NDArray[np.float64]
Index = NDArray[np.int64]

MOST_SQUARES = 512 * 512
LONGEST_SIDE = 1024
CELLS_PER_SQUARE = 8


@dataclass(frozen=True, eq=False)
class Layer:
    """One number for each square, and the range to colour it by."""

    title: str
    squares: Array
    low: float
    high: float

    @property
    def levels(self) -> NDArray[np.uint8]:
        """The numbers as 0..255 over the range."""
        span = self.high - self.low
        share = (self.squares - self.low) / span if span > 0 else np.zeros_like(self.squares)
        return (np.clip(share, 0, 1) * 255).round().astype(np.uint8)


@dataclass(frozen=True, eq=False)
class HeatMap:
    """Layers over the same squares; square (a, b) holds ``rows[a]`` x ``cols[b]`` of the matrix.

    Means are over all cells of a square where ``exact``, else over cells drawn from it at random.
    """

    rows: tuple[Index, ...]
    cols: tuple[Index, ...]
    layers: dict[str, Layer]
    exact: bool

    @property
    def shape(self) -> tuple[int, int]:
        """Squares down and across."""
        return len(self.rows), len(self.cols)

    @property
    def single(self) -> bool:
        """Whether every square is one cell."""
        return all(len(group) == 1 for group in (*self.rows, *self.cols))


def draw_heat_map(result: PartialCompletion, observations: Observations, row_order: Index, col_order: Index) -> HeatMap:
    """Confidence, kept share, observed share, expected squared error and value of every square.

    Rows and columns are cut, in the given order, into groups whose sizes differ by at most one. Squares of at most 8
    cells are looked at whole, of larger ones 8 cells are drawn, with replacement; the observed share is always exact.
    """
    m, n = observations.shape
    height, width = squares_for(m, n)
    rows, cols = np.array_split(row_order, height), np.array_split(col_order, width)
    exact = -(-m // height) * -(-n // width) <= CELLS_PER_SQUARE
    rng = np.random.default_rng(0)
    lines = [_line(result, group, cols, None if exact else rng) for group in rows]
    confidence, kept, risk, value = (np.array(layer) for layer in zip(*lines, strict=True))
    observed = _observed_shares(observations, rows, cols)
    layers = {
        "confidence": Layer("Confidence", confidence, 0.0, 1.0),
        "kept": Layer("Kept", kept, 0.0, 1.0),
        "observed": Layer("Observed", observed, 0.0, float(observed.max())),
        "risk": Layer("Expected squared error", risk, float(risk.min()), float(risk.max())),
        "value": Layer("Value", value, float(value.min()), float(value.max())),
    }
    return HeatMap(tuple(rows), tuple(cols), layers, exact)


def squares_for(m: int, n: int) -> tuple[int, int]:
    """How many squares down and across: one for each cell where they fit, the longer side shortened first.

    >>> squares_for(40, 40), squares_for(943, 1682), squares_for(1_000_000, 20)
    ((40, 40), (512, 512), (1024, 20))
    """
    shorter = min(m, n) if m * n <= MOST_SQUARES else min(m, n, int(MOST_SQUARES**0.5))
    longer = min(max(m, n), MOST_SQUARES // shorter, LONGEST_SIDE)
    return (shorter, longer) if m <= n else (longer, shorter)


def _line(
    result: PartialCompletion, rows: Index, col_groups: list[Index], rng: np.random.Generator | None
) -> list[Array]:
    """Means over the squares of one group of rows: confidence, kept, risk, value."""
    width, sizes = len(col_groups), np.array([len(group) for group in col_groups])
    in_order = np.concatenate(col_groups)
    if rng is None:
        square = np.tile(np.repeat(np.arange(width), sizes), len(rows))
        cells = np.repeat(rows, len(in_order)), np.tile(in_order, len(rows))
    else:
        square = np.repeat(np.arange(width), CELLS_PER_SQUARE)
        place = (np.cumsum(sizes) - sizes)[square] + (rng.random(len(square)) * sizes[square]).astype(np.int64)
        cells = rows[rng.integers(len(rows), size=len(square))], in_order[place]
    confidence, risk = result.confidence_at(*cells), result.risk_at(*cells)
    layers = confidence, result.selection.keeps(risk, confidence), risk, result.values_at(*cells)
    count = np.bincount(square, minlength=width)
    return [np.bincount(square, layer, width) / count for layer in layers]


def _observed_shares(observations: Observations, rows: list[Index], cols: list[Index]) -> Array:
    """The share of each square's cells that were observed."""
    (m, n), height, width = observations.shape, len(rows), len(cols)
    row_group, col_group = np.empty(m, np.int64), np.empty(n, np.int64)
    for group_of, groups in ((row_group, rows), (col_group, cols)):
        group_of[np.concatenate(groups)] = np.repeat(np.arange(len(groups)), [len(group) for group in groups])
    square = row_group[observations.rows] * width + col_group[observations.cols]
    seen = np.bincount(square, minlength=height * width).reshape(height, width)
    return np.asarray(seen / np.outer([len(group) for group in rows], [len(group) for group in cols]))
