"""A whole matrix looked at: `surefill complete` on 50,000 x 10,000 cells with a million ratings, and its parts.

Ratings 1 to 5 of rank 10 with noise; rows and columns are seen by power laws. Each part runs in a process of its own:
the command from the file to the table (seconds, peak memory), then every cell asked of the saved model without writing
(`scan`) and with (`write`), in cells a second of processor time on one core.
Run: python benchmarks/scan.py (two minutes on two quiet cores; --rows, --cols and --ratings for other sizes).
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from contextlib import redirect_stdout
from pathlib import Path

import numpy as np

RANK, NOISE = 10, 0.8
"""Factors of the truth, and the standard deviation of a rating around it; how much is kept depends on both."""

ROW_POWER, COL_POWER = 0.5, 0.8
"""The k-th row (or column) is drawn in proportion to k to minus this: the busiest tenth has a third, or two thirds."""


def power_law_ratings(
    m: int, n: int, ratings: int, seed: int = 0, rounded: bool = True
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows, columns and ratings of distinct cells, 1 to 5 or not rounded; the busiest are anywhere among the others."""
    rng = np.random.default_rng(seed)
    chances = [np.arange(1.0, size + 1) ** -power for size, power in ((m, ROW_POWER), (n, COL_POWER))]
    places = [rng.permutation(len(chance)) for chance in chances]
    cells = np.empty(0, np.int64)
    while len(cells) < ratings:
        drawn = [
            place[np.searchsorted(np.cumsum(chance / chance.sum())[:-1], rng.random(2 * ratings))]
            for place, chance in zip(places, chances, strict=True)
        ]
        cells = np.unique(np.append(cells, drawn[0] * n + drawn[1]))
    i, j = np.divmod(rng.choice(cells, ratings, replace=False), n)
    scale = 0.6 * 0.8 ** np.arange(RANK)
    p, q = rng.standard_normal((m, RANK)), scale * rng.standard_normal((n, RANK))
    truth = 3.5 + 0.4 * rng.standard_normal(m)[i] + 0.5 * rng.standard_normal(n)[j] + np.einsum("xk,xk->x", p[i], q[j])
    noisy = truth + NOISE * rng.standard_normal(ratings)
    return i, j, np.clip(np.round(noisy), 1, 5) if rounded else noisy


def run(call: str, *arguments: object) -> dict[str, float]:
    """What a function of this file returns in a process of its own, with its seconds and peak memory."""
    command = [sys.executable, __file__, "--call", call, *map(str, arguments)]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()[-1])


def complete(file: str, output: str, model: str) -> dict[str, float]:
    """The command from file to table; its own summary goes to the screen."""
    from surefill.cli.main import main as surefill

    with redirect_stdout(sys.stderr):
        surefill(["complete", file, "-o", output, "--yes", "--save", model])
    return {}


def scan(model: str) -> dict[str, float]:
    """Every cell asked, nothing written."""
    import surefill as sf
    from surefill.estimators.long_table import iterate_cells

    completer, kept = sf.load(model), 0
    begun = time.perf_counter(), time.process_time()
    for _, block in iterate_cells(completer, "kept"):
        kept += len(block["row"])
    m, n = completer.observations_.shape
    return {
        "cells": m * n,
        "listed": kept,
        "wall": time.perf_counter() - begun[0],
        "cpu": time.process_time() - begun[1],
    }


def write(model: str, output: str) -> dict[str, float]:
    """Every cell asked, kept and observed ones written."""
    import surefill as sf

    completer = sf.load(model)
    begun = time.perf_counter(), time.process_time()
    done = sf.jobs.write_completed(completer, output, confirm=lambda size: True)
    m, n = completer.observations_.shape
    wall, cpu = time.perf_counter() - begun[0], time.process_time() - begun[1]
    return {"cells": m * n, "listed": done.lines, "wall": wall, "cpu": cpu}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in (("rows", 50_000), ("cols", 10_000), ("ratings", 1_000_000)):
        parser.add_argument(f"--{name}", type=int, default=default)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        file, model = Path(folder) / "ratings.csv", Path(folder) / "model.surefill"
        cells = np.column_stack(power_law_ratings(asked.rows, asked.cols, asked.ratings))
        np.savetxt(file, cells, fmt="%d", delimiter=",", header="user,item,rating", comments="")
        whole = run("complete", file, f"{folder}/parts/", model)
        print(
            f"complete: {whole['seconds']:.1f} s, {whole['cpu_seconds']:.1f} s of processors, {whole['peak_mb']:.0f} MB"
        )
        for name, arguments in (("scan", (model,)), ("write parquet", (model, f"{folder}/again/"))):
            part = run(name.split()[0], *arguments)
            print(
                f"{name}: {part['cells'] / part['wall'] / 1e6:.1f} million cells a second, {part['wall']:.1f} s, "
                f"{part['cpu'] / part['cells'] * 1e9:.1f} ns of one core per cell, {part['listed']:,} lines, "
                f"{part['peak_mb']:.0f} MB"
            )


def called(name: str, arguments: list[str]) -> None:
    """Run one part and print what it returns."""
    begun, found = time.perf_counter(), {"complete": complete, "scan": scan, "write": write}[name](*arguments)
    used = resource.getrusage(resource.RUSAGE_SELF)
    own = {"seconds": time.perf_counter() - begun, "cpu_seconds": used.ru_utime + used.ru_stime}
    print(json.dumps(found | own | {"peak_mb": used.ru_maxrss / 1024}))


if __name__ == "__main__":
    called(sys.argv[2], sys.argv[3:]) if sys.argv[1:2] == ["--call"] else main()
