"""Folders of files as row blocks: every cell once, labels as one reader has them, and the fit of the table."""

import numpy as np
import pandas as pd
import pytest

import surefill as sf
from surefill.cluster import LocalBackend, fit_folder, shard_folder_of_files
from surefill.cluster.folder_shards import ShardedTable, block_of, label_hashes
from surefill.cluster.shards import read_shard, shard_folder
from surefill.completion import BayesianFactorModel


@pytest.fixture
def files(tmp_path):
    """Three files, one of them csv, in which rows are scattered and one cell is seen in two."""
    seen = sf.datasets.make_low_rank((40, 30), rank=2, n_draws=900, noise=0.1, random_state=0).observations
    table = pd.DataFrame({"user": 100 - seen.rows, "item": [f"f{j}" for j in seen.cols], "rating": seen.values})
    folder = tmp_path / "ratings"
    (folder / "deeper").mkdir(parents=True)
    table[::3].to_parquet(folder / "a.parquet")
    table[1::3].to_parquet(folder / "deeper" / "b.parquet")
    table[2::3].to_csv(folder / "c.csv", index=False)
    table[:1].assign(rating=0.25).to_csv(folder / "d.csv", index=False)
    return folder, pd.concat([table, table[:1].assign(rating=0.25)])


def test_blocks_hold_every_cell_once_and_number_labels_in_place(files, tmp_path):
    folder, lines = files
    table = shard_folder_of_files(folder, tmp_path / "blocks", LocalBackend(), n_blocks=4)
    expected = lines.groupby(["user", "item"])["rating"].mean()
    assert table.n_cells == len(expected)
    assert table.n_rows == lines["user"].nunique()
    assert table.col_labels.tolist() == sorted(lines["item"].unique())
    assert table.bounds == (lines["rating"].min(), lines["rating"].max())
    found = {}
    for index in range(table.n_blocks):
        cells = read_shard(table.folder, index)
        labels = np.load(shard_folder(table.folder, index) / "row_labels.npy")
        assert (block_of(labels, 4) == index).all()
        rows, cols = labels[cells.row_ids[cells.row_of_cell]], table.col_labels[cells.cols]
        found |= dict(zip(zip(rows.tolist(), cols.tolist(), strict=True), cells.values.tolist(), strict=True))
    assert found.keys() == set(expected.index)
    np.testing.assert_allclose([found[cell] for cell in expected.index], expected.to_numpy())


def test_rows_have_the_same_numbers_in_any_number_of_blocks_and_files_in_any_order(files, tmp_path):
    folder, lines = files
    (tmp_path / "other").mkdir()
    lines.sample(frac=1, random_state=0).to_csv(tmp_path / "other" / "all.csv", index=False)
    found = []
    for source, n_blocks in ((folder, 4), (folder, 3), (tmp_path / "other", 8)):
        place = tmp_path / f"blocks-{n_blocks}"
        table = shard_folder_of_files(source, place, LocalBackend(), n_blocks=n_blocks)
        labels = [np.load(shard_folder(place, index) / "row_labels.npy") for index in range(n_blocks)]
        cells = [read_shard(place, index) for index in range(n_blocks)]
        cols, values = (np.concatenate([getattr(each, name) for each in cells]) for name in ("cols", "values"))
        found.append((np.concatenate(labels), np.concatenate([np.diff(each.starts) for each in cells]), cols, values))
        stored = ShardedTable.stored(place)
        assert (stored.shape, stored.n_cells, stored.bounds) == (table.shape, table.n_cells, table.bounds)
    for other in found[1:]:
        for one, two in zip(found[0][:3], other[:3], strict=True):
            np.testing.assert_array_equal(one, two)
        np.testing.assert_allclose(found[0][3], other[3], rtol=1e-12)  # means of repeats round


def read_back(output):
    """Predictions from what was written, by label."""
    rows = pd.concat([pd.read_parquet(path) for path in sorted((output / "rows").glob("*.parquet"))])
    return rows.set_index("user").sort_index(), pd.read_parquet(output / "columns.parquet").set_index("item")


def test_a_folder_in_one_block_has_the_fit_of_its_table(files, tmp_path):
    folder, lines = files
    model = BayesianFactorModel(rank=3)
    done = fit_folder(folder, tmp_path / "fit", LocalBackend(), model=model, n_blocks=1)
    users, items = np.unique(lines["user"]), np.unique(lines["item"])
    users = users[np.argsort(label_hashes(users), kind="stable")]  # rows in the order of their hashes
    numbers = dict(zip(users.tolist(), range(len(users)), strict=True))
    seen = sf.Observations(lines["user"].map(numbers), np.searchsorted(items, lines["item"]), lines["rating"])
    fitted = model.fit(seen)
    rows, cols = read_back(done.output)
    order = np.argsort(users)
    assert rows.index.tolist() == users[order].tolist()
    names = ["factor_1", "factor_2", "factor_3"]
    value = (
        rows["bias"].to_numpy()[:, None] + cols["bias"].to_numpy() + rows[names].to_numpy() @ cols[names].T.to_numpy()
    )
    unit = seen.unit.from_unit(np.clip(done.mean + value, -1, 1))
    np.testing.assert_allclose(unit, fitted.block(order, np.arange(len(items))), atol=1e-6)


def test_blocks_predict_as_well_and_choose_a_rank(files, tmp_path):
    folder, _ = files
    done = fit_folder(folder, tmp_path / "fit", LocalBackend(), n_blocks=4)
    rows, cols = read_back(done.output)
    assert (done.rows, done.columns, len(rows), len(cols)) == (40, 30, 40, 30)
    assert done.rank == 10  # too few cells to choose by


def test_what_cannot_be_read_is_said(tmp_path):
    (tmp_path / "notes.txt").write_text("nothing")
    with pytest.raises(sf.InputError, match="has no files that are read"):
        shard_folder_of_files(tmp_path, tmp_path / "blocks", LocalBackend())
