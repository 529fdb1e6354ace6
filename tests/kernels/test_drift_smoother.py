"""The smoother of drifting effects against the joint normal distribution that defines it."""

import numpy as np
import pytest

from surefill.kernels.drift_smoother import Readings, Smoothed, smooth_groups, smooth_groups_reference

STARTS = np.array([0, 1, 9, 30])


@pytest.mark.parametrize("scales", [[5.0], [0.1, 3.0, 100.0]])
def test_filter_and_smoother_give_the_conditional_distribution(scales):
    rng = np.random.default_rng(0)
    times = np.concatenate([np.sort(rng.uniform(0, 50, size)) for size in np.diff(STARTS)])
    times[5] = times[4]  # two readings at one time
    reading, precision = rng.normal(size=30), rng.uniform(0.5, 20, 30)
    precision[[3, 12, 13, 29]] = 0.0  # times without a reading
    found = [Smoothed(*(np.empty(size) for size in (30, 30, 3))) for _ in range(2)]
    for kernel, out in zip((smooth_groups, smooth_groups_reference), found, strict=True):
        kernel(0, 3, Readings(STARTS, times, reading, precision), np.array(scales), 0.7, out)
    for fast, plain in zip(*found, strict=True):
        np.testing.assert_allclose(fast, plain, rtol=1e-9, atol=1e-11)
