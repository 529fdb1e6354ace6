"""A folder of files in, the posterior of a factor model out, without any machine ever having all rows."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from surefill.blocks import Blocks
from surefill.cluster.folder_shards import ShardedTable, shard_folder_of_files
from surefill.completion import BayesianFactorModel
from surefill.completion.bayes.bayesian_model import FIRST_RANK, SAMPLED_CELLS
from surefill.completion.bayes.blocked_solver import BlockedSolver, BlockedState
from surefill.completion.bayes.row_block import WHOLE
from surefill.data import Observations
from surefill.io import ReadOptions
from surefill.io.durable import replacing
from surefill.io.parquet_writer import parquet_file
from surefill.loop import Outcome, ProgressCallback


@dataclass(frozen=True)
class FittedFolder:
    """What :func:`fit_folder` read, fitted and wrote; nothing is promised of the values.

    Attributes
    ----------
    rows, columns, cells : how many there are.
    rank, mean, noise, bounds : of the model; mean and noise are on [-1, 1], to which bounds are mapped.
    status : why the last run of sweeps ended.
    output : the folder with ``rows/part-*.parquet``, ``columns.parquet`` and ``model.json``.

    Examples
    --------
    >>> from surefill.cluster import FittedFolder
    >>> sorted(FittedFolder.__dataclass_fields__)[:3]
    ['bounds', 'cells', 'columns']
    """

    rows: int
    columns: int
    cells: int
    rank: int
    mean: float
    noise: float
    bounds: tuple[float, float]
    status: str
    output: Path


def fit_folder(
    source: str | Path,
    output: str | Path,
    backend: Any,
    *,
    model: BayesianFactorModel | None = None,
    read: ReadOptions | None = None,
    n_blocks: int | None = None,
    progress: ProgressCallback | None = None,
) -> FittedFolder:
    """Fit a Bayesian factor model to a folder of parquet or csv files, and write its posterior.

    The value of a cell is mean + b_i + c_j + p_i . q_j on [-1, 1], clipped to it, of which ``rows/`` has b_i and p_i (a
    file for each block, written where its rows are) and ``columns.parquet`` c_j and q_j. Only what has a line for each
    column comes together in this process. It gives values for every cell and no promise: neither confidence nor risk
    nor calibration are computed here; :class:`surefill.PartialCompleter` does that, where the table fits one machine.

    Parameters
    ----------
    source : the folder; its files are read one by one, their rows hashed to blocks.
    output : the folder to write, and ``output/blocks`` for the blocks; all machines must see it.
    backend : :class:`RayBackend` or :class:`LocalBackend`.
    model : what is fitted; a rank "auto" is chosen on the cells of some rows, at most two million.
    read : how each file is read.
    n_blocks : see :func:`shard_folder_of_files`.

    Examples
    --------
    >>> import tempfile
    >>> import surefill as sf
    >>> with tempfile.TemporaryDirectory() as place:
    ...     folder = Path(place) / "ratings"
    ...     folder.mkdir()
    ...     for part in range(2):
    ...         lines = [f"{i},{j},{i * j % 5}" for i in range(part, 12, 2) for j in range(9)]
    ...         _ = (folder / f"{part}.csv").write_text("user,item,rating\\n" + "\\n".join(lines))
    ...     done = sf.cluster.fit_folder(folder, Path(place) / "fit", sf.cluster.LocalBackend(), n_blocks=2)
    ...     (done.rows, done.columns, len(list((done.output / "rows").iterdir())))
    (12, 9, 2)
    """
    target, asked = Path(output), model or BayesianFactorModel()
    table = shard_folder_of_files(source, target / "blocks", backend, read=read, n_blocks=n_blocks)
    settings = {"number of cells": table.n_cells, "shape": list(table.shape), **asdict(asked)}
    with backend.stored(table.folder, table.n_blocks, "fit", settings) as (blocks, runs):
        chosen = _with_rank(asked, blocks, table, progress)
        assert chosen.rank != "auto"
        rank = min(int(chosen.rank), *table.shape)
        about = table.shape, table.unit, min(rank, FIRST_RANK), chosen.tol, chosen.random_state
        solver = BlockedSolver.of(blocks, *about, runs)
        *_, outcome = chosen.grow(solver, rank, progress)
        return _write(blocks, table, solver, outcome, target)


def _with_rank(
    model: BayesianFactorModel, blocks: Blocks, table: ShardedTable, progress: ProgressCallback | None
) -> BayesianFactorModel:
    """The model with its rank, chosen on the cells of some rows of each block."""
    if model.rank != "auto":
        return model
    share = min(1.0, SAMPLED_CELLS / max(1, table.n_cells))
    seeds = [np.random.default_rng([model.random_state, index]).bit_generator.state for index in range(len(blocks))]
    blocks.each("select_rows", "choice", WHOLE, share, own=seeds)
    rows, first, parts = [], 0, blocks.each("cells", "choice")
    for part in parts:
        rows.append(first + part.row_of_cell)
        first += len(part.row_ids)
    blocks.each("forget", "choice")
    columns, values = (np.concatenate([getattr(part, name) for part in parts]) for name in ("cols", "values"))
    shape = max(1, first), len(table.col_labels)
    sample = Observations(np.concatenate(rows), columns, values, shape, bounds=table.bounds)
    return model.chosen_for(sample, progress)


def _write(
    blocks: Blocks, table: ShardedTable, solver: BlockedSolver, outcome: Outcome[BlockedState], target: Path
) -> FittedFolder:
    rows = target / "rows"
    rows.mkdir(parents=True, exist_ok=True)
    for left in rows.glob("part-*"):
        left.unlink()
    written = sum(blocks.each("write", outcome.state.name, table.names[0], str(rows.absolute())))
    cols = outcome.state.cols
    columns = {table.names[1]: table.col_labels[cols.ids], "bias": cols.mean[:-1, 0]}
    columns |= {f"factor_{a}": cols.mean[:-1, a] for a in range(1, cols.mean.shape[1])}
    columns["noise_precision"] = cols.noise_precision.mean[:-1]
    with replacing(target / "columns.parquet") as partial, parquet_file(partial) as sink:
        sink.write(columns)
    model = solver.table.mean, outcome.state.noise, table.bounds, outcome.status.value, target
    done = FittedFolder(written, len(table.col_labels), table.n_cells, cols.mean.shape[1] - 1, *model)
    with replacing(target / "model.json") as partial:
        partial.write_text(json.dumps(asdict(done) | {"output": str(target)}, indent=2), encoding="utf-8")
    return done
