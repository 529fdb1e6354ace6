"""A folder of files in, a folder of trusted cells out, without any machine ever having all rows."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

from surefill.cluster import ShardedTable, shard_folder_of_files
from surefill.cluster.folder_shards import files_of
from surefill.completion import BayesianFactorModel
from surefill.confidence import CoverageGame
from surefill.distributed.answer_block import MainBlock
from surefill.distributed.job import FolderJob
from surefill.errors import InputError
from surefill.guarantee.propensity import Aim
from surefill.io import ReadOptions
from surefill.io.writers import check_table_target
from surefill.jobs.complete import CompletedFile, check_targets
from surefill.jobs.stages import check_observed
from surefill.jobs.write_options import WriteOptions
from surefill.losses import choose_loss
from surefill.waiting import Watcher, watched


@watched
def complete_folder(
    source: str | Path,
    output: str | Path,
    backend: Any,
    *,
    read: ReadOptions | None = None,
    tolerance: float | None = None,
    delta: float = 0.05,
    completion: BayesianFactorModel | None = None,
    loss: Any = "squared",
    aim: Aim = "unobserved",
    sensitivity: float = 1.0,
    random_state: int = 0,
    write: WriteOptions | None = None,
    n_blocks: int | None = None,
    progress: Watcher = None,
) -> CompletedFile:
    """Read a folder of files, keep what can be trusted at the tolerance, and write it to a folder of parquet files.

    The main job, all of it on row blocks: what has a line for each row or each cell stays with the blocks, but for
    samples of at most two million cells and the calibration cells, at most half a million. It is that of
    :func:`surefill.jobs.complete_file`, and takes as its choices the Bayesian factor model and the coverage game; up to
    two million training cells are all gathered to learn the risk from. The result does not depend on the number of
    workers by a bit, nor on files, their order or the number of blocks but for rounding.

    Parameters
    ----------
    source : the folder; its files are read one by one, their rows hashed to blocks.
    output : the folder to write, with a part for each block.
    backend : :class:`surefill.cluster.RayBackend` or :class:`surefill.cluster.LocalBackend`.
    read : how each file is read.
    tolerance, delta, loss, aim, sensitivity, random_state : those of :class:`surefill.PartialCompleter`.
    completion : the model whose factors are fitted; its rank is chosen on the cells of some rows when not given.
    write : which cells are written, and how; long tables of all rows only.
    n_blocks : see :func:`surefill.cluster.shard_folder_of_files`.
    progress : True for a bar over the whole job, or a function that is called after each step of each stage.

    Examples
    --------
    >>> import tempfile
    >>> import surefill as sf
    >>> seen = sf.datasets.make_low_rank((60, 40), rank=1, n_draws=1500, noise=0.1, random_state=0).observations
    >>> lines = [f"{i},{j},{y:.4f}" for i, j, y in zip(seen.rows, seen.cols, seen.values)]
    >>> with tempfile.TemporaryDirectory() as place:
    ...     folder = Path(place) / "ratings"
    ...     folder.mkdir()
    ...     for part in range(2):
    ...         text = "user,item,rating\\n" + "\\n".join(lines[part::2])
    ...         _ = (folder / f"{part}.csv").write_text(text)
    ...     backend = sf.cluster.LocalBackend()
    ...     done = complete_folder(folder, Path(place) / "filled", backend, tolerance=0.3, n_blocks=2)
    ...     len(list(done.output.iterdir()))
    2
    >>> done.rows, done.columns, done.observed_cells + done.missing_cells
    (60, 40, 2400)
    """
    options, target, given = write or WriteOptions(), Path(output), read or ReadOptions()
    if options.layout == "wide" or options.rows is not None:
        raise InputError("a folder is completed to long tables of all its rows: leave out --rows and --write wide.")
    if given.time is not None or given.row_features is not None or given.col_features is not None:
        raise InputError(
            "times and side tables are not fitted on a cluster yet: leave them out, or fit on one machine."
        )
    if given.wide:
        raise InputError("a folder is completed from long tables, a line for each observation: leave out --wide.")
    check_table_target(f"{output}/")
    check_targets({"FILE": Path(source)}, target, None, None)
    if Path(source).resolve() in target.resolve().parents:
        raise InputError(f"{target} lies in the folder {source}, whose files are read: write to another place.")
    check_observed(files_of(source)[0], given)
    model = replace(completion or BayesianFactorModel(), random_state=random_state)
    with backend.session() as place:
        table = ShardedTable.stored(place / "blocks") if backend.resume else None
        if table is None:
            shutil.rmtree(place / "blocks", ignore_errors=True)
            table = shard_folder_of_files(source, place / "blocks", backend, read=given, n_blocks=n_blocks)
        job = FolderJob(
            table=table,
            given_bounds=given.bounds,
            model=model,
            game=CoverageGame(random_state=random_state),
            loss=choose_loss(loss),
            tolerance=None if tolerance is None else float(tolerance),
            delta=delta,
            aim=aim,
            sensitivity=float(sensitivity),
            random_state=random_state,
            progress=progress if callable(progress) else None,
        )
        with backend.stored(table.folder, table.n_blocks, "job", job.settings, MainBlock) as (blocks, runs):
            return job.run(blocks, runs, options, target)
