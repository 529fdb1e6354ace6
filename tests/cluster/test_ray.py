"""The real thing: a head and two more nodes, workers, a node and the driver killed with -9."""

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
