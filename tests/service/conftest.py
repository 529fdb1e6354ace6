"""A service on SQLite and on PostgreSQL, where Debian's packages are installed; a small table with known truth."""

from __future__ import annotations

import dataclasses
import os
import pwd
import shutil
import subprocess
import tempfile
import threading
import time
import uuid
from contextlib import contextmanager
from pathlib import Path

import pytest

pytest.importorskip("fastapi", reason="the extra serve is not installed")
pytest.importorskip("jinja2", reason="the extra serve is not installed")
pytest.importorskip("sqlalchemy", reason="the extra serve is not installed")
pytest.importorskip("prometheus_client", reason="the extra serve is not installed")
pytest.importorskip("uvicorn", reason="the extra serve is not installed")

import httpx
import numpy as np

import surefill as sf
from surefill.service import Settings, make_server

BINARIES = sorted(Path("/usr/lib/postgresql").glob("*/bin"))


@pytest.fixture(scope="session")
def kills(request):
    """How often a service under load is killed."""
    return request.config.getoption("--kills")


@pytest.fixture(scope="session")
def many(kills):
    """Whether all is tested that can be, on both databases, and not the fast part alone."""
    return kills >= 10


@pytest.fixture
def thorough(many):
    """Skips what takes long where the fast part alone is tested."""
    if not many:
        pytest.skip("make test-serve does this")


@pytest.fixture(scope="session")
def simulated():
    return sf.datasets.make_low_rank((60, 50), rank=2, n_draws=2000, noise=0.1, random_state=0)


@pytest.fixture(scope="session")
def triples(simulated):
    seen = simulated.observations
    return list(zip(seen.rows.tolist(), seen.cols.tolist(), seen.values.tolist(), strict=True))


@pytest.fixture(scope="session")
def model_file(simulated, tmp_path_factory):
    """A fitted model that promises something."""
    file = tmp_path_factory.mktemp("model") / "films.surefill"
    completer = sf.PartialCompleter(tolerance=0.1, confidence="posterior").fit(simulated.observations)
    assert completer.result_.guarantee.promised
    completer.save(file)
    return file


@pytest.fixture(scope="session")
def mixed_file(tmp_path_factory):
    """A model of 150 x 60 cells, noise that rises from row to row, that keeps a part; a column's label is markup."""
    rng = np.random.default_rng(0)
    rows, cols = np.nonzero(rng.random((150, 60)) < np.where(np.arange(60) < 50, 0.6, 0.06))
    truth = np.multiply.outer(rng.uniform(-1, 1, 150), rng.uniform(-1, 1, 60))
    values = truth[rows, cols] + rng.normal(size=len(rows)) * np.linspace(0.02, 1, 150)[rows]
    films = ["<img src=x onerror=alert(1)>", *(f"film {number}" for number in range(1, 60))]
    seen = sf.Observations(rows, cols, np.clip(values, -2, 2), (150, 60), (-2, 2), col_labels=films)
    completer = sf.PartialCompleter(tolerance=0.2, confidence="posterior").fit(seen)
    assert completer.result_.guarantee.promised
    file = tmp_path_factory.mktemp("mixed") / "films.surefill"
    completer.save(file)
    return file


@pytest.fixture(scope="session")
def postgres():
    """The address of a server of our own, as an unprivileged user, in a folder that is removed; skips where absent."""
    if not BINARIES:
        pytest.skip("PostgreSQL is not installed: apt-get install postgresql")
    pytest.importorskip("psycopg", reason="the extra postgres is not installed")
    user = "postgres" if os.getuid() == 0 else pwd.getpwuid(os.getuid()).pw_name
    prefix = ["runuser", "-u", user, "--"] if os.getuid() == 0 else []
    folder = Path(tempfile.mkdtemp(prefix="pg"))
    shutil.chown(folder, user)
    data = folder / "data"
    binary = BINARIES[-1]
    subprocess.run(
        [*prefix, binary / "initdb", "-D", data, "-A", "trust", "-U", user, "--no-sync"],
        check=True, capture_output=True, cwd="/",
    )  # fmt: skip
    server = subprocess.Popen(
        [*prefix, binary / "postgres", "-D", data, "-k", folder, "-c", "listen_addresses="],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd="/",
    )  # fmt: skip
    for _ in range(200):
        ready = subprocess.run([binary / "pg_isready", "-h", folder, "-U", user], capture_output=True)
        if ready.returncode == 0:
            break
        time.sleep(0.1)
    yield lambda name: f"postgresql:///{name}?host={folder}&user={user}"
    # Asked by its own tool, since the process that was started may be the one that changed the user.
    subprocess.run([*prefix, binary / "pg_ctl", "stop", "-D", data, "-m", "immediate"], capture_output=True, cwd="/")
    server.wait(10)
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request):
    """The address of an empty database, None for SQLite in the folder."""
    if request.param == "sqlite":
        yield None
        return
    import psycopg

    address, name = request.getfixturevalue("postgres"), f"t{uuid.uuid4().hex[:12]}"
    with psycopg.connect(address("postgres"), autocommit=True) as connection:
        connection.execute(f"create database {name}")
    yield address(name)
    with psycopg.connect(address("postgres"), autocommit=True) as connection:
        connection.execute(f"drop database {name} with (force)")


@pytest.fixture
def settings(tmp_path, database):
    return Settings(tmp_path / "served", database)


@pytest.fixture
def on_sqlite(tmp_path):
    return Settings(tmp_path / "served")


@contextmanager
def serving(settings, model=None):
    """A client of a service in a thread of this process, which starts and ends as a real one does."""
    server = make_server(dataclasses.replace(settings, port=0), model)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started and thread.is_alive():
        time.sleep(0.02)
    assert server.started, "the service did not start"
    port = server.servers[0].sockets[0].getsockname()[1]
    with httpx.Client(base_url=f"http://localhost:{port}", timeout=60) as client:
        yield client
    server.should_exit = True
    thread.join(60)


@pytest.fixture(scope="session")
def serve():
    return serving


@pytest.fixture(scope="module")
def served(tmp_path_factory, model_file):
    """A client of a service with a data set ``films`` whose model promises something."""
    with serving(Settings(tmp_path_factory.mktemp("served"), poll_seconds=0.2), model_file) as client:
        yield client
