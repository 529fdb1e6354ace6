"""Natural mistakes at the command line: one clear sentence that says what to do, exit code 2, nothing written.

A case is the file that is there, what was typed after ``surefill``, and words of the sentence. ``MODEL`` stands for a
saved model, ``ratings.csv`` for a good table.
"""

from __future__ import annotations

import shutil

import numpy as np
import pytest

from surefill import PartialCompleter, read_observations

WIDE = "name,math,art,music\nann,1,2,\nbob,,3,4\ncid,5,,2\ndee,4,4,1\n"

CASES = {
    "no such file": ({}, "complete reviews.csv -o out.csv", "reviews.csv does not exist"),
    "a folder": ({}, "complete . -o out.csv", "folder"),
    "an empty file": ({"t.csv": ""}, "complete t.csv -o out.csv", "empty"),
    "only a header": ({"t.csv": "user,item,rating\n"}, "complete t.csv -o out.csv", "no observations"),
    "two columns": ({"t.csv": "user,item\na,b\n"}, "complete t.csv -o out.csv", "at least three"),
    "no such column": ({}, "complete ratings.csv -o out.csv --row customer", "no column 'customer'"),
    "one column for two roles": ({}, "complete ratings.csv -o out.csv --row user --col user", "three different"),
    "a word for a value": ({"t.csv": "u,i,r\na,b,4\na,c,good\n"}, "complete t.csv -o out.csv", "line 3"),
    "an empty value": ({"t.csv": "user,item,rating\na,b,4\na,c,\n"}, "complete t.csv -o out.csv", "--skip-missing"),
    "NA for a value": ({"t.csv": "user,item,rating\na,b,4\na,c,NA\n"}, "complete t.csv -o out.csv", "--skip-missing"),
    "a line too short": ({"t.csv": "user,item,rating\na,b,4\na,c\n"}, "complete t.csv -o out.csv", "line 3"),
    "an infinite value": ({"t.csv": "user,item,rating\na,b,4\na,c,inf\n"}, "complete t.csv -o out.csv", "line 3"),
    "one value for all": (
        {"t.csv": "user,item,rating\n" + "".join(f"{i},{j},3\n" for i in range(9) for j in "ab")},
        "complete t.csv -o out.csv",
        "equal",
    ),
    "one row": ({"t.csv": "user,item,rating\na,b,4\na,c,3\na,d,1\na,e,2\n"}, "complete t.csv -o out.csv", "1 row"),
    "three observations": (
        {"t.csv": "user,item,rating\na,b,4\na,c,3\nb,c,1\n"},
        "complete t.csv -o out.csv",
        "too few",
    ),
    "a wide table as a long one": ({"t.csv": WIDE}, "complete t.csv -o out.csv", "--wide"),
    "many columns": (
        {"t.csv": "id," + ",".join(f"q{k}" for k in range(500)) + "\n1" + ",2" * 500 + "\n"},
        "complete t.csv -o out.csv",
        "--wide",
    ),
    "a wide table with a name twice": (
        {"t.csv": "name,a,a\nx,1,2\ny,3,4\n"},
        "complete t.csv -o out.csv --wide",
        "two columns are called",
    ),
    "a wide table with a row twice": ({"t.csv": "name,a,b\nx,1,2\nx,3,4\n"}, "complete t.csv -o out.csv --wide", "'x'"),
    "a wide table with words": ({"t.csv": "name,a,b\nx,1,red\ny,3,4\n"}, "complete t.csv -o out.csv --wide", "red"),
    "an old workbook": ({"t.xls": "x"}, "complete t.xls -o out.csv", ".xlsx"),
    "not a workbook": ({"t.xlsx": "x"}, "complete t.xlsx -o out.csv", "t.xlsx"),
    "not a parquet file": ({"t.parquet": "x"}, "complete t.parquet -o out.csv", "parquet"),
    "a value outside the bounds": ({}, "complete ratings.csv -o out.csv --bounds 0 0.1", "outside the bounds"),
    "bounds the wrong way": ({}, "complete ratings.csv -o out.csv --bounds 5 1", "low < high"),
    "an unknown kind of output": ({}, "complete ratings.csv -o out.json", ".csv"),
    "output onto the input": ({}, "complete ratings.csv -o ratings.csv", "different files"),
    "output into a folder that is not there": ({}, "complete ratings.csv -o nowhere/out.csv", "nowhere"),
    "a tolerance of 0": ({}, "complete ratings.csv -o out.csv --tolerance 0", "above 0"),
    "a tolerance in words": ({}, "complete ratings.csv -o out.csv --tolerance half", "above 0"),
    "a delta of 5": ({}, "complete ratings.csv -o out.csv --delta 5", "0<x<1"),
    "a sensitivity below 1": ({}, "complete ratings.csv -o out.csv --sensitivity 0.5", "x>=1"),
    "an unknown loss": ({}, "complete ratings.csv -o out.csv --loss cubic", "beyond:DISTANCE"),
    "no output": ({}, "complete ratings.csv", "--output"),
    "a misspelt command": ({}, "compleet ratings.csv", "compleet"),
    "a misspelt option": ({}, "complete ratings.csv -o out.csv --tolerence 1", "--tolerence"),
    "rows that are not there": (
        {"rows.txt": "u1\nnobody\n"},
        "complete ratings.csv -o out.csv --rows rows.txt",
        "nobody",
    ),
    "a report that is no page": ({}, "complete ratings.csv -o out.csv --report report.pdf", ".html"),
    "one fold": ({}, "evaluate ratings.csv --by 1", "from 2"),
    "a fold column that is not there": ({}, "evaluate ratings.csv --by split", "split"),
    "an order that is not there": ({}, "evaluate ratings.csv --order-by date", "date"),
    "suggest without a model": ({"m.surefill": "x"}, "suggest m.surefill", "m.surefill"),
    "a row that the model does not know": ({}, "suggest MODEL --row nobody", "nobody"),
    "predict without a model": ({}, "predict no.surefill ratings.csv", "no.surefill"),
    "predict from a table": ({}, "predict ratings.csv ratings.csv", "ratings.csv"),
    "pairs of one column": ({"pairs.csv": "user\nu1\n"}, "predict MODEL pairs.csv", "pairs.csv"),
    "recommend to nobody": ({}, "recommend MODEL --row nobody", "nobody"),
    "recommend none": ({}, "recommend MODEL --row u1 -n 0", "x>=1"),
    "recommend an unknown column": ({}, "recommend MODEL --row u1 --include 999", "999"),
    "an update without values": ({"new.csv": "user,item\nu1,3\n"}, "update MODEL new.csv -o new.surefill", "new.csv"),
    "an update outside the bounds": (
        {"new.csv": "user,item,rating\nnew,3,99\n"},
        "update MODEL new.csv -o n.surefill",
        "99",
    ),
}


@pytest.fixture(scope="module")
def model(ratings, tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "model.surefill"
    seen = read_observations(ratings, bounds=(-2, 2))
    PartialCompleter(tolerance=0.2, confidence="posterior").fit(seen).save(path)
    return path


def contents(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("name", CASES)
def test_mistakes_end_in_one_sentence(name, run, ratings, model, tmp_path, monkeypatch, capsys):
    files, typed, words = CASES[name]
    for file, text in files.items():
        (tmp_path / file).write_text(text)
    shutil.copy(ratings, tmp_path / "ratings.csv")
    if "MODEL" in typed:
        shutil.copy(model, tmp_path / "MODEL")
    monkeypatch.chdir(tmp_path)
    before = contents(tmp_path)
    assert run(*typed.split()) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("surefill: ")
    assert said.err.count("\n") == 1
    assert len(said.err) < 400
    assert words in said.err
    assert contents(tmp_path) == before


def test_there_are_forty():
    assert len(CASES) >= 40
    assert len(np.unique([typed + str(files) for files, typed, _ in CASES.values()])) == len(CASES)
