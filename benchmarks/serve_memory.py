"""Memory of the service while it takes in observations without end: MovieLens 100K over and over, and many refits.

    python benchmarks/serve_memory.py [--minutes 30] [--reads 200] [--observations 500]

So many reads and observations come each second, and a data set is fitted again whenever a fifth is new. The 100,000
cells and their labels are all there after the first pass, so that nothing but the number of observations grows.
"""

from __future__ import annotations

import argparse
import asyncio
import time

import numpy as np

import surefill as sf
from data_folder import DATA
from http_load import HEADER, Load, Request
from serve import BATCH, FILMS, ask, serving, slope, tell

SAMPLE_SECONDS = 2.0


def requests() -> tuple[list[Request], list[Request]]:
    """Reads of random cells, and all ratings in a random order, in batches."""
    seen = sf.read_observations(DATA / "ml-100k" / "u.data.gz", row=0, col=1, value=2, header=False)
    rng = np.random.default_rng(0)
    order = rng.permutation(len(seen))
    rows, cols = seen.row_names(seen.rows[order]).tolist(), seen.col_names(seen.cols[order]).tolist()
    lines = [f"{i},{j},{y:g}" for i, j, y in zip(rows, cols, seen.values[order].tolist(), strict=True)]
    parts = [lines[k : k + BATCH // 10] for k in range(0, len(lines), BATCH // 10)]
    writes = [
        Request("POST", f"{FILMS}/observations", ("row,col,value\n" + "\n".join(part) + "\n").encode(), "text/csv")
        for part in parts
    ]
    some = zip(rng.choice(rows, 5000).tolist(), rng.choice(cols, 5000).tolist(), strict=True)
    return [Request("GET", f"{FILMS}/predictions?row={i}&col={j}") for i, j in some], writes


async def watch(load: Load, seconds: float) -> list[tuple[float, float]]:
    """(seconds, megabytes) all the time; told once a minute and where a model was put in use."""
    start, samples, model, told = time.perf_counter(), list[tuple[float, float]](), None, -60.0
    while (now := time.perf_counter() - start) < seconds:
        samples.append((now, load.megabytes()))
        status = await ask(load, "GET", f"{FILMS}/status")
        number = (status["model"] or {}).get("number")
        if number != model or now - told >= 60:
            new = f"model {number}" if number != model else ""
            said = f"   minute {now / 60:>5.1f}: {samples[-1][1]:>6.1f} MB, {status['observations']:>9,} observations"
            print(f"{said} {new}".rstrip(), flush=True)
            model, told = number, now
        await asyncio.sleep(SAMPLE_SECONDS)
    return samples


async def study(load: Load, options: argparse.Namespace) -> None:
    reads, writes = requests()
    seconds = 60 * options.minutes
    wanted = {"name": "films", "bounds": {"low": 1, "high": 5}, "tolerance": 0.8, "refit_after": 20_000}
    await ask(load, "POST", "/v1/data-sets", wanted)
    print(HEADER, flush=True)
    sampled, read, written = await asyncio.gather(
        watch(load, seconds),
        load.at_rate(reads, options.reads, seconds),
        load.at_rate(writes, options.observations, seconds, BATCH // 10),
    )
    tell(read, "reads, cpu of both")
    tell(written, f"writes of {BATCH // 10}")
    print(slope(sampled), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--reads", type=float, default=200.0, help="a second")
    parser.add_argument("--observations", type=float, default=500.0, help="a second")
    options = parser.parse_args()
    if not DATA.is_dir():
        print(f"skipped: there is no {DATA}")
        return
    serving(lambda load, _: study(load, options))


if __name__ == "__main__":
    main()
