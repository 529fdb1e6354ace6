"""A fit on row blocks of a Ray cluster next to the fit of one table: same result, cost, bytes moved, memory.

Every fit runs in a process of its own; its processor time is that of the process and of all that it started, Ray's
daemons included. A few sweeps before, in which processes start and kernels are loaded, are counted apart. Run with
``make bench-cluster``, and with ``--spark PYTHON`` (a Python that has pyspark, and a JRE) for Spark's ALS on the same
table.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

import surefill as sf
from surefill.completion import BayesianFactorModel
from surefill.kernels.factor_updates import moments_width

TICKS = os.sysconf("SC_CLK_TCK")


def simulated(n_cells: int, shape: tuple[int, int], seed: int = 0) -> tuple[sf.Observations, sf.Observations]:
    """Ratings from 0.5 to 5 by halves, of rank 10 with effects and noise 0.7; a tenth is held out."""
    rng = np.random.default_rng(seed)
    m, n = shape
    key = np.unique(rng.integers(0, m, n_cells) * n + (n * rng.random(n_cells) ** 1.5).astype(np.int64))
    i, j = key // n, key % n
    left, right = (rng.normal(0, 10**-0.25 * 0.8, (size, 10)) for size in (m, n))
    y = np.empty(len(i))
    for first in range(0, len(i), 1 << 20):
        here = slice(first, first + (1 << 20))
        y[here] = np.einsum("tk,tk->t", left[i[here]], right[j[here]])
    y += 3 + rng.normal(0, 0.4, m)[i] + rng.normal(0, 0.4, n)[j] + rng.normal(0, 0.7, len(i))
    y = np.clip(np.round(2 * y) / 2, 0.5, 5)
    held = rng.random(len(i)) < 0.1
    parts = (sf.Observations(i[at], j[at], y[at], shape=shape, bounds=(0.5, 5)) for at in (~held, held))
    return tuple(parts)  # type: ignore[return-value]


def descendants() -> list[int]:
    """This process and all that it started."""
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            parents[int(entry.name)] = int(fields[1])
    found = {os.getpid()}
    while more := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= more
    return sorted(found)


def processor_seconds() -> float:
    total = 0
    for pid in descendants():
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        total += sum(map(int, fields[11:15]))
    return total / TICKS


def own_megabytes(pid: int) -> float:
    """Memory of a process that is its own: neither shared nor mapped from files."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("RssAnon"):
            return int(line.split()[1]) / 1024
    return float("nan")


class WorkersMemory:
    """Largest memory of its own (:func:`own_megabytes`) that any of these processes had since this was made.

    ``idle`` is what they had then: of workers that wait for their first call, Python and what is imported.
    """

    def __init__(self, pids: list[int]) -> None:
        self.pids, self.idle = pids, max(map(own_megabytes, pids))
        self.peak, self._ended = self.idle, threading.Event()
        self._sampling = threading.Thread(target=self._sample, daemon=True)
        self._sampling.start()

    def _sample(self) -> None:
        while not self._ended.wait(0.02):
            self.peak = max(self.peak, *map(own_megabytes, self.pids))

    def parts(self, n_cols: int, k: int, blocks_of_worker: int) -> dict[str, float]:
        """What a worker had: by itself, for columns, and for its rows, the rest.

        For columns it has sums of normal equations, 8 bytes times :func:`moments_width` for each, of the block under
        way and of as many nodes of the tree as wait for others. What comes from the machine that asks lies in shared
        memory.
        """
        self._ended.set()
        self._sampling.join()
        waiting = int(np.ceil(np.log2(blocks_of_worker)))
        of_columns = 8 * n_cols * moments_width(k) * (1 + waiting) / 2**20
        known = {"worker_mb": self.peak, "idle_mb": self.idle, "columns_mb": of_columns}
        return known | {"rows_mb": self.peak - self.idle - of_columns}


def fit_local(train: sf.Observations, rank: int) -> dict[str, object]:
    BayesianFactorModel(rank=rank, max_sweeps=2).fit(train.select(np.arange(600_000)))  # compiled
    cpu, start = processor_seconds(), time.perf_counter()
    completion = BayesianFactorModel(rank=rank).fit(train)
    spent = {"cpu": processor_seconds() - cpu, "seconds": time.perf_counter() - start, "starting": 0.0}
    return {"completion": completion, **spent, "worker_mb": own_megabytes(os.getpid())}


def fit_ray(train: sf.Observations, rank: int, n_workers: int) -> dict[str, object]:
    from surefill.cluster.checkpoints import CheckpointedRuns
    from surefill.cluster.ray_blocks import RayBlocks, connected
    from surefill.cluster.shards import write_shards
    from surefill.completion.bayes.blocked_solver import BlockedSolver, bytes_per_sweep
    from surefill.completion.bayes.row_block import blocks_of

    model, moved = BayesianFactorModel(rank=rank), []
    with tempfile.TemporaryDirectory() as folder, connected(None) as ray:
        place = Path(folder)
        before = processor_seconds()
        n_blocks = write_shards(place / "shards", blocks_of(train))
        blocks = RayBlocks(ray, place / "shards", place / "states", n_blocks, n_workers)
        memory = WorkersMemory(blocks.processes())
        runs = CheckpointedRuns(blocks, place / "states", {}, False)
        solver = BlockedSolver.of(blocks, train.shape, train.unit, min(rank, 10), model.tol, 0, runs)

        def count(_: object) -> None:
            moved.append((blocks.traffic.sent, blocks.traffic.received))

        few = BayesianFactorModel(rank=rank, max_sweeps=2)
        *_, first = few.grow(replace(solver, path="first"), rank)  # workers have imported and compiled then
        solver.release(first.state)
        begun_cpu, start = processor_seconds(), time.perf_counter()
        *_, outcome = model.grow(solver, rank, count)
        spent = {"cpu": processor_seconds() - begun_cpu, "seconds": time.perf_counter() - start}
        spent["starting"] = begun_cpu - before
        completion = solver.completion(outcome, train.shape[0])
        n_cols = len(completion.cols.ids)
        parts = memory.parts(n_cols, completion.rank + 1, n_blocks // min(n_workers, n_blocks))
        by_layout = [n_workers * size for size in bytes_per_sweep(n_cols, completion.rank + 1, single=True)]
        counted = [last - before for last, before in zip(moved[-1], moved[-2], strict=True)]
        blocks.close()
    counts = {"blocks": n_blocks, "sweeps": len(moved), "counted": counted, "by_layout": by_layout}
    return {"completion": completion, **spent, **parts, **counts}


SPARK = """
import json, os, sys, time
import numpy as np, pandas as pd
from pyspark.ml.recommendation import ALS
from pyspark.sql import SparkSession
folder, rank = sys.argv[1], int(sys.argv[2])
session = SparkSession.builder.master("local[2]").config("spark.driver.memory", "6g").config(
    "spark.ui.enabled", "false").config("spark.sql.shuffle.partitions", "8").getOrCreate()
session.sparkContext.setLogLevel("ERROR")
start = time.time()
train, test = (session.read.parquet(f"{folder}/{name}.parquet") for name in ("train", "test"))
als = ALS(rank=rank, maxIter=10, regParam=0.05, userCol="i", itemCol="j", ratingCol="y", seed=0)
model = als.fit(train)
errors = model.transform(test).na.drop().selectExpr("avg((prediction - y) * (prediction - y)) as e").collect()[0].e
cpu, of = 0, {os.getpid()}
for pid in sorted(int(name) for name in os.listdir("/proc") if name.isdigit()):
    try:
        fields = open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()
    except OSError:
        continue
    if pid in of or int(fields[1]) in of:  # the process itself, and the virtual machine and what it started
        of.add(pid)
        cpu += sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
print(json.dumps({"rmse": float(np.sqrt(errors)), "seconds": time.time() - start, "cpu": cpu}))
session.stop()
"""


def spark(python: str, train: sf.Observations, test: sf.Observations, rank: int) -> None:
    import pandas as pd

    with tempfile.TemporaryDirectory() as folder:
        for name, part in (("train", train), ("test", test)):
            table = pd.DataFrame({"i": part.rows, "j": part.cols, "y": np.asarray(part.values, dtype=np.float32)})
            table.to_parquet(f"{folder}/{name}.parquet")
        told = subprocess.run([python, "-c", SPARK, folder, str(rank)], capture_output=True, text=True, check=False)
    if told.returncode:
        print(f"Spark did not run: {told.stderr.splitlines()[-1]}")
        return
    found = json.loads(told.stdout.splitlines()[-1])
    figures = f"{found['cpu']:.1f} | | {found['seconds']:.0f} | {found['rmse']:.4f}"
    print(f"| Spark ALS, local[2], 10 iterations | {figures} | | |")


def one(arguments: argparse.Namespace) -> None:
    """One fit, its figures and predictions of the held-out cells, for the process that compares them."""
    train, test = simulated(arguments.cells, tuple(arguments.shape))
    found = fit_ray(train, arguments.rank, arguments.only) if arguments.only else fit_local(train, arguments.rank)
    completion = found.pop("completion")
    predicted = completion.at(test.rows, test.cols)  # type: ignore[attr-defined]
    np.save(arguments.into, predicted)
    found["rmse"] = float(np.sqrt(np.mean(test.squared_errors(predicted))))
    print(json.dumps(found))


def compare(arguments: argparse.Namespace) -> None:
    with tempfile.TemporaryDirectory() as folder:
        print(f"{arguments.cells:,} draws of {arguments.shape[0]:,} x {arguments.shape[1]:,}, rank {arguments.rank}\n")
        print("| | processor s | to start | s | held-out RMSE | largest difference | " + MEMORY_HEADER)
        print("|---|---|---|---|---|---|---|---|---|---|---|")
        results = {}
        for n_workers in (0, *arguments.workers):
            into = f"{folder}/{n_workers}.npy"
            command = [sys.executable, __file__, "--only", str(n_workers), "--into", into, "--cells"]
            command += [str(arguments.cells), "--rank", str(arguments.rank), "--shape", *map(str, arguments.shape)]
            told = subprocess.run(command, capture_output=True, text=True, check=False)
            if told.returncode:
                sys.exit(told.stderr)
            found, predicted = json.loads(told.stdout.splitlines()[-1]), np.load(into)
            results[n_workers] = found, predicted
            name = f"Ray, {n_workers} workers" if n_workers else "one table, threads"
            away = np.abs(predicted - results[0][1]).max()
            figures = f"{found['cpu']:.1f} | {found['starting']:.1f} | {found['seconds']:.0f} | {found['rmse']:.4f}"
            print(f"| {name} | {figures} | {away:.1e} | {memory_cells(found, n_workers)}", flush=True)
        if arguments.spark:
            spark(arguments.spark, *simulated(arguments.cells, tuple(arguments.shape)), arguments.rank)
        for n_workers, (found, _) in results.items():
            if n_workers:
                moved = [f"{a / 1e6:.2f} MB counted, {b / 1e6:.2f} by the layout" for a, b in _both(found)]
                print(
                    f"\n{n_workers} workers, {found['blocks']} blocks, a sweep: {moved[0]} sent; {moved[1]} received."
                )


MEMORY_HEADER = "MB of a worker at its peak | idle | columns, by formula | rows, the rest | the same of all workers |"
"""Columns of :func:`memory_cells`."""


def memory_cells(found: dict[str, float], n_workers: int) -> str:
    """The memory of a worker in its parts, as cells of a table."""
    if not n_workers:
        return f"{found['worker_mb']:.0f} | | | | |"
    parts = [found[name] for name in ("worker_mb", "idle_mb", "columns_mb", "rows_mb")]
    return " | ".join(f"{each:.0f}" for each in [*parts, n_workers * found["rows_mb"]]) + " |"


def _both(found: dict[str, list[int]]) -> list[tuple[int, int]]:
    return list(zip(found["counted"], found["by_layout"], strict=True))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cells", type=int, default=10_000_000)
    parser.add_argument("--shape", type=int, nargs=2, default=(70_000, 10_000))
    parser.add_argument("--rank", type=int, default=20)
    parser.add_argument("--workers", type=int, nargs="*", default=[1, 2, 4])
    parser.add_argument("--spark", metavar="PYTHON")
    parser.add_argument("--only", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--into", help=argparse.SUPPRESS)
    given = parser.parse_args()
    one(given) if given.only is not None else compare(given)
