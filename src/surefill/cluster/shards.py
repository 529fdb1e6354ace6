"""Blocks of rows on disk: a folder for each, of plain numpy arrays that are mapped into memory, never pickle."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np

from surefill.completion.bayes.row_block import BlockCells
from surefill.errors import InputError
from surefill.io.numpy_files import read_npy

LISTING = "shards.json"
"""The file that says how many blocks there are; it is written last."""


def write_shards(folder: Path, blocks: Iterable[BlockCells]) -> int:
    """Write the blocks, and how many there are.

    >>> import tempfile
    >>> import surefill as sf
    >>> from surefill.completion.bayes.row_block import blocks_of
    >>> seen = sf.Observations([0, 1], [0, 2], [4.0, 9.0])
    >>> with tempfile.TemporaryDirectory() as place:
    ...     n = write_shards(Path(place), blocks_of(seen, cells=1))
    ...     [read_shard(Path(place), index).row_ids.tolist() for index in range(n)]
    [[0], [1]]
    """
    n_blocks = 0
    for index, cells in enumerate(blocks):
        write_shard(folder, index, cells)
        n_blocks += 1
    finish_shards(folder, n_blocks)
    return n_blocks


def write_shard(folder: Path, index: int, cells: BlockCells) -> None:
    """Write one block."""
    place = shard_folder(folder, index)
    place.mkdir(parents=True, exist_ok=True)
    for each in fields(cells):
        np.save(place / f"{each.name}.npy", np.ascontiguousarray(getattr(cells, each.name)), allow_pickle=False)


def finish_shards(folder: Path, n_blocks: int, **more: Any) -> None:
    """Say that all blocks are there, and what else is to be known of them."""
    partial = folder / f"{LISTING}.part"
    partial.write_text(json.dumps({"blocks": n_blocks, **more}), encoding="utf-8")
    os.replace(partial, folder / LISTING)


def shard_folder(folder: Path, index: int) -> Path:
    """Where a block lies."""
    return folder / f"block-{index:06d}"


def read_shard(folder: Path, index: int) -> BlockCells:
    """One block, its arrays mapped into memory; InputError where the files are not there or not whole."""
    place = shard_folder(folder, index)
    try:
        arrays = [read_npy(place / f"{each.name}.npy", mmap_mode="r") for each in fields(BlockCells)]
        whole = int(arrays[1][-1]) == len(arrays[2]) == len(arrays[3])
    except (OSError, ValueError, EOFError):
        whole = False
    if not whole:
        raise InputError(
            f"block {index} of the table is missing or damaged in {place}: every machine of the cluster must see this "
            "folder; put it on storage that they share, and start again without --resume if files were lost."
        )
    return BlockCells(*arrays)
