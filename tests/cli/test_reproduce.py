import json
import subprocess
import sys

import numpy as np
import pytest
from click.testing import CliRunner

from surefill import read_observations, reproduction
from surefill.cli.main import commands
from surefill.completion import BayesianFactorModel, SoftImpute
from surefill.reproduction import movielens_study
from surefill.reproduction.methods import coverage_program, factored_descent


@pytest.fixture(scope="module")
def ml100k(tmp_path_factory):
    """120 users and 200 films of which a quarter of the ids are above 250, every rating there, in random order."""
    folder = tmp_path_factory.mktemp("ml-100k")
    rng = np.random.default_rng(0)
    user, film = (index.ravel() for index in np.indices((120, 200)))
    stars = np.clip(np.round(3 + np.outer(rng.normal(size=120), rng.normal(size=200)).ravel()), 1, 5).astype(int)
    lines = [f"{3 * u + 1}\t{2 * i + 1}\t{y}\t88\n" for u, i, y in zip(user, film, stars, strict=True)]
    (folder / "u.data").write_text("".join(lines[k] for k in rng.permutation(len(lines))))
    return folder


@pytest.fixture
def quick(monkeypatch):
    cheap = {"SoftImpute": SoftImpute(penalty=20.0, centre="none"), "BayesianFactorModel": BayesianFactorModel(rank=1)}
    monkeypatch.setattr(movielens_study, "completions", lambda _: cheap)
    monkeypatch.setattr(movielens_study, "SQUARE_METHODS", (factored_descent("cube"),))
    monkeypatch.setattr(movielens_study, "EXACT_METHODS", (factored_descent("entropy"),))
    monkeypatch.setattr(movielens_study, "WHOLE_METHODS", (factored_descent("entropy"),))


def invoke(*arguments):
    done = CliRunner().invoke(commands, ["reproduce", *map(str, arguments)], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


def test_figure1_writes_pictures_and_numbers(tmp_path, monkeypatch):
    def quicker(pattern, **options):
        return original(pattern, methods=[coverage_program()], **options)

    original = reproduction.reproduce_pattern
    monkeypatch.setattr(reproduction, "reproduce_pattern", quicker)
    told = json.loads(invoke("figure1", "--size", 12, "--seed", 2, "--json", "-o", tmp_path / "out"))
    names = {"figure1-blocks.png", "figure1-overlapping.png", "figure1-half.png", "figure1.csv"}
    assert {path.name for path in (tmp_path / "out").iterdir()} == names
    assert {(row["pattern"], row["method"]) for row in told["methods"]} == {
        ("blocks", "MP 2"), ("overlapping", "MP 2"), ("half", "MP 2"),
    }  # fmt: skip
    assert told["completion_error"]["blocks"]["off"] > told["completion_error"]["blocks"]["on"]
    header, *lines = (tmp_path / "out" / "figure1.csv").read_text().splitlines()
    assert header.startswith("pattern,method,settings,standing,gap,confidence_on,confidence_off,auc")
    assert len(lines) == 3
    monkeypatch.chdir(tmp_path / "out")
    said = invoke("figure1", "--size", 12, "-o", ".")
    assert "an arbitrary half of the matrix" in said
    assert "Wrote " in said


@pytest.mark.usefixtures("quick")
def test_movielens_square_and_whole(ml100k, tmp_path):
    said = invoke("movielens", ml100k, "-o", tmp_path)
    assert "the paper's square: 250 x 250" in said
    assert "all of fold 1: 120 x 200, 4,000 ratings to learn from, 20,000 to test on" in said
    assert {path.name for path in tmp_path.iterdir()} == {
        "movielens-square.png",
        "movielens-whole.png",
        "movielens.csv",
    }
    written = read_observations(tmp_path / "movielens.csv", row="part", col="method", value="spearman")
    assert (written.values < 0).any()
    told = json.loads(invoke("movielens", ml100k, "--square-only", "--exact", "--json", "-o", tmp_path / "square"))
    assert {row["part"] for row in told["rows"]} == {"the paper's square"}
    mean = {row["completion"]: row["error"] for row in told["completions"]}
    for row in told["rows"]:
        assert sum(row[f"error_{k}"] for k in range(1, 11)) / 10 == pytest.approx(mean[row["completion"]], rel=0.01)
    expected = {"ODD factored, cube", "ODD factored, entropy", "ratings of row + column"}
    assert {row["method"] for row in told["rows"]} == expected
    assert not (tmp_path / "square" / "movielens-whole.png").exists()


@pytest.mark.usefixtures("quick")
def test_what_cannot_be_done_is_one_sentence_before_any_work(run, tmp_path, ml100k, capsys):
    (tmp_path / "file").write_text("")
    (tmp_path / "u.data").write_text("1\t1\t3\t88\n2\t2\t4\t88\n")
    cases = [
        (("figure1", "-o", tmp_path / "file"), "is a file"),
        (("figure1", "-o", tmp_path / "no" / "out"), "does not exist"),
        (("figure1", "--size", 5), "--size"),
        (("movielens", tmp_path / "none", "-o", tmp_path / "out"), "holds no ml-100k"),
        (("movielens", tmp_path, "-o", tmp_path / "out"), "is not all of ml-100k"),
        (("movielens", ml100k, "-o", tmp_path / "file"), "is a file"),
        (("movielens",), "FOLDER"),
    ]
    for arguments, sentence in cases:
        assert run("reproduce", *arguments) == 2
        error = capsys.readouterr().err
        assert sentence in error
        assert error.count("\n") == 1
    assert {path.name for path in tmp_path.iterdir()} == {"file", "u.data"}


def test_an_interrupted_run_leaves_nothing(run, tmp_path, monkeypatch, capsys):
    def interrupt(pattern, **_):
        raise KeyboardInterrupt

    monkeypatch.setattr(reproduction, "reproduce_pattern", interrupt)
    assert run("reproduce", "figure1", "-o", tmp_path / "out") == 130
    assert "nothing was written" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("command", [(), ("figure1",), ("movielens",)])
def test_help_teaches_by_example(command):
    said = invoke(*command, "--help")
    assert said.count("surefill reproduce ") >= 2
    assert "Examples:" in said


def test_help_does_not_load_the_heavy_parts():
    code = (
        "import sys; from surefill.cli import main\n"
        "try: main(['reproduce', 'movielens', '--help'])\n"
        "except SystemExit: pass\n"
        "print([m for m in ('numba', 'sklearn', 'cvxpy', 'matplotlib') if m in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.strip() == "[]"
