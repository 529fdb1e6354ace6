"""Values that are missing are refused or skipped and counted; decimal commas are read right or asked about."""

from __future__ import annotations

import numpy as np
import pytest

from surefill.data import Observations
from surefill.errors import InputError
from surefill.io import read_observations
from surefill.kernels.decimal_spans import MISSING


@pytest.fixture
def file(tmp_path):
    def write(text, name="ratings.csv"):
        (tmp_path / name).write_text(text)
        return tmp_path / name

    return write


@pytest.mark.parametrize("word", [*MISSING, "NA", "NaN", "NULL", "None", " ", "N/A"])
def test_words_for_missing_values_are_refused_or_skipped(file, word):
    path = file(f"user,item,rating\nann,Alien,5\nbob,Alien,{word}\nann,Dune,3\nkim,Dune,{word}\n")
    with pytest.raises(InputError, match=r", line 3: the value .*skip_missing=True \(--skip-missing on the comm"):
        read_observations(path)
    seen = read_observations(path, skip_missing=True)
    assert (seen.skipped, len(seen), seen.row_labels.tolist()) == (2, 2, ["ann"])
    assert seen.select([0]).skipped == 2


def test_a_first_line_without_a_value_is_no_header(file):
    seen = read_observations(file("ann,Alien,NA\nann,Dune,3\n"), skip_missing=True)
    assert (seen.skipped, len(seen)) == (1, 1)


def test_nothing_but_missing_values(file):
    with pytest.raises(InputError, match=r"holds no values: all of its 2 lines lack one\."):
        read_observations(file("user,item,rating\n1,2,NA\n1,3,\n"), skip_missing=True)


def test_words_that_are_no_numbers_are_not_skipped(file):
    with pytest.raises(InputError, match="line 2: the value 'x' is not a number"):
        read_observations(file("1,2,3\n1,3,x\n1,4,NA\n"), skip_missing=True)
    with pytest.raises(InputError, match="line 2: the value 'inf' is not finite"):
        read_observations(file("1,2,3\n1,3,inf\n"), skip_missing=True)


def test_large_files_in_parts_skip_in_every_part(file, monkeypatch):
    monkeypatch.setattr("surefill.io.delimited.SMALLEST_PART", 1)
    monkeypatch.setattr("surefill.io.delimited.n_cores", lambda: 3)
    lines = [f"{k},{k % 5},{'NA' if k % 3 == 0 else k}" for k in range(60)]
    seen = read_observations(file("user,item,rating\n" + "\n".join(lines)), skip_missing=True)
    assert seen.skipped == 20
    assert sorted(seen.values.tolist()) == [k for k in range(60) if k % 3]
    assert all(seen.row_labels[row] == value for row, value in zip(seen.rows, seen.values, strict=True))


def test_tables_in_memory_and_parquet(tmp_path):
    pd = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    frame = pd.DataFrame({"user": [1, 2, 3], "item": list("aab"), "rating": [1.0, np.nan, 3.0]})
    with pytest.raises(InputError, match="skip_missing=True"):
        Observations.from_table(frame, row="user", col="item", value="rating")
    seen = Observations.from_table(frame, row="user", col="item", value="rating", skip_missing=True)
    assert (seen.skipped, seen.values.tolist(), seen.row_labels.tolist()) == (1, [1, 3], [1, 3])
    frame.to_parquet(tmp_path / "a.parquet")
    assert read_observations(tmp_path / "a.parquet", skip_missing=True).skipped == 1
    frame["rating"] = np.nan
    with pytest.raises(InputError, match="holds no values: all of its 3 lines lack one"):
        Observations.from_table(frame, row="user", col="item", value="rating", skip_missing=True)


@pytest.mark.parametrize(
    ("text", "options", "values"),
    [
        ("user;item;rating\n1;2;3,5\n1;3;4\n", {}, [3.5, 4]),
        ("1;2;3,5\n1;3;-0,25\n", {}, [3.5, -0.25]),
        ("1;2;3,5;7,5\n1;3;4,0;1,5\n", {"delimiter": ";"}, [3.5, 4]),
        ("1\t2\t1,234\n1\t3\t0,5\n", {}, [1.234, 0.5]),
        ("1;2;1,234\n1;3;5\n", {"decimal": ","}, [1.234, 5]),
        ('user,item,rating\n1,2,"3,5"\n1,3,"4"\n', {}, [3.5, 4]),
        ('user,item,rating\n1,2,"3,500"\n1,3,"4"\n', {"decimal": ","}, [3.5, 4]),
        ("1;2;3,5\n1;3;NA\n", {"skip_missing": True}, [3.5]),
        ("1;2;1,5e-3\n", {}, [0.0015]),
        ("1;2;0,12345678901234567890\n", {}, [0.12345678901234567890]),
        ("1;2;1.234\n1;3;5\n", {"decimal": "."}, [1.234, 5]),
    ],
)
def test_decimal_commas_are_read_right(file, text, options, values):
    assert read_observations(file(text), **options).values.tolist() == values


@pytest.mark.parametrize(
    ("text", "options", "sentence"),
    [
        ("1;2;1,234\n1;3;5\n", {}, r", line 1: the value '1,234' may be 1234 or 1\.234: .*--decimal , on"),
        (
            "1;2;3,5;7,5\n1;3;4,0;1,5\n",
            {},
            r": either commas or semicolons may separate fields; .*--delimiter",
        ),
        ("1;2;1,234,567\n", {"delimiter": ";"}, r", line 1: the value '1,234,567' .*thousands"),
        ("1;2;1.234,5\n1;3;5,5\n", {}, r", line 1: the value '1\.234,5' .*remove separators of thousands"),
        ("1;2;1.234,5\n", {"decimal": ","}, r", line 1: the value '1\.234,5' .*remove separators of thousands"),
        ("1;2;3,5\n1;3;4.5\n", {}, r", line 2: the value '4.5' has a point, but the decimal sign is a comma"),
        ("1;2;4.5\n1;3;3,5\n", {"decimal": "."}, r", line 2: the value '3,5' has a comma, but the decimal sign is a p"),
        ("1;2;1.234\n", {"decimal": ","}, r", line 1: the value '1\.234' has a point, but the decimal sign is a comma"),
        ("1;2;1_000\n", {}, r", line 1: the value '1_000' .*separators of thousands"),
        ("1;2;1 000\n", {}, r", line 1: the value '1 000' .*separators of thousands"),
        ("1,2,3\n1,3,4\n", {"decimal": ","}, r": fields are separated by commas, so a comma can be the decimal sign "),
    ],
)
def test_doubtful_numbers_are_asked_about(file, text, options, sentence):
    path = file(text)
    with pytest.raises(InputError, match=f"^{path}{sentence}"):
        read_observations(path, **options)


def test_unusable_decimal(file):
    with pytest.raises(InputError, match=r"'decimal' parameter of read_observations must be '\.' or ','\. Got ';'"):
        read_observations(file("1,2,3\n"), decimal=";")
