"""Calls, checkpoints and deaths without Ray: workers are objects here, and are lost at will."""

from types import SimpleNamespace

import numpy as np
import pytest

import surefill as sf
from surefill.cluster import BlockedFactorModel, LocalBackend, RayBackend
from surefill.cluster.block_owner import Behind, BlockOwner, Call
from surefill.cluster.checkpoints import CheckpointedRuns
from surefill.cluster.ray_blocks import RayBlocks
from surefill.cluster.shards import read_shard, shard_folder, write_shards
from surefill.completion import BayesianFactorModel
from surefill.completion.bayes.blocked_solver import BlockedSolver
from surefill.completion.bayes.row_block import blocks_of

from .fake_ray import FakeRay

MODEL = BayesianFactorModel(rank=12, max_sweeps=12)
CELLS = 250


@pytest.fixture(scope="module")
def seen():
    return sf.datasets.make_low_rank((60, 40), rank=2, n_draws=1500, noise=0.1, random_state=1).observations


@pytest.fixture(scope="module")
def expected(seen):
    return MODEL.fit(seen)


def fitted(ray, seen, place, n_workers=2, resume=False, progress=None):
    n_blocks = write_shards(place / "shards", blocks_of(seen, CELLS))
    blocks = RayBlocks(ray, place / "shards", place / "states", n_blocks, n_workers)
    runs = CheckpointedRuns(blocks, place / "states", {"seed": 0}, resume)
    solver = BlockedSolver.of(blocks, seen.shape, seen.unit, 10, MODEL.tol, MODEL.random_state, runs)
    *_, outcome = MODEL.grow(solver, MODEL.rank, progress)
    return solver.completion(outcome, seen.shape[0]), blocks


@pytest.fixture(scope="module")
def quiet(seen, tmp_path_factory):
    """The fit without any loss, and its sweeps."""
    steps = []
    return fitted(FakeRay(), seen, tmp_path_factory.mktemp("quiet"), progress=steps.append)[0], len(steps)


@pytest.mark.parametrize("n_workers", [1, 3])
def test_the_result_is_that_of_the_table_whatever_the_number_of_workers(seen, expected, tmp_path, n_workers):
    found, blocks = fitted(FakeRay(), seen, tmp_path, n_workers)
    assert len(blocks) == 4
    np.testing.assert_allclose(found.dense(), expected.dense(), atol=1e-9)
    assert (found.status, found.rank) == (expected.status, expected.rank)


@pytest.mark.parametrize("seed", range(2))
def test_workers_that_die_at_any_call_change_nothing(seen, quiet, tmp_path, monkeypatch, seed):
    monkeypatch.setattr("surefill.cluster.ray_blocks.time.sleep", lambda _: None)
    monkeypatch.setattr("surefill.cluster.ray_blocks.MOST_DEATHS", 10**6)
    ray = FakeRay(chance=0.1, seed=seed)
    found, blocks = fitted(ray, seen, tmp_path / "lossy")
    assert ray.deaths > 10
    assert blocks.traffic.restarts > 10
    np.testing.assert_array_equal(found.dense(), quiet[0].dense())


class InterruptedFitError(Exception):
    """The driver ends."""


@pytest.mark.parametrize("after", [7, 12, 20])
def test_a_fit_that_was_ended_goes_on_where_it_was(seen, quiet, tmp_path, after):
    steps = []

    def stop(progress):
        steps.append(progress)
        if len(steps) == after:
            raise InterruptedFitError

    with pytest.raises(InterruptedFitError):
        fitted(FakeRay(), seen, tmp_path / "ended", progress=stop)
    again = []
    found, _ = fitted(FakeRay(), seen, tmp_path / "ended", resume=True, progress=again.append)
    np.testing.assert_array_equal(found.dense(), quiet[0].dense())
    assert len(again) == quiet[1] - after  # no sweep was done twice


def test_a_checkpoint_of_another_fit_is_refused(seen, tmp_path):
    blocks = SimpleNamespace(saved={})
    CheckpointedRuns(blocks, tmp_path, {"rank": 10}, False)
    with pytest.raises(sf.InputError, match="of another rank"):
        CheckpointedRuns(blocks, tmp_path, {"rank": 20}, True)


def test_a_call_is_done_once_and_not_before_its_predecessor(seen, tmp_path):
    n_blocks = write_shards(tmp_path, blocks_of(seen, CELLS))
    owner = BlockOwner(str(tmp_path), str(tmp_path), 0, n_blocks, n_blocks)
    first = Call(1, 0, "count_rows", False)
    assert owner.run(first, ("whole",)) == owner.run(first, ("whole",))
    assert owner.run(Call(3, 2, "count_rows", False), ("whole",)) == Behind(1)


def test_a_missing_block_is_named(seen, tmp_path):
    write_shards(tmp_path, blocks_of(seen, CELLS))
    (shard_folder(tmp_path, 1) / "values.npy").unlink()
    with pytest.raises(sf.InputError, match="block 1 of the table is missing"):
        read_shard(tmp_path, 1)


def test_a_worker_that_dies_again_and_again_ends_the_fit_with_a_sentence(seen, tmp_path, monkeypatch):
    monkeypatch.setattr("surefill.cluster.ray_blocks.time.sleep", lambda _: None)
    monkeypatch.setattr("surefill.cluster.ray_blocks.PATIENCE", 0.0)
    with pytest.raises(sf.InputError, match="has been away"):
        fitted(FakeRay(chance=1.0), seen, tmp_path)


def test_what_is_not_split_by_rows_is_refused(seen):
    model = BlockedFactorModel(MODEL, LocalBackend())
    with pytest.raises(sf.InputError, match="times are not fitted"):
        model.fit(seen.with_times(np.arange(len(seen))))
    with pytest.raises(sf.InputError, match="needs a folder"):
        RayBackend(address="10.0.0.1:6379")
    with pytest.raises(sf.InputError, match="workers"):
        RayBackend(workers=0)


def test_a_fit_goes_on_from_another_in_blocks_too(seen):
    first = MODEL.fit(seen.select(seen.rows % 3 != 1))
    blocked = BlockedFactorModel(MODEL, LocalBackend(CELLS)).fit_from(first, seen)
    np.testing.assert_allclose(blocked.dense(), MODEL.fit_from(first, seen).dense(), atol=1e-9)
