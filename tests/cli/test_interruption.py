"""Ctrl-C and SIGTERM at every stage: nothing is left behind, and one sentence says how to go on."""

import os
import signal
import threading

import pytest

from surefill.stream import StreamingCompleter
from surefill.waiting import Waiting

SENTENCE = "surefill: interrupted; nothing was written, and the same command starts anew."


@pytest.fixture
def interrupt_at(monkeypatch):
    """A function that lets a signal arrive as soon as a part begins."""

    def arrange(name, number):
        begin = Waiting._begin

        def begin_and_be_told(self, part):
            node = begin(self, part)
            if part == name:
                os.kill(os.getpid(), number)
            return node

        monkeypatch.setattr(Waiting, "_begin", begin_and_be_told)

    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell in the background has it ignored
    yield arrange
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize(
    ("stage", "number"),
    [
        ("reading", signal.SIGINT),
        ("setting aside", signal.SIGTERM),
        ("cross-fitting", signal.SIGINT),
        ("promise", signal.SIGTERM),
        ("reporting", signal.SIGINT),
        ("writing", signal.SIGTERM),
    ],
)
def test_nothing_is_left_of_a_completion(run, ratings, tmp_path, capsys, interrupt_at, stage, number):
    interrupt_at(stage, number)
    out, model, page = (tmp_path / name for name in ("out.csv", "model.surefill", "page.html"))
    out.write_text("as it was")
    options = ("--save", model, "--report", page, "--confidence", "game")
    assert run("complete", ratings, "-o", out, *options) == 128 + number
    assert capsys.readouterr().err.strip() == SENTENCE
    assert [path.name for path in tmp_path.iterdir()] == ["out.csv"]
    assert out.read_text() == "as it was"
    assert "surefill-progress" not in {thread.name for thread in threading.enumerate()}


@pytest.mark.parametrize(("command", "stage"), [("evaluate", "comparing"), ("demo", "handwritten digits")])
def test_nothing_is_left_of_pictures(run, ratings, tmp_path, capsys, interrupt_at, command, stage):
    interrupt_at(stage, signal.SIGINT)
    options = {
        "evaluate": (ratings, "--by", 2, "--confidence", "game", "-o", tmp_path / "curves.png"),
        "demo": ("--size", 8, "-o", tmp_path / "pictures"),
    }
    assert run(command, *options[command]) == 130
    assert capsys.readouterr().err.strip() == SENTENCE
    assert list(tmp_path.iterdir()) == []


def test_a_stream_starts_anew_unless_its_checkpoint_was_saved(
    run, ratings, tmp_path, capsys, interrupt_at, monkeypatch
):
    out, state = tmp_path / "out.csv", tmp_path / "state"
    learn, options = StreamingCompleter.learn_many, ("--checkpoint", state)

    def learn_and_be_told(*given):
        scores = learn(*given)
        os.kill(os.getpid(), signal.SIGTERM)
        return scores

    monkeypatch.setattr(StreamingCompleter, "learn_many", learn_and_be_told)
    assert run("stream", ratings, "-o", out, *options, "--every", 100) == 143
    assert "is in " in (said := capsys.readouterr().err)
    assert "the same command goes on from there" in said
    assert StreamingCompleter.load(state).n_observed == 100
    monkeypatch.undo()
    assert run("stream", ratings, "-o", out, *options, "--every", 100) == 0
    assert StreamingCompleter.load(state).n_observed == len(ratings.read_text().splitlines()) - 1
    capsys.readouterr()
    interrupt_at("learning", signal.SIGINT)
    for file, more in ((tmp_path / "other.csv", ()), (tmp_path / "third.csv", ("--checkpoint", tmp_path / "new"))):
        assert run("stream", ratings, "-o", file, *more) == 130
        assert "nothing was saved, and the same command starts anew" in capsys.readouterr().err
    assert not (tmp_path / "other.csv").exists()
    assert not (tmp_path / "new").exists()
