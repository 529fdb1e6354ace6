"""A Ray cluster of several processes: a head and two more nodes, started and ended by process id."""

import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path

import pytest

NODE = ["--block", "--num-cpus=1", "--object-store-memory=100000000", "--disable-usage-stats", "--log-style=record"]


class Nodes:
    """Ray nodes, each a process group of its own."""

    def __init__(self):
        self.folder = Path(tempfile.mkdtemp(prefix="sf-", dir="/tmp"))  # sockets need a short path
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.address = f"127.0.0.1:{probe.getsockname()[1]}"
        port = self.address.rpartition(":")[2]
        self.processes = []
        # A token of this cluster alone, made here, which drivers started by the tests inherit.
        os.environ |= {
            "RAY_AUTH_MODE": "token",
            "RAY_AUTH_TOKEN": secrets.token_hex(32),
            "RAY_USAGE_STATS_ENABLED": "0",
            "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
        }
        head = ["--head", "--node-ip-address=127.0.0.1", f"--port={port}", f"--temp-dir={self.folder}"]
        self.start(*head, "--include-dashboard=false")

    def start(self, *arguments):
        ray = Path(sys.executable).parent / "ray"
        source = str(Path(__file__).parents[2] / "src")
        environment = os.environ | {
            "PYTHONPATH": os.pathsep.join([source, *filter(None, [os.environ.get("PYTHONPATH")])]),
            "NUMBA_NUM_THREADS": "1",
            "OPENBLAS_NUM_THREADS": "1",
        }
        path = self.folder / f"node-{len(self.processes)}.log"
        command = [str(ray), "start", *arguments, *NODE]
        with path.open("wb") as log:
            process = subprocess.Popen(command, env=environment, stdout=log, stderr=log, start_new_session=True)
        self.processes.append(process)
        for _ in range(600):  # one after the other: nodes that start together on one machine wait for each other
            if "Ray runtime started" in path.read_text():
                return process
            time.sleep(0.1)
        raise RuntimeError(f"a node does not start: {path.read_text()}")

    def add(self):
        return self.start(f"--address={self.address}")

    def kill(self, process):
        os.killpg(process.pid, signal.SIGKILL)  # the group of one node that was started here
        process.wait()

    def close(self):
        for process in reversed(self.processes):
            if process.poll() is None:
                self.kill(process)
        shutil.rmtree(self.folder, ignore_errors=True)


@pytest.fixture(scope="session")
def nodes():
    if find_spec("ray") is None:  # not imported before the cluster's token is set, which it reads then
        pytest.skip("the extra 'ray' is not installed: make test-ray installs it and runs this")
    cluster = Nodes()
    try:
        cluster.add()
        cluster.add()
        yield cluster
    finally:
        cluster.close()


@pytest.fixture(scope="session")
def connection(nodes):
    import ray

    ray.init(address=nodes.address, log_to_driver=False, logging_level="ERROR")
    try:
        for _ in range(300):
            if len([node for node in ray.nodes() if node["Alive"]]) == 3:
                break
            time.sleep(0.1)
        yield ray
    finally:
        ray.shutdown()
