"""Seeded fuzzing: damaged and random tables, packed files, parquet, options, models, checkpoints and labels in pages.

Each case must end in an answer or in one sentence: no traceback, no crash, no gigabyte, no other file touched. Cases
run in a child process, so that a crash is seen and counted and the rest goes on. It may have a gigabyte more than it
began with; where it asks for more that is a fault, also where the library would take it for a damaged file.

    python tests/hostile/fuzz.py --cases 2000 --seconds 120
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import io
import multiprocessing
import os
import resource
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))

import crafted
import markup

import surefill as sf
from surefill.cli import main as surefill_main
from surefill.io import archive
from surefill.report.contents import gather

MEMORY = 1 << 30
"""Bytes that a case may ask for beyond what the process had."""

LONGEST = 300
"""Seconds after which a case is taken to hang; an evaluation that is meant takes some of them on a busy machine."""

WORDS = (
    "²", "-1", "0", "1e308", "nan", "inf", "9" * 26, "", "x" * 3000, "\x1b[2J", "user", "../t.csv", "t.csv",
    "/dev/null", "1,5", "-o", "--", "NA", "=1+1", "\udcff", "0.5", "2", "None",
)  # fmt: skip
OPTIONS = (
    "--row", "--col", "--value", "--seed", "--bounds", "--tolerance", "--delta", "--delimiter", "--order-by", "--every",
    "--decimal", "--limit", "--rank", "--no-header", "--wide", "--skip-missing", "--json", "--sheet", "--by", "-n",
)  # fmt: skip
PIECES = (
    b",",
    b'"',
    b"\n",
    b"\r\n",
    b"\0",
    b"\xff",
    "é".encode(),
    b"NaN",
    b"1e400",
    b"-",
    b";",
    b"\t",
    b"\x1b[31m",
    b"5" * 80,
)


def table(rng: np.random.Generator) -> bytes:
    """A table of ratings with pieces put in, changed, doubled or cut."""
    lines = [b"user,item,rating"] + [b"u%d,i%d,%d" % (k % 9, k % 7, k % 5) for k in range(rng.integers(0, 60))]
    data = bytearray(b"\n".join(lines) + b"\n")
    for _ in range(rng.integers(0, 6)):
        at = int(rng.integers(len(data) + 1))
        data[at : at + int(rng.integers(0, 4))] = PIECES[rng.integers(len(PIECES))] * int(rng.integers(1, 3))
    return bytes(data[: rng.integers(len(data) + 1)]) if rng.random() < 0.1 else bytes(data)


def damaged_bytes(data: bytes, rng: np.random.Generator) -> bytes:
    """Some bytes changed, or the end cut off."""
    out = bytearray(data)
    for at in rng.integers(len(out), size=rng.integers(0, 6)):
        out[at] = rng.integers(256)
    return bytes(out[: rng.integers(len(out))] if rng.random() < 0.2 else out)


def run(*arguments: str) -> None:
    """A command in this process; AssertionError where it does not end as it should."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            surefill_main(list(arguments))
            code = 0
        except SystemExit as stop:
            code = stop.code or 0
    assert code in (0, 2), f"exit code {code}: {err.getvalue()[:300]}"
    assert len(err.getvalue()) < 1500, "a long sentence"
    assert "\x1b" not in err.getvalue() + out.getvalue(), "an escape sign"
    assert code == 0 or err.getvalue().count("\n") == 1, err.getvalue()[:300]


def try_csv(_: Path, rng: np.random.Generator) -> None:
    """A damaged table, learnt as a stream."""
    Path("t.csv").write_bytes(table(rng))
    run("stream", "t.csv", "-o", "out.csv", "--every", str(rng.integers(1, 50)), "--checkpoint", "state")
    for name in ("state", "out.csv"):
        Path(name).unlink(missing_ok=True)


def try_gzip(_: Path, rng: np.random.Generator) -> None:
    """A damaged packed table, read as a whole."""
    Path("t.csv.gz").write_bytes(damaged_bytes(gzip.compress(table(rng)), rng))
    with contextlib.suppress(sf.InputError):
        sf.read_observations("t.csv.gz", wide=bool(rng.integers(2)))


def try_parquet(base: Path, rng: np.random.Generator) -> None:
    """A damaged parquet file."""
    Path("t.parquet").write_bytes(damaged_bytes((base / "t.parquet").read_bytes(), rng))
    try:
        sf.read_observations("t.parquet", wide=bool(rng.integers(2)))
    except sf.InputError as error:
        if "alloc" in str(error):
            raise MemoryError(str(error)) from None


def try_options(base: Path, rng: np.random.Generator) -> None:
    """Random options of a command."""
    Path("t.csv").write_bytes((base / "t.csv").read_bytes())
    command = ("stream", "complete", "evaluate", "predict", "recommend", "suggest", "update")[rng.integers(7)]
    typed = [command, "t.csv" if command in ("stream", "complete", "evaluate") else str(base / "model")]
    for _ in range(rng.integers(1, 4)):
        typed += [str(rng.choice(OPTIONS)), *(str(rng.choice(WORDS)) for _ in range(rng.integers(0, 3)))]
    run(*typed)


def _use(model: Any) -> None:
    model.predict([1, 2], [3, 4])
    model.predict_risk([1], [2])
    model.keep([1], [2])
    model.recommend(1, n=3)


def _load(load: Callable[[Any], Any], use: Callable[[Any], Any]) -> None:
    """What a changed file gives: a refusal, or something that can be used."""
    with contextlib.suppress(sf.InputError):
        use(load(Path("state")))


def _try_states(base: Path, rng: np.random.Generator, load: Any, use: Any) -> None:
    if rng.integers(3) == 0:
        Path("state").write_bytes(crafted.damaged(base, rng))
    else:
        arrays, tree = crafted.one(base, rng)
        crafted.save_parts(Path("state"), arrays, tree)
    _load(load, use)


def try_model(base: Path, rng: np.random.Generator) -> None:
    """A crafted or damaged model, loaded and asked; every other one has the game's confidence."""
    _try_states(base / ("model", "game")[rng.integers(2)], rng, sf.load, _use)


def try_checkpoint(base: Path, rng: np.random.Generator) -> None:
    """A crafted or damaged checkpoint, loaded and taught."""

    def learn(stream: sf.StreamingCompleter) -> None:
        stream.learn_many(np.arange(9), np.arange(9), np.linspace(-1, 1, 9))
        stream.confidence([1], [2])

    _try_states(base / "stream", rng, sf.StreamingCompleter.load, learn)


@cache
def _contents(base: Path) -> Any:
    return gather(sf.load(base / "model"))


@cache
def _plain_report(base: Path) -> list[Any]:
    return markup.report(_contents(base), lambda: "word")


def try_labels(base: Path, rng: np.random.Generator) -> None:
    """Markup for labels in the report and in the service's page."""
    assert markup.page(lambda: markup.label(rng, whole=True)) == markup.page(lambda: "word"), (
        "the page has other elements"
    )
    found = markup.report(_contents(base), lambda: markup.label(rng))
    assert found == _plain_report(base), "the report has other elements"


KINDS = {
    "csv": try_csv, "gzip": try_gzip, "parquet": try_parquet, "options": try_options, "model": try_model,
    "checkpoint": try_checkpoint, "labels": try_labels,
}  # fmt: skip


def prepare(base: Path) -> None:
    """Good files, of which bad ones are made."""
    import pyarrow
    from pyarrow import parquet

    seen = sf.datasets.make_low_rank((30, 20), rank=2, n_draws=400, noise=0.1, random_state=0).observations
    completer = sf.PartialCompleter(tolerance=0.2, confidence="posterior").fit(seen)
    completer.save(base / "model")
    _use(completer)  # compiled here, and not in every child
    game = sf.PartialCompleter(tolerance=0.2, confidence="game").fit(seen)
    game.save(base / "game")
    _use(game)
    stream = sf.StreamingCompleter(rank=3, adversary_rank=3)
    stream.learn_many(seen.rows, seen.cols, seen.values)
    stream.save(base / "stream")
    columns = {"user": seen.rows, "item": seen.cols, "rating": seen.values}
    parquet.write_table(pyarrow.table(columns), base / "t.parquet")
    lines = [f"u{k % 9},i{k % 7},{k % 5}" for k in range(60)]
    (base / "t.csv").write_text("user,item,rating\n" + "\n".join(lines) + "\n")


def child(kind: str, base: Path, first: int, last: int, deadline: float, told: Any) -> None:
    """Run cases, telling the number of each before it begins and what went wrong after."""
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        used, used_at_first = (
            int(pages) * resource.getpagesize() for pages in Path("/proc/self/statm").read_text().split()[:2]
        )
        resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, used + MEMORY))
        archive.UNREADABLE = tuple(kind for kind in archive.UNREADABLE if kind is not MemoryError)
        before = {path.name: path.read_bytes() for path in base.iterdir()}
        for number in range(first, last):
            if time.time() > deadline:
                break
            told.send((number, None))
            signal.alarm(LONGEST)
            try:
                KINDS[kind](base, np.random.default_rng([sum(map(ord, kind)), number]))
            except BaseException:
                told.send((number, traceback.format_exc()[-700:]))
        signal.alarm(0)
        if {path.name: path.read_bytes() for path in base.iterdir()} != before:
            told.send((first, "a file was changed that is none of the case's"))
    told.send((-1, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 - used_at_first))


def fuzz(kind: str, base: Path, cases: int, seconds: float) -> tuple[int, int, list[str]]:
    """(cases run, bytes that they took at most, what went wrong)."""
    first, most, faults, deadline = 0, 0, list[str](), time.time() + seconds
    while first < cases and time.time() < deadline:
        here, there = multiprocessing.Pipe(duplex=False)
        process = multiprocessing.get_context("fork").Process(
            target=child, args=(kind, base, first, cases, deadline, there)
        )
        process.start()
        there.close()
        ended = False
        with contextlib.suppress(EOFError):
            while True:
                number, fault = here.recv()
                if number < 0:
                    ended, most = True, max(most, fault)
                    break
                first = number + 1
                if fault is not None:
                    faults.append(f"{kind} {number}: {fault}")
        process.join()
        if ended:
            break
        faults.append(f"{kind} {first - 1}: the process ended by {process.exitcode}")
    return first, most, faults


def main() -> None:
    """Fuzz every kind and print counts; exit code 1 if anything went wrong."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--cases", type=int, default=2000)
    parser.add_argument("--seconds", type=float, default=120.0, help="of each kind")
    parser.add_argument("--kinds", nargs="*", default=list(KINDS))
    given = parser.parse_args()
    everything = []
    with tempfile.TemporaryDirectory() as folder:
        prepare(Path(folder))
        for kind in given.kinds:
            count, most, faults = fuzz(kind, Path(folder), given.cases, given.seconds)
            print(f"{kind}: {count:,} cases, {len(faults)} faults, at most {most / 1e6:.0f} MB more", flush=True)
            everything += faults
    for fault in everything[:20]:
        print(fault)
    sys.exit(bool(everything))


if __name__ == "__main__":
    main()
