"""What ``surefill complete`` writes, where, and how much of it unasked."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys

import numpy as np
import pytest

from surefill import read_observations
from surefill.jobs import table_size

QUICK = ("--tolerance", 0.3, "--confidence", "posterior", "--bounds", -1, 1)


@pytest.fixture
def small_limits(monkeypatch):
    """Tables of a few kilobytes count as larger than a gigabyte."""
    monkeypatch.setattr(table_size, "LARGE", 1)
    monkeypatch.setattr(table_size, "MOST_UNASKED", 1000)


def names_in(folder):
    return sorted(path.name for path in folder.iterdir())


def test_the_best_of_some_rows_with_intervals(run, ratings, tmp_path, capsys):
    (tmp_path / "people.txt").write_text("u7\nu2\n")
    options = ("--top-n", 2, "--rows", tmp_path / "people.txt", "--round", 1, "--intervals", 0.9)
    assert run("complete", ratings, "-o", tmp_path / "best.csv", *QUICK, *options) == 0
    said = capsys.readouterr().out
    header, *lines = (line.split(",") for line in (tmp_path / "best.csv").read_text().splitlines())
    assert header == ["user", "item", "rating", "confidence", "risk", "keep", "observed", "low", "high"]
    assert [line[0] for line in lines] == ["u7", "u7", "u2", "u2"]
    assert all(len(line[2].partition(".")[2]) <= 1 for line in lines)
    assert "missing cells of the 2 rows asked for (" in said
    assert "Wrote 4 lines to " in said
    assert "filled values with 1 digit after the point." in said
    assert "The guarantee is about all filled cells of the matrix, not about those written alone." in said
    assert "The guarantee is about values before they were rounded." in said


@pytest.mark.parametrize("aim", ["observed", "all"])
def test_a_guarantee_about_other_cells_never_counts_filled_ones(run, ratings, tmp_path, capsys, aim):
    options = ("--aim", aim, "--top-n", 2, "--json")
    assert run("complete", ratings, "-o", tmp_path / "best.csv", *QUICK, *options) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["promised"], found["n_filled"]) == (True, None)
    assert run("complete", ratings, "-o", tmp_path / "best.csv", *QUICK, *options[:-1]) == 0
    said = capsys.readouterr().out
    assert "the guarantee is about another set of cells, which it names" in said
    assert "about all filled cells" not in said
    assert "rounded" not in said


def test_what_is_written_is_in_json(run, ratings, tmp_path, capsys):
    assert run("complete", ratings, "-o", tmp_path / "best.csv", *QUICK, "--top-n", 2, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["top_n"], found["layout"], found["rows_written"]) == (2, "long", 30)
    assert found["missing_in_rows"] == 30 * 25 - found["observed_cells"]
    assert found["lines"] <= 60 <= found["filled_cells"]


def test_a_wide_table_out_is_a_wide_table_in(run, ratings, tmp_path, capsys):
    wide, again = tmp_path / "wide.csv", tmp_path / "again.csv"
    assert run("complete", ratings, "-o", wide, *QUICK, "--write", "wide") == 0
    seen = read_observations(ratings)
    filled = read_observations(wide, wide=True)
    assert filled.row_labels.tolist() == seen.row_labels.tolist()
    assert [str(label) for label in filled.col_labels] == [str(label) for label in seen.col_labels]
    place = filled.find(seen.rows, seen.cols)
    np.testing.assert_array_equal(filled.values[place], seen.values)
    assert len(filled) > len(seen)
    assert run("complete", wide, "-o", again, *QUICK, "--wide") == 0
    assert again.read_text().splitlines()[0] == wide.read_text().splitlines()[0]
    assert "Wrote 30 lines" in capsys.readouterr().out
    assert run("complete", wide, "-o", again, *QUICK, "--wide", "--intervals", 0.9) == 2
    assert "intervals are columns of a long table" in capsys.readouterr().err


def test_a_folder_of_parts_by_its_slash(run, ratings, tmp_path, capsys):
    out = f"{tmp_path}/parts/"
    assert run("complete", ratings, "-o", out, *QUICK) == 0
    assert names_in(tmp_path / "parts") == ["part-00000.parquet"]
    lines = len(read_observations(tmp_path / "parts"))
    assert f"Wrote {lines:,} lines to {tmp_path}/parts" in capsys.readouterr().out
    (tmp_path / "parts" / "notes.txt").write_text("mine")
    assert run("complete", ratings, "-o", out, *QUICK) == 2
    assert "holds other things, such as notes.txt" in capsys.readouterr().err


def test_parts_that_are_read_are_not_replaced(run, ratings, tmp_path, capsys):
    assert run("complete", ratings, "-o", f"{tmp_path}/parts/", *QUICK) == 0
    before = (tmp_path / "parts" / "part-00000.parquet").read_bytes()
    for file in (tmp_path / "parts", tmp_path / "parts" / "part-00000.parquet"):
        assert run("complete", file, "-o", f"{tmp_path}/parts/", *QUICK) == 2
        assert "must be different files" in capsys.readouterr().err
    assert (tmp_path / "parts" / "part-00000.parquet").read_bytes() == before


@pytest.mark.parametrize("name", ["out.csv", "parts/", "out.xlsx"])
@pytest.mark.parametrize("fault", [KeyboardInterrupt, MemoryError])
def test_a_fault_while_writing_leaves_nothing(run, ratings, tmp_path, monkeypatch, name, fault):
    from surefill.estimators import long_table

    if name == "out.xlsx":
        pytest.importorskip("openpyxl")
    calls, block = [], long_table.list_rows

    def fail_later(*arguments):
        calls.append(arguments)
        if len(calls) == 3:
            raise fault
        return block(*arguments)

    monkeypatch.setattr(long_table, "list_rows", fail_later)
    monkeypatch.setattr(long_table, "BLOCK_CELLS", 60)
    files = ("--save", tmp_path / "model", "--report", tmp_path / "page.html")
    assert run("complete", ratings, "-o", f"{tmp_path}/{name}", *QUICK, *files) == (
        130 if fault is KeyboardInterrupt else 1
    )
    assert names_in(tmp_path) == []


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--top-n", 0), "'--top-n'"),
        (("--top-n", 3, "--entries", "all"), "the top n of each row are kept cells"),
        (("--round", 16), "'--round'"),
        (("--intervals", 90), "'--intervals'"),
        (("--intervals", 0.9, "--write", "wide"), "intervals are columns of a long table"),
        (("--write", "tall"), "'--write'"),
    ],
)
def test_options_that_will_not_do_are_refused_before_reading(run, tmp_path, capsys, options, sentence):
    assert run("complete", tmp_path / "none.csv", "-o", tmp_path / "out.csv", *options) == 2
    said = capsys.readouterr().err
    assert sentence in said
    assert said.count("\n") == 1


def test_unknown_rows_are_refused_before_the_fit(run, ratings, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("surefill.PartialCompleter.fit", None)
    (tmp_path / "people.txt").write_text("u7\nzoe\n")
    assert run("complete", ratings, "-o", tmp_path / "out.csv", "--rows", tmp_path / "people.txt") == 2
    assert "people.txt names the row 'zoe', which is not in the data." in capsys.readouterr().err
    assert names_in(tmp_path) == ["people.txt"]


@pytest.mark.usefixtures("small_limits")
def test_more_than_a_gigabyte_needs_yes(run, ratings, tmp_path, capsys):
    assert run("complete", ratings, "-o", tmp_path / "all.csv", *QUICK, "--entries", "all") == 2
    said = capsys.readouterr()
    assert "all.csv would have about 750 lines, " in said.err
    assert "only if asked for: with --yes" in said.err
    assert said.out == ""
    assert names_in(tmp_path) == []
    assert run("complete", ratings, "-o", tmp_path / "all.csv", *QUICK, "--entries", "all", "--yes") == 0
    assert "all.csv will have about 750 lines, " in capsys.readouterr().err
    assert names_in(tmp_path) == ["all.csv"]


@pytest.mark.parametrize(("answer", "code"), [(b"n\n", 2), (b"y\n", 0)])
def test_a_person_is_asked(ratings, tmp_path, answer, code):
    limits = "from surefill.jobs import table_size as t; t.LARGE = 1; t.MOST_UNASKED = 1000"
    program = f"{limits}; from surefill.cli import main; main()"
    command = [
        sys.executable,
        "-c",
        program,
        "complete",
        ratings,
        "-o",
        tmp_path / "all.csv",
        "--entries",
        "all",
        *QUICK,
    ]
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [str(word) for word in command], stdin=theirs, stderr=theirs, stdout=subprocess.PIPE
    ) as process:
        os.close(theirs)
        os.write(ours, answer)
        said = b""
        while True:
            try:
                piece = os.read(ours, 4096)
            except OSError:  # the other end was closed
                break
            said += piece
            if not piece:
                break
        assert process.wait() == code, said.decode()
    os.close(ours)
    assert "Write it? [y/N]" in said.decode()
    assert names_in(tmp_path) == ([] if code else ["all.csv"])


def test_a_table_without_holes_is_said_to_have_none(run, tmp_path, capsys):
    rng = np.random.default_rng(0)
    lines = [",".join([f"s{i}", *map(str, rng.integers(0, 6, 8))]) for i in range(30)]
    (tmp_path / "full.csv").write_text("name,a,b,c,d,e,f,g,h\n" + "\n".join(lines) + "\n")
    assert run("complete", tmp_path / "full.csv", "--wide", "-o", tmp_path / "o.csv", "--confidence", "posterior") == 0
    said = capsys.readouterr().out
    assert "Rows are name.\n" in said
    assert "No cell is missing: there is nothing to fill. A 0 is a value" in said


def test_repeated_lines_are_counted(run, ratings, tmp_path, capsys):
    twice = tmp_path / "twice.csv"
    header, *lines = ratings.read_text().splitlines()
    cells = {line.rsplit(",", 1)[0]: line for line in lines}
    twice.write_text("\n".join([header, *cells.values(), *list(cells.values())[:7]]) + "\n")
    assert run("complete", twice, "-o", tmp_path / "o.csv", "--confidence", "posterior") == 0
    said = capsys.readouterr().out
    assert f"Read {len(cells)} observed cells in {len(cells) + 7} lines of 30 rows" in said
    assert "\nCompleted by Bayesian factors of rank 10.\n" in said


@pytest.mark.parametrize("name", ["filled.csv", "filled.xlsx", "filled.parquet", "filled/"])
def test_what_was_filled_is_not_taken_for_observed(run, ratings, tmp_path, capsys, name):
    filled, again = f"{tmp_path}/{name}", tmp_path / "again.csv"
    assert run("complete", ratings, "-o", filled, "--save", tmp_path / "model", *QUICK) == 0
    for typed in (
        ["complete", filled, "-o", again],
        ["evaluate", filled],
        ["update", tmp_path / "model", filled, "-o", again],
    ):
        capsys.readouterr()
        assert run(*typed) == 2
        assert "a table that surefill wrote, with values that were filled, not observed" in capsys.readouterr().err
        assert not again.exists()
    assert run("complete", filled, "-o", again, *QUICK, "--row", "user", "--col", "item", "--value", "rating") == 0
