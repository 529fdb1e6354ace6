"""Shared by the tests of the command line: running a command, and a small file of ratings."""

from __future__ import annotations

import pytest

from surefill.cli import main
from surefill.datasets import make_low_rank


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


@pytest.fixture(scope="session")
def ratings(tmp_path_factory):
    """500 draws of a 30 x 25 matrix of rank 1 with noise, under a header."""
    seen = make_low_rank((30, 25), rank=1, n_draws=500, noise=0.1, random_state=0).observations
    path = tmp_path_factory.mktemp("data") / "ratings.csv"
    lines = [f"u{i},{j},{v:.4f}" for i, j, v in zip(seen.rows, seen.cols, seen.values, strict=True)]
    path.write_text("\n".join(["user,item,rating", *lines]) + "\n")
    return path
