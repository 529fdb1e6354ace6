"""Jobs from file to file: what they read, promise and write is in fields, and a failure leaves nothing behind."""

from __future__ import annotations

import json

import numpy as np
import pytest

from surefill import InputError, Observations, PartialCompleter, load, read_observations
from surefill.datasets import make_low_rank
from surefill.io import ReadOptions
from surefill.jobs import CompletedFile, WriteOptions, complete_file, evaluate_file


@pytest.fixture(scope="module")
def seen():
    return make_low_rank((30, 25), rank=1, n_draws=500, noise=0.1, random_state=0).observations


@pytest.fixture(scope="module")
def ratings(seen, tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "ratings.csv"
    cells = zip(seen.rows, seen.cols, seen.values.tolist(), strict=True)
    lines = [f"{i},{j},{v!r},{1 + t % 3}" for t, (i, j, v) in enumerate(cells)]
    path.write_text("\n".join(["user,item,rating,fold", *lines]) + "\n")
    return path


@pytest.fixture(scope="module")
def done(ratings, tmp_path_factory):
    """A completion of the ratings with every file there is, and the steps that were told."""
    folder, steps = tmp_path_factory.mktemp("out"), []
    files = {"model": folder / "model", "report": folder / "page.html"}
    options = {
        "tolerance": 0.3,
        "confidence": "posterior",
        "write": WriteOptions("all", digits=15),
        "command": "make it",
        **files,
    }
    read = ReadOptions(bounds=(-1.0, 1.0))
    return complete_file(ratings, folder / "all.csv", read=read, progress=steps.append, **options), steps


def test_the_summary_has_what_was_read(done, seen):
    summary = done[0]
    assert (summary.rows, summary.columns, summary.columns_read) == (30, 25, ("user", "item", "rating"))
    assert (summary.observed_cells, summary.draws, summary.bounds) == (len(seen), len(seen), (-1.0, 1.0))
    assert summary.observed_cells + summary.missing_cells == 30 * 25


def test_the_summary_has_what_was_found_and_promised(done):
    summary, result = done[0], load(done[0].model).result_
    assert (summary.tolerance, summary.delta, summary.promised) == (0.3, 0.05, True)
    assert summary.kept_share == result.kept_share()
    assert summary.held_out_error == result.selection.held_out_error <= 0.3
    assert (summary.limited_by, summary.shortfall) == (result.selection.limited_by.name.lower(), None)
    assert summary.guarantee == result.guarantee.sentence
    assert summary.seconds == result.timings


def test_every_file_is_written_and_named(done):
    summary = done[0]
    folder = summary.output.parent
    assert set(folder.iterdir()) == {summary.output, summary.model, summary.report}
    header, *lines = summary.output.read_text().splitlines()
    assert header == "user,item,rating,confidence,risk,keep,observed"
    assert summary.lines == len(lines) == 30 * 25
    assert summary.filled_cells == sum(line.endswith("true,false") for line in lines)
    assert summary.filled_share == summary.filled_cells / summary.missing_cells
    page = summary.report.read_text(encoding="utf-8")
    assert "<h1>ratings.csv</h1>" in page
    assert "<pre>make it</pre>" in page


def test_the_table_is_what_the_library_gives(done, seen):
    summary = done[0]
    completer = PartialCompleter(0.3, confidence="posterior").fit(
        Observations(seen.rows, seen.cols, seen.values, seen.shape, (-1.0, 1.0))
    )
    table = read_observations(summary.output)
    missing = completer.observations_.find(table.rows, table.cols) < 0
    expected = completer.predict(table.rows, table.cols)
    np.testing.assert_allclose(table.values[missing], expected[missing], rtol=1e-12)


def test_progress_tells_each_stage_from_beginning_to_end(done):
    told = {step.task: step for step in done[1]}
    assert {"reading", "reporting", "writing"} < told.keys()
    for task in ("reading", "reporting", "writing"):
        assert told[task].step == told[task].max_steps


def test_json_is_the_fields(done, tmp_path):
    summary = done[0]
    plain = json.loads(json.dumps(summary.as_json()))
    assert plain["filled_cells"] == summary.filled_cells
    assert plain["output"] == str(summary.output)
    fewer = CompletedFile(**{**vars(summary), "model": None, "report": None}).as_json()
    assert plain.keys() - fewer.keys() == {"model", "report"}


def test_why_nothing_is_kept_is_told_in_figures(ratings, tmp_path):
    summary = complete_file(ratings, tmp_path / "out.csv", tolerance=1e-4, confidence="posterior")
    assert (summary.promised, summary.filled_cells, summary.held_out_error) == (False, 0, None)
    assert summary.limited_by in ("tolerance", "calibration")
    assert summary.shortfall["n_supported"] <= summary.held_out_entries
    assert summary.tolerance < summary.shortfall["best_error"]


def test_a_column_called_like_one_of_ours_is_renamed(seen, tmp_path):
    lines = [f"{i},{j},{v}" for i, j, v in zip(seen.rows, seen.cols, seen.values, strict=True)]
    (tmp_path / "in.csv").write_text("\n".join(["keep,item,rating", *lines]) + "\n")
    read = ReadOptions(row="keep", col="item", value="rating")
    summary = complete_file(tmp_path / "in.csv", tmp_path / "out.csv", read=read, confidence="posterior")
    assert summary.columns_read[0] == "keep"
    assert summary.output.read_text().startswith("row,column,value,confidence,risk,keep,observed\n")


@pytest.mark.parametrize("fault", ["surefill.estimators.long_table.list_rows", "surefill.report.page.render"])
def test_a_failure_leaves_no_file(ratings, tmp_path, monkeypatch, fault):
    def fail(*_):
        raise MemoryError

    monkeypatch.setattr(fault, fail)
    files = {"model": tmp_path / "model", "report": tmp_path / "page.html"}
    with pytest.raises(MemoryError):
        complete_file(ratings, tmp_path / "out.csv", confidence="posterior", **files)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("targets", "sentence"),
    [
        ({"output": "out.xls"}, "must end in"),
        ({"output": "no/out.csv"}, "does not exist"),
        ({"model": "no/model"}, "does not exist"),
        ({"report": "page.pdf"}, "must end in .html"),
        ({"model": "out.csv"}, "must be different files"),
        ({"output": "in.csv"}, "must be different files"),
    ],
)
def test_places_that_cannot_be_written_are_refused_before_reading(tmp_path, monkeypatch, targets, sentence):
    monkeypatch.setattr("surefill.io.readers.read_observations", None)
    (tmp_path / "in.csv").write_text("")
    places = {name: tmp_path / file for name, file in ({"output": "out.csv"} | targets).items()}
    with pytest.raises(InputError, match=sentence):
        complete_file(tmp_path / "in.csv", **places)
    assert [path.name for path in tmp_path.iterdir()] == ["in.csv"]


def test_faults_of_the_content_name_the_file(tmp_path):
    (tmp_path / "in.csv").write_text("user,item,rating\na,1,2\na,2,3\na,3,4\na,4,1\n")
    with pytest.raises(InputError, match=r"in\.csv: the matrix has 1 row"):
        complete_file(tmp_path / "in.csv", tmp_path / "out.csv")
    assert [path.name for path in tmp_path.iterdir()] == ["in.csv"]


def test_evaluation_by_a_column_holds_out_its_folds(ratings, tmp_path):
    options = {"confidence": "posterior", "tolerance": 0.3, "picture": tmp_path / "curves.png"}
    found = evaluate_file(ratings, by="fold", only=[2, 3], **options)
    assert [outcome.fold for outcome in found.outcomes] == [2, 3]
    assert found.tolerance == 0.3
    assert len(found.losses) == sum(line.endswith((",2", ",3")) for line in ratings.read_text().splitlines())
    assert [path.name for path in tmp_path.iterdir()] == ["curves.png"]


@pytest.mark.parametrize(
    ("by", "sentence"),
    [
        (1, "by must be from 2 to"),
        (10**6, "by must be from 2 to"),
        ("stars", "by 'stars': .* has no column 'stars'"),
        ("rating", "column 'rating' must hold whole numbers"),
    ],
)
def test_folds_that_are_none_are_refused(ratings, by, sentence):
    with pytest.raises(InputError, match=sentence):
        evaluate_file(ratings, by=by)
