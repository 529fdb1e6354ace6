"""A folder of files as row blocks, without any machine ever having all rows: read, hashed by row, numbered in place.

Every file is read by itself and its cells are written to as many buckets as there are blocks, by a hash of the row's
label: block b has the hashes from b / n_blocks up to (b + 1) / n_blocks of all. Every bucket then numbers its own rows
in the order of their hashes, so that labels of rows stay where the rows are, and a row has the same number among all
rows however many blocks there are; labels of columns are gathered, merged and numbered in order, as a reader of one
file does.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surefill.cluster.shards import LISTING, finish_shards, shard_folder, write_shard
from surefill.completion.bayes.row_block import BlockCells, blocks_of
from surefill.data import Observations
from surefill.data.units import UnitMap
from surefill.errors import InputError
from surefill.io import ReadOptions
from surefill.io.numpy_files import read_member, read_npy

SUFFIXES = (".parquet", ".pq", ".csv", ".tsv", ".csv.gz", ".tsv.gz", ".dat")
"""Files of a folder that are read."""

BYTES_PER_BLOCK = 8 << 20
"""Bytes of files for each block: half a million lines of csv, two million of parquet."""

COLUMNS = "columns.npy"
"""The file with the labels of columns."""

MOST_BLOCKS = 4096
"""Blocks at most; every file is written to so many pieces at most."""


@dataclass(frozen=True, eq=False)
class ShardedTable:
    """A table in blocks: how many, its columns' labels, the range of values, how many rows and cells.

    Examples
    --------
    >>> import tempfile
    >>> import surefill as sf
    >>> from surefill.cluster import shard_folder_of_files
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for part in range(2):
    ...         lines = [f"ann,{j},{j % 5}" for j in range(part, 8)] + [f"bob{part},{j},1" for j in range(3)]
    ...         _ = (Path(folder) / f"part-{part}.csv").write_text("user,item,rating\\n" + "\\n".join(lines))
    ...     table = shard_folder_of_files(folder, Path(folder) / "blocks", sf.cluster.LocalBackend(), n_blocks=2)
    >>> table.n_rows, table.col_labels.tolist(), table.n_cells
    (3, [0, 1, 2, 3, 4, 5, 6, 7], 14)
    """

    folder: Path
    n_blocks: int
    n_rows: int
    n_cells: int
    col_labels: NDArray[Any]
    bounds: tuple[float, float]
    names: tuple[str, str, str]
    skipped: int = 0

    @classmethod
    def stored(cls, folder: Path) -> ShardedTable | None:
        """The table whose blocks lie in a folder; None where they are not all there."""
        try:
            known = json.loads((folder / LISTING).read_text(encoding="utf-8"))
            counts = known["blocks"], known["n_rows"], known["n_cells"]
            low, high = known["bounds"]
            row, col, value = known["names"]
            labels = read_npy(folder / COLUMNS)
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return cls(folder, *counts, labels, (low, high), (row, col, value), known["skipped"])

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.n_rows, len(self.col_labels)

    @property
    def unit(self) -> UnitMap:
        """The map between the user's units and [-1, 1]."""
        return UnitMap(*self.bounds)


@dataclass(frozen=True)
class _Piece:
    """What was found in one file: the labels of its columns, the range of its values, what columns are called."""

    col_labels: NDArray[Any]
    text_rows: bool
    least: float
    most: float
    names: tuple[str, str, str]
    skipped: int


@dataclass(frozen=True)
class FileReader:
    """Reads one file into pieces, one for each block."""

    place: Path
    n_blocks: int
    options: ReadOptions

    def __call__(self, numbered: tuple[int, Path]) -> _Piece:
        """Read the file, and give what was found."""
        number, path = numbered
        seen = self.options.read(path)
        labels, cols = (
            _labels(each, size) for each, size in zip((seen.row_labels, seen.col_labels), seen.shape, strict=True)
        )
        block = block_of(labels, self.n_blocks)[seen.rows]
        for index in np.unique(block).tolist():
            part = seen.select(block == index)
            arrays = part.rows, part.cols, part.values, np.asarray(part.counts), np.asarray(part.scatter)
            present, rows = np.unique(arrays[0], return_inverse=True)
            folder = self.place / f"pieces-{index:06d}"
            folder.mkdir(parents=True, exist_ok=True)
            with open(folder / f"{number:06d}.npz", "wb") as file:
                np.savez(file, labels=labels[present], rows=rows, cols=arrays[1], values=arrays[2], counts=arrays[3],
                         scatter=arrays[4], col_labels=cols)  # fmt: skip
        ends = float(seen.values.min()), float(seen.values.max())
        return _Piece(cols, labels.dtype.kind == "U", *ends, seen.names, seen.skipped)


@dataclass(frozen=True)
class BlockBuilder:
    """Puts the pieces of one block together: rows numbered here, cells that several files have merged."""

    place: Path
    col_labels: NDArray[Any]
    text_rows: bool

    def __call__(self, index: int) -> tuple[int, int]:
        """Rows and cells of the block."""
        pieces = [np.load(path) for path in sorted((self.place / f"pieces-{index:06d}").glob("*.npz"))]
        if not pieces:
            nothing = np.empty(0, np.int64)
            empty = BlockCells(nothing, np.zeros(1, np.int64), nothing.astype(np.int32), nothing.astype(np.float64),
                               np.ones(1, np.int64), np.zeros(1))  # fmt: skip
            write_shard(self.place, index, empty)
            np.save(shard_folder(self.place, index) / "row_labels.npy", nothing)
            return 0, 0
        own = [_as_kind(read_member(piece, "labels"), self.text_rows) for piece in pieces]
        labels = np.unique(np.concatenate(own))
        order = np.argsort(label_hashes(labels), kind="stable")
        number = np.empty(len(order), np.int64)
        number[order] = np.arange(len(order))
        rows = np.concatenate(
            [
                number[np.searchsorted(labels, each)[read_member(piece, "rows")]]
                for each, piece in zip(own, pieces, strict=True)
            ]
        )
        text = self.col_labels.dtype.kind == "U"
        cols = np.concatenate(
            [
                np.searchsorted(self.col_labels, _as_kind(read_member(piece, "col_labels"), text))[
                    read_member(piece, "cols")
                ]
                for piece in pieces
            ]
        )
        values, counts, scatter = (
            np.concatenate([read_member(piece, name) for piece in pieces]) for name in ("values", "counts", "scatter")
        )
        shape = len(labels), len(self.col_labels)
        seen = Observations(rows, cols, values, shape, counts=counts, scatter=scatter)
        seen = seen.select(np.lexsort((seen.cols, seen.rows)))  # whichever files they come from
        (cells,) = blocks_of(seen, cells=len(seen) + 1)
        write_shard(self.place, index, cells)
        np.save(shard_folder(self.place, index) / "row_labels.npy", labels[order])
        return len(labels), len(cells)


def shard_folder_of_files(
    source: str | Path,
    place: str | Path,
    backend: Any,
    *,
    read: ReadOptions | None = None,
    n_blocks: int | None = None,
) -> ShardedTable:
    """The files of a folder as row blocks in ``place``, read and written by the backend's workers.

    Rows are in the block that a hash of their label says; ``n_blocks``, a power of two at best, is chosen from the size
    of the files when not given. Where ``read`` has no bounds, values range over what was seen.

    >>> import surefill as sf
    >>> sf.cluster.shard_folder_of_files("nowhere", "blocks", sf.cluster.LocalBackend())
    Traceback (most recent call last):
        ...
    surefill.errors.InputError: nowhere is not a folder of files.
    """
    target = Path(place)
    files = [path for path in files_of(source) if target not in path.parents]
    n_blocks = n_blocks or _n_blocks(sum(path.stat().st_size for path in files))
    options = read or ReadOptions()
    target.mkdir(parents=True, exist_ok=True)
    for left in target.glob("pieces-*"):
        shutil.rmtree(left)
    pieces = backend.map(FileReader(target, n_blocks, options), list(enumerate(files)))
    text = [piece.col_labels.dtype.kind == "U" for piece in pieces]
    col_labels = np.unique(np.concatenate([_as_kind(piece.col_labels, any(text)) for piece in pieces]))
    text_rows = any(piece.text_rows for piece in pieces)
    sizes = backend.map(BlockBuilder(target, col_labels, text_rows), list(range(n_blocks)))
    for left in target.glob("pieces-*"):
        shutil.rmtree(left)
    seen = min(piece.least for piece in pieces), max(piece.most for piece in pieces)
    n_rows, n_cells = (sum(each) for each in zip(*sizes, strict=True))
    skipped = sum(piece.skipped for piece in pieces)
    np.save(target / COLUMNS, col_labels, allow_pickle=False)
    bounds, names = options.bounds or seen, pieces[0].names
    counts = {"n_rows": n_rows, "n_cells": n_cells, "skipped": skipped}
    finish_shards(target, n_blocks, **counts, bounds=list(bounds), names=list(names))
    return ShardedTable(target, n_blocks, n_rows, n_cells, col_labels, bounds, names, skipped)


def files_of(source: str | Path) -> list[Path]:
    """The files of a folder that are read, in the order of their names."""
    folder = Path(source)
    if not folder.is_dir():
        raise InputError(f"{folder} is not a folder of files.")
    files = sorted(path for path in folder.rglob("*") if path.name.lower().endswith(SUFFIXES))
    if not files:
        raise InputError(f"{folder} has no files that are read: {', '.join(SUFFIXES)}.")
    return files


def block_of(labels: NDArray[Any], n_blocks: int) -> NDArray[np.int64]:
    """The block of each row: which of ``n_blocks`` equal parts of all hashes that of its label is in.

    >>> block_of(np.array([1, 2, 3]), 4).tolist() == block_of(np.array(["1", "2", "3"]), 4).tolist()
    True
    >>> (block_of(np.arange(9), 4) // 2).tolist() == block_of(np.arange(9), 2).tolist()
    True
    """
    leading = label_hashes(labels) >> np.uint64(32)  # as many as fit a product of 64 bits
    return ((leading * np.uint64(n_blocks)) >> np.uint64(32)).astype(np.int64)


def label_hashes(labels: NDArray[Any]) -> NDArray[np.uint64]:
    """64 bits for each label, the same in every process."""
    text = [str(label).encode() for label in labels.tolist()]
    return np.frombuffer(b"".join(hashlib.blake2b(each, digest_size=8).digest() for each in text), dtype="<u8")


def _n_blocks(n_bytes: int) -> int:
    return 1 << int(np.clip(np.log2(max(1, n_bytes / BYTES_PER_BLOCK)), 0, np.log2(MOST_BLOCKS)))


def _labels(labels: NDArray[Any] | None, size: int) -> NDArray[Any]:
    found = np.arange(size) if labels is None else np.asarray(labels)
    return found if found.dtype.kind in "iu" else found.astype(str)


def _as_kind(labels: NDArray[Any], text: bool) -> NDArray[Any]:
    return labels.astype(str) if text else labels
