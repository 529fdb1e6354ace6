import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from surefill.coverage import DenseConfidence
from surefill.risk import RiskCurve, rounding_threshold, select_by_threshold

pairs = st.lists(st.tuples(st.floats(0, 1), st.floats(0, 4)), min_size=10, max_size=60)


@given(pairs, st.floats(0.01, 4))
def test_the_kept_held_out_entries_meet_the_tolerance_and_no_larger_allowed_set_does(points, tolerance):
    confidence, errors = map(np.array, zip(*points, strict=True))
    selection = select_by_threshold(confidence, errors, np.ones(len(points)), tolerance, floor=0.2)
    kept = selection.keeps(confidence)
    if kept.any():
        assert errors[kept].mean() <= tolerance
        assert selection.held_out_error == pytest.approx(errors[kept].mean())
        assert selection.held_out_share == pytest.approx(kept.mean())
        assert kept.sum() >= 10
        assert selection.threshold >= 0.2
    for threshold in confidence[confidence >= max(0.2, np.quantile(confidence, 0.05))]:
        larger = confidence >= threshold
        if larger.sum() > kept.sum() and larger.sum() >= 10:
            assert errors[larger].mean() > tolerance


def test_untested_confidences_are_not_kept_however_small_the_error():
    confidence = np.linspace(0.6, 1.0, 100)
    selection = select_by_threshold(confidence, np.zeros(100), np.ones(100), 1.0, floor=0.0)
    assert selection.threshold == pytest.approx(np.quantile(confidence, 0.05), abs=0.005)
    assert not selection.keeps(0.59)


def test_entries_of_equal_confidence_go_together():
    confidence, errors = np.repeat([1.0, 0.5], [10, 20]), np.r_[np.zeros(15), np.ones(15)]
    selection = select_by_threshold(confidence, errors, np.ones(30), 0.2, floor=0.0)
    assert selection.keeps(confidence).sum() == 10
    assert selection.held_out_share == pytest.approx(1 / 3)


def test_why_nothing_is_kept():
    few = select_by_threshold(np.ones(9), np.zeros(9), np.ones(9), 1.0, 0.0)
    assert few.threshold == np.inf
    assert "only 9 entries could be held out" in few.sentence
    unsupported = select_by_threshold(np.linspace(0, 0.4, 50), np.zeros(50), np.ones(50), 1.0, 0.5)
    assert "fewer than 10 of the 50 held-out entries are supported" in unsupported.sentence
    bad = select_by_threshold(np.linspace(0, 1, 50), np.full(50, 2.0), np.ones(50), 1.0, 0.0)
    assert "best held-out set has mean squared error 2, above the tolerance 1" in bad.sentence
    assert not bad.keeps([1.0]).any()
    assert bad.held_out_error is None


def test_the_limit_is_named():
    confidence = np.linspace(0.01, 1, 100)
    errors = np.where(confidence > 0.6, 0.0, 4.0)
    ones = np.ones(100)
    assert "is the tolerance" in select_by_threshold(confidence, errors, ones, 0.5, 0.0).sentence
    by_support = select_by_threshold(confidence, 0 * errors, ones, 0.5, 0.7)
    assert "the observations support" in by_support.sentence
    by_tests = select_by_threshold(confidence, 0 * errors, ones, 0.5, 0.0)
    assert "errors could be measured" in by_tests.sentence
    raised = by_tests.raised_to(0.9)
    assert (raised.threshold, raised.limited_by) == (0.9, by_support.limited_by)
    assert raised.raised_to(0.1) is raised


def test_counts_weigh():
    confidence, errors = np.linspace(1, 0.5, 20), np.r_[np.zeros(10), np.ones(10)]
    light = select_by_threshold(confidence, errors, np.r_[np.full(10, 9), np.ones(10)], 0.1, 0.0)
    heavy = select_by_threshold(confidence, errors, np.r_[np.ones(10), np.full(10, 9)], 0.1, 0.0)
    assert light.threshold < heavy.threshold


@given(st.lists(st.floats(0, 1), min_size=1, max_size=40))
def test_the_rounded_set_is_the_largest_no_larger_than_the_coverage(values):
    matrix = np.array([values])
    threshold = rounding_threshold(DenseConfidence(matrix))
    size = (matrix >= threshold).sum()
    assert size <= matrix.sum() + 1e-6
    below = matrix[matrix < threshold]
    if below.size:
        assert (matrix >= below.max()).sum() > matrix.sum() - 1e-6


def test_rounding_keeps_what_is_certain():
    assert rounding_threshold(DenseConfidence([[1.0, 1.0], [0.0, 0.0]])) == 1.0
    assert rounding_threshold(DenseConfidence([[0.0, 0.0]])) == np.inf
    assert rounding_threshold(DenseConfidence([[1.0, 0.6, 0.5, 0.1]])) == 0.6


def test_rounding_a_huge_matrix_forms_nothing_of_its_size():
    class Half:
        shape = (10**9, 10**9)

        def at(self, rows, cols):
            return np.where(rows % 2 == 0, 1.0, 0.0)

    assert rounding_threshold(Half(), 1000) == 1.0


def test_rounding_by_sampling_is_close():
    matrix = np.random.default_rng(0).uniform(size=(300, 400))
    exact, sampled = (rounding_threshold(DenseConfidence(matrix), n) for n in (200_000, 20_000))
    assert sampled == pytest.approx(exact, abs=0.02)


@given(pairs)
def test_the_risk_curve_falls_and_keeps_the_mean(points):
    confidence, errors = map(np.array, zip(*points, strict=True))
    curve = RiskCurve.fit(confidence, errors, np.ones(len(points)))
    grid = np.linspace(-0.5, 1.5, 101)
    assert np.all(np.diff(curve.at(grid)) <= 1e-12)
    assert np.all(curve.at(grid) >= 0)
    assert curve.at(confidence).mean() == pytest.approx(errors.mean(), abs=1e-6)


def test_the_risk_curve_finds_a_falling_truth():
    rng = np.random.default_rng(0)
    confidence = rng.uniform(size=5000)
    errors = (2 - confidence) * rng.chisquare(1, 5000)
    curve = RiskCurve.fit(confidence, errors, np.ones(5000))
    np.testing.assert_allclose(curve.at([0.2, 0.5, 0.8]), [1.8, 1.5, 1.2], atol=0.25)
