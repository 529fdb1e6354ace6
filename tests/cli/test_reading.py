"""Wide tables, sheets, missing values, decimal commas and times on the command line, and mistakes with them."""

from __future__ import annotations

import json

import numpy as np
import pytest

from surefill import read_observations
from surefill.datasets import make_low_rank

FIT = ("--confidence", "posterior", "--tolerance", 0.3)


@pytest.fixture(scope="module")
def timed(tmp_path_factory):
    """Observations with a date-time; the last tenth is of rows never seen before."""
    seen = make_low_rank((40, 25), rank=1, n_draws=1500, noise=0.1, random_state=0).observations
    order = np.argsort(seen.rows >= 36, kind="stable")
    cells = zip(seen.rows[order], seen.cols[order], seen.values[order], strict=True)
    lines = [
        f"u{i},{j},{value:.4f},2026-{1 + t // 100:02d}-{1 + t % 28:02d}T10:00:{t % 60:02d}"
        for t, (i, j, value) in enumerate(cells)
    ]
    path = tmp_path_factory.mktemp("data") / "timed.csv"
    path.write_text("\n".join(["user,item,rating,when", *np.random.default_rng(0).permutation(lines)]) + "\n")
    return path


@pytest.fixture(scope="module")
def wide(tmp_path_factory):
    """The same kind of matrix as a wide table, and its cells."""
    matrix = make_low_rank((30, 25), rank=1, n_draws=500, noise=0.1, random_state=0).observations.dense()
    path = tmp_path_factory.mktemp("data") / "wide.csv"
    head = ",".join(["person", *(f"film {k}" for k in range(25))])
    lines = [",".join([f"u{i}", *("" if np.isnan(v) else f"{v:.4f}" for v in row)]) for i, row in enumerate(matrix)]
    path.write_text("\n".join([head, *lines]) + "\n")
    return path, matrix


def test_complete_reads_a_wide_file(run, wide, tmp_path, capsys):
    path, matrix = wide
    assert run("complete", path, "-o", tmp_path / "out.csv", "--wide", "--json", *FIT) == 0
    done = json.loads(capsys.readouterr().out)
    assert (done["rows"], done["columns"], done["observed_cells"]) == (30, 25, int((~np.isnan(matrix)).sum()))
    assert done["columns_read"][0] == "person"
    written = read_observations(tmp_path / "out.csv", wide=True)
    assert written.row_labels.tolist() == [f"u{i}" for i in range(30)]
    assert written.col_labels.tolist() == [f"film {j}" for j in range(25)]
    assert len(written) == done["observed_cells"] + done["filled_cells"]


def test_complete_recognises_a_wide_file_in_one_short_sentence(run, wide, tmp_path, capsys):
    assert run("complete", wide[0], "-o", tmp_path / "out.csv") == 2
    said = capsys.readouterr().err
    assert "looks like a wide table, with labels of rows and 25 columns of values: give wide=True (--wide on" in said
    assert "film" not in said
    assert not (tmp_path / "out.csv").exists()


def test_evaluate_reads_a_wide_file(run, wide, capsys):
    assert run("evaluate", wide[0], "--wide", "--by", 2, "--fold", 0, *FIT) == 0
    assert "in 1 fold, by models of the others; " in capsys.readouterr().out
    assert run("evaluate", wide[0], "--wide", "--by", "fold") == 2
    assert "a wide table has no column of folds" in capsys.readouterr().err


def test_lines_that_were_skipped_are_counted(run, ratings, tmp_path, capsys):
    path = tmp_path / "holes.csv"
    path.write_text(ratings.read_text() + "".join(f"u{k},1,NA\n" for k in range(12)))
    assert run("complete", path, "-o", tmp_path / "out.csv", *FIT) == 2
    assert "--skip-missing" in capsys.readouterr().err
    assert run("complete", path, "-o", tmp_path / "out.csv", "--skip-missing", *FIT) == 0
    assert "12 lines without a value were skipped." in capsys.readouterr().out
    assert run("stream", path, "--skip-missing", "--json") == 0
    assert json.loads(capsys.readouterr().out)["skipped_lines"] == 12
    assert run("evaluate", path, "--by", 2, "--fold", 0, "--skip-missing", *FIT) == 0
    assert "12 lines without a value were skipped." in capsys.readouterr().out
    assert run("stream", path) == 2
    assert "--skip-missing" in capsys.readouterr().err


def test_decimal_commas_give_what_points_give(run, ratings, tmp_path, capsys):
    with_points = ratings.read_text()
    with_commas = with_points.replace(",", ";").replace(".", ",")
    tables, summaries = [], []
    for name, text in (("points", with_points), ("commas", with_commas)):
        path = _written(tmp_path / f"{name}.csv", text)
        assert run("complete", path, "-o", tmp_path / "out.csv", "--bounds", -1.5, 1.5, *FIT) == 0
        tables.append((tmp_path / "out.csv").read_text())
        capsys.readouterr()
        assert run("stream", path, "--json") == 0
        summaries.append(json.loads(capsys.readouterr().out))
    assert tables[0] == tables[1]
    assert summaries[0]["by_confidence"] == summaries[1]["by_confidence"]


def _written(path, text):
    path.write_text(text)
    return path


class TestOrder:
    def test_evaluate_trains_on_the_past_and_reports_new_rows_apart(self, run, timed, capsys):
        assert run("evaluate", timed, "--order-by", "when", "--by", 2, "--json", *FIT) == 0
        found = json.loads(capsys.readouterr().out)
        assert [promise["fold"] for promise in found["promises"]] == [1, 2]
        assert found["cold"]["entries"] > 20
        assert found["cold"]["kept"] == 0
        assert found["error"] < 0.1 < found["cold"]["error"]

    def test_evaluate_says_what_it_did(self, run, timed, capsys):
        assert run("evaluate", timed, "--order-by", "when", "--by", 1, *FIT) == 0
        said = capsys.readouterr().out
        assert "in 1 window of time, by models of what came before" in said
        assert "entries are of rows or columns never seen before: mean squared error" in said
        assert "Window 1: " in said

    def test_stream_learns_in_order(self, run, timed, tmp_path, capsys):
        head, *lines = timed.read_text().splitlines()
        ordered = _written(tmp_path / "ordered.csv", "\n".join([head, *sorted(lines, key=lambda x: x.rsplit(",")[-1])]))
        outputs = []
        for file, options in ((timed, ("--order-by", "when")), (ordered, ())):
            assert run("stream", file, "-o", tmp_path / "out.csv", *options) == 0
            outputs.append((tmp_path / "out.csv").read_text())
        assert outputs[0] == outputs[1]
        assert "They were learnt in the order of when." in capsys.readouterr().out

    def test_stream_goes_on_in_order_from_a_checkpoint(self, run, timed, tmp_path):
        head, *lines = timed.read_text().splitlines()
        whole, out, state = (tmp_path / name for name in ("whole.csv", "out.csv", "state"))
        assert run("stream", timed, "-o", whole, "--order-by", "when") == 0
        in_order = sorted(lines, key=lambda line: line.rsplit(",")[-1])
        part = _written(tmp_path / "growing.csv", "\n".join([head, *in_order[:300]]) + "\n")
        options = ("-o", out, "--order-by", "when", "--checkpoint", state, "--every", 100)
        assert run("stream", part, *options) == 0
        _written(part, "\n".join([head, *in_order]) + "\n")
        assert run("stream", part, *options) == 0
        assert out.read_text() == whole.read_text()

    def test_json_lines_in_order(self, run, tmp_path, capsys):
        items = [{"user": "a", "item": k, "rating": k, "when": 10 - k} for k in range(5)] + [
            {"user": "b", "item": 1, "rating": None, "when": 3}
        ]
        path = _written(tmp_path / "a.jsonl", "\n".join(map(json.dumps, items)))
        options = ("--order-by", "when", "--row", "user", "--col", "item", "--value", "rating")
        assert run("stream", path, "-o", tmp_path / "o.csv", "--skip-missing", *options) == 0
        assert [line.split(",")[2] for line in (tmp_path / "o.csv").read_text().splitlines()[1:]] == list("43210")
        assert "1 line without a value was skipped." in capsys.readouterr().out
        assert run("stream", path, *options) == 2
        assert "'rating' is missing; --skip-missing leaves such lines out" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("command", "options", "sentence"),
    [
        (
            "evaluate",
            ("--order-by", "then"),
            "has no column 'then' for order_by; its columns are user, item, ",
        ),
        ("evaluate", ("--order-by", "user"), "is no time that can be read in column 'user'"),
        ("evaluate", ("--order-by", "when", "--by", "user"), "by must be the number of windows; got 'user'"),
        ("evaluate", ("--order-by", "when", "--by", 5000), "different times cannot be cut into 5001 blocks"),
        ("evaluate", ("--order-by", "when", "--by", 2, "--fold", 0), "there is no fold 0; the folds are 1, 2"),
        ("evaluate", ("--order-by", "when", "--wide"), "a wide table has no column that says when"),
        ("evaluate", ("--sheet", "a"), "has no sheets; sheet is for Excel workbooks"),
        ("evaluate", ("--decimal", ";"), "'--decimal'"),
        ("evaluate", ("--decimal", ","), "fields are separated by commas"),
        ("stream", ("--order-by", "then"), "has no column 'then' for order_by"),
        ("stream", ("--order-by", "item", "--row", "when", "--value", "user"), "is not a number"),
        ("stream", ("--wide",), "No such option"),
    ],
)
def test_mistakes_are_one_sentence_and_exit_code_2(run, timed, capsys, command, options, sentence):
    assert run(command, timed, *options) == 2
    said = capsys.readouterr()
    assert sentence in said.err
    assert said.err.count("\n") == 1
    assert said.out == ""


def test_a_pipe_cannot_be_sorted(run, capsys):
    assert run("stream", "-", "--order-by", "when") == 2
    assert (
        "standard input is learnt as it comes and cannot be sorted; --order-by needs a file." in capsys.readouterr().err
    )
