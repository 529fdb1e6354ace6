"""Cost per observation from a million to a hundred million ratings: processor time, memory, error; peers beside it.

Ratings from 0.5 to 5 by halves, of ten factors, effects of rows and columns and noise 0.7, at cells drawn by power laws
of rows and columns, in the order of rows as rating files are; a tenth is held out. Every fit runs in a process of its
own, on one thread, and says its processor seconds, its peak memory (everything in the process counted)
and its error on the held-out cells.

    python benchmarks/scale.py                        # 1e6 and 1e7, and the machine's limits
    python benchmarks/scale.py --sizes 1e6 1e7 1e8
    python benchmarks/scale.py --peers cmfrec lenskit --python build/peers/bin/python
    python benchmarks/scale.py --end-to-end           # surefill complete, from parquet to the ten best of each row
    python benchmarks/scale.py --plot docs/scale.png  # what was measured so far, logarithmic both ways

Peers run in an environment of their own, given by ``--python``: pip install cmfrec, lenskit. Their settings are those
that did best on a million ratings, ALS with 10 iterations.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np

FOLDER = Path(__file__).parents[1] / "build" / "scale"
SHAPES = {10**6: (6_000, 3_700), 10**7: (70_000, 10_000), 10**8: (500_000, 50_000)}
RANK, NOISE, TRUE_RANK = 20, 0.7, 10
ONE_THREAD = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL", "NUMBA")}


def power_law(size, exponent, rng):
    """Chances of ``size`` rows or columns: the most frequent hundredth about alike, then a power law."""
    chance = (np.arange(size) + size / 100) ** -exponent
    return np.cumsum(rng.permutation(chance / chance.sum()))


def draw_cells(n_cells, shape, rng):
    """Distinct cells in the order of rows, as int64 keys."""
    rows, cols = power_law(shape[0], 0.7, rng), power_law(shape[1], 0.9, rng)
    keys = np.empty(0, np.int64)
    while len(keys) < n_cells:
        n = int(1.2 * (n_cells - len(keys))) + 1000
        i, j = (np.searchsorted(law, rng.random(n)).clip(max=len(law) - 1) for law in (rows, cols))
        keys = np.union1d(keys, i * shape[1] + j)
    keep = np.ones(len(keys), dtype=bool)
    keep[rng.choice(len(keys), len(keys) - n_cells, replace=False)] = False
    return keys[keep]


def make_table(n_cells, shape, seed=0):
    """rows, cols (int32) and values (float32) of the training cells, and the same of the held-out ones."""
    rng = np.random.default_rng(seed)
    i, j = (each.astype(np.int32) for each in np.divmod(draw_cells(n_cells, shape, rng), shape[1]))
    p, q = (rng.normal(0, 1, (size, TRUE_RANK)).astype(np.float32) for size in shape)
    effects = [rng.normal(0, 0.35, size).astype(np.float32) for size in shape]
    values = np.empty(n_cells, np.float32)
    for first in range(0, n_cells, 10**6):
        s = slice(first, first + 10**6)
        score = 3.5 + effects[0][i[s]] + effects[1][j[s]] + 0.2 * np.einsum("ta,ta->t", p[i[s]], q[j[s]])
        score = score + rng.normal(0, NOISE, len(score))
        values[s] = np.clip(np.round(2 * score) / 2, 0.5, 5)
    test = rng.random(n_cells) < 0.1
    return [array[~test] for array in (i, j, values)], [array[test] for array in (i, j, values)]


def table_of(n_cells):
    """The folder with the table, made on first use."""
    folder = FOLDER / f"{n_cells:.0e}"
    if not (folder / "done").exists():
        folder.mkdir(parents=True, exist_ok=True)
        for part, arrays in zip(("train", "test"), make_table(n_cells, SHAPES[n_cells]), strict=True):
            for name, array in zip(("rows", "cols", "values"), arrays, strict=True):
                np.save(folder / f"{part}_{name}.npy", array)
        (folder / "done").touch()
    return folder


def load(folder, part):
    return [np.load(Path(folder) / f"{part}_{name}.npy") for name in ("rows", "cols", "values")]


def shape_of(folder):
    return SHAPES[int(float(Path(folder).name))]


def peak_memory():
    """Megabytes that this process has held at most; ``ru_maxrss`` would count those of the one that started it."""
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) / 1024


def report(name, folder, started, predict, **more):
    """One line of JSON: what the fit took until now, then its error."""
    cpu, peak = time.process_time() - started, peak_memory()
    rows, cols, values = load(folder, "test")
    error = np.clip(predict(rows, cols), 0.5, 5) - values
    line = {"name": name, "cpu": cpu, "mb": peak, "rmse": float(np.sqrt(np.mean(error.astype(np.float64) ** 2)))}
    print(json.dumps(line | more))


def fit_surefill(folder, rank):
    from surefill.completion import BayesianFactorModel
    from surefill.data import Observations

    warm_up()
    before = peak_memory()
    arrays = load(folder, "train")
    started = time.process_time()
    observations = Observations(*arrays, shape_of(folder), (0.5, 5))
    del arrays
    read, steps = time.process_time() - started, []
    completion = BayesianFactorModel(rank=rank).fit(observations, steps.append)
    report("surefill", folder, started, completion.at, sweeps=len(steps), observations=read, imported_mb=before)


def warm_up():
    """Compile what a fit of this size runs, which is done once per machine and not counted."""
    from surefill.completion import BayesianFactorModel
    from surefill.data import Observations

    rng = np.random.default_rng(0)
    keys = np.sort(rng.choice(2000 * 1000, 600_000, replace=False)).astype(np.int32)
    values = rng.integers(1, 11, len(keys)).astype(np.float32) / 2
    seen = Observations(keys // 1000, keys % 1000, values, (2000, 1000), (0.5, 5))
    BayesianFactorModel(rank=2, max_sweeps=2).fit(seen).at([0], [0])


def fit_cmfrec(folder, rank):
    from cmfrec import CMF
    from scipy.sparse import coo_matrix

    rows, cols, values = load(folder, "train")
    started = time.process_time()
    table = coo_matrix((values, (rows, cols)), shape_of(folder))
    model = CMF(
        k=rank,
        lambda_=5,
        niter=10,
        use_float=True,
        nthreads=1,
        verbose=False,
        produce_dicts=False,
        handle_interrupt=False,
    )
    model.fit(table)
    report("cmfrec ALS", folder, started, model.predict)


def fit_lenskit(folder, rank):
    import pandas as pd
    from lenskit.als import BiasedMFScorer
    from lenskit.data import from_interactions_df

    rows, cols, values = load(folder, "train")
    started = time.process_time()
    frame = pd.DataFrame({"user_id": rows, "item_id": cols, "rating": values})
    scorer = BiasedMFScorer(embedding_size=rank, epochs=10, regularization=0.02)
    scorer.train(from_interactions_df(frame))
    bias, p, q = scorer.bias, np.asarray(scorer.user_embeddings), np.asarray(scorer.item_embeddings)
    i, j = np.full(rows.max() + 1, -1), np.full(cols.max() + 1, -1)
    i[scorer.users.ids()], j[scorer.items.ids()] = np.arange(len(scorer.users)), np.arange(len(scorer.items))

    def predict(test_rows, test_cols):
        u, v = i[test_rows], j[test_cols]
        known = np.einsum("ta,ta->t", p[u], q[v])
        return bias.global_bias + bias.user_biases[u] + bias.item_biases[v] + known

    report("LensKit BiasedMF", folder, started, predict)


def complete(folder, rank):
    """``surefill complete`` on all cores, from a file to the ten best of each row; stages with seconds and memory."""
    from surefill.jobs import WriteOptions, complete_file
    from surefill.waiting import Waiting

    stages, peak_again = {}, Path("/proc/self/clear_refs")

    class Stages(Waiting):
        @contextmanager
        def part(self, name):
            peak_again.write_text("5")
            cpu, wall = time.process_time(), time.perf_counter()
            with super().part(name):
                yield
            cpu, wall, stages[name] = time.process_time() - cpu, time.perf_counter() - wall, peak_memory()
            print(f"{name:<16}{cpu:9.1f} CPU s {wall:9.1f} s {stages[name]:8.0f} MB", flush=True)

    warm_up()
    imported, cpu, wall = peak_memory(), time.process_time(), time.perf_counter()
    ten_best = WriteOptions(top_n=10)
    file, output = Path(folder) / "train.parquet", f"{folder}/filled/"
    done = complete_file(file, output, write=ten_best, confirm=lambda _: True, progress=Stages())
    figures = {"cpu": time.process_time() - cpu, "wall": time.perf_counter() - wall, "imported_mb": imported}
    figures |= {"mb": max(stages.values()), "promised": done.promised, "lines": done.lines}
    figures |= {"name": "surefill complete", "kept": done.kept_share, "cells": done.observed_cells}
    (Path(folder) / "end_to_end.json").write_text(json.dumps(figures))
    print(json.dumps(figures))


def run_end_to_end(n_cells):
    """The whole command in a process of its own, on all cores."""
    import pyarrow
    from pyarrow import parquet

    folder = table_of(n_cells)
    if not (folder / "train.parquet").exists():
        columns = dict(zip(("user", "item", "rating"), load(folder, "train"), strict=True))
        parquet.write_table(pyarrow.table(columns), folder / "train.parquet")
        del columns
    return subprocess.run([sys.executable, __file__, "fit", "complete", str(folder)], check=True)


FITS = {"complete": complete, "surefill": fit_surefill, "cmfrec": fit_cmfrec, "lenskit": fit_lenskit}


def run_fit(name, n_cells, rank, python):
    """The line of one fit, from a process of its own."""
    command = [python, __file__, "fit", name, str(table_of(n_cells)), "--rank", str(rank)]
    done = subprocess.run(command, env=os.environ | ONE_THREAD, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr)
    line = done.stdout.splitlines()[-1]
    (table_of(n_cells) / f"{name}.json").write_text(line)
    return json.loads(line)


PLOTTED = {"surefill": "the fit at rank 20", "end_to_end": "file to ten best of each row", "cmfrec": "cmfrec's fit"}


def plot(target):
    """Processor seconds and peak memory against observations, of every size that was run."""
    import matplotlib.pyplot as plt

    _, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    for (name, label), mark in zip(PLOTTED.items(), "os^", strict=True):
        found = {n: FOLDER / f"{n:.0e}" / f"{name}.json" for n in SHAPES}
        lines = {n: json.loads(path.read_text()) for n, path in found.items() if path.exists()}
        for ax, key, scale in zip(axes, ("cpu", "mb"), (1, 1e-3), strict=True):
            ax.loglog([0.9 * n for n in lines], [scale * line[key] for line in lines.values()], f"{mark}-", label=label)
    for ax, title in zip(axes, ("processor seconds", "peak memory, GB"), strict=True):
        low, _ = ax.get_ylim()
        sizes = np.array(list(SHAPES), dtype=float)
        ax.loglog(sizes, low * sizes / sizes[0], ":", color="0.6", zorder=0, label="in proportion")
        ax.set(xlabel="observations", title=title)
        ax.grid(alpha=0.3)
    axes[0].legend(frameon=False)
    plt.savefig(target, dpi=120)


def show(line, n_cells):
    n = 0.9 * n_cells
    print(
        f"{n_cells:>10.0e}  {line['name']:<18} RMSE {line['rmse']:.4f}  {line['cpu']:8.1f} CPU s  "
        f"{1e6 * line['cpu'] / n:6.2f} us per observation  {line['mb']:7.0f} MB"
        + "".join(f"  {key} {line[key]:.3g}" for key in ("sweeps", "observations", "imported_mb") if key in line),
        flush=True,
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("fit", nargs="*", help=argparse.SUPPRESS)
    parser.add_argument("--sizes", nargs="+", type=lambda x: int(float(x)), default=[10**6, 10**7])
    parser.add_argument("--peers", nargs="*", default=[], choices=["cmfrec", "lenskit"])
    parser.add_argument("--python", default=sys.executable, help="the interpreter of the peers' environment")
    parser.add_argument("--rank", type=int, default=RANK)
    parser.add_argument("--end-to-end", action="store_true", help="surefill complete instead of the fit alone")
    parser.add_argument("--plot", metavar="FILE", help="draw what was measured so far, and measure nothing")
    given = parser.parse_args()
    if given.plot:
        plot(given.plot)
        return
    if given.fit:
        _, name, folder = given.fit
        FITS[name](folder, given.rank)
        return
    for n_cells in given.sizes:
        if given.end_to_end:
            run_end_to_end(n_cells)
            continue
        show(run_fit("surefill", n_cells, given.rank, sys.executable), n_cells)
        for peer in given.peers:
            show(run_fit(peer, n_cells, given.rank, given.python), n_cells)


if __name__ == "__main__":
    main()
