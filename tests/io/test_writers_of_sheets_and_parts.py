"""Excel sheets and folders of parquet files: whole or not at all, read back, and refused where they cannot be."""

from __future__ import annotations

import sys

import numpy as np
import pyarrow.parquet
import pytest

from surefill.errors import InputError, MissingPackageError
from surefill.io import excel_writer, parquet_writer, read_observations, write_table
from surefill.io.writers import bytes_per_line


def block(rows, columns, values, **more):
    return {"row": np.array(rows), "column": np.array(columns), "value": np.array(values, dtype=float), **more}


def parts_of(folder):
    return sorted(path.name for path in folder.iterdir())


def test_exact_numbers_are_read_back_to_the_bit(tmp_path):
    values = np.random.default_rng(0).normal(size=1000) * 10.0 ** np.arange(-190, 60).repeat(4)
    write_table(tmp_path / "out.csv", [block(np.arange(1000), np.zeros(1000, int), values)])
    np.testing.assert_array_equal(read_observations(tmp_path / "out.csv").values, values)


def test_wide_blocks_are_written_like_narrow_ones(tmp_path, monkeypatch):
    monkeypatch.setattr("surefill.io.writers.CELLS_AT_ONCE", 5)
    wide = {f"c{k}": np.arange(4) + k for k in range(8)}
    assert write_table(tmp_path / "out.csv", [wide, wide]) == 8
    assert (tmp_path / "out.csv").read_text().splitlines()[1:3] == ["0,1,2,3,4,5,6,7", "1,2,3,4,5,6,7,8"]


class TestParts:
    @pytest.fixture(autouse=True)
    def _small_parts(self, monkeypatch):
        monkeypatch.setattr(parquet_writer, "LINES_PER_PART", 4)

    def test_a_folder_holds_whole_blocks_in_order(self, tmp_path):
        blocks = (block([k, k, k], [1, 2, 3], [k, k, k]) for k in range(5))
        assert write_table(f"{tmp_path / 'out'}/", blocks) == 15
        assert parts_of(tmp_path / "out") == [f"part-0000{k}.parquet" for k in range(3)]
        lines = [pyarrow.parquet.read_table(path).num_rows for path in sorted((tmp_path / "out").iterdir())]
        assert lines == [6, 6, 3]
        assert parts_of(tmp_path) == ["out"]
        seen = read_observations(tmp_path / "out")
        assert seen.shape == (5, 3)
        np.testing.assert_array_equal(seen.values, np.repeat(np.arange(5.0), 3))

    def test_older_parts_are_replaced(self, tmp_path):
        folder = tmp_path / "out"
        write_table(f"{folder}/", (block([k] * 4, range(4), [k] * 4) for k in range(3)))
        assert write_table(folder, [block([7], [7], [7])]) == 1
        assert parts_of(folder) == ["part-00000.parquet"]
        assert parts_of(tmp_path) == ["out"]

    @pytest.mark.parametrize("fault", [KeyboardInterrupt, RuntimeError])
    @pytest.mark.parametrize("there_before", [False, True])
    def test_a_fault_midway_leaves_what_was_there(self, tmp_path, fault, there_before):
        folder = tmp_path / "out"
        if there_before:
            write_table(f"{folder}/", [block([1], [2], [3])])
        before = {path.name: path.read_bytes() for path in folder.iterdir()} if there_before else None

        def blocks():
            for k in range(3):
                yield block([k] * 4, range(4), [k] * 4)
            raise fault

        with pytest.raises(fault):
            write_table(f"{folder}/", blocks())
        assert parts_of(tmp_path) == (["out"] if there_before else [])
        assert not there_before or {path.name: path.read_bytes() for path in folder.iterdir()} == before

    def test_a_folder_that_cannot_be_put_in_place_leaves_the_old_one(self, tmp_path, monkeypatch):
        import os

        folder, replace = tmp_path / "out", os.replace
        write_table(f"{folder}/", [block([1], [2], [3])])

        def refuse(source, target):
            if str(source).endswith(".part"):
                raise OSError(28, "No space left on device")
            replace(source, target)

        monkeypatch.setattr("os.replace", refuse)
        with pytest.raises(InputError, match=r"out cannot be written: no space left on device\.$"):
            write_table(f"{folder}/", [block([8, 9], [2, 2], [3, 3])])
        assert read_observations(folder).shape == (1, 1)
        assert parts_of(tmp_path) == ["out"]

    def test_a_folder_with_other_things_is_refused(self, tmp_path):
        (tmp_path / "out").mkdir()
        (tmp_path / "out" / "diary.txt").write_text("mine")
        with pytest.raises(InputError, match=r"out is a folder that holds other things, such as diary\.txt; "):
            write_table(tmp_path / "out", [block([1], [2], [3])])
        with pytest.raises(InputError, match=r"diary\.txt is a file; a folder for parquet files is expected"):
            write_table(f"{tmp_path / 'out' / 'diary'}.txt/", [block([1], [2], [3])])
        assert (tmp_path / "out" / "diary.txt").read_text() == "mine"

    def test_a_folder_without_parts_is_not_read(self, tmp_path):
        with pytest.raises(InputError, match="is a folder without parquet files"):
            read_observations(tmp_path)

    def test_parts_of_other_columns_are_refused(self, tmp_path):
        write_table(tmp_path / "a.parquet", [block([1, 1], [1, 2], [3, 4])])
        write_table(tmp_path / "b.parquet", [{"x": np.array([1]), "y": np.array([2])}])
        with pytest.raises(InputError, match=r"b\.parquet"):
            read_observations(tmp_path)


class TestExcel:
    @pytest.fixture(autouse=True)
    def _openpyxl(self):
        pytest.importorskip("openpyxl")

    def cells(self, path):
        from openpyxl import load_workbook

        book = load_workbook(path)
        (sheet,) = book.worksheets
        return [[(cell.value, cell.data_type) for cell in line] for line in sheet.iter_rows()]

    def test_a_sheet_holds_numbers_text_and_truth(self, tmp_path):
        keep = np.array([True, False])
        given = block(["=1+1", "ann"], [7, 8], [2.5, np.nan], keep=keep)
        assert write_table(tmp_path / "out.xlsx", [given, given], columns={"row": "user"}) == 4
        header, first, second, *_ = self.cells(tmp_path / "out.xlsx")
        assert [name for name, _ in header] == ["user", "column", "value", "keep"]
        assert first == [("=1+1", "s"), (7, "n"), (2.5, "n"), (True, "b")]
        assert second == [("ann", "s"), (8, "n"), (None, "n"), (False, "b")]
        assert parts_of(tmp_path) == ["out.xlsx"]

    def test_what_excel_cannot_hold_is_said(self, tmp_path, monkeypatch):
        path = tmp_path / "out.xlsx"
        with pytest.raises(InputError, match=r"label 'a\\x00b' cannot be written to Excel"):
            write_table(path, [block(["a\0b"], [1], [2])])
        monkeypatch.setattr(excel_writer, "MOST_EXCEL_LINES", 4)
        assert write_table(path, [block([1, 2, 3], [1, 1, 1], [1, 2, 3])]) == 3
        old = path.read_bytes()
        with pytest.raises(InputError, match="at most 3 lines under its header and 16,384 columns"):
            write_table(path, [block([1, 2], [1, 1], [1, 2])] * 2)
        assert path.read_bytes() == old
        assert parts_of(tmp_path) == ["out.xlsx"]

    def test_a_fault_midway_leaves_nothing(self, tmp_path):
        def blocks():
            yield block([1], [2], [3])
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            write_table(tmp_path / "out.xlsx", blocks())
        assert parts_of(tmp_path) == []


def test_without_openpyxl(tmp_path, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(MissingPackageError, match=r"writing Excel files needs .* pip install openpyxl"):
        write_table(tmp_path / "out.xlsx", [block([1], [2], [3])])


@pytest.mark.parametrize("name", ["out.csv", "out.csv.gz", "out.parquet", "out/"])
def test_bytes_per_line_are_those_of_the_file(tmp_path, name):
    given = block(np.arange(5000), np.arange(5000) % 17, np.random.default_rng(0).normal(size=5000))
    expected = bytes_per_line(f"{tmp_path}/{name}", given)
    assert parts_of(tmp_path) == []
    write_table(f"{tmp_path}/{name}", [given])
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) / 5000 == pytest.approx(expected, rel=0.01)
