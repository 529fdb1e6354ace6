"""A matrix of any size as at most 512 x 512 squares, each the mean of the cells under it; as colours and as a PNG."""

from __future__ import annotations

import base64
import struct
import zlib
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from surefill.arrays import Array, Indices
from surefill.data import Observations
from surefill.estimators import PartialCompletion

Bytes = NDArray[np.uint8]

ANCHORS = (
    "#00224e", "#123570", "#3b496c", "#575d6d", "#707173", "#8a8678", "#a59c74", "#c3b369", "#e1cc55", "#fee838",
)  # fmt: skip
"""From little to much, dark blue to yellow: rises evenly in lightness, and looks alike without colour vision."""


MOST_SQUARES = 512 * 512
"""Squares of a map: five layers of a byte each are 1.3 MB before compression."""

LONGEST_SIDE = 1024
"""Squares along one side: about the pixels of a screen."""

CELLS_PER_SQUARE = 8
"""Cells drawn from a large square: two million in all."""


@dataclass(frozen=True, eq=False)
class MapLayer:
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

    rows: tuple[Indices, ...]
    cols: tuple[Indices, ...]
    layers: dict[str, MapLayer]
    exact: bool

    @property
    def shape(self) -> tuple[int, int]:
        """Squares down and across."""
        return len(self.rows), len(self.cols)

    @property
    def single(self) -> bool:
        """Whether every square is one cell."""
        return all(len(group) == 1 for group in (*self.rows, *self.cols))


def draw_heat_map(
    result: PartialCompletion, observations: Observations, row_order: Indices, col_order: Indices
) -> HeatMap:
    """Confidence, kept share, observed share, risk and value of every square.

    Rows and columns are cut, in the given order, into groups whose sizes differ by at most one. Squares of at most 8
    cells are looked at whole, of larger ones 8 cells are drawn, with replacement; the observed share is always exact.
    """
    m, n = observations.shape
    height, width = squares_for(m, n)
    rows, cols = np.array_split(row_order, height), np.array_split(col_order, width)
    exact = -(-m // height) * -(-n // width) <= CELLS_PER_SQUARE
    rng = np.random.default_rng(0)
    lines = [_square_means(result, group, cols, None if exact else rng) for group in rows]
    confidence, kept, risk, value = (np.array(layer) for layer in zip(*lines, strict=True))
    observed = _observed_shares(observations, rows, cols)
    expected = result.loss.loss.expected_name
    layers = {
        "confidence": MapLayer("Confidence", confidence, 0.0, 1.0),
        "kept": MapLayer("Kept", kept, 0.0, 1.0),
        "observed": MapLayer("Observed", observed, 0.0, float(observed.max())),
        "risk": MapLayer(expected[0].upper() + expected[1:], risk, float(risk.min()), float(risk.max())),
        "value": MapLayer("Value", value, float(value.min()), float(value.max())),
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


def _square_means(
    result: PartialCompletion, rows: Indices, col_groups: list[Indices], rng: np.random.Generator | None
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
    answer = result.answer(*cells)
    layers = answer.confidence, answer.keep, answer.risk, answer.value
    count = np.bincount(square, minlength=width)
    return [np.bincount(square, layer, width) / count for layer in layers]


def _observed_shares(observations: Observations, rows: list[Indices], cols: list[Indices]) -> Array:
    """The share of each square's cells that were observed."""
    (m, n), height, width = observations.shape, len(rows), len(cols)
    row_group, col_group = np.empty(m, np.int64), np.empty(n, np.int64)
    for group_of, groups in ((row_group, rows), (col_group, cols)):
        group_of[np.concatenate(groups)] = np.repeat(np.arange(len(groups)), [len(group) for group in groups])
    square = row_group[observations.rows] * width + col_group[observations.cols]
    seen = np.bincount(square, minlength=height * width).reshape(height, width)
    return np.asarray(seen / np.outer([len(group) for group in rows], [len(group) for group in cols]))


def palette() -> Bytes:
    """256 colours between the anchors, 256 x 3."""
    anchors = np.array([[int(colour[k : k + 2], 16) for k in (1, 3, 5)] for colour in ANCHORS])
    places = np.linspace(0, len(anchors) - 1, 256)
    channels = [np.interp(places, np.arange(len(anchors)), anchors[:, k]) for k in range(3)]
    return np.stack(channels, axis=1).round().astype(np.uint8)


def as_png(levels: Bytes) -> bytes:
    """An indexed PNG, one byte a square: each line is a filter byte 0 and its levels, deflated."""
    height, width = levels.shape
    lines = np.zeros((height, width + 1), dtype=np.uint8)
    lines[:, 1:] = levels
    header = struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"PLTE", palette().tobytes()), (b"IDAT", zlib.compress(lines.tobytes(), 9)))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(*chunk) for chunk in (*chunks, (b"IEND", b"")))


def _chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


def as_base64(content: bytes) -> str:
    """Bytes as base64."""
    return base64.b64encode(content).decode("ascii")
