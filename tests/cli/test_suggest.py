"""``surefill suggest``: cells by label as csv and JSON, by row, to a file, and what is wrong in one sentence."""

import csv
import json

import pytest

import surefill as sf
from surefill.active import STRATEGIES
from surefill.cli import suggest as command


@pytest.fixture(scope="module")
def model(ratings, tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "model.surefill"
    seen = sf.read_observations(ratings, bounds=(-1.2, 1.2))
    sf.PartialCompleter(0.1, confidence="game").fit(seen).save(path)
    return path


def test_the_command_has_the_strategies_of_the_library():
    assert tuple(command.STRATEGIES) == STRATEGIES


def test_csv_has_labels_that_were_not_observed(run, model, capsys):
    assert run("suggest", model, "-n", 7) == 0
    lines = list(csv.DictReader(capsys.readouterr().out.splitlines()))
    assert list(lines[0]) == ["user", "item", "predicted", "risk", "utility"]
    seen = sf.load(model).observations_
    rows = seen.row_index([line["user"] for line in lines])
    cols = seen.col_index([int(line["item"]) for line in lines])
    assert (seen.find(rows, cols) < 0).all()
    assert len({(line["user"], line["item"]) for line in lines}) == 7


def test_json_holds_the_same_as_the_table_that_is_written(run, model, tmp_path, capsys):
    assert run("suggest", model, "-n", 4, "--strategy", "variance", "--json") == 0
    records = json.loads(capsys.readouterr().out)
    assert run("suggest", model, "-n", 4, "--strategy", "variance", "-o", tmp_path / "plate.csv") == 0
    written = list(csv.DictReader((tmp_path / "plate.csv").read_text().splitlines()))
    assert [(r["user"], str(r["item"])) for r in records] == [(w["user"], w["item"]) for w in written]
    assert "4 cells to ask were written" in capsys.readouterr().out


def test_each_named_row_is_asked(run, model, capsys):
    assert run("suggest", model, "-n", 2, "--row", "u3", "--row", "u9") == 0
    users = [line.split(",")[0] for line in capsys.readouterr().out.splitlines()[1:]]
    assert users == ["u3", "u3", "u9", "u9"]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [(("--row", "nobody"), "no row labelled 'nobody'"), (("-n", 100000), "cells to ask were wanted")],
)
def test_what_is_wrong_is_said_in_one_sentence(run, model, capsys, arguments, sentence):
    assert run("suggest", model, *arguments) == 2
    assert sentence in capsys.readouterr().err
