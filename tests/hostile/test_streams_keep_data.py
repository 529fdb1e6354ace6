"""Streams lose, change and harm nothing: not a line, not a label, not a file of somebody else's."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from surefill import StreamingCompleter, read_observations
from surefill.io.durable import locked

HEADER = "user,item,rating\n"


def stream(run, source, *options, code=0):
    assert run("stream", source, "-o", "out.csv", *options) == code


@pytest.mark.parametrize("every", [1, 7, 1000])
def test_labels_do_not_depend_on_how_lines_are_grouped(run, folder, lines, every):
    text = (HEADER + "".join(lines(40)) + "Zoë,i1,3\n").encode() + b"Zo\xeb,i2,4\n" + "ünü,i3,5\n".encode()
    (folder / "t.csv").write_bytes(text)
    stream(run, "t.csv", "--every", every, "--checkpoint", "state")
    labels = StreamingCompleter.load("state").row_labels
    assert labels.count("Zoë") == 1
    assert "ünü" in labels
    assert not any("Ã" in label for label in labels)


@pytest.mark.parametrize("every", [1, 3, 1000])
def test_quoted_line_ends_are_part_of_a_label(run, folder, lines, every):
    quoted = '"two\nlines",i1,3\n"and\n\n""three""",i2,4\n'
    (folder / "t.csv").write_text(HEADER + quoted + "".join(lines(10)) + quoted)
    stream(run, "t.csv", "--every", every, "--checkpoint", "state")
    model = StreamingCompleter.load("state")
    assert model.n_observed == 14
    assert {"two\nlines", 'and\n\n"three"'} < set(model.row_labels)
    again = read_observations("out.csv", row="user", col="item", value="rating")
    assert {"two\nlines", 'and\n\n"three"'} < set(again.row_labels.tolist())


@pytest.mark.parametrize("half", ["u1,i2,4", "u1,i2", '"u1'])
def test_a_line_without_end_is_read_again(run, folder, lines, half, capsys):
    whole, rest = HEADER + "".join(lines(50)), '"u1",i2,4.5\n' if half[0] == '"' else "u1,i2,4.5\n"
    (folder / "t.csv").write_text(whole + half)
    options = ("--checkpoint", "state", "--every", 20)
    stream(run, "t.csv", *options, code=0 if half == "u1,i2,4" else 2)
    assert ("no line end" in capsys.readouterr().out) == (half == "u1,i2,4")
    (folder / "t.csv").write_text(whole + rest + "u3,i3,1\n")
    stream(run, "t.csv", *options)
    got = (folder / "out.csv").read_bytes()
    stream(run, "t.csv", "--checkpoint", "new", "--every", 20)
    assert got == (folder / "out.csv").read_bytes()
    assert StreamingCompleter.load("state").n_observed == 52


def test_another_input_of_the_same_shape_is_refused(run, folder, lines, capsys):
    text = HEADER + "".join(lines(50))
    (folder / "t.csv").write_text(text)
    stream(run, "t.csv", "--checkpoint", "state")
    before = (folder / "out.csv").read_bytes()
    for other in (text.replace("u1,", "u2,", 1) + "u1,i1,3\n", text.replace(",5\n", ",4\n", 1), text[:-9]):
        (folder / "t.csv").write_text(other)
        stream(run, "t.csv", "--checkpoint", "state", code=2)
        assert "differs from, what was read before" in capsys.readouterr().err
        assert (folder / "out.csv").read_bytes() == before
    (folder / "t.csv").write_text(text + "u1,i1,3\n")
    stream(run, "t.csv", "--checkpoint", "state")


def test_another_past_is_refused_where_lines_are_sorted(run, folder, capsys):
    def table(*times):
        text = "".join(f"u{t % 3},i{t % 4},{t % 5},{t}\n" for t in times)
        (folder / "t.csv").write_text("user,item,rating,when\n" + text)

    options = ("--order-by", "when", "--checkpoint", "state", "--row", "user", "--col", "item", "--value", "rating")
    table(*range(10, 40))
    stream(run, "t.csv", *options)
    table(50, *range(10, 40), 45)
    stream(run, "t.csv", *options)
    assert StreamingCompleter.load("state").n_observed == 32
    table(5, 50, *range(10, 40), 45)
    stream(run, "t.csv", *options, code=2)
    assert "differs from" in capsys.readouterr().err


@pytest.mark.parametrize("link", [os.link, os.symlink])
@pytest.mark.parametrize("role", ["-o", "--checkpoint"])
def test_the_input_is_never_written_whatever_its_name(run, folder, capsys, link, role):
    link(folder / "good.csv", folder / "other.csv")
    before = (folder / "good.csv").read_bytes()
    for more in ((), ("--checkpoint", "state") if role == "-o" else ("-o", "x.csv")):
        assert run("stream", "good.csv", role, "other.csv", *more) == 2
        assert "must be different files" in capsys.readouterr().err
    assert run("complete", "good.csv", "-o", "other.csv") == 2
    assert (folder / "good.csv").read_bytes() == before


def test_an_output_stays_until_the_first_lines_are_good(run, folder, lines):
    (folder / "out.csv").write_text("mine" * 100)
    for text in (HEADER + "u1,i1,oops\n", "user,item\n", ""):
        (folder / "t.csv").write_text(text)
        stream(run, "t.csv", "--checkpoint", "state", code=2)
        assert (folder / "out.csv").read_text() == "mine" * 100
        assert not (folder / "state").exists()
    (folder / "out.csv").unlink()
    stream(run, "t.csv", "--checkpoint", "state", code=2)
    assert not (folder / "out.csv").exists()


@pytest.mark.parametrize("name", ["state", "out.csv"])
def test_two_runs_on_one_checkpoint_or_output_are_refused(run, folder, capsys, name):
    with locked(folder / name, "stream"):
        stream(run, "good.csv", "--checkpoint", "state", code=2)
    assert "is in use by another stream" in capsys.readouterr().err
    stream(run, "good.csv", "--checkpoint", "state")
    assert sorted(path.name for path in folder.iterdir()) == ["good.csv", "out.csv", "state"]


@pytest.mark.thorough
def test_a_killed_run_leaves_no_lock_behind(folder):
    hold = "import sys, time\nfrom pathlib import Path\nfrom surefill.io.durable import locked\n"
    hold += "with locked(Path('state'), 'stream'):\n    print('held', flush=True)\n    time.sleep(60)\n"
    process = subprocess.Popen([sys.executable, "-c", hold], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "held\n"
    with pytest.raises(Exception, match="in use by another"), locked(folder / "state", "stream"):
        pass
    process.kill()
    process.communicate()
    with locked(folder / "state", "stream"):
        assert (folder / ".state.lock").exists()


def test_threads_share_a_completer():
    model, errors = StreamingCompleter(), []
    stop = threading.Event()

    def learn(seed):
        rng = np.random.default_rng(seed)
        try:
            for _ in range(15):
                rows, cols = rng.integers(0, 300, 40), rng.integers(0, 200, 40)
                model.learn_many(rows, cols, rng.normal(size=40))
        except Exception as error:
            errors.append(error)

    def ask():
        while not stop.is_set():
            try:
                model.predict([1, 2], [3, 4])
                model.confidence([1, 2], [3, 4])
                model.state()
            except Exception as error:
                errors.append(error)
            time.sleep(0.001)

    threads = [threading.Thread(target=learn, args=(seed,)) for seed in range(4)]
    reader = threading.Thread(target=ask)
    for thread in (*threads, reader):
        thread.start()
    for thread in threads:
        thread.join()
    stop.set()
    reader.join()
    assert errors == []
    assert model.n_observed == model.metrics.count + model.metrics.unscored == 4 * 15 * 40


@pytest.mark.parametrize("role", ["-o", "--checkpoint"])
def test_a_file_that_a_shell_feeds_is_never_written(run, folder, capsys, monkeypatch, role):
    os.link(folder / "good.csv", folder / "other.csv")
    before = (folder / "good.csv").read_bytes()
    with open("good.csv", "rb") as fed:
        own = os.dup(0)
        os.dup2(fed.fileno(), 0)
        try:
            for more in ((), ("--checkpoint", "state") if role == "-o" else ("-o", "x.csv")):
                assert run("stream", "-", role, "other.csv", *more) == 2
        finally:
            os.dup2(own, 0)
            os.close(own)
    assert "must be different files" in capsys.readouterr().err
    assert (folder / "good.csv").read_bytes() == before


@pytest.mark.parametrize("option", ["--rows", "--row-features", "--col-features"])
def test_tables_beside_the_input_are_never_written(run, folder, capsys, option):
    (folder / "side.csv").write_text("user,age\nu1,3\n")
    assert run("complete", "good.csv", "-o", "side.csv", option, "side.csv") == 2
    assert "must be different files" in capsys.readouterr().err
    assert (folder / "side.csv").read_text() == "user,age\nu1,3\n"


@pytest.mark.parametrize("every", [1, 2, 1000])
def test_an_id_is_the_same_whatever_others_come_with_it(run, folder, every):
    (folder / "t.csv").write_text(HEADER + "1,7,3\n1.0,8,2\n01,7,1\nann,7.0,4\n2.0,8,5\n2,9.5,3\n")
    stream(run, "t.csv", "--every", every, "--checkpoint", "state")
    model = StreamingCompleter.load("state")
    assert model.row_labels == ["1", "01", "ann", "2"]
    assert model.col_labels == ["7", "8", "9.5"]


@pytest.mark.parametrize("every", [1, 2, 1000])
@pytest.mark.parametrize("values", [("1.234", "2,5"), ("2,5", "1.234"), ("1,234", "2,5")])
def test_the_first_decimal_sign_is_that_of_all(run, folder, every, values):
    lines = "".join(f"u1;i{k};{value}\n" for k, value in enumerate(("3", *values)))
    (folder / "t.csv").write_text("user;item;rating\n" + lines)
    stream(run, "t.csv", "--every", every, code=2)
    (folder / "t.csv").write_text("user;item;rating\n" + lines.replace(values[0], "2"))
    stream(run, "t.csv", "--every", every)


def test_a_resumed_stream_keeps_its_decimal_sign(run, folder, capsys):
    (folder / "t.csv").write_text("user;item;rating\nu1;i1;2,5\n")
    stream(run, "t.csv", "--checkpoint", "state")
    with (folder / "t.csv").open("a") as file:
        file.write("u1;i2;1.234\n")
    stream(run, "t.csv", "--checkpoint", "state", code=2)
    assert "the decimal sign is a comma" in capsys.readouterr().err
