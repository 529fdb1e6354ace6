"""Wide files: labels and names in the order of the file, holes where nothing was seen, and one sentence per mistake."""

from __future__ import annotations

import csv
import gzip
import sys
import time

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from surefill.errors import InputError, MissingPackageError
from surefill.io import ReadOptions, read_observations

WIDE = "name,Brazil,Alien,Dune\nzoe,5,,2.5\nann,NA,4,\nbob,,,\n"
MATRIX = [[5.0, None, 2.5], [None, 4.0, None], [None, None, None]]


def as_lists(seen):
    return [[None if np.isnan(value) else value for value in row] for row in seen.dense().tolist()]


def assert_wide(seen):
    assert seen.row_labels.tolist() == ["zoe", "ann", "bob"]
    assert seen.col_labels.tolist() == ["Brazil", "Alien", "Dune"]
    assert as_lists(seen) == MATRIX
    assert seen.names[0] == "name"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.csv", WIDE),
        ("a.tsv", WIDE.replace(",", "\t")),
        ("a.csv", WIDE.replace(",", ";").replace("2.5", "2,5")),
        ("a.csv.gz", WIDE.replace("\n", "\r\n")),
        ("a.csv", '"name","Brazil","Alien","Dune"\n"zoe","5","","2.5"\n"ann",NaN,4,null\n"bob",-,?,None\n'),
    ],
)
def test_text_in_the_order_of_the_file(tmp_path, name, text):
    path = tmp_path / name
    path.write_bytes(gzip.compress(text.encode()) if name.endswith("gz") else text.encode())
    assert_wide(read_observations(path, wide=True))
    assert_wide(ReadOptions(wide=True).read(path))


def test_another_column_may_hold_the_labels(tmp_path):
    (tmp_path / "a.csv").write_text("1,name,2\n5,ann,\n,bob,4\n")
    for row in ("name", 1):
        seen = read_observations(tmp_path / "a.csv", wide=True, row=row)
        assert seen.row_labels.tolist() == ["ann", "bob"]
        assert seen.col_labels.tolist() == [1, 2]
        assert as_lists(seen) == [[5, None], [None, 4]]


def test_labels_that_are_all_integers_are_integers(tmp_path):
    (tmp_path / "a.csv").write_text(",30,10\n7,1,2\n3,,3\n")
    seen = read_observations(tmp_path / "a.csv", wide=True)
    assert (seen.row_labels.tolist(), seen.col_labels.tolist(), seen.names[0]) == ([7, 3], [30, 10], "row")


def test_parquet_with_a_column_or_an_index_of_labels(tmp_path):
    pd = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    path = tmp_path / "a.parquet"
    frame = pd.DataFrame(MATRIX, columns=["Brazil", "Alien", "Dune"], dtype=float)
    frame.insert(0, "name", ["zoe", "ann", "bob"])
    frame.to_parquet(path)
    assert_wide(read_observations(path, wide=True))
    frame.set_index("name").to_parquet(path)
    assert_wide(read_observations(path, wide=True))
    frame.assign(name=["zoe", "ann", "zoe"]).to_parquet(path)
    with pytest.raises(InputError, match="two rows are called 'zoe'"):
        read_observations(path, wide=True)
    frame.assign(Dune="x").to_parquet(path)
    with pytest.raises(InputError, match="column 'Dune': numbers are expected"):
        read_observations(path, wide=True)


LABELS = st.text(st.characters(codec="utf-8", exclude_characters="\0\r"), min_size=1, max_size=5).map(
    lambda text: text.strip() or "x"
)
CELLS = st.one_of(st.just(None), st.floats(-1e60, 1e60))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.data())
def test_what_is_written_wide_is_read_wide(tmp_path, data):
    columns = data.draw(st.lists(LABELS, min_size=1, max_size=5, unique=True))
    rows = data.draw(st.lists(LABELS, min_size=1, max_size=5, unique=True))
    cells = [data.draw(st.lists(CELLS, min_size=len(columns), max_size=len(columns))) for _ in rows]
    if all(cell is None for line in cells for cell in line):
        cells[0][0] = 1.0
    sign = data.draw(st.sampled_from([(",", "."), (";", ","), ("\t", ","), ("\t", ".")]))
    with open(tmp_path / "any.csv", "w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream, delimiter=sign[0])
        writer.writerow(["row name", *columns])
        for label, line in zip(rows, cells, strict=True):
            writer.writerow([label, *("" if cell is None else repr(cell).replace(".", sign[1]) for cell in line)])
    seen = read_observations(tmp_path / "any.csv", wide=True, delimiter=sign[0], decimal=sign[1])
    assert [str(label) for label in seen.row_labels] == rows
    assert [str(label) for label in seen.col_labels] == columns
    assert as_lists(seen) == cells


@pytest.mark.parametrize(
    ("text", "options", "sentence"),
    [
        ("name,a,b\n", {}, r" holds a header and no rows: at least one line must follow\."),
        ("name,a,b\nx,,\n", {}, r" holds no values: at least one cell must be seen\."),
        ("name,a,a\nx,1,2\n", {}, r": two columns are called 'a'; in a wide table every column has its own name\."),
        ("name,a,\nx,1,2\n", {}, r": column 2 counted from 0 has no name; every column of a wide table needs one\."),
        (
            "name,a,b\nx,1,2\ny,1,2\nx,3,4\n",
            {},
            r", line 4: there is a row 'x' before, .* each has one line; a long",
        ),
        ("name,a,b\n,1,2\n", {}, r", line 2: the row has no label; every row of a wide table needs one\."),
        (
            "name,a,b\nx,1,two\n",
            {},
            r", line 2, column 'b': the value 'two' is not a number; ",
        ),
        ("name,a,b\nx,1,inf\n", {}, r", line 2, column 'b': the value 'inf' is not finite"),
        ("name,a,b\nx,1,2\ny,1\n", {}, r", line 3: 3 fields are expected, as in the first line; there are 2 fields\."),
        ("name\nx\n", {}, r" has 1 column; a wide table has one with labels of rows and others with values\."),
        (
            "name,a,b\nx,1,9\n",
            {"bounds": (1, 5)},
            r", line 2, column 'b': the value 9 is outside the bounds \(1, 5\)",
        ),
        ("name,a,b\nx,1,2\n", {"row": "who"}, r" has no column 'who' for row; its columns are name, a, b\."),
        ("name,a,b\nx,1,2\n", {"row": 3}, r" has columns 0 to 2; row is to be column 3\."),
        ("name,a,b\nx,1,2\n", {"header": False}, r": a wide table needs a first line with the names of its columns\."),
        ("name;a;b\nx;1,5;2.5\n", {}, r", line 2, column 'b': the value '2.5' has a point, but the decimal sign is"),
        ("name;a;b\nx;1,500;2\n", {}, r", line 2, column 'a': the value '1,500' may be 1500 or 1.500: .*decimal=','"),
        ("name;a;b\nx;1.500,25;2,5\n", {}, r", line 2, column 'a': the value '1.500,25' .*separators of thousands"),
    ],
)
def test_mistakes_are_one_sentence(tmp_path, text, options, sentence):
    path = tmp_path / "wide.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=f"^{path}{sentence}") as caught:
        read_observations(path, wide=True, **options)
    assert "\n" not in str(caught.value)


def test_columns_of_long_files_are_refused(tmp_path):
    (tmp_path / "a.csv").write_text(WIDE)
    with pytest.raises(InputError, match="a wide table has no column for col; give col for long files only"):
        read_observations(tmp_path / "a.csv", wide=True, col="Alien")


def test_blocks_of_lines_are_read_as_one(tmp_path, monkeypatch):
    monkeypatch.setattr("surefill.io.delimited.BLOCK_FIELDS", 5)
    (tmp_path / "a.csv").write_text(WIDE.replace(",", ";").replace("2.5", "2") + "eve;;;\n\nkim;;3,5;1\n")
    seen = read_observations(tmp_path / "a.csv", wide=True)
    assert as_lists(seen) == [[5, None, 2], *MATRIX[1:], [None] * 3, [None, 3.5, 1]]
    (tmp_path / "a.csv").write_text(WIDE + "kim,,x,1\n")
    with pytest.raises(InputError, match="line 5, column 'Alien'"):
        read_observations(tmp_path / "a.csv", wide=True)


def test_a_thousand_by_a_thousand_in_a_moment(tmp_path):
    """A million cells, half of them seen, of which ten times as many are to be read in a few seconds."""
    rng = np.random.default_rng(0)
    cells = [["" if cell < 0 else repr(cell) for cell in line] for line in rng.normal(size=(1000, 1000)).tolist()]
    head = ",".join(f"c{k}" for k in range(1000))
    path = tmp_path / "large.csv"
    path.write_text(f"row,{head}\n" + "".join(f"r{k},{','.join(line)}\n" for k, line in enumerate(cells)))
    read_observations(path, wide=True)
    start = time.process_time()
    assert read_observations(path, wide=True).shape == (1000, 1000)
    assert time.process_time() - start < 1.5


class TestRecognised:
    """A wide file that is not said to be one."""

    def test_in_one_short_sentence(self, tmp_path):
        path = tmp_path / "wide.csv"
        path.write_text("name," + ",".join(f"film {k}" for k in range(501)) + "\nann" + ",3" * 501 + "\n")
        with pytest.raises(
            InputError, match=r"looks like a wide table.*wide=True \(--wide on the command line\)"
        ) as error:
            read_observations(path)
        assert len(str(error.value)) - len(str(path)) < 200

    @pytest.mark.parametrize(
        "text",
        [
            "name,Alien,Brazil\nann,5,4\nbob,3,\n",
            "student,question1,question2\n1,5,4\n2,3,1\n",
            "student,question1,question2,points\n1,5,4,9\n2,3,1,4\n",
            "student,score1,score2\n1,5,4\n2,3,1\n",
            "user;a;b;c\nx;1,5;2;3\n",
            "user,10,20,30\n1,5,,3\n2,,4,1\n",
            "person number,10,20\n1,5,\n2,,4\n",
            ",10,20\nann,5,\nbob,,4\n",
            "userId," + ",".join(map(str, range(20))) + "\nx" + ",4" * 20 + "\n",
        ],
    )
    def test_also_when_it_has_few_columns(self, tmp_path, text):
        (tmp_path / "wide.csv").write_text(text)
        with pytest.raises(InputError, match="wide=True"):
            read_observations(tmp_path / "wide.csv")
        assert read_observations(tmp_path / "wide.csv", wide=True).shape[1] >= 2

    def test_a_long_file_that_is_said_to_be_wide(self, tmp_path):
        path = tmp_path / "long.csv"
        path.write_text("userId,movieId,rating,timestamp\n1,30,4,9\n2,31,5,9\n")
        with pytest.raises(InputError, match=r"looks like a long table, .* userId, movieId, rating: leave out"):
            read_observations(path, wide=True)
        path.write_text("who,what,much\n1,30,4\n1,31,5\n")
        with pytest.raises(InputError, match=r"line 3: there is a row '1' before, .* is read without wide"):
            read_observations(path, wide=True)

    def test_columns_that_were_named_are_taken_at_their_word(self, tmp_path):
        (tmp_path / "odd.csv").write_text("a,b,c\n1,5,4\n2,3,1\n")
        assert len(read_observations(tmp_path / "odd.csv", row="a", col="b", value="c")) == 2

    def test_long_files_are_not_taken_for_wide(self, tmp_path):
        for text in ("user,item,rating\n1,5,4\n2,3,1\n", "who,what,how much\nx,5,4\nx,3,1\n", "who,what,much\nx,a,4\n"):
            (tmp_path / "long.csv").write_text(text)
            assert len(read_observations(tmp_path / "long.csv"))


class TestExcel:
    @pytest.fixture
    def book(self, tmp_path):
        openpyxl = pytest.importorskip("openpyxl")

        def write(name="book.xlsx", **sheets):
            workbook = openpyxl.Workbook()
            workbook.remove(workbook.active)
            for title, lines in sheets.items():
                sheet = workbook.create_sheet(title)
                for line in lines:
                    sheet.append(line)
            workbook.save(tmp_path / name)
            return tmp_path / name

        return write

    def test_wide(self, book):
        lines = [["name", "Brazil", "Alien", "Dune"], ["zoe", 5, None, 2.5], ["ann", "NA", 4], ["bob"]]
        assert_wide(read_observations(book(one=lines, empty=[]), wide=True))
        assert_wide(read_observations(book(one=lines, two=[["x"]]), wide=True, sheet="one"))
        assert_wide(read_observations(book("a.xlsm", one=lines), wide=True, decimal=","))

    def test_long(self, book):
        import datetime

        lines = [["when", "user", "item", "rating"], [], [datetime.datetime(2026, 1, 31), 7, 'the "one"\ttwo', 0.25]]
        seen = read_observations(book(ratings=lines))
        assert seen.row_labels.tolist() == [7]
        assert seen.col_labels.tolist() == ['the "one"\ttwo']
        assert seen.values.tolist() == [0.25]
        assert seen.names == ("user", "item", "rating")

    def test_lines_of_errors_are_rows_of_the_sheet(self, book):
        path = book(a=[["user", "item", "rating"], [1, 2, 3], [], [1, 3, "x"]], b=[[1]])
        with pytest.raises(InputError, match=f"^{path}, sheet 'a', line 4: the value 'x' is not a number"):
            read_observations(path, sheet="a")

    def test_mistakes(self, book, tmp_path, monkeypatch):
        path = book(a=[["user", "item", "rating"], [1, 2, 3]], b=[[1]])
        with pytest.raises(InputError, match=r"has 2 sheets \(a, b\): say which with sheet \(--sheet on the command"):
            read_observations(path)
        with pytest.raises(InputError, match=r"has no sheet 'c'; its sheets are a, b\."):
            read_observations(path, sheet="c")
        with pytest.raises(InputError, match=r"is empty: one observation per line is expected\."):
            read_observations(book(a=[]))
        (tmp_path / "a.csv").write_text(WIDE)
        with pytest.raises(InputError, match=r"has no sheets; sheet is for Excel workbooks \(\.xlsx, \.xlsm\)\."):
            read_observations(tmp_path / "a.csv", sheet="a")
        for data in (b"", b"PK\x03\x04", path.read_bytes()[:-100]):
            path.write_bytes(data)
            with pytest.raises(InputError, match="is damaged, protected by a password or not an Excel workbook"):
                read_observations(path)
        monkeypatch.setitem(sys.modules, "openpyxl", None)
        with pytest.raises(MissingPackageError, match=r"reading Excel workbooks needs .* pip install openpyxl"):
            read_observations(path)

    @pytest.mark.parametrize("suffix", [".xls", ".ods", ".xlsb", ".numbers", ".zip", ".bz2"])
    def test_other_kinds_are_refused(self, tmp_path, suffix):
        path = tmp_path / f"table{suffix}"
        path.write_bytes(b"\xd0\xcf")
        with pytest.raises(InputError, match=r"which is not read: (save it as \.xlsx or \.csv|unpack|decompress)"):
            read_observations(path)


@pytest.mark.parametrize(
    "text",
    [
        "4.5,3.5,2.0\n4.5,1.0,3.0\n2.5,5.0,1.0\n",
        "Alien,Big,Dune\n4.5,3,5\n4.5,1,5\n2,5,1\n",
        "q a,q b,q c\n" + "".join(f"{1 + k % 3},{1 + k // 3 % 3},{1 + k % 3}\n" for k in range(30)),
    ],
)
def test_three_columns_of_values_are_not_read_as_triples(tmp_path, text):
    (tmp_path / "a.csv").write_text(text)
    with pytest.raises(InputError, match="looks like a matrix of 3 columns without labels of rows"):
        read_observations(tmp_path / "a.csv")
    assert len(read_observations(tmp_path / "a.csv", row=0, col=1, value=2)) > 0


@pytest.mark.parametrize(
    "text",
    [
        "1,0.5,3\n1,1.5,4\n2,0.5,1\n",
        "patient,dose,response\n1,0.5,5\n1,1.5,5\n2,0.5,1\n",
        "version,task,seconds\n3.9,sort,1\n3.9,sum,2\n3.10,sort,1\n",
        "user,item,rating\n" + "1,2,3\n2,1,3\n1,1,1\n2,2,1\n" * 5,
        "".join(f"{i},{j},{1 + (i * j) % 5}\n" for i in range(1, 9) for j in range(1, 12)),
    ],
)
def test_long_files_of_every_kind_are_read_as_they_were(tmp_path, text):
    (tmp_path / "a.csv").write_text(text)
    assert len(read_observations(tmp_path / "a.csv")) > 0


def test_labels_that_were_floats_on_their_way_are_integers(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("id,x,y\n1002.0,1,2\n1001.0,,3\n")
    assert read_observations(path, wide=True).row_labels.tolist() == [1002, 1001]
    path.write_text("id,x,y\n1.0,1,2\n1,,3\n")
    assert read_observations(path, wide=True).row_labels.tolist() == ["1.0", "1"]
