"""A table of two groups with noise, as files in a folder, in blocks, and in memory in the order that blocks have."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import surefill as sf
from surefill.blocks import LocalBlocks
from surefill.cluster import LocalBackend, shard_folder_of_files
from surefill.cluster.folder_shards import label_hashes
from surefill.completion.bayes.row_block import WHOLE
from surefill.distributed.answer_block import MainBlock

SEED = 3


@pytest.fixture(scope="session")
def lines():
    """Observations of a 300 x 120 matrix whose rows and columns are seen unevenly."""
    rng = np.random.default_rng(0)
    m, n = 300, 120
    left, right = rng.normal(size=(m, 2)), rng.normal(size=(n, 2))
    chance = np.minimum(np.outer(rng.uniform(0.2, 1, m), rng.uniform(0.1, 1, n)), 0.9)
    i, j = np.nonzero(rng.random((m, n)) < chance)
    y = np.clip(np.einsum("tk,tk->t", left[i], right[j]) + rng.normal(0, 0.3, len(i)), -3, 3)
    table = pd.DataFrame({"user": [f"u{k}" for k in i], "item": 10 * j, "rating": np.round(y, 2)})
    return table.sample(frac=1, random_state=1).reset_index(drop=True)


@pytest.fixture(scope="session")
def folder(lines, tmp_path_factory):
    """The same as three files."""
    place = tmp_path_factory.mktemp("lines")
    for part in range(3):
        lines[part::3].to_parquet(place / f"{part}.parquet")
    return place


@pytest.fixture(scope="session")
def in_memory(lines):
    """The same as one table, rows in the order of the hashes of their labels, cells row by row."""
    labels = np.unique(lines["user"].to_numpy().astype(str))
    labels = labels[np.argsort(label_hashes(labels), kind="stable")]
    number = {label: k for k, label in enumerate(labels.tolist())}
    rows, (items, cols) = lines["user"].map(number).to_numpy(), np.unique(lines["item"], return_inverse=True)
    order = np.lexsort((cols, rows))
    values = lines["rating"].to_numpy()[order]
    return sf.Observations(rows[order], cols[order], values, (len(labels), len(items)))


def open_blocks(folder, place, n_blocks):
    """The blocks of a folder, placed."""
    table = shard_folder_of_files(folder, place, LocalBackend(), n_blocks=n_blocks)
    blocks = LocalBlocks([MainBlock(table.folder, index) for index in range(n_blocks)])
    rows = [m for m, _ in blocks.each("rows_and_cells", WHOLE)]
    blocks.each("place", SEED, table.shape[1], own=np.cumsum([0, *rows[:-1]]).tolist())
    return SimpleNamespace(blocks=blocks, table=table, each=[blocks._blocks[k] for k in range(n_blocks)])


@pytest.fixture
def opened(folder, tmp_path):
    """Four blocks."""
    return open_blocks(folder, tmp_path / "blocks", 4)
