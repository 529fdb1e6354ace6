"""Tables out: what is written is read back, whole or not at all."""

from __future__ import annotations

import csv
import gzip
import sys

import numpy as np
import pyarrow.parquet
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from surefill.errors import InputError, MissingPackageError
from surefill.io import read_observations, write_table

same_folder = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
ALL_SUFFIXES = (".csv", ".tsv", ".csv.gz", ".tsv.gz", ".parquet", ".pq")


def block(rows, columns, values, **more):
    return {
        "row": np.array(rows),
        "column": np.array(columns),
        "value": np.array(values, dtype=float),
        **more,
    }


def read_csv(path, delimiter=","):
    with (gzip.open if path.suffix == ".gz" else open)(path, "rt", newline="", encoding="utf-8") as stream:
        return list(csv.reader(stream, delimiter=delimiter))


def test_the_text_is_plain(tmp_path):
    path = tmp_path / "out.csv"
    more = {
        "confidence": np.array([0.25, 1]),
        "keep": np.array([True, False]),
        "observed": np.array([False, True]),
    }
    lines = write_table(path, [block([7, 3], ['Dune, "2021"', "Été"], [4, np.nan], **more)])
    assert lines == 2
    assert (
        path.read_bytes()
        == (
            'row,column,value,confidence,keep,observed\n7,"Dune, ""2021""",4,0.25,true,false\n3,Été,,1,false,true\n'
        ).encode()
    )


@pytest.mark.parametrize("suffix", ALL_SUFFIXES)
def test_every_kind_is_read_back(tmp_path, suffix):
    path = tmp_path / f"out{suffix}"
    blocks = (block([k, k + 1], ["x,y", f"\t{k}"], [k / 4, k]) for k in range(3))
    assert write_table(path, blocks) == 6
    seen = read_observations(path)
    assert seen.n_draws == 6
    assert seen.col_labels.tolist()[-1] == "x,y"
    assert seen.values[[0, 2, 4]].tolist() == [0, 0.25, 0.5]
    assert [item.name for item in tmp_path.iterdir()] == [path.name]


def test_columns_keep_the_names_they_were_read_with(tmp_path):
    path = tmp_path / "out.csv"
    names = {"row": "userId", "column": "movieId", "value": "rating, stars"}
    write_table(path, [block([1], [2], [3])], columns=names)
    assert read_csv(path) == [["userId", "movieId", "rating, stars"], ["1", "2", "3"]]


def test_many_lines_in_one_block(tmp_path):
    count = 150_000
    path = tmp_path / "out.csv"
    given = block(np.arange(count), np.arange(count) % 7, np.arange(count) / 8)
    assert write_table(path, [given, given]) == 2 * count
    seen = read_observations(path)
    assert (len(seen), seen.n_draws) == (count, 2 * count)
    np.testing.assert_allclose(seen.values, given["value"], rtol=5e-6)


NAMES = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=6)
CELLS = st.tuples(NAMES, st.integers(-(2**63), 2**63 - 1), st.floats(-1e60, 1e60))


@same_folder
@given(st.lists(CELLS, min_size=1, max_size=8), st.sampled_from([",", "\t"]))
def test_agrees_with_the_csv_module(tmp_path, cells, delimiter):
    path = tmp_path / ("out.csv" if delimiter == "," else "out.tsv")
    rows, columns, values = zip(*cells, strict=True)
    write_table(path, [block(list(rows), list(columns), list(values))])
    _, *records = read_csv(path, delimiter)
    assert [(row, int(column)) for row, column, _ in records] == [cell[:2] for cell in cells]
    np.testing.assert_allclose([float(record[2]) for record in records], values, rtol=1e-14)


@same_folder
@given(st.lists(CELLS, min_size=1, max_size=8, unique_by=lambda cell: cell[1]), st.sampled_from(ALL_SUFFIXES))
def test_a_round_trip_keeps_labels_and_values(tmp_path, cells, suffix):
    named = [("x" + row.replace("\r", "") + "x", column, value) for row, column, value in cells]
    rows, columns, values = zip(*named, strict=True)
    path = tmp_path / f"out{suffix}"
    write_table(path, [block(list(rows), list(columns), list(values))])
    seen = read_observations(path)
    assert seen.row_labels[seen.rows].tolist() == list(rows)
    assert seen.col_labels[seen.cols].tolist() == list(columns)
    np.testing.assert_allclose(seen.values, values, rtol=1e-14)


def test_parquet_keeps_types_and_nan_is_null(tmp_path):
    path = tmp_path / "out.parquet"
    write_table(
        path,
        [
            block(["a"], [2], [np.nan], keep=np.array([True])),
            block(["b"], [3], [1 / 3], keep=np.array([False])),
        ],
    )
    table = pyarrow.parquet.read_table(path)
    assert table.to_pydict() == {
        "row": ["a", "b"],
        "column": [2, 3],
        "value": [None, 1 / 3],
        "keep": [True, False],
    }


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".parquet"])
@pytest.mark.parametrize("fault", [KeyboardInterrupt, RuntimeError])
def test_a_fault_midway_leaves_the_old_file_and_nothing_else(tmp_path, suffix, fault):
    path = tmp_path / f"out{suffix}"
    path.write_text("old")

    def blocks():
        yield block([1], [2], [3])
        assert len(list(tmp_path.iterdir())) == 2
        raise fault

    with pytest.raises(fault):
        write_table(path, blocks())
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_an_existing_file_is_replaced(tmp_path):
    path = tmp_path / "out.csv"
    path.write_text("old")
    write_table(path, [block([], [], [])])
    assert path.read_text() == "row,column,value\n"


@pytest.mark.parametrize(
    ("name", "blocks", "sentence"),
    [
        ("none/out.csv", [], r"none/out\.csv cannot be written: the folder .*none does not exist\.$"),
        ("out.xls", [], r"out\.xls must end in one of \.csv, \.tsv, \.csv\.gz, .*, or in / for a folder of parquet"),
        ("out", [], r"out must end in one of "),
        ("out.csv", [], r"out\.csv cannot be written: there are no blocks, so its columns are unknown\.$"),
        ("out.csv", [block([1], [2], [3, 4])], r"^a block must have columns of equal length; got "),
        ("out.csv", [{}], r"^a block must have columns of equal length; got "),
        (
            "out.csv",
            [block([1], [2], [3]), {"row": np.array([1])}],
            r"^every block must have the columns row, column, value; got row\.$",
        ),
    ],
)
def test_faults_are_one_sentence(tmp_path, name, blocks, sentence):
    with pytest.raises(InputError, match=sentence):
        write_table(tmp_path / name, blocks)
    assert list(tmp_path.iterdir()) == []


def test_folders_are_not_files(tmp_path):
    (tmp_path / "out.csv").mkdir()
    with pytest.raises(InputError, match="is a folder; a file name is expected"):
        write_table(tmp_path / "out.csv", [block([1], [2], [3])])


def test_a_full_or_forbidden_place_is_said(tmp_path, monkeypatch):
    def refuse(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", refuse)
    with pytest.raises(InputError, match=r"out.csv cannot be written: no space left on device\.$"):
        write_table(tmp_path / "out.csv", [block([1], [2], [3])])
    assert list(tmp_path.iterdir()) == []


def test_without_pyarrow(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingPackageError, match=r"writing parquet files needs .* pip install pyarrow"):
        write_table(tmp_path / "out.parquet", [block([1], [2], [3])])
