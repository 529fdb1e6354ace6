"""Tables and options that must not pass: one short sentence, exit code 2, no control signs, nothing harmed.

A case is the bytes of ``t.csv`` (or of the file that is named), what is typed after ``surefill``, and words of the
sentence. Every case is put to both ``complete`` and ``stream`` where ``{}`` stands for the command.
"""

from __future__ import annotations

import errno
import gzip
import json
import os

import numpy as np
import pytest

from surefill import InputError, Observations, read_observations
from surefill.errors import LONGEST_SENTENCE, brief
from surefill.inputs import LARGEST_VALUE, using_limits

HEADER = b"user,item,rating\n"
LINES = b"".join(b"u%d,i%d,%d\n" % (k % 9, k % 7, k % 5) for k in range(60))
GOOD = HEADER + LINES
COMMANDS = {"complete": ("complete", "{}", "-o", "out.csv"), "stream": ("stream", "{}", "-o", "out.csv")}

CASES = {
    "a name twice": (b"user,user,rating\n" + LINES, (), "2 columns called 'user'"),
    "a name twice, by position": (
        b"user,user,rating\n" + LINES,
        ("--row", "0", "--col", "1", "--value", "2"),
        "2 columns called 'user'",
    ),
    "two columns of values": (
        b"user,item,rating,rating\n" + LINES.replace(b"\n", b",1\n"),
        (),
        "2 columns called 'rating'",
    ),
    "one column for two roles": (GOOD, ("--row", "user", "--col", "user"), "three different columns"),
    "half UTF-8, half not": (GOOD + "ué".encode() + b"\xff,i1,3\n", (), "line 62"),
    "a byte of no encoding": (GOOD + b"u\x81,i1,3\n", (), "line 62"),
    "a header of bytes": (b"us\xc3\xa9\x81r,item,rating\n" + LINES, (), "line 1"),
    "a superscript for a column": (GOOD, ("--row", "²"), "no column '²'"),
    "a position of 30 digits": (GOOD, ("--row", "9" * 30), "no column '999"),
    "a seed of 26 digits": (GOOD, ("--seed", "9" * 26), "0<=x<=9223372036854775807"),
    "bounds too far": (GOOD, ("--bounds", "-1e308", "1e308"), "at most 1e+60"),
    "bounds of no number": (GOOD, ("--bounds", "nan", "5"), "low < high"),
    "bounds without end": (GOOD, ("--bounds", "1", "inf"), "low < high"),
    "bounds the wrong way": (GOOD, ("--bounds", "5", "1"), "low < high"),
    "a value of 1e99": (GOOD + b"u1,i1,1e99\n", (), "line 62: the value '1e99' is larger than 1e+60"),
    "a value of 1e101": (GOOD + b"u1,i1,1e101\n", (), "larger than 1e+60"),
    "escape signs in a value": (GOOD + b"u1,i1,\x1b[31mred\x07\n", (), "line 62"),
    "a value of 5000 signs": (GOOD + b"u1,i1," + b"x" * 5000 + b"\n", (), "xxx...' is not a number"),
    "an id of 10,000 signs": (GOOD + b"u" * 10_000 + b",i1,3\n", (), "--limit id="),
    "a column of 5000 signs": (GOOD, ("--row", "x" * 5000), "xxx...' for row"),
    "many thousand columns": (b"," * 50_000 + b"\n" + b"," * 50_000 + b"\n", ("--row", "name"), "no column 'name'"),
    "a limit of no kind": (GOOD, ("--limit", "memory=5"), "line=BYTES"),
    "a limit of no number": (GOOD, ("--limit", "line=much"), "line=BYTES"),
    "a quote that is never closed": (GOOD + b'"u1,i1,3\n' + LINES, (), "line 62: a quote"),
}


def contents(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("case", CASES)
def test_it_is_refused_in_one_sentence(run, tmp_path, monkeypatch, capfd, case, command):
    text, options, words = CASES[case]
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.csv").write_bytes(text)
    (tmp_path / "out.csv").write_text("as it was")
    before = contents(tmp_path)
    assert run(*(part.format("t.csv") for part in COMMANDS[command]), *options) == 2
    said = capfd.readouterr()
    assert said.out == ""
    assert words in said.err
    assert said.err.startswith("surefill: ")
    assert said.err.endswith("\n")
    assert said.err[:-1].isprintable()
    assert len(said.err) <= 400
    assert contents(tmp_path) == before


@pytest.mark.parametrize("tolerance", ["1e300", "1e121", "0", "-1", "nan", "inf"])
def test_tolerances_that_are_none(run, folder, capfd, tolerance):
    assert run("complete", "good.csv", "-o", "out.csv", "--tolerance", tolerance) == 2
    assert capfd.readouterr().err.count("\n") == 1


@pytest.mark.parametrize(
    ("option", "sign", "words"), [("--by", "²", "no column '²'"), ("--delimiter", "\udcff", "good.csv")]
)
def test_signs_that_are_no_numbers_and_no_text(run, folder, capfd, option, sign, words):
    assert run("evaluate", "good.csv", option, sign) == 2
    assert words in capfd.readouterr().err


def test_a_folder_that_may_not_be_looked_into(run, folder, capfd, monkeypatch):
    system = os.stat

    def refuse(path, *more, **named):
        if str(path) == "good.csv":
            raise PermissionError(errno.EACCES, "Permission denied", path)
        return system(path, *more, **named)

    for command in ("complete", "evaluate"):
        with monkeypatch.context() as closed:
            closed.setattr(os, "stat", refuse)
            assert run(command, "good.csv", *(("-o", "out.csv") if command == "complete" else ())) == 2
        assert "good.csv cannot be read: permission denied" in capfd.readouterr().err


PLACES = {
    "a name too long": ("x" * 5000, "file name too long"),
    "a loop of links": ("loop", "symbolic links"),
    "a name with escape signs": ("no\x1b[31m.csv", "no\\x1b[31m.csv"),
    "a name that is no UTF-8": (os.fsdecode(b"no\xff.csv"), "no"),
}


@pytest.mark.parametrize("command", ["complete", "stream", "evaluate"])
@pytest.mark.parametrize("case", PLACES)
def test_places_where_nothing_can_be_read(run, folder, capfd, case, command):
    name, words = PLACES[case]
    (folder / "loop").symlink_to("loop")
    assert run(command, name, *(("-o", "out.csv") if command == "complete" else ())) == 2
    said = capfd.readouterr().err
    assert words in said
    assert said[:-1].isprintable()
    assert len(said) < 500


@pytest.mark.parametrize("option", ["-o", "--save", "--report"])
@pytest.mark.parametrize("name", ["", ".", "loop", "x" * 300, "loop/out", "good.csv/out"])
def test_places_where_nothing_can_be_written(run, folder, capfd, option, name):
    (folder / "loop").symlink_to("loop")
    options = {"-o": ("-o", f"{name}.csv" if len(name) > 9 else name)}.get(option, ("-o", "out.csv", option, name))
    assert run("complete", "good.csv", *options) == 2
    assert capfd.readouterr().err.count("\n") == 1
    assert sorted(path.name for path in folder.iterdir()) == ["good.csv", "loop"]


@pytest.mark.parametrize(
    "command", [("demo",), ("reproduce", "figure1"), ("stream", "good.csv", "--checkpoint", "state")]
)
def test_an_empty_name_is_no_name(run, folder, command):
    assert run(*command, "-o", "") == 2


def test_packed_files_that_grow_a_thousandfold(run, folder, capfd):
    with gzip.open("bomb.csv.gz", "wb", 9) as file:
        file.write(HEADER)
        for _ in range(80):
            file.write(bytes(1 << 20))
    for command in ("complete", "stream"):
        typed = [part.format("bomb.csv.gz") for part in COMMANDS[command]]
        assert run(*typed) == 2
        assert "--limit" in capfd.readouterr().err


def test_a_line_without_end(run, folder, capfd):
    (folder / "long.csv").write_bytes(GOOD + b"u" * (1 << 21))
    assert run("stream", "long.csv", "--limit", f"line={1 << 20}") == 2
    assert "line 62: the line has more than 1,048,576 bytes" in capfd.readouterr().err


def test_limits_can_be_raised(folder):
    (folder / "t.csv").write_bytes(GOOD + b"u" * 10_000 + b",i1,3\n")
    with pytest.raises(InputError, match="more than 4,096 bytes"):
        read_observations("t.csv")
    with using_limits(id=10_000):
        assert max(map(len, read_observations("t.csv").row_labels)) == 10_000
    with pytest.raises(InputError, match="'ratio' parameter of Limits"), using_limits(ratio=0):
        pass


@pytest.mark.parametrize("line", ['{"a": "\\ud800", "b": "x", "c": 1}', "[" * 100_000, '{"a": 1}', '{"a": 1e999}'])
def test_lines_of_json_that_are_no_records(run, folder, capfd, line):
    good = json.dumps({"a": "u", "b": "i", "c": 1})
    (folder / "t.jsonl").write_text(f"{good}\n{line}\n")
    assert run("stream", "t.jsonl", "--row", "a", "--col", "b", "--value", "c", "-o", "out.csv") == 2
    assert "line 2" in capfd.readouterr().err


def test_values_at_the_ends_of_the_range():
    Observations([0, 1], [0, 1], [-LARGEST_VALUE, LARGEST_VALUE])
    with pytest.raises(InputError, match=r"at most 1e\+60"):
        Observations([0, 1], [0, 1], [0.0, 2 * LARGEST_VALUE])


def test_sentences_are_short_and_printable():
    for text in ("x" * 10**6, "a b " * 10**5, "\x1b[2J" * 1000, f"'{'y z' * 999}' is 'short'", "\u202e\ud800"):
        said = str(InputError(text))
        assert len(said) <= LONGEST_SENTENCE + 10
        assert said.isprintable()
        assert brief(said) == said
    kept = "the value 'a' isn't one of the user's, and what's between two apostrophes stays as it's written, 'b' too"
    assert str(InputError(kept)) == kept


def test_rows_and_columns_never_seen_are_no_fault():
    from surefill import PartialCompleter

    rng = np.random.default_rng(0)
    X = np.full((30, 10), np.nan)
    X[:28, :8] = np.where(rng.random((28, 8)) < 0.7, rng.normal(size=(28, 8)), np.nan)
    assert PartialCompleter(confidence="posterior").fit_transform(X).shape == X.shape


def test_a_parquet_file_with_a_damaged_column_name_is_one_sentence(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    path = tmp_path / "in.parquet"
    pytest.importorskip("pyarrow.parquet").write_table(pyarrow.table({"user": [1], "item": [1], "rating": [1.0]}), path)
    path.write_bytes(path.read_bytes().replace(b"user", b"us\xffr"))
    with pytest.raises(InputError, match="is damaged or not a parquet file"):
        read_observations(path)
