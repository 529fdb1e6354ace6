"""The real thing: a head and two more nodes, workers, a node and the driver killed with -9."""

import logging
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import surefill as sf
from surefill.cluster import BlockedFactorModel, LocalBackend, RayBackend, fit_folder
from surefill.cluster.checkpoints import CheckpointedRuns
from surefill.cluster.ray_blocks import RayBlocks
from surefill.cluster.shards import write_shards
from surefill.completion import BayesianFactorModel
from surefill.completion.bayes.blocked_solver import BlockedSolver
from surefill.completion.bayes.row_block import blocks_of
from surefill.distributed import complete_folder

MODEL = BayesianFactorModel(rank=12, max_sweeps=20)
CELLS = 10_000


@pytest.fixture(scope="module")
def movielens(data_folder):
    return sf.datasets.load_movielens("ml-100k", path=data_folder / "ml-100k")


@pytest.fixture(scope="module")
def expected(movielens):
    return MODEL.fit(movielens)


def fitted(ray, seen, place, n_workers, during=None):
    """The fit, while ``during`` runs in another thread with the process ids of the workers."""
    n_blocks = write_shards(place / "shards", blocks_of(seen, CELLS))
    blocks = RayBlocks(ray, place / "shards", place / "states", n_blocks, n_workers)
    try:
        runs = CheckpointedRuns(blocks, place / "states", {}, False)
        solver = BlockedSolver.of(blocks, seen.shape, seen.unit, 10, MODEL.tol, MODEL.random_state, runs)
        meanwhile = threading.Thread(target=during or (lambda _: None), args=[blocks.processes()])
        meanwhile.start()
        *_, outcome = MODEL.grow(solver, MODEL.rank)
        meanwhile.join()
        return solver.completion(outcome, seen.shape[0]), blocks.traffic
    finally:
        blocks.close()


@pytest.mark.parametrize("n_workers", [1, 2, 4])
def test_the_result_is_that_of_the_table_on_real_data(connection, movielens, expected, tmp_path, n_workers):
    found, _ = fitted(connection, movielens, tmp_path, n_workers)
    assert np.abs(found.dense() - expected.dense()).max() < 1e-6


def test_killed_workers_come_back_and_nothing_is_lost(connection, movielens, expected, tmp_path, request):
    rng = np.random.default_rng()
    for attempt in range(request.config.getoption("--kills")):

        def kill(processes):
            time.sleep(rng.uniform(0.1, 2.0))
            os.kill(int(rng.choice(processes)), signal.SIGKILL)

        found, traffic = fitted(connection, movielens, tmp_path / str(attempt), 2, kill)
        assert np.abs(found.dense() - expected.dense()).max() < 1e-6
        assert traffic.restarts <= 1  # none where it died before its first call or after its last


def test_a_killed_node_is_done_without(nodes, connection, movielens, expected, tmp_path):
    extra = nodes.add()

    def kill(_):
        time.sleep(1.0)
        nodes.kill(extra)

    found, _ = fitted(connection, movielens, tmp_path, 4, kill)
    assert np.abs(found.dense() - expected.dense()).max() < 1e-6


DRIVER = """
import sys
import surefill as sf
from surefill.cluster import BlockedFactorModel, RayBackend
from surefill.completion import BayesianFactorModel
address, folder, data = sys.argv[1:]
seen = sf.datasets.load_movielens("ml-100k", path=data)
backend = RayBackend(address=address, workers=2, folder=folder, block_cells=10_000)
BlockedFactorModel(BayesianFactorModel(rank=12, max_sweeps=20), backend).fit(seen)
"""


def test_a_killed_driver_is_resumed(nodes, connection, movielens, expected, tmp_path, data_folder):
    arguments = [nodes.address, str(tmp_path), str(data_folder / "ml-100k")]
    source = str(Path(__file__).parents[2] / "src")
    driver = subprocess.Popen(
        [sys.executable, "-c", DRIVER, *arguments], env=os.environ | {"PYTHONPATH": source}, stderr=subprocess.DEVNULL
    )
    begun = tmp_path / "fit" / "checkpoint" / "fit-noise0.1.run"
    for _ in range(1200):
        if begun.exists() or driver.poll() is not None:
            break
        time.sleep(0.05)
    assert driver.poll() is None
    driver.kill()
    driver.wait()
    backend = RayBackend(address=nodes.address, workers=3, folder=tmp_path, resume=True, block_cells=CELLS)
    steps = []
    found = BlockedFactorModel(MODEL, backend).fit(movielens, steps.append)
    assert np.abs(found.dense() - expected.dense()).max() < 1e-6
    assert len(steps) < 26  # the first start's six sweeps were not done again


def test_a_folder_is_read_fitted_and_written_where_its_rows_are(nodes, connection, movielens, tmp_path):
    folder = tmp_path / "ratings"
    folder.mkdir()
    table = pd.DataFrame({"user": movielens.rows, "item": movielens.cols, "rating": movielens.values})
    for part in range(3):
        table[part::3].to_parquet(folder / f"{part}.parquet")
    model = BayesianFactorModel(rank=4, max_sweeps=4)
    ray = RayBackend(address=nodes.address, workers=2, folder=tmp_path / "states")
    written = []
    for name, backend in (("here", LocalBackend()), ("there", ray)):
        done = fit_folder(folder, tmp_path / name, backend, model=model, n_blocks=4)
        written.append(pd.concat([pd.read_parquet(path) for path in sorted((done.output / "rows").iterdir())]))
    pd.testing.assert_frame_equal(*written, rtol=1e-6)
    assert len(written[0]) == len(movielens.by_row)


# The whole main job on MovieLens 100K: reading, promise and writing on three nodes.


@pytest.fixture(scope="module")
def folder(movielens, tmp_path_factory):
    place = tmp_path_factory.mktemp("ratings")
    table = pd.DataFrame({"user": movielens.rows, "item": movielens.cols, "rating": movielens.values})
    for part in range(3):
        table[part::3].to_parquet(place / f"{part}.parquet")
    return place


@pytest.fixture(scope="module")
def seconds():
    """How long jobs took, by what was killed: told at the end, with ``--log-cli-level=INFO``."""
    taken = {}
    yield taken
    logging.getLogger(__name__).info("seconds: %s", {name: round(each, 1) for name, each in taken.items()})


def completed(folder, output, backend):
    """All cells that are kept, whoever completed them."""
    write = sf.jobs.WriteOptions(top_n=20, digits=12)
    done = complete_folder(folder, output, backend, tolerance=0.8, completion=MODEL, write=write, n_blocks=4)
    assert done.promised
    return read(done.output)


def read(output):
    parts = [pd.read_parquet(path) for path in sorted(output.iterdir())]
    return pd.concat(parts).set_index(["user", "item"]).sort_index()


@pytest.fixture(scope="module")
def local(folder, tmp_path_factory):
    return completed(folder, tmp_path_factory.mktemp("local") / "out", LocalBackend())


def backend_of(nodes, place, n_workers, **more):
    return RayBackend(address=nodes.address, workers=n_workers, folder=place / "job", **more)


@pytest.mark.parametrize("n_workers", [1, 2, 4])
def test_the_main_job_has_the_result_of_threads(nodes, connection, folder, local, tmp_path, n_workers, seconds):
    begun = time.perf_counter()
    found = completed(folder, tmp_path / "out", backend_of(nodes, tmp_path, n_workers))
    seconds[f"nothing, {n_workers} workers"] = time.perf_counter() - begun
    pd.testing.assert_frame_equal(found, local, rtol=1e-6, atol=1e-6)


def test_killed_workers_come_back_in_any_stage(
    nodes, connection, folder, local, tmp_path, monkeypatch, request, seconds
):
    rng, begun = np.random.default_rng(), []

    class KilledBlocks(RayBlocks):
        """Blocks one of whose workers is killed some seconds after the first call."""

        def __init__(self, *given, **more):
            super().__init__(*given, **more)
            victim = int(rng.choice(self.processes()))
            killer = threading.Timer(rng.uniform(0.5, 25.0), lambda: os.kill(victim, signal.SIGKILL))
            begun.append(killer)
            killer.start()

    monkeypatch.setattr("surefill.cluster.backend.RayBlocks", KilledBlocks)
    for attempt in range(max(1, request.config.getoption("--kills") // 3)):
        place = tmp_path / str(attempt)
        place.mkdir()
        start = time.perf_counter()
        found = completed(folder, place / "out", backend_of(nodes, place, 2))
        seconds[f"one of 2 workers, {attempt}"] = time.perf_counter() - start
        begun[-1].cancel()
        pd.testing.assert_frame_equal(found, local, rtol=1e-6, atol=1e-6)


def test_a_killed_node_in_the_main_job_is_done_without(nodes, connection, folder, local, tmp_path, seconds):
    extra, start = nodes.add(), time.perf_counter()
    killer = threading.Timer(8.0, lambda: nodes.kill(extra))
    killer.start()
    found = completed(folder, tmp_path / "out", backend_of(nodes, tmp_path, 4))
    seconds["a node of one of 4 workers"] = time.perf_counter() - start
    killer.join()
    pd.testing.assert_frame_equal(found, local, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("until", ["split.stage", "whole.stage", "game.stage"])
def test_a_killed_driver_of_the_main_job_is_resumed(nodes, connection, folder, tmp_path, until, seconds):
    """By the command line, from files to files."""
    arguments = ["complete", str(folder), "-o", str(tmp_path / "out") + "/", "--tolerance", "0.8", "--top-n", "20"]
    arguments += ["--backend", "ray", "--address", nodes.address, "--workers", "2"]
    arguments += ["--checkpoint", str(tmp_path / "job"), "--json"]
    command = [sys.executable, "-m", "surefill", *arguments]
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2] / "src")}
    start = time.perf_counter()
    driver = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for _ in range(3000):
        if (tmp_path / "job" / "job" / "checkpoint" / until).exists() or driver.poll() is not None:
            break
        time.sleep(0.05)
    assert driver.poll() is None
    driver.kill()
    driver.wait()
    before, again = time.perf_counter() - start, time.perf_counter()
    told = subprocess.run([*command, "--resume"], env=environment, capture_output=True, text=True, check=False)
    assert told.returncode == 0, told.stderr
    seconds[f"the driver after {until}"] = before
    seconds[f"resumed after {until}"] = time.perf_counter() - again
    whole = complete_folder(
        folder, tmp_path / "whole", LocalBackend(), tolerance=0.8, write=sf.jobs.WriteOptions(top_n=20)
    )
    pd.testing.assert_frame_equal(read(tmp_path / "out"), read(whole.output), rtol=1e-6, atol=1e-6)
