import shlex

import pytest

from surefill.cli.complete import complete
from surefill.cli.options import command_line


@pytest.fixture
def my_ratings(ratings, tmp_path_factory):
    """A file whose name a shell has to quote."""
    path = tmp_path_factory.mktemp("mine") / "my ratings.csv"
    path.write_bytes(ratings.read_bytes())
    return path


def test_a_report_beside_the_table_repeats_its_command(run, my_ratings, tmp_path, capsys):
    out, report = tmp_path / "o.csv", tmp_path / "r.html"
    options = ("--tolerance", "0.3", "--header", "--bounds", -1, 1, "--confidence", "posterior", "--report", report)
    assert run("complete", my_ratings, "-o", out, *options) == 0
    assert f"The report is {report}" in capsys.readouterr().out
    page = report.read_text(encoding="utf-8")
    assert "<h1>my ratings.csv</h1>" in page
    assert "Rows stand for user, columns for item." in page
    typed = page.partition("<pre>")[2].partition("</pre>")[0].replace("&#x27;", "'")
    words = shlex.split(typed)
    assert words[:3] == ["surefill", "complete", str(my_ratings)]
    assert set(words[3:]) == {"-o", str(out), *map(str, options)} - {"-1", "1"} | {"-1.0", "1.0"}
    first = out.read_bytes()
    assert run(*words[1:]) == 0
    assert out.read_bytes() == first


@pytest.mark.parametrize("flags", [("--no-header",), ("--header", "--json"), ()])
def test_the_command_is_what_was_typed(flags):
    typed = ["a file.csv", "-o", "out.csv", "--row", "0", "--delimiter", ";", *flags]
    context = complete.make_context("surefill complete", list(typed))
    words = shlex.split(command_line(context))
    assert words[:5] == ["surefill", "complete", *typed[:3]]
    assert sorted(words[5:]) == sorted(typed[3:])


@pytest.mark.parametrize(("name", "sentence"), [("r.pdf", "must end in .html"), ("no/r.html", "does not exist")])
def test_a_bad_place_is_refused_before_the_work(run, ratings, tmp_path, capsys, monkeypatch, name, sentence):
    monkeypatch.setattr("surefill.io.readers.read_observations", None)
    assert run("complete", ratings, "-o", tmp_path / "o.csv", "--report", tmp_path / name) == 2
    assert sentence in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_nothing_given_is_overwritten(run, tmp_path, capsys):
    page = tmp_path / "in.html"
    page.write_text("a,b,c\n")
    assert run("complete", page, "-o", tmp_path / "o.csv", "--report", page) == 2
    assert "must be different files" in capsys.readouterr().err
    options = ("--save", tmp_path / "m.html", "--report", tmp_path / "m.html")
    assert run("complete", page, "-o", tmp_path / "o.csv", *options) == 2
    assert page.read_text() == "a,b,c\n"


@pytest.mark.parametrize("fault", ["surefill.estimators.long_table.list_rows", "surefill.report.page.render"])
def test_a_fault_leaves_nothing(run, ratings, tmp_path, monkeypatch, fault):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(fault, interrupt)
    options = ("--confidence", "posterior", "--report", tmp_path / "r.html", "--save", tmp_path / "model")
    assert run("complete", ratings, "-o", tmp_path / "o.csv", *options) == 130
    assert list(tmp_path.iterdir()) == []
