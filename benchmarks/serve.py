"""The service under load: ml-1m replayed, single predictions at a rate, with and without a refit, and its memory.

    python benchmarks/serve.py [--minutes 2] [--rate 500] [--seconds 15] [--observations 1000000]

Reads come at their rate whether earlier ones were answered or not, and are timed from when they were due, so that a
service that stalls is seen to stall. Latencies are at the client, which shares the cores; ``cpu ms`` is what the
service uses of a processor for one read or one observation, whatever else the machine does. ``--minutes`` goes on for
so long with reads at their rate, two refits, and batches sent again under their keys, which are found and not stored
twice, and tells how memory grows. locust repeats reads and writes where ``make .venv-serve/.ready`` has installed it.
"""

from __future__ import annotations

import argparse
import asyncio
import csv
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import numpy as np

import surefill as sf
from data_folder import DATA
from http_load import HEADER, Connection, Load, Request, Timings

BATCH, WRITERS = 1_000, 4
WANTED_WRITES, WANTED_READS, WANTED_P99 = 5_000, 500, 50.0
"""Observations and reads a second, and milliseconds, that the service was built to reach on two cores."""

HOLDS_MS = 1_000.0
"""A rate of writes holds where 99% of batches are acknowledged so soon after they were due."""

LOCUST = Path(__file__).parents[1] / ".venv-serve" / "bin" / "locust"
LOCUST_USERS = 32
FILMS = "/v1/data-sets/films"


async def ask(load: Load, method: str, path: str, content: object = None) -> dict:
    body = b"" if content is None else json.dumps(content).encode()
    status, answer = await Connection(load.port).send(method, path, body)
    assert status < 300, answer
    return json.loads(answer) if answer else {}


async def refit(load: Load) -> None:
    """Have a job at work."""
    await ask(load, "POST", f"{FILMS}/jobs")
    while (await ask(load, "GET", f"{FILMS}/jobs?limit=1"))["items"][0]["state"] != "running":
        await asyncio.sleep(0.2)


async def wait_until_idle(load: Load) -> None:
    """Until no job is left and the model of the last one is in use, which takes seconds to load."""
    while True:
        status = await ask(load, "GET", f"{FILMS}/status")
        (last,) = (await ask(load, "GET", f"{FILMS}/jobs?limit=1"))["items"]
        if status["job"] is None and (status["model"] or {}).get("number") == last["model"]:
            return
        await asyncio.sleep(0.5)


def tell(timings: Timings, what: str) -> Timings:
    print(timings.told(what), flush=True)
    return timings


class Study:
    """Every measurement of one run."""

    def __init__(self, load: Load, options: argparse.Namespace, folder: Path) -> None:
        self.load, self.options, self.folder = load, options, folder
        rows, cols, values = ratings(options.observations)
        self.lines = [f"{i},{j},{y:g}" for i, j, y in zip(rows.tolist(), cols.tolist(), values.tolist(), strict=True)]
        rng = np.random.default_rng(0)
        some = zip(rng.choice(np.unique(rows), 5000).tolist(), rng.choice(np.unique(cols), 5000).tolist(), strict=True)
        self.reads = [Request("GET", f"{FILMS}/predictions?row={i}&col={j}") for i, j in some]

    def writes(self, data_set: str = FILMS, keys: bool = False) -> list[Request]:
        """The ratings in batches."""
        parts = [self.lines[k : k + BATCH] for k in range(0, len(self.lines), BATCH)]
        bodies = [("row,col,value\n" + "\n".join(part) + "\n").encode() for part in parts]
        path = f"{data_set}/observations"
        return [Request("POST", path, body, "text/csv", f"b{k}" if keys else "") for k, body in enumerate(bodies)]

    async def run(self) -> None:
        print(HEADER)
        await ask(self.load, "POST", "/v1/data-sets", data_set_of("films"))
        replayed = self.writes(keys=True)
        writes = await self.load.at_full_speed(replayed, WRITERS, BATCH)
        tell(writes, f"replay of {len(self.lines):,} by {WRITERS} clients")
        held = await self.highest_rate(writes.rate)
        reads = await self.compare_refits(held)
        await self.by_locust()
        await self.memory(replayed)
        told = "reached" if held >= WANTED_WRITES else "NOT REACHED"
        print(f"wanted {WANTED_WRITES:,} observations a second: {held:,.0f} held, {told}")
        good = reads.p99 < WANTED_P99 and reads.rate > 0.98 * WANTED_READS and not reads.refused
        told, share = "reached" if good else "NOT REACHED", reads.rate * reads.cost / 10
        print(
            f"wanted {WANTED_READS} reads a second with p99 below {WANTED_P99:g} ms: {reads.rate:,.0f} with p99 ",
            end="",
        )
        print(f"{reads.p99:.1f} ms, {told}; they take {share:.0f}% of a processor")

    async def highest_rate(self, at_full_speed: float) -> float:
        """The highest of some shares of the full speed at which batches may come."""
        await ask(self.load, "POST", "/v1/data-sets", data_set_of("rates"))
        requests = self.writes("/v1/data-sets/rates")
        for share in (0.9, 0.8, 0.65, 0.5, 0.35, 0.2):
            rate = share * at_full_speed
            timings = await self.load.at_rate(requests, rate, self.options.seconds, BATCH)
            tell(timings, f"writes of {BATCH:,} at {rate:,.0f}/s")
            if timings.p99 < HOLDS_MS and not timings.refused:
                break
        await ask(self.load, "DELETE", "/v1/data-sets/rates")
        return timings.rate

    async def compare_refits(self, held: float) -> Timings:
        """Reads and writes without and with a refit; the reads by the model alone."""
        await self.read("reads by the stream")
        await refit(self.load)
        await self.read("reads by the stream, refit")
        await wait_until_idle(self.load)
        alone = await self.read("reads by the model")
        rate = min(WANTED_WRITES, held / 2)
        await self.read_and_write("", rate)
        await refit(self.load)
        await self.read("reads by the model, refit")
        await refit(self.load)
        await self.read_and_write(", refit", rate)
        await wait_until_idle(self.load)
        return alone

    async def read(self, what: str) -> Timings:
        return tell(await self.load.at_rate(self.reads, self.options.rate, self.options.seconds), what)

    async def read_and_write(self, more: str, rate: float) -> None:
        reads, writes = await asyncio.gather(
            self.load.at_rate(self.reads, self.options.rate, self.options.seconds),
            self.load.at_rate(self.writes(), rate, self.options.seconds, BATCH),
        )
        tell(reads, f"reads beside writes{more}, cpu of both")
        tell(writes, f"writes of {BATCH:,} beside reads{more}")

    async def by_locust(self) -> None:
        if not LOCUST.exists():
            print("locust: not installed here; make .venv-serve/.ready installs it", flush=True)
            return
        (self.folder / "ratings.csv").write_text("\n".join(self.lines))
        for user, users in (("Reader", LOCUST_USERS), ("Writer", WRITERS)):
            command = [LOCUST, "-f", Path(__file__).with_name("locustfile.py"), "--headless", "--only-summary"]
            command += ["--users", users, "--spawn-rate", users, "--run-time", f"{self.options.seconds:g}s"]
            command += ["--host", f"http://localhost:{self.load.port}", "--csv", self.folder / user, user]
            told = os.environ | {
                "SUREFILL_RATINGS": str(self.folder / "ratings.csv"),
                "SUREFILL_RATE": str(self.options.rate),
                "SUREFILL_USERS": str(users),
            }
            before = self.load.processor_seconds()
            running = await asyncio.create_subprocess_exec(*map(str, command), env=told, stdout=-3, stderr=-3)
            await running.wait()
            print(self._told_by_locust(user, self.load.processor_seconds() - before), flush=True)

    def _told_by_locust(self, user: str, processor: float) -> str:
        with open(self.folder / f"{user}_stats.csv") as file:
            line = next(line for line in csv.DictReader(file) if line["Name"] == "Aggregated")
        each, count = (BATCH if user == "Writer" else 1), int(line["Request Count"])
        figures = f"{each * float(line['Requests/s']):>9,.0f}/s {line['50%']:>9} {line['99%']:>9} {line['100%']:>9}"
        what = f"locust: {'writes of 1,000' if user == 'Writer' else 'reads by the model'}"
        if count == 0:
            return f"{what:<44} none answered in time"
        return f"{what:<44} {figures} {line['Failure Count']:>7} {1000 * processor / (each * count):>9.3f}"

    async def memory(self, replayed: list[Request]) -> None:
        """Resident memory while the service is asked and told what it knows already."""
        print(f"memory now: {self.load.megabytes():,.0f} MB", flush=True)
        if not self.options.minutes:
            return
        start, seconds = time.perf_counter(), 60 * self.options.minutes
        sampled = asyncio.create_task(self._sample(start, seconds))
        fits = asyncio.create_task(self._refit_twice(seconds))
        reads, writes = await asyncio.gather(
            self.load.at_rate(self.reads, self.options.rate, seconds),
            self.load.at_rate(replayed, 2 * BATCH, seconds, BATCH),
        )
        await fits
        tell(reads, f"reads for {self.options.minutes:g} minutes, two refits, cpu of both")
        tell(writes, "batches sent again meanwhile")
        print(slope(await sampled), flush=True)

    async def _sample(self, start: float, seconds: float, count: int = 30) -> list[tuple[float, float]]:
        """(seconds, megabytes), so many times."""
        samples = []
        for k in range(count + 1):
            await asyncio.sleep(max(0.0, start + seconds * k / count - time.perf_counter()))
            samples.append((time.perf_counter() - start, self.load.megabytes()))
            if k % 3 == 0:
                print(f"   minute {samples[-1][0] / 60:>5.1f}: {samples[-1][1]:,.0f} MB", flush=True)
        return samples

    async def _refit_twice(self, seconds: float) -> None:
        for _ in range(2):
            await asyncio.sleep(seconds / 4)
            await ask(self.load, "POST", f"{FILMS}/jobs")


def slope(samples: list[tuple[float, float]]) -> str:
    """Growth of memory by least squares over the second half, with its standard error."""
    hours, megabytes = np.array(samples[len(samples) // 2 :]).T / [[3600.0], [1.0]]
    line = np.polynomial.Polynomial.fit(hours, megabytes, 1).convert()
    left = megabytes - line(hours)
    error = np.sqrt(left @ left / max(1, len(hours) - 2) / np.sum((hours - hours.mean()) ** 2))
    last = megabytes[-1]
    return (
        f"memory at the end {last:,.0f} MB; in the second half it grew by {line.coef[1]:.0f} +- {error:.0f} MB an hour"
    )


def data_set_of(name: str) -> dict[str, object]:
    """A data set that is fitted again only when it is asked to."""
    return {"name": name, "bounds": {"low": 1, "high": 5}, "tolerance": 0.8, "refit_after": 10**9}


def ratings(count: int) -> tuple:
    """So many ratings of ml-1m in a random order, by label."""
    seen = sf.read_observations(DATA / "ml-1m" / "ratings.dat.gz", row=0, col=1, value=2, header=False)
    order = np.random.default_rng(0).permutation(len(seen))[:count]
    return seen.row_names(seen.rows[order]), seen.col_names(seen.cols[order]), seen.values[order]


async def _once_ready(
    load: Load, service: subprocess.Popen, folder: Path, study: Callable[[Load, Path], Awaitable[None]]
) -> None:
    while True:
        assert service.poll() is None, (folder / "log").read_text()[-2000:]
        try:
            status, _ = await Connection(load.port).send("GET", "/health/ready")
        except OSError:
            await asyncio.sleep(0.2)
            continue
        if status == 200:
            break
    await study(load, folder)


def serving(study: Callable[[Load, Path], Awaitable[None]]) -> None:
    """Run a study of a service that is started for it, empty, and ended afterwards."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        command = [sys.executable, "-m", "surefill", "serve", "--data", folder / "served", "--port", str(port)]
        with open(folder / "log", "w") as log:
            service = subprocess.Popen(command, stderr=log)
        try:
            asyncio.run(_once_ready(Load(port, service.pid), service, folder, study))
        finally:
            service.terminate()
            service.wait(60)
    print(f"load of the machine at the end: {os.getloadavg()[0]:.1f}")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rate", type=float, default=float(WANTED_READS))
    parser.add_argument("--seconds", type=float, default=15.0)
    parser.add_argument("--observations", type=int, default=1_000_000)
    parser.add_argument("--minutes", type=float, default=0.0, help="of going on, to see that memory stays flat")
    options = parser.parse_args()
    if not DATA.is_dir():
        print(f"skipped: there is no {DATA}")
        return
    serving(lambda load, folder: Study(load, options, folder).run())


if __name__ == "__main__":
    main()
