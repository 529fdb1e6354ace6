"""A disk that is full and a folder that cannot be written, for real: a clear error, nothing lost, and on it goes."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from surefill.service import Settings
from surefill.stream import StreamingCompleter

_spec = importlib.util.spec_from_file_location("processes", Path(__file__).with_name("processes.py"))
processes = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(processes)

pytestmark = pytest.mark.usefixtures("thorough")

PATH = "/v1/data-sets/films"
FULL = "database or disk is full"
MAY_NOT = "-dac_override,-dac_read_search,-fowner"
"""What root gives up to be refused like anybody else."""


def mount(folder, *options):
    """A file system in memory; skips where the tests may not mount one."""
    if os.getuid() or not shutil.which("mount"):
        pytest.skip("a small disk takes root and mount")
    folder.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", ",".join(options), "tmpfs", folder], capture_output=True)
    if done.returncode:
        pytest.skip(f"a small disk cannot be mounted here: {done.stderr.decode().strip()}")


@pytest.fixture
def disk(tmp_path):
    """A disk of five megabytes."""
    folder = tmp_path / "disk"
    mount(folder, "size=5m")
    yield folder
    subprocess.run(["umount", "--lazy", folder], check=True)


@pytest.fixture
def start():
    """Starts services and leaves none behind."""
    started = []

    def run(folder, **options):
        started.append(processes.Process(folder, **options))
        started[-1].start()
        return started[-1]

    yield run
    for service in started:
        service.close()


def refused_start(folder, prefix=()):
    """The sentence with which a service ends that cannot start."""
    command = [*prefix, sys.executable, "-m", "surefill", "serve", "--data", str(folder), "--port", "0"]
    environment = os.environ | {"PYTHONPATH": str(processes.SOURCE)}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=120)
    assert (done.returncode, "Traceback" in done.stderr) == (2, False), done.stderr
    return done.stderr.splitlines()[-1]


def send(service, number, size=1_000):
    listed = [{"row": f"r{k % 100}", "col": f"c{number}-{k // 100}", "value": float(k)} for k in range(size)]
    key = {"Idempotency-Key": f"batch-{number}"}
    return processes.post(f"{service.address}{PATH}/observations", json={"observations": listed}, headers=key)


def assert_problem(answer, status, words):
    assert answer.status_code == status
    assert answer.headers["content-type"] == "application/problem+json"
    assert words in answer.json()["detail"]


def test_a_full_disk_is_said_nothing_acknowledged_is_lost_and_it_goes_on_when_there_is_room(disk, start, tmp_path):
    service = start(disk / "served", log=tmp_path / "log", checkpoint_every=10_000)
    assert processes.post(f"{service.address}/v1/data-sets", json={"name": "films"}).status_code == 201
    stored = 0
    while send(service, stored).status_code == 201:
        stored += 1
        assert stored < 500, "the disk does not fill up"
    assert stored > 5
    for _ in range(3):
        assert_problem(send(service, stored), 507, f"nothing was stored: {FULL}")
    assert_problem(
        processes.post(f"{service.address}/v1/data-sets", json={"name": "x" * 60}), 507, "nothing was stored"
    )
    asked = processes.get(f"{service.address}{PATH}/predictions", params={"row": "r1", "col": "c0-1"})
    assert asked.json()["prediction"]["source"] == "observed"
    assert processes.get(f"{service.address}{PATH}/status").json()["observations"] == 1_000 * stored
    assert processes.get(f"{service.address}/health/ready").status_code == 200

    service.kill()
    service.start()  # still without room
    assert_problem(send(service, stored), 507, f"nothing was stored: {FULL}")
    service.kill()
    subprocess.run(["mount", "-o", "remount,size=50m", disk], check=True)
    service.start()
    assert send(service, stored - 1).headers["idempotent-replayed"] == "true"
    for number in range(stored, stored + 5):
        assert send(service, number).status_code == 201
    assert processes.get(f"{service.address}{PATH}/status").json()["observations"] == 1_000 * (stored + 5)
    assert service.end() == 0
    assert_uninterrupted(disk / "served", stored + 5)


def assert_uninterrupted(folder, batches):
    """Everything is there once, in order, and the saved stream has learnt it and nothing else."""
    log = processes.read_log(Settings(folder))
    assert log.cols == [f"c{number}-{k // 100}" for number in range(batches) for k in range(1_000)]
    stream = StreamingCompleter()
    stream.learn_many(*log)
    saved = StreamingCompleter.load(next(folder.glob("data-sets/films-*/stream.surefill")))
    assert saved.metrics.rmse == stream.metrics.rmse
    assert saved.predict(["r1"], ["c2-2"]) == stream.predict(["r1"], ["c2-2"])


def test_on_a_disk_that_is_read_only_a_service_ends_with_one_sentence(tmp_path):
    mount(tmp_path / "disk", "ro")
    try:
        assert "cannot be written: read-only file system" in refused_start(tmp_path / "disk" / "served")
    finally:
        subprocess.run(["umount", "--lazy", tmp_path / "disk"], check=True)


def test_a_folder_that_becomes_read_only_costs_nothing_that_was_acknowledged(tmp_path, start):
    prefix = []
    if os.getuid() == 0:
        if not shutil.which("setpriv"):
            pytest.skip("root may write anywhere, and setpriv is not there to give that up")
        prefix = ["setpriv", f"--bounding-set={MAY_NOT}", f"--inh-caps={MAY_NOT}"]
    folder = tmp_path / "served"
    service = start(folder, prefix=prefix, checkpoint_every=1_000, poll_seconds=0.2)
    options = {"name": "films", "refit_after": 10**9}
    assert processes.post(f"{service.address}/v1/data-sets", json=options).status_code == 201
    assert send(service, 0).status_code == 201
    inside = [folder, *folder.rglob("*")]
    for path in inside:
        path.chmod(0o555 if path.is_dir() else 0o644)
    new = processes.post(f"{service.address}/v1/data-sets", json={"name": "books"})
    assert_problem(new, 507, "nothing was stored: permission denied")
    assert [each["name"] for each in processes.get(f"{service.address}/v1/data-sets").json()["items"]] == ["films"]
    assert send(service, 1).status_code == 201, "the database is open, and can be written without a new file"
    assert "fit.lock cannot be written: permission denied" in failed_fit(service)
    service.kill()
    for path in inside:
        path.chmod(0o555 if path.is_dir() else 0o444)
    assert "cannot be written: permission denied" in refused_start(folder, prefix)
    for path in inside:
        path.chmod(0o755 if path.is_dir() else 0o644)
    service.start()
    assert processes.get(f"{service.address}{PATH}/status").json()["observations"] == 2_000
    assert service.end() == 0
    assert_uninterrupted(folder, 2)


def failed_fit(service):
    """Why a job has failed."""
    number = processes.post(f"{service.address}{PATH}/jobs").json()["id"]
    while (job := processes.get(f"{service.address}{PATH}/jobs/{number}").json())["state"] in ("queued", "running"):
        time.sleep(0.2)
    assert job["state"] == "failed"
    return job["problem"]
