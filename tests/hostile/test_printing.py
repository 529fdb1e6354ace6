"""Standard output that is full, closed or left by its reader, and standard input that is closed: never a traceback."""

from __future__ import annotations

import subprocess
import sys

import pytest

CASES = {
    "help to a full disk": ("--help > /dev/full", 1, "standard output cannot be written: no space left on device"),
    "scores to a full disk": ("stream good.csv -o - > /dev/full", 1, "no space left on device"),
    "a reader that leaves": ("stream good.csv -o - | head -1 > /dev/null; exit ${PIPESTATUS[0]}", 141, ""),
    "a closed input": ("stream - <&-", 2, "standard input is closed"),
    "scores to a closed output": ("stream good.csv -o - >&-", 2, "standard output is closed"),
}


@pytest.mark.parametrize("case", CASES)
def test_it_ends_in_a_sentence(folder, lines, case):
    typed, code, words = CASES[case]
    (folder / "good.csv").write_text("user,item,rating\n" + "".join(lines(20_000 if "reader" in case else 50)))
    command = f"{sys.executable} -m surefill {typed}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True)
    assert done.returncode == code, done.stderr
    assert words in done.stderr
    assert done.stderr.count("\n") == bool(words)


def test_labels_command_no_terminal(run, folder, lines, capsys):
    text = "user\x1b[31m,item,rating\n" + "".join(lines(40))
    (folder / "t.csv").write_text(text)
    assert run("stream", "t.csv") == 0
    said = capsys.readouterr().out
    assert "\x1b" not in said
    assert "user\\x1b[31m" in said
