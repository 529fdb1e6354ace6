"""Shared by the hostile tests: running a command in this process, and small tables."""

from __future__ import annotations

import numpy as np
import pytest

from surefill.cli import main

HEADER = "user,item,rating\n"


def some_lines(count: int, seed: int = 0) -> list[str]:
    """Lines of a table of 20 x 15 with ratings from 1 to 5."""
    rng = np.random.default_rng(seed)
    return [f"u{rng.integers(20)},i{rng.integers(15)},{rng.integers(1, 6)}\n" for _ in range(count)]


@pytest.fixture(scope="session")
def run():
    """A function that runs a command in this process and gives its exit code."""

    def run_command(*arguments):
        try:
            main([str(argument) for argument in arguments])
        except SystemExit as stop:
            return stop.code or 0
        return 0

    return run_command


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder to work in, with a good table."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "good.csv").write_text(HEADER + "".join(some_lines(200)))
    return tmp_path


@pytest.fixture(scope="session")
def lines():
    """A function that gives lines of a table."""
    return some_lines
