"""Files in: what is read equals what was written, and every fault is one sentence naming file and line."""

from __future__ import annotations

import csv
import gzip
import itertools
import sys

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from surefill.data import Observations
from surefill.errors import InputError, MissingPackageError
from surefill.io import read_observations

same_folder = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture
def file(tmp_path):
    def write(text, name="ratings.csv"):
        path = tmp_path / name
        data = text if isinstance(text, bytes) else text.encode()
        path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
        return path

    return write


def triples(seen):
    """(row label, column label, value) of every cell, in order."""
    return list(
        zip(
            seen.row_labels[seen.rows].tolist(),
            seen.col_labels[seen.cols].tolist(),
            seen.values.tolist(),
            strict=True,
        )
    )


EXPECTED = [(7, 30, 4.0), (3, 30, 3.5), (7, 10, 1.0)]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.csv", "user,item,rating\n7,30,4\n3,30,3.5\n7,10,1\n"),
        ("a.csv", "7,30,4\n3,30,3.5\n7,10,1"),
        ("a.csv", "\ufeffuserId,movieId,rating,timestamp\r\n7,30,4,1\r\n\r\n3,30,3.5,2\r\n7,10,1,3\r\n"),
        ("a.csv", "\ufeff7,30,4\n3,30,3.5\n7,10,1"),
        ("a.csv", ",rating,Movie ID,USER_ID\n0,4,30,7\n1,3.5,30,3\n2,1,10,7\n"),
        ("a.csv", "who,what,how much\n7,30,4\n3,30,3.5\n7,10,1\n"),
        ("a.csv", '"7","30","4"\n"3", "30", "3.5"\n 7 , 10 , 1 \n'),
        ("a.tsv", "7\t30\t4\t881250949\n3\t30\t3.5\t881250949\n7\t10\t1\t881250949\n"),
        ("a.data", "7 30 4\n3 30 3.5\n7 10 1\n"),
        ("a.txt", "7;30;4\n3;30;3.5\n7;10;1\n"),
        ("a.log", "7|30|4\n3|30|3.5\n7|10|1\n"),
        ("a.dat", "7::30::4::978300760\n3::30::3.5::978300760\n7::10::1::978300760\n"),
        ("a.dat.gz", "7::30::4::978300760\n3::30::3.5::978300760\n7::10::1::978300760\n"),
        ("a.csv.gz", "user,item,rating\n7,30,4\n3,30,3.5\n7,10,1\n"),
    ],
)
def test_reads_usual_files_unaided(file, name, text):
    seen = read_observations(file(text, name))
    assert isinstance(seen, Observations)
    assert triples(seen) == EXPECTED
    assert seen.row_labels.tolist() == [3, 7]
    assert seen.row_labels.dtype == np.int64


def test_columns_by_name_position_and_delimiter(file):
    path = file("stars#when#who#what\n4#1#7#30\n3.5#2#3#30\n1#3#7#10\n", "odd.txt")
    assert triples(read_observations(path, row="who", col="what", value="stars", delimiter="#")) == EXPECTED
    assert triples(read_observations(path, row=2, col=3, value=0, delimiter="#")) == EXPECTED
    assert triples(read_observations(path, row="who", col=3, value=0, delimiter="#", header=True)) == EXPECTED


def test_header_can_be_forced_either_way(file):
    path = file("1,2,3\n7,30,4\n")
    assert len(read_observations(path)) == 2
    assert len(read_observations(path, header=True)) == 1
    named = file("anna,dune,oops\nanna,dune,4\n", "named.csv")
    assert len(read_observations(named)) == 1
    with pytest.raises(InputError, match=r"line 1: the value 'oops' is not a number"):
        read_observations(named, header=False)


def test_a_first_line_with_ids_but_a_bad_value_is_no_header(file):
    for text in ("1,2,N/A\n1,3,4\n", "anna,2,N/A\nanna,3,4\n", "anna,dune,\nanna,solaris,4\n"):
        with pytest.raises(InputError, match="line 1: the value"):
            read_observations(file(text))


def test_names_are_sorted_unquoted_and_stripped(file):
    seen = read_observations(file('zoë,"Dune, ""2021""",4\n" anna ",Été,2\nzoë,Été,3\n"zoë",10,1\n'))
    assert seen.row_labels.tolist() == ["anna", "zoë"]
    assert seen.col_labels.tolist() == ["10", 'Dune, "2021"', "Été"]
    assert triples(seen)[0] == ("zoë", 'Dune, "2021"', 4.0)


def test_one_name_written_in_several_ways_is_one_name(file):
    seen = read_observations(file('"a""b",1,4\n" a""b ",2,3\na"b,3,2\n'))
    assert seen.row_labels.tolist() == ['a"b']


def test_integers_must_be_canonical_to_be_integers(file):
    assert read_observations(file("007,1,4\n7,1,4\n")).row_labels.tolist() == ["007", "7"]
    big = read_observations(file("-9223372036854775808,1,4\n9223372036854775807,1,4\n"))
    assert big.row_labels.tolist() == [-(2**63), 2**63 - 1]


def test_integers_that_were_floats_on_their_way_are_integers(file):
    seen = read_observations(file("user,item,rating\n22.0,1,4\n196.0,2,3\n22,3,5\n"))
    assert triples(seen) == [(22, 1, 4.0), (196, 2, 3.0), (22, 3, 5.0)]
    assert read_observations(file("user,item,rating\n1.0,1,4\n1.5,2,3\n")).row_labels.tolist() == ["1.0", "1.5"]


def test_latin_1_names_are_understood(file):
    seen = read_observations(file("Zoë,café,4\n".encode("latin-1")))
    assert triples(seen) == [("Zoë", "café", 4.0)]


def test_repeats_are_draws_and_bounds_are_kept(file):
    seen = read_observations(file("1,2,3\n1,2,5\n"), bounds=(0, 10))
    assert (seen.n_draws, seen.values.tolist(), seen.bounds) == (2, [4.0], (0.0, 10.0))


NAMES = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=6).filter(
    lambda name: name.strip(" \t")
)
VALUES = st.floats(-1e60, 1e60, width=64)


@same_folder
@given(st.lists(st.tuples(NAMES, NAMES, VALUES), min_size=1, max_size=10, unique_by=lambda t: t[:2]))
def test_agrees_with_the_csv_module(tmp_path, records):
    path = tmp_path / "any.csv"
    with open(path, "w", newline="", encoding="utf-8") as stream:
        csv.writer(stream).writerows([("user", "item", "rating"), *records])
    seen = read_observations(path, delimiter=",")
    expected: dict[tuple[str, str], list[float]] = {}
    for row, col, value in records:
        expected.setdefault((row.strip(" \t"), col.strip(" \t")), []).append(value)
    found = {(str(row), str(col)): value for row, col, value in triples(seen)}
    assert found.keys() == expected.keys()
    assert all(found[cell] == values[0] for cell, values in expected.items() if len(values) == 1)


@same_folder
@given(st.binary(max_size=60))
def test_any_bytes_give_observations_or_an_input_error(tmp_path, data):
    names = ("junk.csv", "junk.csv.gz", "junk.parquet", "junk.xlsx")
    for name, wide in itertools.product(names, (False, True)):
        path = tmp_path / name
        path.write_bytes(data)
        sentence = ""
        try:
            assert len(read_observations(path, wide=wide))
        except InputError as error:
            sentence = str(error)
        assert sentence == "" or (sentence.startswith(str(path)) and "\n" not in sentence)


@pytest.mark.parametrize(
    ("text", "options", "sentence"),
    [
        ("", {}, r" is empty: one observation per line is expected\."),
        ("\ufeff\r\n \n", {}, r" is empty: one observation per line is expected\."),
        ("user,item,rating\n", {}, r" holds a header and no observations: at least one line must follow\."),
        (
            "1,2,3\n\n4,5\n",
            {},
            r", line 3: 3 fields are expected, as in the first line; there are 2 fields\.",
        ),
        ("user,item,rating\n1,2,3,4\n", {}, r", line 2: 3 fields are expected, .* there are 4 fields\."),
        ('a,"x\ny",1\nb,c,2\nd\n', {}, r", line 4: 3 fields are expected, .* there are 1 field\."),
        (
            "u,i,r\n1,2,3\n1,3,x4\n",
            {},
            r", line 3: the value 'x4' is not a number; a finite number is expected",
        ),
        (
            "1,2,3\n1,3,\n",
            {},
            r", line 2: the value is empty; leave such lines out, or .* \(--skip-missing",
        ),
        (
            "1,2,3\n1,3,nan\n",
            {},
            r", line 2: the value 'nan' stands for a missing one; leave .*--skip-missing",
        ),
        ("1,2,3\n1,3,-inf\n", {}, r", line 2: the value '-inf' is not finite; a finite number is expected"),
        ("1,2,1e999\n", {}, r", line 1: the value '1e999' is not finite"),
        ("1,2,3\n,2,3\n", {}, r", line 2: an id is empty; every row and column needs one\."),
        ('1,2,3\n1,"  ",3\n', {}, r", line 2: an id is empty; every row and column needs one\."),
        ("a,b,c\n1,2,3\n", {"row": "user"}, r" has no column 'user' for row; its columns are a, b, c\."),
        (
            "1,2,3\n",
            {"row": "user", "header": False},
            r" is read without header, so row must be a position; got 'user'\.",
        ),
        ("1,2,3\n", {"value": 3}, r" has columns 0 to 2; value is to be column 3\."),
        ("1,2,3\n", {"row": 7, "col": 8, "value": 9}, r" has columns 0 to 2; row is to be column 7\."),
        ("1,2,3\n", {"value": -1}, r" has columns 0 to 2; value is to be column -1\."),
        (
            "1,2,3\n",
            {"col": 0},
            r": row, col and value must be three different columns, but 0, 0 and 2 would be taken",
        ),
        (
            "rating,user,thing\n1,2,3\n",
            {},
            r": row, col and value must be three different columns, .*\(rating, user, thing\)\.",
        ),
        ("user,rating\n1,2\n", {}, r" has 2 columns.*; at least three are expected: row, column and value\."),
        ("hello\nworld\n", {}, r" has 1 column.*; at least three are expected: row, column and value\."),
        ('1,2,3\n1,"2,3\n', {}, r', line 2: a quote \("\) is opened and never closed\.'),
        ('"1,2,3\n', {}, r', line 1: a quote \("\) is opened and never closed\.'),
        (
            '1,2,3\n1,"2"x,3\n',
            {},
            r', line 2: text follows a closing quote \("\); quotes within must be doubled\.',
        ),
        (
            b"\x89PNG\r\n\x1a\n\0\0\0",
            {},
            r" is not a text file: it holds zero bytes, and UTF-8 text is expected\.",
        ),
        ("1,2,3\n1,3,9\n", {"bounds": (1, 5)}, r", line 2: the value 9 is outside the bounds \(1, 5\)\."),
    ],
)
def test_faults_in_text_are_one_sentence(file, text, options, sentence):
    path = file(text)
    with pytest.raises(InputError, match=f"^{path}{sentence}") as caught:
        read_observations(path, **options)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("delimiter", ["", '"', "\n", ":::"])
def test_unusable_delimiters(file, delimiter):
    with pytest.raises(InputError, match="'delimiter' parameter of read_observations must be one or two characters"):
        read_observations(file("1,2,3\n"), delimiter=delimiter)


def test_unusable_column(file):
    with pytest.raises(InputError, match="'row' parameter of read_observations must be a column name or a position"):
        read_observations(file("1,2,3\n"), row=1.5)


def test_unusable_bounds(file):
    with pytest.raises(
        InputError, match=r"^bounds must be two finite numbers, low < high, of at most 1e\+60 in size; got \(5, 1\)\.$"
    ):
        read_observations(file("1,2,3\n"), bounds=(5, 1))


def test_at_most_a_few_names_are_quoted(file):
    many = ",".join(f"c{k}" for k in range(500))
    for options in ({"row": "user"}, {"value": "c1", "row": "c2", "col": "c2"}, {"value": "c7"}):
        with pytest.raises(InputError) as caught:
            read_observations(file(f"{many}\n" + ",".join(["x"] * 500)), **options)
        assert "c4 and 495 more" in str(caught.value)
        assert "c5," not in str(caught.value)


def test_missing_files_and_folders(tmp_path):
    with pytest.raises(InputError, match=f"^{tmp_path}/none.csv does not exist; a file with one observation"):
        read_observations(tmp_path / "none.csv")
    with pytest.raises(InputError, match=f"^{tmp_path} is a folder without parquet files; a file with one observation"):
        read_observations(tmp_path)


def test_damaged_gz(tmp_path):
    whole = gzip.compress(b"1,2,3\n" * 1000)
    path = tmp_path / "damaged.csv.gz"
    for data in (whole[:-12], b"1,2,3\n", whole[:20] + b"\xff\xff" + whole[22:], whole[:-8] + b"\0" * 8):
        path.write_bytes(data)
        with pytest.raises(InputError, match=f"^{path} is damaged and cannot be decompressed as gzip: "):
            read_observations(path)


class TestParquet:
    @pytest.fixture
    def parquet(self, tmp_path):
        pyarrow = pytest.importorskip("pyarrow")
        from pyarrow import parquet

        def write(columns):
            parquet.write_table(pyarrow.table(columns), tmp_path / "a.parquet")
            return tmp_path / "a.parquet"

        return write

    def test_reads_by_usual_names_given_names_and_positions(self, parquet):
        path = parquet({"when": [1, 2, 3], "movie": [30, 30, 10], "user": [7, 3, 7], "rating": [4, 3.5, 1]})
        assert triples(read_observations(path)) == EXPECTED
        assert triples(read_observations(path, row="user", col="movie", value="rating")) == EXPECTED
        assert triples(read_observations(path, row=2, col=1, value=3)) == EXPECTED

    def test_columns_of_the_same_name(self, tmp_path):
        import pyarrow
        from pyarrow import parquet

        path, names = tmp_path / "a.pq", ["user", "item", "rating", "rating"]
        parquet.write_table(pyarrow.Table.from_arrays([pyarrow.array([1])] * 4, names=names), path)
        with pytest.raises(InputError, match=f"^{path} has 2 columns called 'rating'; "):
            read_observations(path)

    def test_reads_names(self, parquet):
        seen = read_observations(parquet({"user": ["b", "a"], "item": ["x", "x"], "rating": [1, 2]}))
        assert triples(seen) == [("b", "x", 1.0), ("a", "x", 2.0)]

    @pytest.mark.parametrize(
        ("columns", "sentence"),
        [
            (
                {"user": [1, None], "item": [1, 2], "rating": [1, 2]},
                r" lacks 1 of the entries of column 'user', the first in line 1 ",
            ),
            (
                {"user": [1], "item": [1], "rating": [float("nan")]},
                r" must hold finite numbers in column 'rating'; line 0 ",
            ),
            (
                {"user": [1], "item": [1], "rating": ["4"]},
                r" must hold numbers in column 'rating'; they are String\.",
            ),
            (
                {"user": [1.5], "item": [1], "rating": [4]},
                r" must hold integers or strings as ids in column 'user'; ",
            ),
            ({"user": [1], "item": [1]}, r" has 2 columns \(user, item\); at least three are expected"),
        ],
    )
    def test_faults_are_one_sentence(self, parquet, columns, sentence):
        path = parquet(columns)
        with pytest.raises(InputError, match=f"^{path}{sentence}"):
            read_observations(path)

    def test_damaged(self, parquet):
        path = parquet({"user": [1] * 100, "item": [1] * 100, "rating": [1] * 100})
        for data in (path.read_bytes()[:-20], b"PAR1", b""):
            path.write_bytes(data)
            with pytest.raises(InputError, match=f"^{path} is damaged or not a parquet file: "):
                read_observations(path)

    def test_without_pyarrow(self, parquet, monkeypatch):
        path = parquet({"user": [1], "item": [1], "rating": [1]})
        monkeypatch.setitem(sys.modules, "pyarrow", None)
        with pytest.raises(MissingPackageError, match=r"reading parquet files needs .* pip install pyarrow"):
            read_observations(path)


def test_a_matrix_in_a_file_is_not_taken_for_observations(tmp_path):
    (tmp_path / "matrix.txt").write_text("1 0 3 0 5 0 1 2 4\n" * 9)
    with pytest.raises(InputError, match=r"has 9 columns and no header: .*use Observations\.from_matrix"):
        read_observations(tmp_path / "matrix.txt")
    assert len(read_observations(tmp_path / "matrix.txt", row=0, col=1, value=2)) == 1


class TestInParts:
    """Large files are read in parts, one per core; here every file counts as large."""

    @pytest.fixture(autouse=True)
    def _parts(self, monkeypatch):
        monkeypatch.setattr("surefill.io.delimited.SMALLEST_PART", 1)
        monkeypatch.setattr("surefill.io.delimited.n_cores", lambda: 3)

    @pytest.mark.parametrize("name", ["{}", "u{}", "é {}"])
    @pytest.mark.parametrize("n_lines", [1, 2, 3, 7, 100])
    @pytest.mark.parametrize("end", ["", "\n", "\n\n\n"])
    def test_parts_add_up_to_the_whole(self, tmp_path, name, n_lines, end):
        records = [(name.format(k % 7), name.format(k % 5), k / 4) for k in range(n_lines)]
        text = "\n".join(f"{row},{col},{value}" for row, col, value in records)
        (tmp_path / "a.csv").write_text(text + end)
        seen = read_observations(tmp_path / "a.csv", header=False)
        mean = {}
        for row, col, value in records:
            mean.setdefault((row, col), []).append(value)
        found = zip(seen.row_labels[seen.rows].astype(str), seen.col_labels[seen.cols].astype(str), strict=True)
        assert list(found) == list(mean)
        np.testing.assert_allclose(seen.values, [np.mean(values) for values in mean.values()])

    @pytest.mark.parametrize("line", [1, 40, 77, 99])
    @pytest.mark.parametrize(("bad", "sentence"), [("1,2", "3 fields"), ("1,2,x", "'x'"), (",2,3", "id is empty")])
    def test_faults_are_found_in_every_part(self, tmp_path, line, bad, sentence):
        lines = ["a,b,3"] * 100
        lines[line] = bad
        (tmp_path / "a.csv").write_text("\n".join(lines))
        with pytest.raises(InputError, match=rf"line {line + 1}: .*{sentence}"):
            read_observations(tmp_path / "a.csv")

    def test_quotes_may_span_lines(self, tmp_path):
        (tmp_path / "a.csv").write_text('"a\nb",x,1\n' * 20 + '"c\nd",y,2\n')
        assert read_observations(tmp_path / "a.csv").row_labels.tolist() == ["a\nb", "c\nd"]
