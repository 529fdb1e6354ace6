"""A service in a process of its own, which can be killed, and a load that remembers what was acknowledged."""

from __future__ import annotations

import json
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import suppress
from functools import partial
from pathlib import Path

import httpx

from surefill.service.store import open_engine
from surefill.service.store.data_sets import find_data_set
from surefill.service.store.observations import Columns, read_observations

SOURCE = Path(__file__).parents[2] / "src"

ANSWER_SECONDS = 120.0
"""How long an answer may take on a machine with twenty times as much to do as it has cores; httpx waits for five."""

get, post = (partial(ask, timeout=ANSWER_SECONDS) for ask in (httpx.get, httpx.post))


class Process:
    """``surefill serve`` on a folder, in a process forked from one that has imported everything.

    ``settings`` are those that the command has no option for; ``prefix`` starts the process that forks; ``log`` takes
    what it says, beside the folder by default.
    """

    def __init__(self, folder, *options, prefix=(), log=None, **settings):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.address = f"http://127.0.0.1:{self.port}"
        self._arguments = ["serve", "--data", str(folder), "--port", str(self.port), *map(str, options)]
        self._settings, self.number = settings, None
        self.log = log or Path(folder).with_suffix(".log")
        with open(self.log, "a") as log:
            self._parent = subprocess.Popen(
                [*prefix, sys.executable, Path(__file__).with_name("forked.py")],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True,
                env=os.environ | {"PYTHONPATH": str(SOURCE)},
            )  # fmt: skip

    def _order(self, **order):
        self._parent.stdin.write(json.dumps(order) + "\n")
        self._parent.stdin.flush()
        return int(self._parent.stdout.readline())

    def start(self):
        """Start and wait until it is ready."""
        self.number = self._order(start=self._arguments, settings=self._settings)
        ends = time.monotonic() + 300
        while time.monotonic() < ends and ") Z " not in Path(f"/proc/{self.number}/stat").read_text():
            with suppress(httpx.TransportError):
                if get(f"{self.address}/health/ready").status_code == 200:
                    return
            time.sleep(0.02)
        raise AssertionError(f"the service does not become ready: {self.log.read_text()[-2000:]}")

    def kill(self):
        """kill -9."""
        self._signal(signal.SIGKILL)

    def end(self):
        """Tell it to end, as an operator does; its exit code."""
        code = self._signal(signal.SIGTERM)
        self.close()
        return code

    def _signal(self, which):
        os.kill(self.number, which)
        code, self.number = self._order(wait=self.number), None
        return code

    def close(self):
        """Leave no process behind."""
        if self.number is not None:
            self.kill()
        for pipe in (self._parent.stdin, self._parent.stdout):
            pipe.close()
        self._parent.wait(60)

    def children(self):
        """Processes that it has started."""
        found = []
        for stat in Path("/proc").glob("[0-9]*/stat"):
            with suppress(OSError):
                name, _, rest = stat.read_text().rpartition(")")
                if int(rest.split()[1]) == self.number:
                    found.append(int(name.split()[0]))
        return found


def read_log(settings):
    """The observations of ``films`` that the store holds, in order."""
    engine = open_engine(settings.address)
    with engine.connect() as connection:
        films = find_data_set(connection, "films")
        parts = list(read_observations(connection, films.id, 0, films.last_sequence))
    engine.dispose()
    return Columns(*([item for part in parts for item in getattr(part, name)] for name in Columns._fields))


class Load:
    """Clients that send batches, each under its key until it is acknowledged, whatever happens to the service."""

    def __init__(self, address, batches, clients=3, pause=0.0):
        self._path = f"{address}/v1/data-sets/films/observations"
        self._left, self._lock, self._pause = list(enumerate(batches)), threading.Lock(), pause
        self.acknowledged = {}
        self.refused = []
        self._threads = [threading.Thread(target=self._send_all, daemon=True) for _ in range(clients)]

    def start(self):
        for thread in self._threads:
            thread.start()

    def finish(self):
        """Let every client end when the batch it is at is acknowledged."""
        with self._lock:
            self._left.clear()
        for thread in self._threads:
            thread.join(300)
            assert not thread.is_alive(), "a batch was never acknowledged"

    def _send_all(self):
        with httpx.Client(timeout=30) as client:
            while True:
                with self._lock:
                    if not self._left:
                        return
                    number, batch = self._left.pop(0)
                self._send(client, number, batch)
                time.sleep(self._pause * random.random())

    def _send(self, client, number, batch):
        listed = [{"row": row, "col": col, "value": value} for row, col, value in batch]
        while True:
            try:
                key = {"Idempotency-Key": f"batch-{number}"}
                sent = client.post(self._path, json={"observations": listed}, headers=key)
            except httpx.TransportError:
                time.sleep(0.05)
                continue
            if sent.status_code == 201:
                self.acknowledged[number] = sent.json()
                return
            if sent.status_code not in (429, 503, 507):
                self.refused.append(sent.text)
                return
            time.sleep(0.05)
