"""The whole main job on row blocks: the same result however rows are parted, whoever dies, and wherever it resumes."""

import numpy as np
import pandas as pd
import pytest

import surefill as sf
from surefill.cluster import LocalBackend, shard_folder_of_files
from surefill.cluster.checkpoints import CheckpointedRuns
from surefill.cluster.ray_blocks import RayBlocks
from surefill.completion import BayesianFactorModel
from surefill.confidence import CoverageGame
from surefill.distributed import complete_folder
from surefill.distributed.answer_block import MainBlock
from surefill.distributed.job import FolderJob
from surefill.jobs import WriteOptions
from surefill.losses import SQUARED

from .fake_ray import FakeRay

MODEL = BayesianFactorModel(rank=3, max_sweeps=6)
WRITE = WriteOptions(digits=12)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Ratings of a 200 x 90 matrix of rank 2, in three files."""
    rng = np.random.default_rng(0)
    left, right = rng.normal(size=(200, 2)), rng.normal(size=(90, 2))
    i, j = np.nonzero(rng.random((200, 90)) < np.outer(rng.uniform(0.3, 1, 200), rng.uniform(0.2, 1, 90)))
    y = np.clip(np.round(3 + np.einsum("tk,tk->t", left[i], right[j]) + rng.normal(0, 0.4, len(i))), 1, 5)
    place = tmp_path_factory.mktemp("ratings")
    for part in range(3):
        pd.DataFrame({"user": i, "item": j, "rating": y})[part::3].to_parquet(place / f"{part}.parquet")
    return place


@pytest.fixture(scope="module", autouse=True)
def many():
    """The small table takes the steps of one of many cells."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("surefill.distributed.few_cells.FEW_CELLS", 0)
        yield


def read(output):
    """What was written, cell by cell."""
    parts = [pd.read_parquet(path) for path in sorted(output.iterdir())]
    return pd.concat(parts).set_index(["user", "item"]).sort_index()


@pytest.fixture(scope="module")
def done(folder, tmp_path_factory):
    place = tmp_path_factory.mktemp("done")
    return complete_folder(
        folder, place / "out", LocalBackend(), tolerance=0.6, completion=MODEL, write=WRITE, n_blocks=4
    )


@pytest.fixture(scope="module")
def expected(done):
    return read(done.output)


def test_what_is_promised_is_told_and_written(done, expected):
    assert done.promised
    assert done.rows, done.columns == (200, 90)
    assert done.lines == len(expected)
    assert done.filled_cells == (expected["keep"] & ~expected["observed"]).sum() > 0
    assert expected["observed"].sum() == done.observed_cells
    assert abs(done.filled_cells - done.n_filled) < 0.1 * done.filled_cells
    assert "at most 0.6" in done.guarantee


def test_more_is_set_aside_where_losses_may_be_far_above_the_tolerance(tmp_path):
    """As of one table: 40 (L / tolerance) log(1 / delta) cells, L = 4 and tolerance 0.2, not a fifth of the 7,200."""
    rng = np.random.default_rng(5)
    i, j = np.nonzero(rng.random((100, 80)) < 0.9)
    y = np.clip(np.round(3 + rng.normal(0, 1, 100)[i] + rng.normal(0, 0.5, len(i))), 1, 5)
    table = pd.DataFrame({"user": i, "item": j, "rating": y})
    (tmp_path / "ratings").mkdir()
    table.to_parquet(tmp_path / "ratings" / "0.parquet")
    about = {"tolerance": 0.2, "completion": BayesianFactorModel(rank=1, max_sweeps=4)}
    read = sf.io.ReadOptions(bounds=(1.0, 5.0))
    done = complete_folder(tmp_path / "ratings", tmp_path / "out", LocalBackend(), read=read, n_blocks=2, **about)
    seen = sf.Observations.from_table(table, bounds=(1.0, 5.0))
    in_memory = sf.PartialCompleter(**about).fit(seen).result_.selection
    expected = 40 * 4 / 0.2 * np.log(1 / 0.05)
    for held_out in (done.held_out_entries, in_memory.n_held_out):
        assert abs(held_out - expected) < 5 * np.sqrt(expected)


@pytest.mark.parametrize("n_blocks", [1, 7, 64])
def test_the_number_of_blocks_does_not_matter(folder, expected, tmp_path, n_blocks):
    other = complete_folder(
        folder, tmp_path / "out", LocalBackend(), tolerance=0.6, completion=MODEL, write=WRITE, n_blocks=n_blocks
    )
    pd.testing.assert_frame_equal(read(other.output), expected, rtol=1e-6, atol=1e-6)


def run(ray, folder, place, n_workers=2, resume=False, progress=None, blocks_of=RayBlocks):
    """The job on workers that may die."""
    table = shard_folder_of_files(folder, place / "blocks", LocalBackend(), n_blocks=4)
    job = FolderJob(table, None, MODEL, CoverageGame(), SQUARED, 0.6, 0.05, "unobserved", 1.0, 0, progress)
    blocks = blocks_of(ray, table.folder, place / "states", table.n_blocks, n_workers, kind=MainBlock)
    runs = CheckpointedRuns(blocks, place / "states", job.settings, resume)
    return read(job.run(blocks, runs, WRITE, place / "out").output), blocks


@pytest.mark.parametrize("n_workers", [1, 3])
def test_the_number_of_workers_does_not_matter_by_a_bit(folder, expected, tmp_path, n_workers):
    found, _ = run(FakeRay(), folder, tmp_path, n_workers)
    pd.testing.assert_frame_equal(found, expected, check_exact=True)


def test_workers_that_die_in_any_stage_change_nothing(folder, expected, tmp_path, monkeypatch):
    monkeypatch.setattr("surefill.cluster.ray_blocks.time.sleep", lambda _: None)
    monkeypatch.setattr("surefill.cluster.ray_blocks.MOST_DEATHS", 10**6)
    ray = FakeRay(chance=0.015, seed=1)
    found, blocks = run(ray, folder, tmp_path)
    assert blocks.traffic.restarts > 5
    pd.testing.assert_frame_equal(found, expected, check_exact=True)


class EndedError(Exception):
    """The driver ends."""


class EndingBlocks(RayBlocks):
    """Blocks whose driver ends at a method's call."""

    ends_at = ""

    def _call(self, method, *rest):
        if method == self.ends_at:
            raise EndedError
        return super()._call(method, *rest)


@pytest.mark.parametrize("method", ["second_in_bins", "measure_fold", "rows_of_play", "fold_sample", "write_cells"])
def test_a_job_that_was_ended_goes_on_after_its_last_stage(folder, expected, tmp_path, method, monkeypatch):
    monkeypatch.setattr(EndingBlocks, "ends_at", method)
    with pytest.raises(EndedError):
        run(FakeRay(), folder, tmp_path, blocks_of=EndingBlocks)
    monkeypatch.setattr(EndingBlocks, "ends_at", "halve" if method != "second_in_bins" else "")
    found, _ = run(FakeRay(), folder, tmp_path, resume=True, blocks_of=EndingBlocks)
    pd.testing.assert_frame_equal(found, expected, check_exact=True)


def test_another_tolerance_or_aim_is_settled_without_another_fit(folder, tmp_path):
    observed = complete_folder(
        folder, tmp_path / "out", LocalBackend(), tolerance=0.6, completion=MODEL, aim="observed", n_blocks=2
    )
    assert observed.promised
    assert observed.n_filled is None


def test_what_a_folder_cannot_be_completed_to_is_said(folder, tmp_path):
    with pytest.raises(sf.InputError, match="long tables of all its rows"):
        complete_folder(folder, tmp_path / "out", LocalBackend(), write=WriteOptions(layout="wide"))


@pytest.mark.parametrize("output", ["ratings", ".", "ratings/inside"])
def test_what_is_read_is_never_written_over(folder, tmp_path, output, monkeypatch):
    (tmp_path / "ratings").mkdir()
    for path in folder.iterdir():
        (tmp_path / "ratings" / path.name).write_bytes(path.read_bytes())
    monkeypatch.chdir(tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*.parquet")}
    with pytest.raises(sf.InputError):
        complete_folder("ratings", output, LocalBackend(), tolerance=0.6, completion=MODEL, n_blocks=2)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*.parquet")} == before


class TestFewCells:
    """Tables whose risk is learnt on the machine that asks, from several folds."""

    @pytest.fixture(autouse=True)
    def few(self, monkeypatch):
        monkeypatch.setattr("surefill.distributed.few_cells.FEW_CELLS", 2_000_000)

    def completed(self, folder, place, n_blocks=4):
        about = {"tolerance": 0.6, "completion": MODEL, "write": WRITE, "n_blocks": n_blocks}
        return complete_folder(folder, place, LocalBackend(), **about)

    @pytest.fixture
    def few_expected(self, folder, tmp_path):
        return read(self.completed(folder, tmp_path / "expected").output)

    def test_the_risk_is_learnt_from_the_losses_of_all_folds(self, folder, expected, few_expected):
        assert (expected["risk"] - few_expected["risk"]).abs().max() > 0.01

    def test_as_much_is_filled_as_of_one_table(self, folder, tmp_path):
        done = self.completed(folder, tmp_path / "out")
        whole = pd.concat([pd.read_parquet(path) for path in sorted(folder.iterdir())])
        completer = sf.PartialCompleter(tolerance=0.6, completion=MODEL).fit(sf.Observations.from_table(whole))
        in_memory = completer.result_.selection
        assert in_memory.n_filled > 0
        assert 0.8 < done.n_filled / in_memory.n_filled < 1.25  # other coins
        assert abs(done.held_out_error - in_memory.held_out_error) < 0.1

    def test_neither_workers_nor_blocks_matter(self, folder, few_expected, tmp_path):
        (tmp_path / "workers").mkdir()
        found, _ = run(FakeRay(), folder, tmp_path / "workers", 3)
        pd.testing.assert_frame_equal(found, few_expected, check_exact=True)
        other = self.completed(folder, tmp_path / "blocks", 7)
        pd.testing.assert_frame_equal(read(other.output), few_expected, rtol=1e-6, atol=1e-6)

    def test_dead_workers_and_an_ended_driver_change_nothing(self, folder, few_expected, tmp_path, monkeypatch):
        monkeypatch.setattr("surefill.cluster.ray_blocks.time.sleep", lambda _: None)
        monkeypatch.setattr("surefill.cluster.ray_blocks.MOST_DEATHS", 10**6)
        monkeypatch.setattr(EndingBlocks, "ends_at", "take_row_noise")
        with pytest.raises(EndedError):
            run(FakeRay(chance=0.02, seed=1), folder, tmp_path, blocks_of=EndingBlocks)
        monkeypatch.setattr(EndingBlocks, "ends_at", "halve")
        ray = FakeRay(chance=0.1, seed=2)
        found, blocks = run(ray, folder, tmp_path, resume=True, blocks_of=EndingBlocks)
        assert blocks.traffic.restarts > 0
        pd.testing.assert_frame_equal(found, few_expected, check_exact=True)
