import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from surefill import InputError, metrics

entries = st.lists(st.tuples(st.floats(0, 9), st.integers(0, 4)), min_size=1, max_size=25)


@given(entries)
def test_curve_and_coverage_against_brute_force(points):
    loss, score = (np.array(column, float) for column in zip(*points, strict=True))
    curve = metrics.risk_coverage_curve(loss, score)
    kept = [score <= limit for limit in np.unique(score)]
    np.testing.assert_allclose(curve.coverage, [which.mean() for which in kept])
    np.testing.assert_allclose(curve.risk, [loss[which].mean() for which in kept])
    for risk in (0.0, 1.0, 5.0):
        allowed = [which.mean() for which in kept if loss[which].mean() <= risk + 1e-12]
        assert metrics.coverage_at_risk(loss, score, risk + 1e-12) == pytest.approx(max(allowed, default=0.0))


@given(entries)
def test_area_is_what_random_breaking_of_ties_gives_on_average(points):
    loss, score = (np.array(column, float) for column in zip(*points, strict=True))
    rng = np.random.default_rng(0)
    areas = []
    for _ in range(400):
        ranked = loss[np.lexsort([rng.random(len(loss)), score])]
        areas.append(np.mean([ranked[: k + 1].mean() for k in range(len(ranked))]))
    noise = np.std(areas) / np.sqrt(len(areas))
    assert metrics.aurc(loss, score) == pytest.approx(np.mean(areas), abs=5 * noise + 1e-9)


def test_the_normal_form_is_0_for_the_oracle_1_for_no_information_and_above_1_for_the_reverse():
    loss = np.random.default_rng(0).exponential(size=300)
    assert metrics.normalized_aurc(loss, loss) == pytest.approx(0)
    assert metrics.normalized_aurc(loss, np.zeros(300)) == pytest.approx(1)
    assert metrics.normalized_aurc(loss, -loss) > 1
    assert metrics.normalized_aurc(np.ones(5), np.arange(5)) == 0
    shuffled = [metrics.normalized_aurc(loss, np.random.default_rng(s).random(300)) for s in range(100)]
    assert np.mean(shuffled) == pytest.approx(1, abs=0.03)


def test_calibration_groups_hold_everything_once():
    rng = np.random.default_rng(1)
    loss, risk = rng.exponential(size=103), rng.random(103)
    table = metrics.calibration_by_decile(loss, risk)
    assert table.size.sum() == 103
    assert table.size.max() - table.size.min() <= 1
    assert (np.diff(table.predicted) > 0).all()
    assert table.seen @ table.size == pytest.approx(loss.sum())
    assert table.predicted @ table.size == pytest.approx(risk.sum())


def test_intervals():
    low, high = np.array([0.0, 1.0, 2.0]), np.array([1.0, 1.0, 5.0])
    assert metrics.interval_coverage([1.0, 1.1, 2.0], low, high) == pytest.approx(2 / 3)
    assert metrics.interval_width(low, high) == pytest.approx(4 / 3)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: metrics.aurc([], []),
        lambda: metrics.aurc([1.0, 2.0], [1.0]),
        lambda: metrics.risk_coverage_curve([1.0, np.nan], [1.0, 2.0]),
        lambda: metrics.calibration_by_decile([1.0, 2.0], [1.0, 2.0], n_groups=3),
        lambda: metrics.interval_coverage([1.0], [0.0, 1.0], [2.0]),
        lambda: metrics.interval_width([], []),
    ],
)
def test_what_cannot_be_measured_is_refused(wrong):
    with pytest.raises(InputError):
        wrong()


def test_a_weighted_curve_is_that_of_repeated_entries():
    rng = np.random.default_rng(0)
    loss, score, weight = rng.exponential(size=30), rng.integers(10, size=30), rng.integers(1, 5, size=30)
    weighted = metrics.risk_coverage_curve(loss, score, weight)
    repeated = metrics.risk_coverage_curve(np.repeat(loss, weight), np.repeat(score, weight))
    np.testing.assert_allclose(weighted.coverage, repeated.coverage)
    np.testing.assert_allclose(weighted.risk, repeated.risk)
