"""Killed at random moments under load, a service loses nothing that it acknowledged, and has nothing twice."""

from __future__ import annotations

import importlib.util
import json
import os
import random
import signal
import time
from contextlib import suppress
from pathlib import Path

import httpx
import numpy as np
import pytest

from surefill.service import Settings
from surefill.service.store import open_engine
from surefill.service.store.data_sets import all_data_sets
from surefill.service.store.observations import Columns, read_observations
from surefill.stream import StreamingCompleter

_spec = importlib.util.spec_from_file_location("processes", Path(__file__).with_name("processes.py"))
processes = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(processes)

PATH = "/v1/data-sets/films"


@pytest.fixture
def kills(request):
    return request.config.getoption("--kills")


def distinct_batches(count, size, seed=0):
    """Batches in which no two observations are alike, so that one that is missing or twice is noticed."""
    rng = np.random.default_rng(seed)
    cells = rng.permutation(40_000)[: count * size]
    lines = [(f"r{cell // 200}", f"c{cell % 200}", float(cell)) for cell in cells.tolist()]
    return [lines[k * size : (k + 1) * size] for k in range(count)]


def logged(folder):
    """What the store holds, in its order."""
    engine = open_engine(Settings(folder).address)
    with engine.connect() as connection:
        (films,) = all_data_sets(connection)
        parts = list(read_observations(connection, films.id, 0, films.last_sequence))
    engine.dispose()
    return Columns(*([item for part in parts for item in getattr(part, name)] for name in Columns._fields))


def test_every_acknowledged_observation_is_there_once_and_the_state_is_that_of_an_uninterrupted_run(tmp_path, kills):
    rng, folder = random.Random(time.time_ns()), tmp_path / "served"
    batches = distinct_batches(min(200 * kills, 2_000), 10)
    service = processes.Process(folder)
    service.start()
    created = httpx.post(f"{service.address}/v1/data-sets", json={"name": "films", "refit_after": 10**9})
    assert created.status_code == 201
    load = processes.Load(service.address, batches, pause=0.02 if kills < 10 else 0.2)
    load.start()
    done = 0
    while done < kills:
        time.sleep(rng.random() * 0.8)
        service.kill()
        done += 1
        service.start()
    load.join()
    assert not load.refused
    assert len(load.acknowledged) == len(batches)

    stored = logged(folder)
    sent = sorted(line for batch in batches for line in batch)
    assert sorted(zip(*stored, strict=True)) == sent
    for number, told in load.acknowledged.items():
        part = slice(told["first"] - 1, told["last"])
        assert list(zip(*(column[part] for column in stored), strict=True)) == batches[number]

    uninterrupted = StreamingCompleter()
    uninterrupted.learn_many(*stored)
    cells = [(f"r{i}", f"c{j}") for i in range(0, 210, 7) for j in range(0, 210, 7)]
    asked = {"cells": [{"row": row, "col": col} for row, col in cells]}
    answers = httpx.post(f"{service.address}{PATH}/predictions", json=asked, timeout=60).json()["predictions"]
    seen = set(zip(stored.rows, stored.cols, strict=True))
    assert {each["source"] for each in answers} == {"observed", "stream"}
    for (row, col), answer in zip(cells, answers, strict=True):
        if (row, col) not in seen:
            assert answer["value"] == uninterrupted.predict([row], [col])[0]
            assert answer["confidence"] == uninterrupted.confidence([row], [col])[0]
    status = httpx.get(f"{service.address}{PATH}/status").json()
    assert status["stream_rmse"] == uninterrupted.metrics.rmse
    assert service.end() == 0


def test_a_worker_or_service_killed_while_fitting_leaves_the_old_model_or_the_new_one(tmp_path, kills, triples):
    rng, folder = random.Random(time.time_ns()), tmp_path / "served"
    service = processes.Process(folder)
    service.start()
    options = {"name": "films", "tolerance": 0.1, "refit_after": 10**9}
    assert httpx.post(f"{service.address}/v1/data-sets", json=options).status_code == 201
    listed = [{"row": str(row), "col": str(col), "value": value} for row, col, value in triples]
    assert httpx.post(f"{service.address}{PATH}/observations", json={"observations": listed}).status_code == 201
    numbers = [0]
    for k in range(max(1, kills // 3)):
        job = httpx.post(f"{service.address}{PATH}/jobs").json()["id"]
        wait_for(lambda: service.children(), 30)
        time.sleep(rng.random() * 6)
        if k % 2:
            service.kill()
            service.start()
        else:
            for child in service.children():
                with suppress(ProcessLookupError):
                    os.kill(child, signal.SIGKILL)
        ended = wait_for(lambda job=job: ended_job(service, job), 120)
        assert ended["state"] == "done", ended
        wait_for(lambda made=ended["model"]: model_in_use(service) >= made, 30)
        numbers.append(model_in_use(service))
        predicted = httpx.get(f"{service.address}{PATH}/predictions", params={"row": "1", "col": "2"}).json()
        assert predicted["model"]["observations"] == len(triples)
        assert httpx.get(f"{service.address}{PATH}/report").status_code == 200
    assert numbers == sorted(set(numbers))
    assert service.end() == 0
    assert not list((folder / "data-sets").rglob("*.part")), "a half-written file was left behind"
    lines = [line for line in folder.with_suffix(".log").read_text().splitlines() if line.startswith("{")]
    assert not [line for line in lines if json.loads(line)["level"] == "error"]


def ended_job(service, number):
    with suppress(httpx.TransportError):
        job = httpx.get(f"{service.address}{PATH}/jobs/{number}").json()
        return job if job["state"] in ("done", "failed") else None
    return None


def model_in_use(service):
    model = httpx.get(f"{service.address}{PATH}/promise").json()["model"]
    return 0 if model is None else model["number"]


def wait_for(condition, seconds):
    """What the condition gives once it is true."""
    ends = time.monotonic() + seconds
    while time.monotonic() < ends:
        found = condition()
        if found:
            return found
        time.sleep(0.1)
    raise AssertionError("it did not come true in time")
