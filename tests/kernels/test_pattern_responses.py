import numpy as np

from surefill.kernels.pattern_responses import pattern_responses, pattern_responses_reference


def test_both_give_the_same_responses_and_leave_other_entries_alone():
    rng = np.random.default_rng(0)
    size, own, fixed = 50, rng.standard_normal((6, 4)), rng.standard_normal((5, 4))
    line, other = rng.integers(6, size=size), rng.integers(5, size=size)
    found, rates, base = rng.integers(2, size=size) * 1.0, rng.uniform(0.1, 2, size), rng.standard_normal(size)
    results = []
    for kernel in (pattern_responses, pattern_responses_reference):
        target, weight = np.full(size, np.nan), np.full(size, np.nan)
        kernel(10, 40, line, other, found, rates, base, own, fixed, 0.5, 0.7, 0.02, target, weight)
        results.append((target, weight))
    for fast, readable in zip(*results, strict=True):
        np.testing.assert_allclose(fast, readable, rtol=1e-10)
        assert np.isnan(fast[:10]).all()
        assert np.isnan(fast[40:]).all()
        assert np.isfinite(fast[10:40]).all()


def test_a_step_from_the_responses_is_a_newton_step_of_the_log_likelihood():
    """(target - interaction) weight is the first derivative, whatever the weight."""
    rng, h = np.random.default_rng(1), 1e-5
    own, fixed, base = np.zeros((1, 1)), np.zeros((1, 1)), np.array([0.3])
    v, s, rate, where = 0.4, 0.6, rng.uniform(0.2, 1.0, 1), np.zeros(1, dtype=np.int64)

    def log_likelihood(eta, found):
        odds = v * np.exp(eta) / (1 + (1 - s) * np.exp(eta))
        return np.log((odds if found else rate[0]) / (odds + rate[0]))

    for found in (0.0, 1.0):
        target, weight = np.empty(1), np.empty(1)
        pattern_responses(0, 1, where, where, np.array([found]), rate, base, own, fixed, v, s, 0.0, target, weight)
        slope = (log_likelihood(0.3 + h, found) - log_likelihood(0.3 - h, found)) / (2 * h)
        np.testing.assert_allclose(target * weight, slope, rtol=1e-6)
