"""The main job on row blocks: the same result in threads and on Ray with 1, 2 and 4 workers, and what it costs.

``python benchmarks/main_job.py`` writes simulated ratings to a folder of parquet files, completes it in threads and on
clusters of this machine, each in a process of its own, up to the promise, and compares what was found at the
calibration cells and at cells drawn from all: predictions' losses, confidences, risks and weights. With
``--in-memory`` the same table is given to ``PartialCompleter`` too; with ``--movielens PATH`` MovieLens is taken.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd

import surefill as sf
from cluster import MEMORY_HEADER, WorkersMemory, memory_cells, processor_seconds, simulated
from surefill.cluster import LocalBackend, RayBackend, ShardedTable, shard_folder_of_files
from surefill.completion import BayesianFactorModel
from surefill.confidence import CoverageGame
from surefill.distributed.answer_block import MainBlock
from surefill.distributed.job import FolderJob
from surefill.guarantee import select
from surefill.losses import SQUARED

SEED = 1
"""Seed of the job, not that of the table: one seed draws the same numbers, and the cells that the plan is made on would
lie in the rows that the simulation drew first, which were seen more often than others."""

TOLERANCE = 0.6
OTHERS = (0.65, 0.7, 0.8, 1.0)
"""Other tolerances at which filled cells are counted, without another fit."""


def settle(
    blocks_folder: Path, n_workers: int, tolerance: float, seed: int = SEED
) -> tuple[dict[str, np.ndarray], dict[str, object]]:
    """What the job finds, and its cost, once workers have started."""
    table = ShardedTable.stored(blocks_folder)
    assert table is not None
    model, game = BayesianFactorModel(random_state=seed), CoverageGame(random_state=seed)
    job = FolderJob(table, (0.5, 5.0), model, game, SQUARED, tolerance, 0.05, "unobserved", 1.0, seed, None)
    with tempfile.TemporaryDirectory() as place:
        backend = RayBackend(workers=n_workers, folder=place) if n_workers else LocalBackend()
        with backend.session(), backend.stored(table.folder, table.n_blocks, "job", {}, MainBlock) as (blocks, runs):
            memory = WorkersMemory(blocks.processes() if n_workers else [os.getpid()])
            cpu, start = processor_seconds(), time.perf_counter()
            found = job.settle(blocks, runs)
            spent = {"cpu": processor_seconds() - cpu, "seconds": time.perf_counter() - start}
            per_worker = table.n_blocks // min(max(n_workers, 1), table.n_blocks)
            spent |= memory.parts(table.shape[1], found.columns.fit.cols.mean.shape[1], per_worker)
            if n_workers:
                spent |= {"sent": blocks.traffic.sent / 1e6, "received": blocks.traffic.received / 1e6}
    spent["driver_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    promise = found.promise
    told = {"stages": job.seconds, "filled": promise.selection.n_filled, "error": promise.selection.held_out_error}
    others = {t: select(promise.plan.at_tolerance(t), promise.calibration).n_filled for t in OTHERS}
    told |= {"filled_at": others, "aurc": sf.metrics.aurc(promise.calibration.loss, promise.calibration.risk)}
    arrays = {name: getattr(promise.calibration, name) for name in ("risk", "confidence", "loss", "weight")}
    arrays |= {f"population_{name}": getattr(promise.plan.population, name) for name in ("risk", "weight")}
    return arrays, spent | told | {"promised": promise.guarantee.promised}


def in_memory(folder: Path, tolerance: float, seed: int = SEED) -> dict[str, object]:
    """The same table given to one completer."""
    seen = sf.read_observations(folder, bounds=(0.5, 5.0))
    cpu, start = processor_seconds(), time.perf_counter()
    result = sf.PartialCompleter(tolerance=tolerance, random_state=seed).fit(seen).result_
    spent = {"cpu": processor_seconds() - cpu, "seconds": time.perf_counter() - start}
    told = {"filled": result.selection.n_filled, "error": result.selection.held_out_error, "stages": result.timings}
    others = {t: result.at_tolerance(t).selection.n_filled for t in OTHERS}
    told |= {"filled_at": others, "aurc": sf.metrics.aurc(result.calibration.loss, result.calibration.risk)}
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return spent | told | {"promised": result.guarantee.promised, "driver_mb": memory}


def put_files(seen: sf.Observations, folder: Path, n_blocks: int) -> None:
    """Write the table as eight files to ``files``, and its blocks to ``blocks``."""
    frame = pd.DataFrame({"user": seen.rows, "item": seen.cols, "rating": np.asarray(seen.values, np.float64)})
    (folder / "files").mkdir()
    for part in range(8):
        frame[part::8].to_parquet(folder / "files" / f"{part}.parquet")
    shard_folder_of_files(folder / "files", folder / "blocks", LocalBackend(), n_blocks=n_blocks)


def one(given: argparse.Namespace) -> None:
    if given.only == "memory":
        print(json.dumps(in_memory(Path(given.folder) / "files", given.tolerance)))
        return
    arrays, told = settle(Path(given.folder) / "blocks", int(given.only), given.tolerance)
    np.savez(Path(given.folder) / f"found-{given.only}.npz", **arrays)
    print(json.dumps(told))


def compare(given: argparse.Namespace) -> None:
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        if given.movielens:
            seen = sf.datasets.load_movielens(Path(given.movielens).name, path=Path(given.movielens))
        else:
            seen, _ = simulated(given.cells, tuple(given.shape))
        put_files(seen, folder, given.blocks)
        print(f"{len(seen):,} cells of {seen.shape[0]:,} x {seen.shape[1]:,}, tolerance {given.tolerance}\n")
        first: dict[str, np.ndarray] | None = None
        for name in [*(["memory"] if given.in_memory else []), "0", *map(str, given.workers)]:
            command = [sys.executable, __file__, "--only", name, "--folder", place, "--tolerance", str(given.tolerance)]
            told = subprocess.run(command, capture_output=True, text=True, check=False)
            if told.returncode:
                sys.exit(told.stderr)
            print(name, told.stdout.splitlines()[-1], flush=True)
            if name == "memory":
                continue
            with np.load(folder / f"found-{name}.npz") as found:
                arrays = dict(found)
            first = first or arrays
            away = {each: float(np.abs(arrays[each] - first[each]).max()) for each in arrays}
            figures = json.loads(told.stdout.splitlines()[-1])
            print(f"  {MEMORY_HEADER} {memory_cells(figures, int(name))}", flush=True)
            print(f"  largest differences from threads: {away}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cells", type=int, default=5_500_000)
    parser.add_argument("--shape", type=int, nargs=2, default=(200_000, 20_000))
    parser.add_argument("--blocks", type=int, default=8)
    parser.add_argument("--workers", type=int, nargs="*", default=[1, 2, 4])
    parser.add_argument("--tolerance", type=float, default=TOLERANCE)
    parser.add_argument("--movielens", metavar="PATH")
    parser.add_argument("--in-memory", action="store_true")
    parser.add_argument("--only", help=argparse.SUPPRESS)
    parser.add_argument("--folder", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    one(arguments) if arguments.only is not None else compare(arguments)
