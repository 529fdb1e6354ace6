"""Standard output that is full, closed or left by its reader, and standard input that is closed: never a traceback."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

CASES = {
    "help to a full disk": ("--help > /dev/full", 1, "standard output cannot be written: no space left on device"),
    "scores to a full disk": ("stream good.csv -o - > /dev/full", 1, "no space left on device"),
    "a story to a full disk": ("demo --size 8 --images 100 -o d > /dev/full", 1, "standard output cannot be written"),
    "a closed input": ("stream - <&-", 2, "standard input is closed"),
    "scores to a closed output": ("stream good.csv -o - >&-", 2, "standard output is closed"),
}


THOROUGH = {name: pytest.mark.thorough if name.startswith(("scores", "a story")) else () for name in CASES}
"""Whole streams in processes of their own take seconds."""


@pytest.mark.parametrize("case", [pytest.param(name, marks=marks) for name, marks in THOROUGH.items()])
def test_it_ends_in_a_sentence(folder, case):
    typed, code, words = CASES[case]
    command = f"{sys.executable} -m surefill {typed}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True)
    assert done.returncode == code, done.stderr
    assert words in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.thorough
def test_a_reader_that_has_left_is_no_fault_to_speak_of(folder):
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "surefill", "stream", "good.csv", "-o", "-"]
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, text=True)
    os.close(writer)
    assert done.returncode in (1, 141)
    assert done.stderr == ""


def test_labels_command_no_terminal(run, folder, lines, capsys):
    text = "user\x1b[31m,item,rating\n" + "".join(lines(40))
    (folder / "t.csv").write_text(text)
    assert run("stream", "t.csv") == 0
    said = capsys.readouterr().out
    assert "\x1b" not in said
    assert "user\\x1b[31m" in said
