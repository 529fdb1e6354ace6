"""Clients that load a service: requests as fast as they are answered, or at a rate, timed from when each was due."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

TICKS = os.sysconf("SC_CLK_TCK")


class Connection:
    """One connection that is kept open; requests and answers as bytes, which costs the client little."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._reader: asyncio.StreamReader | None = None

    async def send(
        self, method: str, path: str, body: bytes = b"", kind: str = "application/json", key: str = ""
    ) -> tuple[int, bytes]:
        head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {kind}\r\n"
        head += f"Idempotency-Key: {key}\r\n" if key else ""
        headers = await self._asked(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        length = headers.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]
        return int(headers.split(b" ", 2)[1]), await self._reader.readexactly(int(length or 0))

    async def _asked(self, request: bytes) -> bytes:
        """The headers of the answer, over a new connection where the service has closed one that was idle."""
        while True:
            reused = self._reader is not None
            if not reused:
                self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._port)
            try:
                self._writer.write(request)
                return await self._reader.readuntil(b"\r\n\r\n")
            except (asyncio.IncompleteReadError, ConnectionError):
                if not reused:
                    raise
                self._reader = None


@dataclass(frozen=True)
class Request:
    """What is sent."""

    method: str
    path: str
    body: bytes = b""
    kind: str = "application/json"
    key: str = ""


@dataclass
class Timings:
    """Milliseconds of requests, how many were refused, and what they cost the service.

    ``each`` is how many things one request is about; rates and costs are of these.
    """

    each: int = 1
    milliseconds: list[float] = field(default_factory=list)
    refused: int = 0
    seconds: float = 0.0
    processor: float = 0.0

    @property
    def rate(self) -> float:
        """Things a second."""
        return self.each * (len(self.milliseconds) - self.refused) / self.seconds

    @property
    def p99(self) -> float:
        return float(np.percentile(self.milliseconds, 99)) if self.milliseconds else float("inf")

    @property
    def cost(self) -> float:
        """Milliseconds of a processor for each thing."""
        return 1000 * self.processor / (self.each * max(1, len(self.milliseconds)))

    def told(self, what: str) -> str:
        if not self.milliseconds:
            return f"{what:<44} none"
        p50, slowest = np.median(self.milliseconds), max(self.milliseconds)
        figures = f"{self.rate:>9,.0f}/s {p50:>9.1f} {self.p99:>9.1f} {slowest:>9.1f}"
        return f"{what:<44} {figures} {self.refused:>7} {self.cost:>9.3f}"


HEADER = f"{'':<44} {'rate':>11} {'p50 ms':>9} {'p99 ms':>9} {'max ms':>9} {'refused':>7} {'cpu ms':>9}"


class Load:
    """Sends requests to a service and times them.

    Parameters
    ----------
    port, process : of the service.
    clients : connections that are kept open.
    """

    def __init__(self, port: int, process: int, clients: int = 32) -> None:
        self.port, self.process, self._clients = port, process, clients

    async def at_full_speed(self, requests: Iterable[Request], clients: int, each: int = 1) -> Timings:
        """Every request, each client sending the next when the last is answered; a refused one is sent again."""
        timings, left, start, before = Timings(each), iter(requests), time.perf_counter(), self.processor_seconds()

        async def client() -> None:
            connection = Connection(self.port)
            for request in left:
                while True:
                    begun = time.perf_counter()
                    status, _ = await connection.send(**vars(request))
                    timings.milliseconds.append(1000 * (time.perf_counter() - begun))
                    if status < 300:
                        break
                    timings.refused += 1
                    await asyncio.sleep(0.05)

        await asyncio.gather(*(client() for _ in range(clients)))
        return self._ended(timings, start, before)

    async def at_rate(self, requests: list[Request], rate: float, seconds: float, each: int = 1) -> Timings:
        """Requests over and over at ``rate`` things a second, whether earlier ones were answered or not."""
        timings, start, before = Timings(each), time.perf_counter(), self.processor_seconds()
        free: asyncio.Queue[Connection] = asyncio.Queue()
        for _ in range(self._clients):
            free.put_nowait(Connection(self.port))

        async def one(number: int, due: float) -> None:
            connection = await free.get()
            status, _ = await connection.send(**vars(requests[number % len(requests)]))
            free.put_nowait(connection)
            timings.milliseconds.append(1000 * (time.perf_counter() - due))
            timings.refused += status >= 300

        async with asyncio.TaskGroup() as tasks:
            for number in range(int(rate * seconds / each)):
                due = start + number * each / rate
                await asyncio.sleep(max(0.0, due - time.perf_counter()))
                tasks.create_task(one(number, due))
        return self._ended(timings, start, before)

    def _ended(self, timings: Timings, start: float, before: float) -> Timings:
        timings.seconds, timings.processor = time.perf_counter() - start, self.processor_seconds() - before
        return timings

    def processor_seconds(self) -> float:
        """What the service has used of the processors so far, without the process that fits."""
        fields = Path(f"/proc/{self.process}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS

    def megabytes(self) -> float:
        """Resident memory of the service."""
        lines = Path(f"/proc/{self.process}/status").read_text().splitlines()
        return int(next(line for line in lines if line.startswith("VmRSS")).split()[1]) / 1024
