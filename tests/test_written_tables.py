"""Tables of completed matrices: which cells, how many digits, long or wide, and how large they will be."""

from __future__ import annotations

import csv

import numpy as np
import pyarrow.parquet
import pytest

from surefill import InputError, Observations, PartialCompleter, read_observations
from surefill.datasets import make_low_rank
from surefill.estimators import iterate_table, long_table
from surefill.jobs import TableSize, WriteOptions, complete_file, table_size, write_completed
from surefill.jobs.digits import decimals, rounded


@pytest.fixture(scope="module")
def seen():
    """Grades in halves of 30 people, whose labels do not stand in order, and 25 films."""
    sim = make_low_rank((30, 25), rank=1, n_draws=500, noise=0.1, random_state=0).observations
    people, films = [f"p{(7 * i) % 30:02d}" for i in range(30)], [f"film {j}" for j in range(25)]
    values = np.round(2 * (5 + 4 * sim.values)) / 2
    return Observations(
        sim.rows, sim.cols, values, (30, 25), (0.0, 10.0), row_labels=people, col_labels=films,
        names=("person", "film", "grade"),
    )  # fmt: skip


@pytest.fixture(scope="module")
def completer(seen):
    return PartialCompleter(tolerance=8.0, confidence="posterior").fit(seen)


@pytest.fixture(scope="module")
def cells(completer):
    """All cells by (row, column), as the library gives them."""
    (block,) = iterate_table(completer, "all", level=0.8)
    return {
        (row, column): dict(zip(list(block)[2:], more, strict=True))
        for row, column, *more in zip(*(block[name].tolist() for name in block), strict=True)
    }


def lines_of(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def test_top_n_is_the_best_of_each_row_by_brute_force(completer, cells, seen, tmp_path):
    done = write_completed(completer, tmp_path / "best.csv", WriteOptions(top_n=3, digits=15))
    expected = []
    for person in seen.row_labels:
        filled = [(-cell["value"], cell["risk"], film) for (row, film), cell in cells.items()
                  if row == person and cell["keep"] and not cell["observed"]]  # fmt: skip
        expected += [(person, film) for *_, film in sorted(filled)[:3]]
    assert [(line["person"], line["film"]) for line in lines_of(tmp_path / "best.csv")] == expected
    assert 0 < done.lines == len(expected) <= 90
    assert done.filled_cells == sum(cell["keep"] and not cell["observed"] for cell in cells.values())


def test_top_n_does_not_depend_on_blocks(completer, tmp_path, monkeypatch):
    write_completed(completer, tmp_path / "a.csv", WriteOptions(top_n=2))
    monkeypatch.setattr(long_table, "BLOCK_CELLS", 60)
    write_completed(completer, tmp_path / "b.csv", WriteOptions(top_n=2))
    assert (tmp_path / "a.csv").read_text() == (tmp_path / "b.csv").read_text()


def test_only_the_rows_that_a_file_lists_in_its_order(completer, cells, seen, tmp_path):
    rows = tmp_path / "rows.txt"
    rows.write_text("\ufeffp07\r\n\n p03 \np29\np07\n", encoding="utf-8")
    done = write_completed(completer, tmp_path / "some.csv", WriteOptions("all", rows=rows))
    lines = lines_of(tmp_path / "some.csv")
    assert [line["person"] for line in lines] == ["p07"] * 25 + ["p03"] * 25 + ["p29"] * 25
    assert (done.rows_written, done.lines) == (3, 75)
    assert done.missing_cells == sum(not cells[line["person"], line["film"]]["observed"] for line in lines)
    assert done.filled_cells == sum(line["keep"] == "true" and line["observed"] == "false" for line in lines)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("p03\nzoe\n", r"rows\.txt names the row 'zoe', which is not in the data\.$"),
        ("zoe\np03\nkim\nbob\n", r"'zoe', which is not in the data, and neither are 2 others of its lines\.$"),
        ("\n \n", r"rows\.txt is to list row labels, one per line, and is empty\.$"),
        (None, r"rows\.txt, which is to list row labels, cannot be read: No such file or directory\.$"),
        (b"\xff\xfe\0", r"cannot be read: it is not text in UTF-8\.$"),
    ],
)
def test_row_files_that_will_not_do_are_one_sentence(completer, tmp_path, content, sentence):
    rows = tmp_path / "rows.txt"
    if content is not None:
        rows.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(InputError, match=sentence):
        write_completed(completer, tmp_path / "some.csv", WriteOptions(rows=rows))
    assert not (tmp_path / "some.csv").exists()


def test_positions_name_rows_without_labels(seen, tmp_path):
    bare = PartialCompleter(tolerance=8.0, confidence="posterior").fit(
        Observations(seen.rows, seen.cols, seen.values, seen.shape, seen.bounds)
    )
    (tmp_path / "rows.txt").write_text("29\n4\n")
    write_completed(bare, tmp_path / "some.csv", WriteOptions("all", rows=tmp_path / "rows.txt"))
    assert [line["row"] for line in lines_of(tmp_path / "some.csv")] == ["29"] * 25 + ["4"] * 25


def test_filled_values_have_digits_that_mean_something(completer, cells, tmp_path):
    done = write_completed(completer, tmp_path / "all.csv", WriteOptions("all"))
    lines = lines_of(tmp_path / "all.csv")
    assert done.digits == 3  # grades in halves have one digit after the point
    for line in lines:
        cell = cells[line["person"], line["film"]]
        assert len(line["grade"].partition(".")[2]) <= (1 if cell["observed"] else 3)
        assert float(line["grade"]) == pytest.approx(cell["value"], abs=0 if cell["observed"] else 5.001e-4)


def test_digits_asked_for_and_observed_values_as_they_were(completer, cells, tmp_path):
    write_completed(completer, tmp_path / "all.csv", WriteOptions("all", digits=0, level=0.8))
    for line in lines_of(tmp_path / "all.csv"):
        cell = cells[line["person"], line["film"]]
        assert float(line["grade"]) == (cell["value"] if cell["observed"] else round(cell["value"]))
        assert float(line["low"]) <= cell["low"] + 1e-5
        assert float(line["high"]) >= cell["high"] - 1e-5
        assert float(line["low"]) == int(float(line["low"])) >= 0
        assert float(line["high"]) == int(float(line["high"])) <= 10


def test_rounding_stays_within_bounds_that_have_more_digits():
    block = {"value": np.array([0.26, 9.74]), "observed": np.zeros(2, bool), "low": np.array([0.25, 3.18]),
             "high": np.array([4.12, 9.75])}  # fmt: skip
    new = rounded(block, 1, (0.25, 9.75))
    assert new["value"].tolist() == [0.3, 9.7]
    assert new["low"].tolist() == [0.25, 3.1]
    assert new["high"].tolist() == [4.2, 9.75]
    assert rounded(block, 0, (0.25, 9.75))["value"].tolist() == [0.25, 9.75]


@pytest.mark.parametrize(
    ("values", "expected"), [([1.0, 200.0], 0), ([1.5], 1), ([0.29, 0.57, 3.0], 2), ([1e-3], 3), ([np.pi], 15)]
)
def test_decimals_are_counted(values, expected):
    assert decimals(np.array(values)) == expected


def test_digits_stop_where_errors_drown_them(tmp_path):
    noisy = make_low_rank((40, 30), rank=1, n_draws=900, noise=0.3, random_state=0).observations
    scaled = Observations(noisy.rows, noisy.cols, 1e6 * noisy.values, noisy.shape)
    found = []
    for each in (noisy, scaled):
        completer = PartialCompleter(tolerance=each.variance, confidence="posterior").fit(each)
        found.append(write_completed(completer, tmp_path / "out.csv").digits)
    assert found in ([3, 0], [4, 0])


def test_wide_has_a_line_for_each_row_and_blanks_where_nothing_is_filled(completer, cells, seen, tmp_path, monkeypatch):
    monkeypatch.setattr(long_table, "BLOCK_CELLS", 60)
    monkeypatch.setattr("surefill.jobs.completed_table.WIDE_CELLS", 200)
    done = write_completed(completer, tmp_path / "wide.csv", WriteOptions(layout="wide"))
    lines = lines_of(tmp_path / "wide.csv")
    assert done.lines == 30
    assert [line["person"] for line in lines] == seen.row_labels.tolist()
    assert list(lines[0]) == ["person", *seen.col_labels.tolist()]
    for line in lines:
        for film in seen.col_labels:
            cell = cells[line["person"], film]
            written = cell["keep"] or cell["observed"]
            assert (line[film] != "") == written
            assert not written or float(line[film]) == pytest.approx(cell["value"], abs=5.001e-4)


def test_the_top_n_of_some_rows_as_a_wide_table(completer, tmp_path):
    (tmp_path / "rows.txt").write_text("p29\np03\n")
    options = WriteOptions(top_n=2, rows=tmp_path / "rows.txt", layout="wide")
    write_completed(completer, tmp_path / "wide.tsv", options)
    _, *lines = (line.split("\t") for line in (tmp_path / "wide.tsv").read_text().splitlines())
    assert [line[0] for line in lines] == ["p29", "p03"]
    assert all(sum(cell != "" for cell in line[1:]) <= 2 for line in lines)


def test_wide_parquet_has_the_same_numbers(completer, tmp_path):
    for name in ("wide.csv", "wide.parquet"):
        write_completed(completer, tmp_path / name, WriteOptions(layout="wide"))
    table = pyarrow.parquet.read_table(tmp_path / "wide.parquet").to_pylist()
    lines = lines_of(tmp_path / "wide.csv")
    assert [
        {name: "" if cell is None else f"{cell}".removesuffix(".0") for name, cell in line.items()} for line in table
    ] == lines


def test_excel_long_and_wide(completer, tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    for layout, size in (("long", (750, 7)), ("wide", (30, 26))):
        write_completed(completer, tmp_path / "out.xlsx", WriteOptions("all", layout=layout))
        sheet = openpyxl.load_workbook(tmp_path / "out.xlsx").active
        assert (sheet.max_row - 1, sheet.max_column) == size


@pytest.mark.parametrize("name", ["wide.csv", "wide.tsv.gz", "wide.parquet", "wide.xlsx"])
def test_a_wide_table_is_read_back_as_it_was(completer, seen, tmp_path, name):
    if name.endswith("xlsx"):
        pytest.importorskip("openpyxl")
    write_completed(completer, tmp_path / name, WriteOptions(layout="wide"))
    back = read_observations(tmp_path / name, wide=True, row="person")
    kept = sum(len(block["row"]) for block in iterate_table(completer, "kept"))
    assert len(back) == kept > len(seen)
    places = back.find(back.row_index(seen.row_labels[seen.rows]), back.col_index(seen.col_labels[seen.cols]))
    np.testing.assert_array_equal(back.values[places], seen.values)


def test_a_folder_of_parts_is_read_back(completer, tmp_path, monkeypatch):
    monkeypatch.setattr("surefill.io.parquet_writer.LINES_PER_PART", 100)
    monkeypatch.setattr(long_table, "BLOCK_CELLS", 60)
    done = write_completed(completer, f"{tmp_path}/parts/")
    write_completed(completer, tmp_path / "whole.parquet")
    assert len(list((tmp_path / "parts").iterdir())) > 2
    parts, whole = (read_observations(tmp_path / name, value="grade") for name in ("parts", "whole.parquet"))
    assert len(parts) == done.lines
    np.testing.assert_array_equal(parts.dense(), whole.dense())


def test_a_row_label_column_that_clashes_is_renamed(seen, tmp_path):
    clash = Observations(seen.rows, seen.cols, seen.values, seen.shape, names=("film 3", "film", "low"),
                         col_labels=seen.col_labels)  # fmt: skip
    completer = PartialCompleter(tolerance=8.0, confidence="posterior").fit(clash)
    write_completed(completer, tmp_path / "wide.csv", WriteOptions(layout="wide"))
    assert (tmp_path / "wide.csv").read_text().startswith("film 3_,film 0,")
    write_completed(completer, tmp_path / "long.csv", WriteOptions(level=0.9))
    assert (tmp_path / "long.csv").read_text().startswith("row,column,value,confidence,risk,keep,observed,low,high\n")
    write_completed(completer, tmp_path / "long.csv")
    assert (tmp_path / "long.csv").read_text().startswith("film 3,film,low,confidence")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"entries": "some"}, "'entries' parameter of WriteOptions must be 'kept', 'missing' or 'all'"),
        ({"top_n": 0}, "'top_n' parameter of WriteOptions must be a whole number of at least 1"),
        ({"digits": 16}, "'digits' parameter of WriteOptions must be a whole number from 0 to 15"),
        ({"digits": -1}, "'digits' parameter"),
        ({"level": 90}, "'level' parameter of WriteOptions must be a number above 0 and below 1"),
        ({"layout": "tall"}, "'layout' parameter of WriteOptions must be 'long', 'wide' or None"),
        ({"top_n": 3, "entries": "all"}, "the top n of each row are kept cells"),
        ({"level": 0.9, "layout": "wide"}, "intervals are columns of a long table"),
    ],
)
def test_options_that_contradict_are_one_sentence(options, sentence):
    with pytest.raises(InputError, match=sentence):
        WriteOptions(**options)


def test_a_wide_table_of_too_many_columns_is_refused_before_the_fit(seen, tmp_path, monkeypatch):
    lines = [f"{i},{j},{v}" for i, j, v in zip(seen.rows, seen.cols, seen.values, strict=True)]
    (tmp_path / "in.csv").write_text("\n".join(["user,item,rating", *lines]) + "\n")
    monkeypatch.setattr("surefill.jobs.write_options.MOST_WIDE_COLUMNS", 24)
    monkeypatch.setattr(PartialCompleter, "fit", None)
    with pytest.raises(InputError, match="a wide table of 25 columns is more than the 24 that programs can open"):
        complete_file(tmp_path / "in.csv", tmp_path / "out.csv", write=WriteOptions(layout="wide"))
    assert [path.name for path in tmp_path.iterdir()] == ["in.csv"]


def test_a_sheet_too_small_is_refused_before_the_fit(seen, tmp_path, monkeypatch):
    pytest.importorskip("openpyxl")
    lines = [f"{i},{j},{v}" for i, j, v in zip(seen.rows, seen.cols, seen.values, strict=True)]
    (tmp_path / "in.csv").write_text("\n".join(["user,item,rating", *lines]) + "\n")
    monkeypatch.setattr("surefill.io.excel_writer.MOST_EXCEL_LINES", 700)
    monkeypatch.setattr(PartialCompleter, "fit", None)
    with pytest.raises(InputError, match="at most 699 lines under its header"):
        complete_file(tmp_path / "in.csv", tmp_path / "out.xlsx", write=WriteOptions("all"))


@pytest.fixture(scope="module")
def medium():
    """400 x 600, rows observed from seldom to often, about half of it kept."""
    sim = make_low_rank((400, 600), rank=2, n_draws=40_000, noise=0.4, random_state=0).observations
    rng = np.random.default_rng(0)
    some = sim.select(rng.random(len(sim)) < 0.05 + 0.95 * (rng.random(400) ** 2)[sim.rows])
    seen = Observations(some.rows, some.cols, np.round(10 * some.values) / 10, (400, 600), (-1.5, 1.5))
    return PartialCompleter(tolerance=0.08, confidence="posterior").fit(seen)


class TestSize:
    @pytest.mark.parametrize(
        ("name", "options"),
        [
            ("out.csv", {}),
            ("out.csv.gz", {}),
            ("out.parquet", {"entries": "missing"}),
            ("out/", {}),
            ("out.csv", {"entries": "all", "digits": 1}),
            ("out.csv", {"top_n": 20}),
            ("out.csv", {"layout": "wide"}),
        ],
    )
    def test_what_is_expected_is_about_what_is_written(self, medium, tmp_path, monkeypatch, name, options):
        monkeypatch.setattr(table_size, "LARGE", 1)
        told = []
        monkeypatch.setattr(long_table, "BLOCK_CELLS", 20_000)
        output = f"{tmp_path}/{name}"
        done = write_completed(medium, output, WriteOptions(**options), confirm=lambda size: told.append(size) or True)
        written = sum(path.stat().st_size for path in tmp_path.rglob("*") if path.is_file())
        (size,) = told
        assert 0.2 < medium.result_.kept_share() < 0.8
        assert done.lines / 1.3 <= size.lines <= 1.3 * done.lines
        assert written / 1.3 <= size.bytes <= 1.3 * written

    @pytest.mark.parametrize("name", ["out.csv", "out.csv.gz", "out.parquet"])
    @pytest.mark.parametrize("options", [{"entries": "all"}, {"entries": "missing", "level": 0.9}])
    def test_what_is_known_before_the_fit_is_about_right(self, medium, tmp_path, monkeypatch, name, options):
        monkeypatch.setattr(table_size, "LARGE", 1)
        write, seen = WriteOptions(**options, layout="long"), medium.observations_
        size = table_size.size_before_fit(seen, tmp_path / name, np.arange(400), write)
        done = write_completed(medium, tmp_path / name, write)
        assert size.lines == done.lines
        assert 1 / 1.5 < size.bytes / (tmp_path / name).stat().st_size < 1.5

    def test_a_table_that_is_too_large_in_any_case_is_refused_before_the_fit(self, seen, tmp_path, monkeypatch):
        lines = [f"{i},{j},{v}" for i, j, v in zip(seen.rows, seen.cols, seen.values, strict=True)]
        (tmp_path / "in.csv").write_text("\n".join(["user,item,rating", *lines]) + "\n")
        monkeypatch.setattr(table_size, "LARGE", 1)
        asked, files = [], (tmp_path / "in.csv", tmp_path / "out.csv")
        options = {"tolerance": 8.0, "confidence": "posterior", "write": WriteOptions("all")}
        complete_file(*files, confirm=lambda size: asked.append(size) or True, **options)
        assert [size.lines for size in asked] == [750]
        monkeypatch.setattr(table_size, "MOST_UNASKED", 1000)
        monkeypatch.setattr(PartialCompleter, "fit", None)
        with pytest.raises(InputError, match="only if asked for: with --yes"):
            complete_file(*files, **options)
        with pytest.raises(InputError, match=r"would have at least .* only if asked for"):  # the observed cells alone
            complete_file(*files, **options | {"write": None})

    def test_more_than_a_gigabyte_is_refused_unless_agreed_to(self, completer, tmp_path, monkeypatch):
        monkeypatch.setattr(table_size, "LARGE", 1)
        monkeypatch.setattr(table_size, "MOST_UNASKED", 1000)
        for confirm in (None, lambda size: False):
            with pytest.raises(InputError, match=r"out\.csv would have about .* only if asked for: with --yes"):
                write_completed(completer, tmp_path / "out.csv", WriteOptions("all"), confirm=confirm)
            assert list(tmp_path.iterdir()) == []
        assert (
            write_completed(completer, tmp_path / "out.csv", WriteOptions("all"), confirm=lambda size: True).lines
            == 750
        )

    def test_small_tables_are_not_measured(self, completer, tmp_path):
        write_completed(completer, tmp_path / "out.csv", confirm=lambda size: pytest.fail("asked"))

    def test_an_empty_table_is_measured_too(self, seen, tmp_path, monkeypatch):
        monkeypatch.setattr(table_size, "LARGE", 1)
        nothing = PartialCompleter(tolerance=1e-6, confidence="posterior").fit(seen)
        assert write_completed(nothing, tmp_path / "out.csv", WriteOptions(top_n=1)).lines == 0
        assert (tmp_path / "out.csv").read_text().count("\n") == 1

    def test_sizes_are_said_as_people_do(self, tmp_path):
        assert TableSize("a.csv", 1234.0, 56_000.0).sentence == "a.csv will have about 1,200 lines, 56 kB."
        assert table_size.in_bytes(9.96e12) == "10 TB"
