"""``surefill predict``, ``recommend`` and ``update``: tables, figures, sentences, and every mistake in one of these."""

import csv
import gzip
import json

import numpy as np
import pytest

import surefill as sf


@pytest.fixture(scope="module")
def model(ratings, tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "model.surefill"
    seen = sf.read_observations(ratings, bounds=(-1.2, 1.2))
    sf.PartialCompleter(0.5, confidence="posterior").fit(seen).save(path)
    return path


@pytest.fixture
def pairs(tmp_path):
    path = tmp_path / "pairs.csv"
    path.write_text('why,item,user,rating\ntest,3,u1,0.5\n,4,nobody,\n"a,b",999,u2,0.1\n')
    return path


def lines_of(text):
    return list(csv.DictReader(text.splitlines()))


def test_pairs_are_scored_to_standard_output_and_told_about_on_standard_error(run, model, pairs, capsys):
    assert run("predict", model, pairs, "--level", 0.9) == 0
    out, err = capsys.readouterr()
    first, second, third = lines_of(out)
    assert list(first) == [
        "why",
        "item",
        "user",
        "rating",
        "value",
        "confidence",
        "risk",
        "keep",
        "reason",
        "low",
        "high",
    ]
    completer = sf.load(model)
    assert float(first["value"]) == pytest.approx(completer.predict(["u1"], [3])[0], rel=1e-5)
    assert float(first["low"]) < float(first["value"]) < float(first["high"])
    assert (second["reason"], second["confidence"], second["keep"]) == ("row never seen", "0", "false")
    assert (third["why"], third["reason"]) == ("a,b", "column never seen")
    assert "mean squared error of 2 pairs with a value" in err
    assert "1 row never seen" in err


def test_a_written_table_equals_the_printed_one(run, model, pairs, tmp_path, capsys):
    run("predict", model, pairs)
    printed = lines_of(capsys.readouterr().out)
    assert run("predict", model, pairs, "-o", tmp_path / "scored.csv.gz") == 0
    assert "Wrote 3 lines" in capsys.readouterr().out
    with gzip.open(tmp_path / "scored.csv.gz", "rt") as file:
        written = lines_of(file.read())
    for one, other in zip(printed, written, strict=True):
        assert float(one.pop("value")) == pytest.approx(float(other.pop("value")), rel=1e-5)
        assert one == other


def test_parquet_in_parquet_out(run, model, tmp_path):
    polars = pytest.importorskip("polars")
    table = polars.DataFrame({"user": ["u1", "u2"], "item": [3, 4], "weight": [0.5, None]})
    table.write_parquet(tmp_path / "pairs.parquet")
    assert run("predict", model, tmp_path / "pairs.parquet", "-o", tmp_path / "scored.parquet") == 0
    scored = polars.read_parquet(tmp_path / "scored.parquet")
    assert scored.columns == ["user", "item", "weight", "value", "confidence", "risk", "keep", "reason"]
    assert scored["value"].to_list() == sf.load(model).predict(["u1", "u2"], [3, 4]).tolist()


def test_the_summary_of_scored_pairs_as_json(run, model, ratings, tmp_path, capsys):
    assert run("predict", model, ratings, "-o", tmp_path / "scored.csv", "--json") == 0
    told = json.loads(capsys.readouterr().out)
    seen = sf.load(model).observations_
    assert told["observed"] == told["lines"] == told["n_compared"] >= len(seen)
    assert 0 < told["error"] < 0.1
    assert "pairs" not in told
    assert run("predict", model, ratings, "--json") == 0
    assert len(json.loads(capsys.readouterr().out)["pairs"]) == told["lines"]


def test_pairs_without_header_have_row_and_column_first(run, model, tmp_path, capsys):
    (tmp_path / "pairs.tsv").write_text("u1\t3\nu2\t4\n")
    assert run("predict", model, tmp_path / "pairs.tsv", "--no-header") == 0
    assert [line["user"] for line in lines_of(capsys.readouterr().out)] == ["u1", "u2"]


@pytest.mark.parametrize(
    ("text", "arguments", "sentence"),
    [
        ("who,what,x\nu1,3,1\n", (), "needs columns of rows and columns called 'user' and 'item'"),
        ("user\nu1\n", ("--header",), "has 1 column"),
        ("user,item,risk\nu1,3,1\n", (), "has a column 'risk' already"),
        ("user,item\nu1,\n", (), "line 2: an id is empty"),
        ("user,item\nu1,3,4\n", ("--delimiter", ","), "line 2: 2 fields are expected"),
        ("user,item,rating\nu1,3,good\n", (), "line 2"),
        ("user,item\nu1,3\n", ("--row", "person"), "has no column 'person' for row"),
        ("user,item\nu1,3\n", ("--level", "2"), "2.0 is not in the range"),
        ("user,item\nu1,3\n", ("-o", "scored.doc"), "must end in one of"),
        ("user,user\nu1,3\n", (), "columns of different names"),
    ],
)
def test_pairs_that_cannot_be_scored(run, model, tmp_path, capsys, monkeypatch, text, arguments, sentence):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pairs.csv").write_text(text)
    assert run("predict", model, "pairs.csv", *arguments) == 2
    error = capsys.readouterr().err
    assert sentence in error
    assert error.count("\n") == 1
    assert [file.name for file in tmp_path.iterdir()] == ["pairs.csv"]


@pytest.mark.parametrize(
    "command",
    [
        ("predict", "none.surefill", "pairs.csv"),
        ("recommend", "none.surefill", "--row", 1),
        ("update", "none.surefill", "pairs.csv", "--in-place"),
    ],
)
def test_a_model_that_is_not_there(run, pairs, capsys, monkeypatch, command):
    monkeypatch.chdir(pairs.parent)
    assert run(*command) == 2
    assert "none.surefill does not exist." in capsys.readouterr().err


def test_pairs_that_are_not_there_and_files_that_would_be_overwritten(run, model, pairs, ratings, capsys):
    assert run("predict", model, "nowhere.csv") == 2
    assert "nowhere.csv does not exist" in capsys.readouterr().err
    assert run("predict", model, pairs, "-o", pairs) == 2
    assert "PAIRS and output must be different files" in capsys.readouterr().err
    assert run("predict", ratings, pairs) == 2
    assert "is not a surefill model" in capsys.readouterr().err


def test_recommendations_of_a_row(run, model, capsys):
    assert run("recommend", model, "--row", "u3", "-n", 4) == 0
    lines = lines_of(capsys.readouterr().out)
    best = sf.load(model).recommend("u3", 4)
    assert [int(line["item"]) for line in lines] == best.labels
    assert {line["user"] for line in lines} == {"u3"}
    first = str(best.labels[0])
    assert run("recommend", model, "--row", "u3", "-n", 3, "--exclude", first, "--json") == 0
    assert [line["item"] for line in json.loads(capsys.readouterr().out)] == best.labels[1:]
    assert run("recommend", model, "--row", "u3", "--include", first) == 0
    assert [line["item"] for line in lines_of(capsys.readouterr().out)] == [first]


def test_recommendations_of_all_rows_and_of_rows_in_a_file(run, model, tmp_path, capsys):
    assert run("recommend", model, "-n", 2, "-o", tmp_path / "best.csv") == 0
    assert "of 30 rows" in capsys.readouterr().out
    written = lines_of((tmp_path / "best.csv").read_text())
    assert len({line["user"] for line in written}) == 30
    (tmp_path / "rows.txt").write_text("u3\nu9\n")
    assert run("recommend", model, "-n", 2, "--rows", tmp_path / "rows.txt") == 0
    some = lines_of(capsys.readouterr().out)
    assert [(line["user"], line["item"]) for line in some] == [
        (line["user"], line["item"]) for user in ("u3", "u9") for line in written if line["user"] == user
    ]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--row", "nobody"), "there is no row labelled 'nobody'"),
        (("--row", "u3", "--exclude", "x"), "there is no column labelled 'x'"),
        ((), "say where to write it (-o"),
        (("--row", "u3", "--rows", "rows.txt"), "not both"),
        (("--rows", "rows.txt"), "rows.txt"),
        (("--row", "u3", "-n", "0"), "0 is not in the range"),
        (("--row", "u3", "-o", "best.doc"), "must end in one of"),
    ],
)
def test_recommendations_that_cannot_be(run, model, tmp_path, capsys, monkeypatch, arguments, sentence):
    monkeypatch.chdir(tmp_path)
    assert run("recommend", model, *arguments) == 2
    assert sentence in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


@pytest.fixture
def news(tmp_path, ratings):
    """Two cells of a new row, one of a new column, and the first line of the file again, with another value."""
    user, item, _ = ratings.read_text().splitlines()[1].split(",")
    path = tmp_path / "new.csv"
    path.write_text(f"rating,user,item\n0.1,newcomer,3\n0.2,newcomer,5\n0.3,u1,500\n0.9,{user},{item}\n")
    return path


def test_an_update_is_an_observe_and_says_what_becomes_of_the_promise(run, model, news, tmp_path, capsys):
    target = tmp_path / "newer.surefill"
    assert run("update", model, news, "-o", target) == 0
    told = capsys.readouterr().out
    assert "Took in 3 new cells, 1 new row and 1 new column" in told
    assert "Left out 1 cell that the model has already, 1 of them with another value now" in told
    assert "Nothing is promised of what is kept: 3 cells were observed after" in told
    completer = sf.load(model).observe(["newcomer", "newcomer", "u1"], [3, 5, 500], [0.1, 0.2, 0.3])
    newer = sf.load(target)
    assert newer.observations_.row_labels.tolist() == completer.observations_.row_labels.tolist()
    rows, cols = (axis.ravel() for axis in np.indices(newer.observations_.shape))
    np.testing.assert_allclose(newer.result_.values_at(rows, cols), completer.result_.values_at(rows, cols), rtol=1e-9)


def test_a_refit_promises_anew(run, model, news, tmp_path, capsys):
    target = tmp_path / "newer.surefill"
    assert run("update", model, news, "-o", target, "--refit", "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert told["refitted"]
    assert told["promised"] == sf.load(target).result_.guarantee.promised
    assert "came after the first fit" in told["not_promised"]


def test_in_place_replaces_the_model(run, model, news, tmp_path):
    own = tmp_path / "own.surefill"
    own.write_bytes(model.read_bytes())
    assert run("update", own, news, "--in-place") == 0
    assert "newcomer" in sf.load(own).observations_.row_labels
    assert {file.name for file in tmp_path.iterdir()} == {"own.surefill", "new.csv"}


@pytest.mark.parametrize(
    ("text", "arguments", "sentence"),
    [
        ("user,item,rating\nnew,3,0.1\n", (), "-o FILE, or --in-place"),
        ("user,item,rating\nnew,3,0.1\n", ("-o", "m", "--in-place"), "-o FILE, or --in-place"),
        ("user,item,rating\nnew,3,9\n", ("-o", "m"), "(-1.2, 1.2)"),
        ("user,item,rating\nnew,abc,0.1\n", ("-o", "m"), "'abc' is not one"),
        ("user,item\nnew,3\n", ("-o", "m"), "at least three are expected"),
        ("user,item,rating\nnew,3,\n", ("-o", "m"), "the value is empty"),
        ("user,item,rating\nnew,3,0.1\n", ("-o", "new.csv"), "must be different files"),
        ("user,item,rating\nnew,3,0.1\n", ("-o", "no/m"), "the folder no does not exist"),
    ],
)
def test_updates_that_cannot_be_leave_everything_as_it_was(
    run, model, tmp_path, capsys, monkeypatch, text, arguments, sentence
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "new.csv").write_text(text)
    before = model.read_bytes()
    assert run("update", model, "new.csv", *arguments) == 2
    error = capsys.readouterr().err
    assert sentence in error
    assert error.count("\n") == 1
    assert [file.name for file in tmp_path.iterdir()] == ["new.csv"]
    assert model.read_bytes() == before


def test_an_update_without_anything_new(run, model, ratings, tmp_path, capsys):
    assert run("update", model, ratings, "-o", tmp_path / "m") == 2
    assert "has all of its cells already" in capsys.readouterr().err


def test_help_lists_the_commands_first(run, capsys):
    run("--help")
    told = capsys.readouterr().out.split("Commands:")[0]
    for command in ("predict", "recommend", "update"):
        assert f"surefill {command} model.surefill" in told


def test_an_error_on_observed_pairs_is_no_test(run, model, ratings, capsys):
    assert run("predict", model, ratings) == 0
    assert "It counts pairs that were observed, which the model knows" in capsys.readouterr().err
