"""Small files that would take all memory, and one long id among many: refused in a sentence, or held as they are."""

from __future__ import annotations

import os
import threading
import tracemalloc
import zipfile
from contextlib import contextmanager

import numpy as np
import pytest

from surefill import InputError, Observations, PartialCompleter, StreamingCompleter, load, read_observations
from surefill.datasets import make_low_rank
from surefill.inputs import using_limits
from surefill.io.pairs import read_pairs
from surefill.io.readers import ReadOptions
from surefill.jobs import forecast

LONG = "x" * 4000


@contextmanager
def within(megabytes):
    tracemalloc.start()
    yield
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < megabytes * 1e6, f"{peak / 1e6:.0f} MB"


def write_parquet(path, **columns):
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    parquet.write_table(pyarrow.table(columns), path)


def test_parquet_of_few_bytes_for_many_lines(tmp_path):
    constant = np.zeros(6_000_000, dtype=np.int64)
    write_parquet(tmp_path / "bomb.parquet", user=constant, item=constant, rating=constant.astype(float))
    assert (tmp_path / "bomb.parquet").stat().st_size < 1e5
    with within(10), pytest.raises(InputError, match="unpacks to more than 250 times its size"):
        read_observations(tmp_path / "bomb.parquet")
    with pytest.raises(InputError, match="unpacks to more than 250 times"):
        read_pairs(tmp_path / "bomb.parquet", ReadOptions(), ("user", "item", "rating"))


def test_one_text_of_parquet_that_stands_in_every_line(tmp_path):
    lines, ids = 20_000, np.arange(20_000)
    write_parquet(tmp_path / "t.parquet", user=[LONG] * lines, item=ids, rating=np.ones(lines))
    with within(20):
        seen = read_observations(tmp_path / "t.parquet")
    assert (seen.shape, seen.row_labels.tolist()) == ((1, lines), [LONG])


def test_long_ids_are_refused_in_parquet_and_tables_too(tmp_path):
    pandas = pytest.importorskip("pandas")
    columns = {"user": ["u" * 5000, "b"], "item": [1, 2], "rating": [1.0, 2.0]}
    write_parquet(tmp_path / "t.parquet", **columns)
    write_parquet(tmp_path / "w.parquet", name=columns["user"], a=[1.0, 2.0], b=[2.0, 3.0], c=[1.0, 1.0])
    with pytest.raises(InputError, match="column 'user': an id has more than 4,096 bytes"):
        read_observations(tmp_path / "t.parquet")
    with pytest.raises(InputError, match="column 'user': an id has more than 4,096 bytes"):
        read_pairs(tmp_path / "t.parquet", ReadOptions(), ("user", "item", "rating"))
    with pytest.raises(InputError, match="an id has more than 4,096 bytes"):
        read_observations(tmp_path / "w.parquet", wide=True)
    with pytest.raises(InputError, match="column 'user': an id has more than 4,096 bytes"):
        Observations.from_table(pandas.DataFrame(columns))
    with using_limits(id=5000):
        assert len(read_observations(tmp_path / "t.parquet")) == 2


def write_sheet(path, rows):
    """A workbook whose only sheet has these rows of XML."""
    openpyxl = pytest.importorskip("openpyxl")
    workbook = openpyxl.Workbook()
    workbook.active.append(["user", "item", "rating"])
    workbook.save(path.with_suffix(".plain.xlsx"))
    with (
        zipfile.ZipFile(path.with_suffix(".plain.xlsx")) as old,
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as new,
    ):
        for name in old.namelist():
            text = old.read(name)
            new.writestr(name, text.replace(b"</sheetData>", rows + b"</sheetData>") if "sheet1" in name else text)


CELL = b'<row r="%d"><c r="XFD%d"><v>1</v></c></row>'
SHEETS = {
    "zeros": b" " * 10_000_000,
    "cells at the right edge": b"".join(CELL % (k, k) for k in range(2, 200)),
    "a row without end": b'<row r="999999999999"><c r="A999999999999"><v>1</v></c></row>',
}


@pytest.mark.parametrize("case", SHEETS)
def test_workbooks_of_few_bytes_for_many_cells(tmp_path, monkeypatch, case):
    monkeypatch.setattr("surefill.inputs.FREE", 1 << 23)
    write_sheet(tmp_path / "bomb.xlsx", SHEETS[case])
    with pytest.raises(InputError, match="unpacks to more than 250 times its size"):
        read_observations(tmp_path / "bomb.xlsx")


@pytest.fixture(scope="module")
def one_long_id(tmp_path_factory):
    """A table of 20,000 ids, one of which would make fixed-width text of 320 MB."""
    path = tmp_path_factory.mktemp("long") / "t.csv"
    ids = [f"u{k}" for k in range(19_999)] + [LONG]
    path.write_text("user,item,rating\n" + "".join(f"{name},i{k % 7},{k % 5}\n" for k, name in enumerate(ids)))
    return path


def test_one_long_id_among_many(one_long_id, tmp_path):
    with within(40):
        seen = read_observations(one_long_id)
    assert seen.row_index([LONG, "u7"]).tolist() == [seen.shape[0] - 1, seen.row_labels.tolist().index("u7")]
    with pytest.raises(InputError, match="no row labelled 'nobody'"):
        seen.row_index(["nobody"])
    with within(40):
        again = Observations(seen.rows, seen.cols, seen.values, row_labels=seen.row_labels.tolist())
    assert again.row_labels.tolist() == seen.row_labels.tolist()


def test_a_stream_with_one_long_id(run, one_long_id, tmp_path):
    with within(150):
        assert run("stream", one_long_id, "-o", tmp_path / "out.csv", "--checkpoint", tmp_path / "state") == 0
    assert LONG in StreamingCompleter.load(tmp_path / "state").row_labels
    assert (tmp_path / "out.csv").read_text().count(LONG) == 1


def test_a_model_with_long_ids_is_saved_asked_and_written(run, tmp_path, lines):
    (tmp_path / "t.csv").write_text("user,item,rating\n" + "".join(lines(200)).replace("u3,", f"{LONG},"))
    out, model = tmp_path / "out.csv", tmp_path / "model"
    assert run("complete", tmp_path / "t.csv", "-o", out, "--save", model, "--confidence", "posterior") == 0
    fitted = PartialCompleter(confidence="posterior").fit(read_observations(tmp_path / "t.csv"))
    loaded = load(model)
    assert loaded.observations_.row_labels.tolist() == fitted.observations_.row_labels.tolist()
    assert loaded.predict([LONG], ["i3"]) == fitted.predict([LONG], ["i3"])
    assert sum(line.startswith(LONG) for line in out.read_text().splitlines()) > 1
    assert run("recommend", model, "--row", LONG, "-o", tmp_path / "best.parquet") == 0
    (tmp_path / "new.csv").write_text(f"user,item,rating\n{LONG},i3,4\n{LONG}y,i2,3\n")
    assert run("update", model, tmp_path / "new.csv", "-o", tmp_path / "newer") == 0
    assert {LONG, f"{LONG}y"} < set(load(tmp_path / "newer").observations_.row_labels.tolist())


def test_a_column_of_folds_is_not_waited_for_on_a_pipe(run, tmp_path, lines, capsys):
    os.mkfifo(tmp_path / "pipe.csv")
    assert run("evaluate", tmp_path / "pipe.csv", "--by", "fold") == 2
    assert "is a pipe, which is read once" in capsys.readouterr().err
    text = "user,item,rating\n" + "".join(lines(200))
    writer = threading.Thread(target=(tmp_path / "pipe.csv").write_text, args=(text,))
    writer.start()
    assert run("evaluate", tmp_path / "pipe.csv", "--by", "3", "--fold", "0", "--confidence", "posterior") == 0
    writer.join(20)


def test_running_out_of_memory_says_what_would_fit(run, folder, monkeypatch, capsys):
    def fit(*_):
        raise np._core._exceptions._ArrayMemoryError((10**9, 10**3), np.dtype(float))

    monkeypatch.setattr(PartialCompleter, "fit", fit)
    assert run("complete", "good.csv", "-o", "out.csv") == 1
    said = capsys.readouterr().err
    assert "good.csv: memory did not suffice" in said
    assert "of the rows would fit" in said
    assert sorted(path.name for path in folder.iterdir()) == ["good.csv"]


@pytest.mark.parametrize("free", [1e12, 1e9, 1e8])
def test_time_and_memory_are_told_before_long_work(monkeypatch, free):
    monkeypatch.setattr(forecast, "free_memory", lambda: free)
    seen = make_low_rank((2000, 1500), rank=1, n_draws=200_000, noise=0.1, random_state=0).observations
    found = forecast.Forecast.of(seen, 600.0)
    assert found.is_long
    assert "about 10 minutes and 6" in found.sentence
    fitting = {1e12: "of memory.", 1e9: "of memory.", 1e8: "100 MB are free: a machine with"}[free]
    assert fitting in found.sentence


def test_the_forecast_is_printed_before_the_fit(run, folder, monkeypatch, capsys):
    monkeypatch.setattr(forecast, "LONG", 0.0)
    monkeypatch.setattr(PartialCompleter, "fit", lambda *_: (_ for _ in ()).throw(InputError("that is all.")))
    for command in (("complete", "good.csv", "-o", "out.csv"), ("evaluate", "good.csv")):
        assert run(*command) == 2
        assert capsys.readouterr().err.startswith("This takes about 1 minute and 550 MB of memory")


def test_values_that_dominate_are_told_on_the_terminal_and_in_the_report(run, folder, lines, capsys):
    values = np.random.default_rng(0).normal(size=200).round(2).tolist()
    values[10:13] = 1e6, 1e6, -1e6
    cells = [line.rsplit(",", 1)[0] for line in lines(200)]
    text = "".join(f"{cell},{value}\n" for cell, value in zip(cells, values, strict=True))
    (folder / "t.csv").write_text("user,item,rating\n" + text)
    command = ("complete", "t.csv", "-o", "out.csv", "--confidence", "posterior", "--report", "page.html")
    assert run(*command) == 0
    said = capsys.readouterr().out
    assert "A few values dominate" in said
    assert "--bounds" in said
    assert "A few values dominate" in (folder / "page.html").read_text()
    assert read_observations("good.csv").dominance is None
