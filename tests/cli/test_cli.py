import json
import subprocess
import sys

import numpy as np
import pytest

from surefill import load, read_observations
from surefill.cli.progress import ProgressBars


def test_complete_writes_a_table_and_says_what_it_did(run, ratings, tmp_path, capsys):
    out, model = tmp_path / "filled.csv", tmp_path / "model"
    options = ("--tolerance", 0.3, "--confidence", "posterior", "--save", model)
    assert run("complete", ratings, "-o", out, *options) == 0
    said = capsys.readouterr().out
    assert "Filled " in said
    assert "Rows are user, columns item, values rating." in said
    assert "With probability at least 0.95" in said
    filled = sum(line.endswith("true,false") for line in out.read_text().splitlines())
    assert f"Filled {filled} of 380 missing cells (" in said
    assert f"the mean squared error over the {filled} filled cells (" in said
    assert "each counted once) is at most 0.3" in said
    assert "odds of being observed are off by a factor of more than " in said
    header, *lines = out.read_text().splitlines()
    assert header == "user,item,rating,confidence,risk,keep,observed"
    assert f"Wrote {len(lines):,} lines" in said
    kept = read_observations(out)
    assert len(kept) == len(lines)
    completer = load(model)
    row, column, value, confidence, *_ = next(line for line in lines if line.endswith("true,false")).split(",")
    assert float(value) == pytest.approx(completer.predict([row], [column])[0], abs=5.1e-5)
    assert float(confidence) == pytest.approx(completer.predict_confidence([row], [column])[0], rel=1e-4)


def test_a_promise_that_is_not_about_filled_cells_says_so_beside_their_number(run, ratings, tmp_path, capsys):
    options = ("--tolerance", 0.3, "--confidence", "posterior", "--aim", "observed")
    assert run("complete", ratings, "-o", tmp_path / "kept.csv", *options) == 0
    said = capsys.readouterr().out
    assert (
        "; the guarantee is about another set of cells, which it names: --aim unobserved asks for one about these."
        in said
    )
    assert "over the kept cells drawn like the observed ones, in proportion to their chances" in said
    assert "filled cells" not in said
    assert run("complete", ratings, "-o", tmp_path / "kept.csv", *options, "--sensitivity", 2) == 2
    assert "a sensitivity is about cells that were not seen" in capsys.readouterr().err


def test_a_promise_survives_the_sensitivity_asked_for(run, ratings, tmp_path, capsys):
    found = []
    for factor in (1, 1.2):
        options = ("--tolerance", 0.6, "--confidence", "posterior", "--sensitivity", factor, "--json")
        assert run("complete", ratings, "-o", tmp_path / "filled.csv", *options) == 0
        found.append(json.loads(capsys.readouterr().out))
    assert found[1]["promised"]
    assert min(found[1]["sensitivity"] / 1.2, found[0]["sensitivity"]) >= 1
    assert found[1]["aim"] == "unobserved"
    assert found[1]["n_filled"] == found[1]["filled_cells"]
    assert run("complete", ratings, "-o", tmp_path / "filled.csv", "--sensitivity", 0.5) == 2


def test_json_for_machines_and_the_same_seed_the_same_file(run, ratings, tmp_path, capsys):
    outputs, options = [], ("--seed", 3, "--json", "--confidence", "posterior", "--tolerance", 0.3)
    for name in ("a.csv", "b.csv"):
        assert (
            run(
                "complete", ratings, "-o", tmp_path / name, "--seed", 3, "--json", "--confidence", "posterior", *options
            )
            == 0
        )
        outputs.append(json.loads(capsys.readouterr().out))
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()
    assert outputs[0]["observed_cells"] == outputs[1]["observed_cells"]
    assert 0 <= outputs[0]["kept_share"] <= 1
    assert outputs[0]["promised"] is True
    assert outputs[0]["guarantee"].startswith("With probability at least 0.95")


def test_completions_by_name_are_those_of_the_library(run, ratings, tmp_path, capsys):
    from surefill.cli.complete import complete
    from surefill.registry import COMPLETIONS

    (option,) = [parameter for parameter in complete.params if parameter.name == "completion"]
    assert list(option.type.choices) == list(COMPLETIONS)
    out = tmp_path / "out.csv"
    assert run("complete", ratings, "-o", out, "--completion", "soft-impute", "--confidence", "posterior") == 0
    assert out.exists()
    assert run("complete", ratings, "-o", out, "--completion", "magic") == 2
    assert "soft-impute" in capsys.readouterr().err


def test_parquet_and_all_entries(run, ratings, tmp_path):
    import pyarrow.parquet as pq

    out = tmp_path / "all.parquet"
    assert run("complete", ratings, "-o", out, "--entries", "all", "--confidence", "posterior") == 0
    table = pq.read_table(out)
    assert table.num_rows == 30 * 25
    assert table.column_names == ["user", "item", "rating", "confidence", "risk", "keep", "observed"]


def test_positions_instead_of_names(run, ratings, tmp_path):
    bare = tmp_path / "bare.tsv"
    bare.write_text(ratings.read_text().partition("\n")[2].replace(",", "\t"))
    options = ("--row", 0, "--col", 1, "--value", 2, "--no-header", "--bounds", -1, 1, "--confidence", "posterior")
    assert run("complete", bare, "-o", tmp_path / "out.csv", *options) == 0


@pytest.mark.parametrize(
    ("content", "options", "sentence"),
    [
        ("", (), "empty"),
        ("user,item,rating\n", (), "in.csv"),
        ("user,item,rating\na,1,2\nb,2\n", (), "line 3"),
        ("user,item,rating\na,1,2\nb,2,good\n", (), "line 3"),
        ("user,item,rating\na,1,2\nb,2,nan\n", (), "line 3"),
        ("user,item,rating\na,1,2\nb,2,3\n", ("--value", "stars"), "stars"),
        ("user,item,rating\na,1,2\na,2,3\na,3,4\na,4,1\n", (), "in.csv: the matrix has 1 row"),
        ("user,item,rating\na,1,2\nb,1,3\nc,1,4\nd,1,1\n", (), "in.csv: the matrix has 1 column"),
        ("user,item,rating\na,1,2\nb,2,2\na,2,2\nb,1,2\n", (), "in.csv: all 4 values to learn from equal 2"),
        ("user,item,rating\na,1,2\nb,2,3\n", (), "too few"),
        ("user,item,rating\na,1,2\nb,2,3\na,2,1\nb,1,2\n", ("--tolerance", 0), "'--tolerance'"),
        ("user,item,rating\na,1,2\nb,2,3\na,2,1\nb,1,2\n", ("--tolerance", "x"), "--tolerance"),
        ("user,item,rating\na,1,2\nb,2,3\na,2,1\nb,1,2\n", ("--delta", 1.5), "'--delta'"),
        ("user,item,rating\na,1,2\nb,2,3\na,2,1\nb,1,2\n", ("--bounds", 1, 2), "bounds"),
        ("user,item,rating\na,1,2\nb,2,3\na,2,1\nb,1,2\n", ("--seed", -1), "'--seed'"),
        ("user,Alien,Heat,Up\nann,5,4,3\nbob,1,2,3\n", (), "looks like a wide table, with labels of rows and 3"),
        ("ts,uid,mid,points\n9,1,2,3\n9,2,3,4\n", (), "say which hold col"),
    ],
)
def test_bad_input_is_one_sentence_exit_code_2_and_no_file(run, tmp_path, capsys, content, options, sentence):
    (tmp_path / "in.csv").write_text(content)
    assert run("complete", tmp_path / "in.csv", "-o", tmp_path / "out.csv", *options) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("surefill: ")
    assert captured.err.count("\n") == 1
    assert sentence in captured.err
    assert [path.name for path in tmp_path.iterdir()] == ["in.csv"]


def test_a_bad_output_is_refused_before_the_work(run, ratings, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("surefill.io.readers.read_observations", None)
    for out, sentence in ((tmp_path / "no" / "out.csv", "does not exist"), (tmp_path / "out.xls", "must end in")):
        assert run("complete", ratings, "-o", out) == 2
        assert sentence in capsys.readouterr().err
    assert run("complete", ratings) == 2
    assert "Try 'surefill complete --help'" in capsys.readouterr().err


def test_a_missing_file_is_said(run, tmp_path, capsys):
    assert run("complete", tmp_path / "missing.csv", "-o", tmp_path / "out.csv") == 2
    assert "missing.csv does not exist" in capsys.readouterr().err


def test_the_bar_follows_the_bytes_of_a_stream():
    bars = ProgressBars()
    with bars.through("learning", 10_000_000):
        bars.at(5_000_000)
        assert bars.state().doing == "learning"
        assert bars.state().seconds_left == pytest.approx(2.5, rel=0.1)  # a quarter of ten
    with bars.through("learning", None):
        bars.at(5)
        assert bars.state().share < 1


def test_nothing_given_is_overwritten(run, ratings, tmp_path, capsys):
    copy = tmp_path / "ratings.csv"
    copy.write_bytes(ratings.read_bytes())
    out = tmp_path / "o.csv"
    for options in (("-o", copy), ("-o", out, "--save", copy), ("-o", out, "--save", out)):
        assert run("complete", copy, *options) == 2
        assert "must be different files" in capsys.readouterr().err
    assert copy.read_bytes() == ratings.read_bytes()
    assert run("complete", copy, "-o", tmp_path / "o.csv", "--save", tmp_path / "no" / "model") == 2
    assert [path.name for path in tmp_path.iterdir()] == ["ratings.csv"]


def test_a_fault_while_writing_leaves_neither_table_nor_model(run, ratings, tmp_path, monkeypatch):
    from surefill.estimators import long_table

    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(long_table, "list_rows", interrupt)
    options = ("--save", tmp_path / "model", "--confidence", "posterior")
    assert run("complete", ratings, "-o", tmp_path / "out.csv", *options) == 130
    assert list(tmp_path.iterdir()) == []


def test_a_pipe_and_a_typed_tab_are_read(ratings, tmp_path):
    code = "from surefill.cli import main; main()"
    out = tmp_path / "out.csv"
    options = f"-o {out} --delimiter '\\t' --confidence posterior"
    piped = f"{sys.executable} -c '{code}' complete <(tr , '\\t' < {ratings}) {options}"
    done = subprocess.run(["bash", "-c", piped], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert out.exists()


def test_no_command_shows_the_help(run, capsys):
    assert run() == 0
    said = capsys.readouterr().out
    assert "Start here:" in said
    assert "Try" not in said


def test_interruption_leaves_nothing(run, ratings, tmp_path, capsys, monkeypatch):
    from surefill import PartialCompleter

    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(PartialCompleter, "fit", interrupt)
    assert run("complete", ratings, "-o", tmp_path / "out.csv") == 130
    assert "interrupted; nothing was written" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", [(), ("complete",), ("demo",), ("evaluate",)])
def test_help_teaches_by_example(run, command, capsys):
    assert run(*command, "--help") == 0
    said = capsys.readouterr().out
    assert said.count("surefill ") >= 2
    assert "  surefill demo" in said or "Examples:" in said


def test_help_does_not_load_the_heavy_parts():
    code = (
        "import sys; from surefill.cli import main\n"
        "try: main(['complete', '--help'])\n"
        "except SystemExit: pass\n"
        "print([m for m in ('numba', 'sklearn', 'cvxpy', 'matplotlib') if m in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.strip() == "[]"


def test_version(run, capsys):
    assert run("--version") == 0
    assert "surefill, version" in capsys.readouterr().out


def test_text_of_the_confidence_is_not_lost_in_rounding(run, ratings, tmp_path):
    out = tmp_path / "filled.csv"
    run("complete", ratings, "-o", out, "--confidence", "posterior", "--entries", "all")
    confidence = np.array([float(line.split(",")[3]) for line in out.read_text().splitlines()[1:]])
    assert len(np.unique(confidence)) > 300


@pytest.mark.parametrize("given", ["nan", "inf", "0", "-1", "abc"])
def test_a_tolerance_that_is_none_is_refused_in_the_commands_own_words(run, tmp_path, capsys, given):
    assert run("complete", tmp_path / "r.csv", "-o", tmp_path / "f.csv", "--tolerance", given) == 2
    assert f"'{given}' is not a number above 0." in capsys.readouterr().err


def test_another_loss_is_promised_named_and_repeated(run, ratings, tmp_path, capsys):
    page = tmp_path / "page.html"
    options = ("--loss", "beyond:0.4", "--tolerance", 0.3, "--confidence", "posterior", "--report", page)
    assert run("complete", ratings, "-o", tmp_path / "out.csv", *options) == 0
    said = capsys.readouterr().out
    assert "the share of errors beyond 0.4 over the " in said
    assert "filled cells (those kept that were not observed, each counted once) is at most 0.3" in said
    assert "were seen; bounds were not given." in said
    assert "mean squared error" not in said + page.read_text()
    assert "--loss beyond:0.4" in page.read_text()
    assert run("complete", ratings, "-o", tmp_path / "out.csv", "--loss", "huber") == 2
    assert "'huber' is not 'squared', 'absolute' or 'beyond:DISTANCE'" in capsys.readouterr().err


def test_why_nothing_is_kept_is_json_too(run, ratings, tmp_path, capsys):
    options = ("--tolerance", 0.001, "--confidence", "posterior", "--json")
    assert run("complete", ratings, "-o", tmp_path / "filled.csv", *options) == 0
    shortfall = json.loads(capsys.readouterr().out)["shortfall"]
    assert shortfall["limited_by"] in ("tolerance", "support", "calibration")
    assert shortfall["loss"] == "mean squared error"
    assert all(each["tolerance"] > 0.001 for each in shortfall["reachable"])
