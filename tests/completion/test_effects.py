import numpy as np
import pytest

from surefill.completion.effects import Effects
from surefill.data import Observations


def test_effects_solve_their_ridge_regression():
    rng = np.random.default_rng(0)
    rows, cols = rng.integers(0, 8, 60), rng.integers(0, 6, 60)
    seen = Observations(rows, cols, rng.normal(size=60), (8, 6))
    effects = Effects.of(seen, "effects", "")
    X = np.hstack([np.eye(8)[seen.rows], np.eye(6)[seen.cols]])
    mean = np.average(seen.values, weights=seen.counts)
    weighted = X.T * seen.counts
    expected = np.linalg.solve(weighted @ X + 5 * np.eye(14), weighted @ (seen.values - mean))
    assert effects.offset == pytest.approx(mean)
    np.testing.assert_allclose(np.append(effects.rows[:-1], effects.cols[:-1]), expected, atol=1e-7)
    assert effects.rows[-1] == effects.cols[-1] == 0.0


def test_mean_and_none_leave_no_effects():
    seen = Observations([0, 1], [0, 0], [1.0, 4.0], counts=[2, 1])
    assert Effects.of(seen, "mean", "").offset == pytest.approx(2.0)
    assert Effects.of(seen, "none", "", zero=3.0).offset == 3.0
    assert not Effects.of(seen, "mean", "").rows.any()
