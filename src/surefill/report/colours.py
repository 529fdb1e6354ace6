"""Colours of a map from little to much, and a PNG of them."""

from __future__ import annotations

import base64
import struct
import zlib

import numpy as np
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]

ANCHORS = (
    "#00224e", "#123570", "#3b496c", "#575d6d", "#707173", "#8a8678", "#a59c74", "#c3b369", "#e1cc55", "#fee838",
)  # fmt: skip
"""From little to much, dark blue to yellow: rises evenly in lightness, and looks alike without colour vision."""


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


def packed(levels: Bytes) -> str:
    """Bytes deflated, as base64, for the script."""
    return as_base64(zlib.compress(levels.tobytes()))
