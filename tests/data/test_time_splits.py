"""Expanding windows of time: no cell of the past comes after one of the future."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from surefill.data import Observations, split_times
from surefill.data.splits import time_blocks
from surefill.errors import InputError


@given(st.lists(st.integers(0, 10_000), min_size=5, max_size=60, unique=True), st.integers(1, 4), st.booleans())
def test_the_past_comes_before_the_future(times, n_windows, doubled):
    times = times * 2 if doubled else times
    seen = Observations(np.arange(len(times)), np.zeros(len(times), dtype=int), np.array(times, dtype=float))
    windows = list(split_times(seen, times, n_windows))
    assert len(windows) == n_windows
    for k, (past, future) in enumerate(windows):
        assert past.values.max() < future.values.min()
        if k:
            earlier = windows[k - 1]
            assert len(past) == len(earlier[0]) + len(earlier[1])
    assert len(windows[-1][0]) + len(windows[-1][1]) == len(times)


def test_blocks_are_about_equal_and_equal_times_stay_together():
    block = time_blocks(np.random.default_rng(0).permutation(600), 5)
    assert np.bincount(block).tolist() == [100] * 6
    assert time_blocks([1, 1, 1, 2, 3, 3], 1).tolist() == [0, 0, 0, 1, 1, 1]
    assert time_blocks(np.array(["2026-01-31", "2025-01-01"], dtype="datetime64[D]"), 1).tolist() == [1, 0]


def test_too_few_times_and_wrong_lengths():
    with pytest.raises(InputError, match="2 different times cannot be cut into 4 blocks of about equal size"):
        time_blocks([1, 1, 2, 2], 3)
    seen = Observations([0, 1], [0, 0], [1.0, 2.0])
    with pytest.raises(InputError, match="times must have one item for each of the 2 cells; there are 3"):
        next(split_times(seen, [1, 2, 3], 1))
