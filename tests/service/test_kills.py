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

import surefill as sf
from surefill.service.folders import folder_of
from surefill.service.store import open_engine
from surefill.service.store.data_sets import find_data_set
from surefill.service.store.models import last_models
from surefill.service.worker import fit, gather
from surefill.stream import StreamingCompleter

_spec = importlib.util.spec_from_file_location("processes", Path(__file__).with_name("processes.py"))
processes = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(processes)

PATH = "/v1/data-sets/films"
PATIENCE = 900
"""Seconds after which what takes a few is not believed to happen any more, on a machine with much else to do."""

SIDE = 100
"""Rows and columns of the table that is sent: small, so that it is fitted often."""


@pytest.fixture
def service(request, tmp_path, database, many):
    """A service that saves its streams often and looks for work often."""
    asked = request.node.callspec.params
    fast = database is None and asked.get("killed", "service") == "service" and asked.get("moment", "swap") == "swap"
    if not (many or fast):
        pytest.skip("make test-serve does this")
    options = [] if database is None else ["--database", database]
    every = 500 if many else 100
    process = processes.Process(tmp_path / "served", *options, checkpoint_every=every, poll_seconds=0.2)
    process.start()
    yield process
    process.close()


def distinct_batches(count, size):
    """Batches in which no two observations are alike, so that one that is missing or twice is noticed."""
    cells = np.random.default_rng(0).integers(SIDE * SIDE, size=count * size)
    lines = [(f"r{cell // SIDE}", f"c{cell % SIDE}", k / len(cells)) for k, cell in enumerate(cells.tolist())]
    return [lines[k * size : (k + 1) * size] for k in range(count)]


def test_every_acknowledged_observation_is_there_once_and_the_state_is_that_of_an_uninterrupted_run(
    service, settings, kills, many, record_property
):
    rng, batches = random.Random(time.time_ns()), distinct_batches(20_000, 10)
    options = {"name": "films", "refit_after": 1_000 if many else 10**9, "refit_share": 0.02}
    assert processes.post(f"{service.address}/v1/data-sets", json=options).status_code == 201
    load = processes.Load(service.address, batches, pause=0.1 if many else 0.02)
    load.start()
    for k in range(kills):
        if many and k % 10 == 9:  # most die soon after their start; some live until a model is put in use
            number = model_in_use(service)
            wait_for(lambda least=number + 1: model_in_use(service) >= least)
        time.sleep(rng.random() * 0.8)
        service.kill()
        service.start()
    load.finish()
    assert not load.refused
    answers = asked_cells(service)
    status = processes.get(f"{service.address}{PATH}/status").json()
    assert service.end() == 0

    log, model = processes.read_log(settings), last_model(settings)
    assert sorted(zip(*log, strict=True)) == sorted(line for k in load.acknowledged for line in batches[k])
    for number, told in load.acknowledged.items():
        part = slice(told["first"] - 1, told["last"])
        assert list(zip(*(column[part] for column in log), strict=True)) == batches[number]
    uninterrupted = StreamingCompleter()
    uninterrupted.learn_many(*log)
    assert_same_stream(next(settings.folder.rglob("stream.surefill")), uninterrupted, status)
    assert (model is not None) == (many), "models are fitted between many kills, and not between few"
    assert_same_answers(answers, uninterrupted, model)
    assert_nothing_went_wrong(settings.folder)
    record_property("observations", len(log.values))
    record_property("models", model.number if model else 0)


def asked_cells(service):
    cells = [{"row": f"r{i}", "col": f"c{j}"} for i in range(0, SIDE + 20, 4) for j in range(0, SIDE + 20, 4)]
    asked = processes.post(f"{service.address}{PATH}/predictions", json={"cells": cells})
    assert asked.status_code == 200
    return asked.json()


def assert_same_stream(checkpoint, uninterrupted, status):
    saved = StreamingCompleter.load(checkpoint)
    rows, cols = zip(*((f"r{i}", f"c{j}") for i in range(0, SIDE, 3) for j in range(0, SIDE, 3)), strict=True)
    np.testing.assert_array_equal(saved.predict(rows, cols), uninterrupted.predict(rows, cols))
    np.testing.assert_array_equal(saved.confidence(rows, cols), uninterrupted.confidence(rows, cols))
    assert status["stream_rmse"] == saved.metrics.rmse == uninterrupted.metrics.rmse


def last_model(settings):
    """The line of the model that was put in use last; its file is seen to be what fitting its observations gives."""
    engine = open_engine(settings.address)
    with engine.connect() as connection:
        films = find_data_set(connection, "films")
        model = next(iter(last_models(connection, films.id, 1)), None)
        gathered = None if model is None else gather(connection, films, model.sequence)
    engine.dispose()
    if model is None:
        return None
    uninterrupted = fit(films, *gathered)
    served = sf.load(folder_of(settings.folder, films) / model.file)
    cells = np.indices(uninterrupted.observations_.shape).reshape(2, -1)
    expected = vars(uninterrupted.result_.answer(*cells))
    for name, found in vars(served.result_.answer(*cells)).items():
        np.testing.assert_array_equal(found, expected[name])
    return model


def assert_same_answers(answers, uninterrupted, model):
    assert (answers["model"] or {"number": 0})["number"] == (model.number if model else 0)
    by_stream = [each for each in answers["predictions"] if each["source"] == "stream"]
    assert by_stream or model
    for each in by_stream:
        cell = [each["row"]], [each["col"]]
        assert each["value"] == uninterrupted.predict(*cell)[0]
        assert each["confidence"] == uninterrupted.confidence(*cell)[0]


def assert_nothing_went_wrong(folder):
    assert not list((folder / "data-sets").rglob("*.part")), "a half-written file was left behind"
    lines = [line for line in folder.with_suffix(".log").read_text().splitlines() if line.startswith("{")]
    assert lines
    assert not [line for line in lines if json.loads(line)["level"] == "error"]


@pytest.mark.parametrize("killed", ["worker", "service"])
@pytest.mark.parametrize("moment", ["fit", "swap"])
def test_killed_while_it_fits_or_swaps_it_has_the_old_model_or_the_new_one(
    service, settings, kills, triples, killed, moment
):
    options = {"name": "films", "tolerance": 0.1, "refit_after": 10**9}
    assert processes.post(f"{service.address}/v1/data-sets", json=options).status_code == 201
    listed = [{"row": str(row), "col": str(col), "value": value} for row, col, value in triples]
    assert processes.post(f"{service.address}{PATH}/observations", json={"observations": listed}).status_code == 201
    numbers = [fit_and_kill(service, settings.folder, killed, moment) for _ in range(max(1, kills // 12))]
    assert numbers == sorted(set(numbers))
    assert asked_cells(service)["model"]["observations"] == len(triples)
    assert service.end() == 0
    assert last_model(settings).number == numbers[-1]
    assert_nothing_went_wrong(settings.folder)


def fit_and_kill(service, folder, killed, moment):
    """The number of the model that is in use after a job during which somebody was killed."""
    rng = random.Random(time.time_ns())
    job = processes.post(f"{service.address}{PATH}/jobs").json()["id"]
    wait_for(service.children)
    if moment == "fit":
        time.sleep(rng.random() * 5)
    else:
        wait_for(lambda: half_written(folder) or ended_job(service, job), every=0.002)
        time.sleep(rng.random() * 0.5)
    if killed == "service":
        service.kill()
        service.start()
    else:
        for child in service.children():
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
    ended = wait_for(lambda: ended_job(service, job))
    assert ended["state"] == "done", ended
    wait_for(lambda: model_in_use(service) >= ended["model"])
    assert processes.get(f"{service.address}{PATH}/report").status_code == 200
    return model_in_use(service)


def half_written(folder):
    """A model or report that is being written."""
    return list((folder / "data-sets").rglob(".model-*.part"))


def ended_job(service, number):
    with suppress(httpx.TransportError):
        job = processes.get(f"{service.address}{PATH}/jobs/{number}").json()
        return job if job["state"] in ("done", "failed") else None
    return None


def model_in_use(service):
    model = processes.get(f"{service.address}{PATH}/promise").json()["model"]
    return 0 if model is None else model["number"]


def wait_for(condition, every=0.1):
    """What the condition gives once it is true."""
    ends = time.monotonic() + PATIENCE
    while time.monotonic() < ends:
        found = condition()
        if found:
            return found
        time.sleep(every)
    raise AssertionError("it did not come true in time")
