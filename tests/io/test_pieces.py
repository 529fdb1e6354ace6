import numpy as np
import pytest

import surefill as sf
from surefill.errors import InputError
from surefill.io import delimited, readers


@pytest.fixture
def small_pieces(monkeypatch):
    """Files are read in pieces of a few lines."""
    monkeypatch.setattr(delimited, "PIECE_BYTES", 200)
    monkeypatch.setattr(readers, "BATCH_LINES", 40)


def lines_of(ids, n=300):
    rng = np.random.default_rng(0)
    cells = rng.choice(40 * 30, n, replace=False)
    return [(ids[cell // 30], f"i{cell % 30}", rng.integers(1, 11) / 2) for cell in cells]


def written(folder, lines, header="user,item,rating"):
    file = folder / "ratings.csv"
    file.write_text("\n".join([header, *(",".join(map(str, line)) for line in lines)]) + "\n")
    return file


def assert_same(first, second):
    for name in ("rows", "cols", "values", "row_labels", "col_labels"):
        np.testing.assert_array_equal(getattr(first, name), getattr(second, name))
        assert getattr(first, name).dtype == getattr(second, name).dtype
    assert (first.skipped, first.bounds, first.names) == (second.skipped, second.bounds, second.names)


@pytest.mark.parametrize("ids", [list(range(100, 140)), [f"u{k}" for k in range(40)], [*range(39), "x"]])
def test_a_file_read_in_pieces_is_the_file_read_whole(tmp_path, monkeypatch, ids):
    file = written(tmp_path, lines_of(ids))
    whole = sf.read_observations(file)
    monkeypatch.setattr(delimited, "PIECE_BYTES", 200)
    assert_same(sf.read_observations(file), whole)


def test_values_that_are_missing_are_skipped_in_pieces_too(tmp_path, small_pieces):
    lines = lines_of(range(40))
    lines[5] = (*lines[5][:2], "NA")
    seen = sf.read_observations(written(tmp_path, lines), skip_missing=True)
    assert (len(seen), seen.skipped) == (299, 1)


def test_errors_name_the_line_of_the_file(tmp_path, small_pieces):
    lines = lines_of(range(40))
    lines[200] = (*lines[200][:2], "much")
    with pytest.raises(InputError, match=r"line 202: the value 'much'"):
        sf.read_observations(written(tmp_path, lines))
    with pytest.raises(InputError, match=r"line 202: 3 fields are expected"):
        sf.read_observations(written(tmp_path, [*lines[:200], (1, 2, 3, 4), *lines[201:]]))


def test_a_decimal_comma_far_down_is_read_as_in_the_whole_file(tmp_path, small_pieces):
    lines = [(row, col, round(value)) for row, col, value in lines_of(range(40))]
    lines[250] = (*lines[250][:2], "3,25")
    file = tmp_path / "ratings.csv"
    file.write_text("\n".join(["user;item;rating", *(";".join(map(str, line)) for line in lines)]))
    assert 3.25 in sf.read_observations(file).values


@pytest.mark.parametrize("text", [False, True])
def test_parquet_read_in_batches_is_the_table_read_whole(tmp_path, monkeypatch, text):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    rows, cols, values = zip(*lines_of([f"u{k}" if text else k for k in range(40)]), strict=True)
    table = pyarrow.table({"user": rows, "item": cols, "rating": values})
    parquet.write_table(table, tmp_path / "ratings.parquet")
    whole = sf.read_observations(tmp_path / "ratings.parquet")
    monkeypatch.setattr(readers, "BATCH_LINES", 40)
    assert_same(sf.read_observations(tmp_path / "ratings.parquet"), whole)
