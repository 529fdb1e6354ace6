"""How long reading takes, against pandas and polars, on MovieLens 1M and on a wide table of ten million cells.

Ours also numbers the ids and merges repeated cells; the others stop at a table of three columns.
Run: python benchmarks/readers.py (data from $SUREFILL_DATA, or ../shared/data beside the project).
"""

from __future__ import annotations

import gzip
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from data_folder import DATA

PROJECT = Path(__file__).resolve().parents[1]
WARM_RUNS = 7

OURS = ("surefill", "from surefill import read_observations", "read_observations({path!r})")
PANDAS, POLARS = "import pandas as pd", "import polars as pl"
CSV_READERS = [
    OURS,
    ("pandas", PANDAS, "pd.read_csv({path!r}, usecols=[0, 1, 2])"),
    ("polars", POLARS, "pl.read_csv({path!r}, columns=[0, 1, 2])"),
]
DAT_READERS = [
    OURS,
    ("pandas ':', C", PANDAS, "pd.read_csv({path!r}, sep=':', usecols=[0, 2, 4], header=None)"),
    (
        "pandas '::', python",
        PANDAS,
        "pd.read_csv({path!r}, sep='::', engine='python', usecols=[0, 1, 2], header=None)",
    ),
    ("polars ':'", POLARS, "pl.read_csv({path!r}, separator=':', columns=[0, 2, 4], has_header=False)"),
]
WIDE_READERS = [
    ("surefill", OURS[1], "read_observations({path!r}, wide=True)"),
    ("pandas", PANDAS, "pd.read_csv({path!r}, index_col=0)"),
    ("polars", POLARS, "pl.read_csv({path!r})"),
]
WIDE_SHAPE = (10_000, 1_000)
SCRIPT = """
import time
started = time.perf_counter()
{setup}
imported = time.perf_counter()
{call}
times = [time.perf_counter()]
for _ in range({runs}):
    {call}
    times.append(time.perf_counter())
print(imported - started, times[0] - imported, *(b - a for a, b in zip(times, times[1:])))
"""


def timings(setup: str, call: str, runs: int) -> tuple[float, float, float]:
    """Seconds in a fresh process: imports, first call, and the median of further calls."""
    script = SCRIPT.format(setup=setup, call=call, runs=runs)
    environment = {**os.environ, "PYTHONPATH": str(PROJECT / "src")}
    run = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True)
    imported, first, *warm = map(float, run.stdout.split())
    return imported, first, statistics.median(warm)


def write_files(ratings: bytes, folder: Path) -> list[tuple[str, Path, list[tuple[str, str, str]]]]:
    """The same ratings as .dat, as csv with integer ids and as csv with names for ids."""
    records = [line.split("::") for line in ratings.decode().splitlines()]
    (folder / "ratings.dat").write_bytes(ratings)
    header = "userId,movieId,rating,timestamp\n"
    (folder / "integers.csv").write_text(header + "".join(",".join(r) + "\n" for r in records))
    (folder / "names.csv").write_text(header + "".join(f"user{u},movie{m},{r},{t}\n" for u, m, r, t in records))
    return [
        ("ratings.dat (::)", folder / "ratings.dat", DAT_READERS),
        ("csv, integer ids", folder / "integers.csv", CSV_READERS),
        ("csv, names as ids", folder / "names.csv", CSV_READERS),
    ]


def write_wide(path: Path) -> None:
    """Normal numbers written in full, the negative ones left out."""
    (m, n), rng = WIDE_SHAPE, np.random.default_rng(0)
    with open(path, "w") as file:
        file.write(",".join(["row", *(f"c{j}" for j in range(n))]) + "\n")
        for i in range(m):
            file.write(",".join([f"r{i}", *(repr(x) if x > 0 else "" for x in rng.normal(size=n).tolist())]) + "\n")


def main() -> None:
    """Print one line per file and reader; ratios are to surefill, above 1 where it is faster."""
    data = DATA
    source = data / "ml-1m" / "ratings.dat.gz"
    if not source.exists():
        print(f"Skipped: {source} does not exist; set SUREFILL_DATA to the folder that holds ml-1m.")
        return
    started = time.perf_counter()
    print(f"{'file':20}{'reader':22}{'import':>8}{'first':>8}{'warm':>8}{'  warm / surefill':>17}")
    with tempfile.TemporaryDirectory() as folder:
        write_wide(Path(folder) / "wide.csv")
        files = write_files(gzip.decompress(source.read_bytes()), Path(folder))
        for title, path, readers in [*files, ("wide csv", Path(folder) / "wide.csv", WIDE_READERS)]:
            _, setup, call = readers[0]
            timings(setup, call.format(path=str(path)), 1)  # compiles the kernels where no cache exists yet
            ours = 0.0
            for name, setup, call in readers:
                runs = 1 if "python" in name else WARM_RUNS
                imported, first, warm = timings(setup, call.format(path=str(path)), runs)
                ours = ours or warm
                print(f"{title:20}{name:22}{imported:8.3f}{first:8.3f}{warm:8.3f}{warm / ours:17.2f}")
    seconds = time.perf_counter() - started
    print(f"Seconds, {seconds:.0f} in all; only surefill also numbers ids and merges repeats.")


if __name__ == "__main__":
    main()
