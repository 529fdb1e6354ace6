import json
import subprocess
import sys

import numpy as np
import pytest
from click.testing import CliRunner

from surefill.cli.evaluate import evaluate
from surefill.cli.main import commands
from surefill.datasets import make_low_rank


@pytest.fixture(scope="module")
def ratings(tmp_path_factory):
    sim = make_low_rank((40, 30), rank=1, n_draws=900, noise=0.3, random_state=0).observations
    folder = tmp_path_factory.mktemp("data")
    path = folder / "ratings.csv"
    lines = [
        f"u{i},{j},{v:.4f},{1 + t % 3}" for t, (i, j, v) in enumerate(zip(sim.rows, sim.cols, sim.values, strict=True))
    ]
    path.write_text("\n".join(["user,item,rating,fold", *lines]) + "\n")
    return path


def options(*more):
    return [*map(str, more), "--confidence", "posterior", "--bounds", "-1", "1", "--tolerance", "0.3"]


def test_a_table_of_orders_and_what_was_promised(ratings, tmp_path):
    picture = tmp_path / "curves.png"
    done = CliRunner().invoke(commands, ["evaluate", *options(ratings, "--by", "fold", "-o", picture)])
    assert done.exit_code == 0, done.output
    assert "in 3 folds" in done.output
    for order in ("risk (ours)", "confidence (ours)", "counts", "leverage", "ensemble variance", "Bayesian variance"):
        assert order in done.output
    assert "conformal width" in done.output
    assert "Fold 3: 0.3 promised" in done.output
    for way in ("this library", "learn-then-test", "learn-then-test, thinned", "conformal risk control", "SCoRE"):
        assert f"\n{way} " in done.output
    assert done.output.count("P(mean loss of the kept > 0.3) <= 0.05") == 5
    assert "E(mean loss of the kept) <= 0.3" in done.output
    assert picture.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"


def test_json_holds_the_numbers_of_every_order(ratings):
    done = CliRunner().invoke(commands, ["evaluate", *options(ratings, "--by", 2, "--json")])
    found = json.loads(done.output)
    assert found["folds"] == 2
    assert found["entries"] == len({line.rsplit(",", 2)[0] for line in ratings.read_text().splitlines()[1:]})
    assert set(found["orders"]) == {"risk", "confidence", "interval", "variance", "ensemble", "leverage", "counts"}
    for row in found["orders"].values():
        assert 0 <= row["coverage_at_tolerance"] <= 1
        assert row["normalized_aurc"] > 0
    assert found["intervals"]["coverage"] == pytest.approx(0.9, abs=0.06)
    assert np.all(np.diff(found["calibration"]["predicted"]) >= 0)
    assert [promise["fold"] for promise in found["promises"]] == [0, 1]
    kept = [way["kept"] for way in found["ways"]]
    assert kept[0] == pytest.approx(np.mean([promise["kept"] for promise in found["promises"]]), abs=0.05)
    assert kept[0] > max(kept[1:5]) - 0.02


def test_one_fold_only_and_the_same_seed_the_same_answer(ratings):
    outputs = [
        CliRunner().invoke(commands, ["evaluate", *options(ratings, "--by", "fold", "--fold", 2, "--json")]).output
        for _ in range(2)
    ]
    assert outputs[0] == outputs[1]
    assert [promise["fold"] for promise in json.loads(outputs[0])["promises"]] == [2]


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        (("--by", "1"), "by must be from 2 to"),
        (("--by", "999999"), "by must be from 2 to"),
        (("--by", "stars"), "by 'stars': "),
        (("--by", "stars"), "no column 'stars'"),
        (("--by", "fold", "--fold", "9"), "there is no fold 9; the folds are 1, 2, 3"),
        (("--by", "rating"), "column 'rating' must hold whole numbers"),
        (("-o", "curves.xls"), "must end in one of"),
        (("--delta", "2"), "--delta"),
    ],
)
def test_bad_input_is_one_sentence_and_exit_code_2(run, ratings, more, sentence, capsys):
    assert run("evaluate", ratings, *more) == 2
    said = capsys.readouterr()
    assert sentence in said.err
    assert said.err.count("\n") == 1
    assert said.out == ""


def test_a_cell_in_two_folds_is_refused(run, tmp_path, capsys):
    path = tmp_path / "twice.csv"
    path.write_text("user,item,rating,fold\na,1,2,1\na,1,3,2\nb,1,3,1\nb,2,3,2\na,2,1,1\n")
    assert run("evaluate", path, "--by", "fold") == 2
    assert "has cells in more than one fold" in capsys.readouterr().err


def test_as_a_process_and_the_help_teaches(ratings, tmp_path):
    command = [sys.executable, "-m", "surefill", "evaluate"]
    done = subprocess.run([*command, str(tmp_path / "nowhere.csv")], capture_output=True, text=True)
    assert done.returncode == 2
    assert "does not exist" in done.stderr
    assert "Traceback" not in done.stderr
    assert "surefill evaluate ratings.csv --by fold --fold 1" in CliRunner().invoke(evaluate, ["--help"]).output


def test_five_observations_promise_nothing_and_fewer_end_in_a_sentence(tmp_path, run, capsys):
    path = tmp_path / "tiny.csv"
    path.write_text("user,item,rating\na,x,5\na,y,3\nb,x,4\nb,y,2\nc,x,1\n")
    assert run("evaluate", path) == 0
    assert capsys.readouterr().out.count("nothing promised") == 5
    path.write_text("user,item,rating\na,x,5\na,y,3\nb,x,4\n")
    assert run("evaluate", path, "--by", "3") == 2
    assert "2 observed cells are too few to learn from" in capsys.readouterr().err
