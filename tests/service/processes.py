"""A service in a process of its own, which can be killed, and a load that remembers what was acknowledged."""

from __future__ import annotations

import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import httpx

SOURCE = Path(__file__).parents[2] / "src"


class Process:
    """``surefill serve`` on a folder."""

    def __init__(self, folder, *options):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.address = f"http://127.0.0.1:{self.port}"
        self._command = [sys.executable, "-m", "surefill", "serve", "--data", str(folder), "--port", str(self.port)]
        self._command += map(str, options)
        self._log = open(Path(folder).with_suffix(".log"), "a")  # noqa: SIM115

    def start(self):
        """Start and wait until it is ready."""
        environment = os.environ | {"PYTHONPATH": str(SOURCE)}
        self.running = subprocess.Popen(self._command, stderr=self._log, env=environment)
        ends = time.monotonic() + 300
        while time.monotonic() < ends:
            assert self.running.poll() is None, "the service ended"
            with suppress(httpx.TransportError):
                if httpx.get(f"{self.address}/health/ready").status_code == 200:
                    return
            time.sleep(0.05)
        raise AssertionError("the service does not become ready")

    def kill(self):
        """kill -9."""
        self.running.send_signal(signal.SIGKILL)
        self.running.wait()

    def end(self):
        """Tell it to end, as an operator does; its exit code."""
        self.running.terminate()
        code = self.running.wait(60)
        self._log.close()
        return code

    def children(self):
        """Processes that it has started."""
        found = []
        for stat in Path("/proc").glob("[0-9]*/stat"):
            with suppress(OSError):
                name, _, rest = stat.read_text().rpartition(")")
                if int(rest.split()[1]) == self.running.pid:
                    found.append(int(name.split()[0]))
        return found


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

    def join(self):
        for thread in self._threads:
            thread.join(300)

    @property
    def busy(self):
        return any(thread.is_alive() for thread in self._threads)

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
