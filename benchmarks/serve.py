"""The service under load: ml-1m replayed by several clients, single predictions at a rate, with and without a refit.

    python benchmarks/serve.py [--rate 500] [--seconds 20] [--observations 1000000] [--minutes 0]

Writes are sent as fast as they are acknowledged. Reads come at their rate whether earlier ones were answered or not, so
that a service that stalls is seen to stall. Latencies are in milliseconds, at the client, which shares the cores;
``cpu ms`` is what the service uses of a processor for one read or one observation, whatever else the machine does.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

import surefill as sf
from data_folder import DATA

BATCH, WRITERS, READERS = 1_000, 4, 32


class Connection:
    """One connection that is kept open; requests and answers as bytes, which costs the client little."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._reader: asyncio.StreamReader | None = None

    async def send(
        self, method: str, path: str, body: bytes = b"", kind: str = "application/json"
    ) -> tuple[int, bytes]:
        if self._reader is None:
            self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._port)
        head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {kind}\r\n"
        self._writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        headers = await self._reader.readuntil(b"\r\n\r\n")
        length = int(headers.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
        return int(headers.split(b" ", 2)[1]), await self._reader.readexactly(length)


@dataclass
class Timings:
    """Milliseconds of requests, and how many were not answered as they should be."""

    milliseconds: list[float] = field(default_factory=list)
    refused: int = 0
    seconds: float = 0.0
    processor: float = 0.0

    def told(self, what: str, each: int = 1) -> str:
        if not self.milliseconds:
            return f"{what:<44} none"
        p50, p99 = np.percentile(self.milliseconds, [50, 99])
        rate = each * len(self.milliseconds) / self.seconds
        cost = 1000 * self.processor / (each * len(self.milliseconds))
        slowest = max(self.milliseconds)
        return f"{what:<44} {rate:>9,.0f}/s {p50:>9.1f} {p99:>9.1f} {slowest:>9.1f} {self.refused:>7} {cost:>9.3f}"


async def write_all(port: int, bodies: list[bytes], until: float = float("inf")) -> Timings:
    """Every body, by some clients as fast as they are acknowledged."""
    timings, left, start, before = Timings(), iter(bodies), time.perf_counter(), processor_seconds()

    async def client() -> None:
        connection = Connection(port)
        for body in left:
            if time.perf_counter() > until:
                return
            while True:
                begun = time.perf_counter()
                status, _ = await connection.send("POST", "/v1/data-sets/films/observations", body, "text/csv")
                if status == 201:
                    break
                timings.refused += 1
                await asyncio.sleep(0.05)
            timings.milliseconds.append(1000 * (time.perf_counter() - begun))

    await asyncio.gather(*(client() for _ in range(WRITERS)))
    timings.seconds, timings.processor = time.perf_counter() - start, processor_seconds() - before
    return timings


async def read_at(port: int, rate: float, seconds: float, paths: list[str]) -> Timings:
    """Reads that come at a rate, each timed from when it was due."""
    timings, start, before = Timings(), time.perf_counter(), processor_seconds()
    free: asyncio.Queue[Connection] = asyncio.Queue()
    for _ in range(READERS):
        free.put_nowait(Connection(port))

    async def one(number: int) -> None:
        due = start + number / rate
        await asyncio.sleep(max(0.0, due - time.perf_counter()))
        connection = await free.get()
        status, _ = await connection.send("GET", paths[number % len(paths)])
        free.put_nowait(connection)
        timings.milliseconds.append(1000 * (time.perf_counter() - due))
        timings.refused += status != 200

    await asyncio.gather(*(one(number) for number in range(int(rate * seconds))))
    timings.seconds, timings.processor = time.perf_counter() - start, processor_seconds() - before
    return timings


async def ask(port: int, method: str, path: str, content: object = None) -> dict:
    status, body = await Connection(port).send(method, path, b"" if content is None else json.dumps(content).encode())
    assert status < 300, body
    return json.loads(body)


async def wait_for_model(port: int, number: int) -> float:
    start = time.perf_counter()
    while True:
        model = (await ask(port, "GET", "/v1/data-sets/films/promise"))["model"]
        if model is not None and model["number"] >= number:
            return time.perf_counter() - start
        await asyncio.sleep(0.5)


SERVICE: list[int] = []
"""The process of the service."""


def processor_seconds() -> float:
    """What the service has used of the processors so far, without the process that fits."""
    fields = Path(f"/proc/{SERVICE[0]}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def memory(pid: int) -> str:
    """Resident megabytes of the service."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return f"{int(next(line for line in lines if line.startswith('VmRSS')).split()[1]) / 1024:,.0f} MB"


async def study(port: int, pid: int, options: argparse.Namespace) -> None:
    rows, cols, values = ratings(options.observations)
    lines = [f"{i},{j},{y:g}\n" for i, j, y in zip(rows.tolist(), cols.tolist(), values.tolist(), strict=True)]
    bodies = ["row,col,value\n" + "".join(lines[k : k + BATCH]) for k in range(0, len(lines), BATCH)]
    bodies = [body.encode() for body in bodies]
    rng = np.random.default_rng(0)
    some = rng.choice(np.unique(rows), 5000).tolist(), rng.choice(np.unique(cols), 5000).tolist()
    paths = [f"/v1/data-sets/films/predictions?row={i}&col={j}" for i, j in zip(*some, strict=True)]
    options_of = {"name": "films", "bounds": {"low": 1, "high": 5}, "tolerance": 0.8, "refit_after": 10**9}
    await ask(port, "POST", "/v1/data-sets", options_of)
    held_back = len(bodies) // 5
    print(f"{'':<44} {'rate':>11} {'p50 ms':>9} {'p99 ms':>9} {'max ms':>9} {'refused':>7} {'cpu ms':>9}")
    print((await write_all(port, bodies[: -2 * held_back])).told(f"writes of {BATCH:,}, observations", BATCH))
    print(f"memory after {len(lines) * 3 // 5:,} observations: {memory(pid)}", flush=True)
    print((await read_at(port, options.rate, options.seconds, paths)).told("reads by the stream"), flush=True)
    await ask(port, "POST", "/v1/data-sets/films/jobs")
    await asyncio.sleep(5)
    print(
        (await read_at(port, options.rate, options.seconds, paths)).told("reads by the stream, refit running"),
        flush=True,
    )
    writes = write_all(port, bodies[-2 * held_back : -held_back])
    print((await writes).told(f"writes of {BATCH:,}, refit running", BATCH), flush=True)
    waited = await wait_for_model(port, 1)
    print(f"the model was in use {waited:.0f} s later; memory {memory(pid)}", flush=True)
    print((await read_at(port, options.rate, options.seconds, paths)).told("reads by the model"), flush=True)
    until = time.perf_counter() + options.seconds
    both = await asyncio.gather(
        read_at(port, options.rate, options.seconds, paths), write_all(port, bodies[-held_back:], until)
    )
    print(both[0].told("reads by the model, writes at full speed"))
    print(both[1].told(f"writes of {BATCH:,} meanwhile", BATCH), flush=True)
    ends = time.perf_counter() + 60 * options.minutes
    while time.perf_counter() < ends:
        reads = await read_at(port, options.rate, 60, paths)
        print(f"{reads.told('reads by the model')}   {memory(pid)}", flush=True)


def ratings(count: int) -> tuple:
    """The first so many ratings of ml-1m in the order of the file, by label."""
    seen = sf.read_observations(DATA / "ml-1m" / "ratings.dat.gz", row=0, col=1, value=2, header=False)
    order = np.random.default_rng(0).permutation(len(seen))[:count]
    return seen.row_names(seen.rows[order]), seen.col_names(seen.cols[order]), seen.values[order]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rate", type=float, default=500.0)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--observations", type=int, default=1_000_000)
    parser.add_argument("--minutes", type=float, default=0.0, help="of reading on, to see that memory stays flat")
    options = parser.parse_args()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "surefill", "serve", "--data", folder, "--port", str(port)]
        with open(Path(folder) / "log", "w") as log:
            service = subprocess.Popen(command, stderr=log)
        try:
            asyncio.run(start_and_study(port, service, options))
        finally:
            service.terminate()
            service.wait(60)
    print(f"load of the machine at the end: {os.getloadavg()[0]:.1f}")


async def start_and_study(port: int, service: subprocess.Popen, options: argparse.Namespace) -> None:
    while True:
        assert service.poll() is None, "the service ended"
        try:
            status, _ = await Connection(port).send("GET", "/health/ready")
        except OSError:
            await asyncio.sleep(0.2)
            continue
        if status == 200:
            break
    SERVICE.append(service.pid)
    await study(port, service.pid, options)


if __name__ == "__main__":
    main()
