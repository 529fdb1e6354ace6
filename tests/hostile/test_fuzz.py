"""A few cases of the fuzzing that ``make test-hostile`` does by the thousand."""

from __future__ import annotations

import numpy as np
import pytest

from . import fuzz


@pytest.mark.parametrize("kind", ["csv", "gzip"])
def test_random_tables_end_in_an_answer_or_a_sentence(kind, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for number in range(10):
        fuzz.KINDS[kind](tmp_path, np.random.default_rng([7, number]))
    assert {path.name for path in tmp_path.iterdir()} <= {"t.csv", "t.csv.gz"}
