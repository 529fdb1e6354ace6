import numpy as np
import pytest

from surefill.completion.effects import Effects, positions, subtract_effects
from surefill.completion.grouped_regression import GroupedRegression
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


def test_effects_on_unit_values_are_those_of_the_values_on_the_unit_scale():
    rng = np.random.default_rng(1)
    seen = Observations(rng.integers(0, 8, 60), rng.integers(0, 6, 60), rng.uniform(1, 5, 60), (8, 6), (1, 5))
    ours = Effects.of(seen, "effects", "")
    theirs = Effects.of(seen, "effects", "", values=seen.unit.to_unit(seen.values))
    assert seen.unit.to_unit(ours.offset) == pytest.approx(theirs.offset)
    np.testing.assert_allclose(ours.rows, 2 * theirs.rows, atol=1e-9)
    np.testing.assert_allclose(ours.cols, 2 * theirs.cols, atol=1e-9)


def test_taking_off_finds_the_effects_of_fitted_rows_again():
    rng = np.random.default_rng(2)
    seen = Observations(rng.integers(2, 8, 60), rng.integers(1, 6, 60), rng.normal(size=60), (8, 6))
    effects = Effects.of(seen, "effects", "")
    _, fixed = effects.with_factors(np.zeros((6, 0)), np.zeros((5, 0)))
    regression = GroupedRegression.of_rows(seen, seen.by_col.ids, seen.values - effects.offset)
    found, rest = subtract_effects(regression, fixed, has_effects=True)
    np.testing.assert_allclose(found, effects.rows, atol=1e-9)
    np.testing.assert_allclose(rest, (seen.values - effects.at(*positions(seen)))[seen.by_row.order], atol=1e-9)
    none, rest = subtract_effects(regression, fixed, has_effects=False)
    assert not none.any()
    np.testing.assert_allclose(rest, regression.target - effects.cols[regression.other])
