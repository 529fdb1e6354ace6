"""Other ways to choose a kept set: their formulas one by one, and their promises on many exchangeable draws."""

import numpy as np
import pytest
from scipy.stats import binom, norm

from surefill.guarantee.baselines import (
    Candidates,
    HeldOut,
    compare_baselines,
    conformal_risk_control,
    hoeffding_bentkus,
    learn_then_test,
    score_e_values,
    score_selection,
    thinned,
)
from surefill.guarantee.baselines.learn_then_test import fallback_rejections

LARGEST = 4.0


def draw(rng, n, m, shifted=False):
    """Calibration cells and candidates of one world, the candidates' losses, and weights where it shifts.

    Losses are of mean 1.3 risk, so that the order is right and the level is not. Shifted candidates have more of the
    large risks: density r on [0, 1] against 1 of the cells held out, hence weight r.
    """
    risk, other = rng.uniform(0.05, 1.0, n), rng.uniform(0.05, 1.0, m)
    if shifted:
        other = np.sqrt(rng.uniform(0.05**2, 1.0, m))
    loss, lost = (np.minimum(1.3 * r * rng.chisquare(2, len(r)) / 2, LARGEST) for r in (risk, other))
    weight, weighed = (risk, other) if shifted else (np.ones(n), np.ones(m))
    return HeldOut(risk, loss, weight), Candidates(other, weighed), lost


@pytest.mark.parametrize(("n", "bound"), [(5, 0.3), (60, 0.05), (400, 0.5)])
def test_p_values_against_the_formula_one_by_one(n, bound):
    for mean in np.linspace(0, 1, 23):
        if mean >= bound:
            expected = 1.0
        else:
            h = (mean * np.log(mean / bound) if mean > 0 else 0.0) + (1 - mean) * np.log((1 - mean) / (1 - bound))
            up_to = sum(binom.pmf(k, n, bound) for k in range(int(np.ceil(n * mean - 1e-9)) + 1))
            expected = min(np.exp(-n * h), np.e * up_to, 1.0)
        assert hoeffding_bentkus(mean, n, bound) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("n", [20, 150])
def test_p_values_are_rarely_small_where_the_mean_is_at_the_bound(n):
    rng = np.random.default_rng(n)
    means = (rng.random((20_000, n)) < 0.2).mean(axis=1)
    p = hoeffding_bentkus(means, n, 0.2)
    for level in (0.05, 0.2):
        assert np.mean(p <= level) <= level


@pytest.mark.parametrize(("shifted", "thin"), [(False, False), (True, False), (True, True)])
def test_learn_then_test_breaks_its_promise_at_most_as_often_as_said(shifted, thin):
    rng = np.random.default_rng(1)
    delta, tolerance, broken, kept_some = 0.2, 0.6, 0, 0
    for seed in range(400):
        held_out, candidates, lost = draw(rng, 2000, 4000, shifted)
        if thin:
            held_out, candidates = thinned(held_out, candidates, seed)
        kept = learn_then_test(held_out, candidates, tolerance, delta, LARGEST)
        kept_some += bool(kept.any())
        broken += bool(kept.any()) and lost[kept].mean() > tolerance
    assert kept_some > 200
    assert broken <= binom.ppf(0.999, 400, delta)


@pytest.mark.parametrize("shifted", [False, True])
def test_expected_losses_are_at_most_the_level(shifted):
    rng = np.random.default_rng(2)
    marginal, selective, level = [], [], 0.4
    for _ in range(600):
        held_out, candidates, lost = draw(rng, 300, 200, shifted)
        marginal.append(np.mean(lost * conformal_risk_control(held_out, candidates, level, LARGEST)))
        kept = score_selection(held_out, candidates, level, LARGEST, pruning=rng.random())
        selective.append(lost[kept].mean() if kept.any() else 0.0)
    for found in (marginal, selective):
        assert np.mean(found) <= level + 3 * np.std(found) / np.sqrt(len(found))
    assert min(np.mean(marginal), np.mean(selective)) > level / 3


def test_e_values_are_the_least_over_all_losses_that_the_candidate_may_have():
    rng = np.random.default_rng(3)
    jumped = 0
    for _ in range(12):
        n, m, gamma = rng.integers(2, 8), rng.integers(1, 8), rng.uniform(0.1, 0.8)
        risk, other = (rng.integers(0, 6, size) / 5 for size in (n, m))
        held_out = HeldOut(risk, rng.random(n) * LARGEST * 0.4, rng.uniform(0.2, 3, n))
        candidates = Candidates(other, rng.uniform(0.2, 3, m))
        found = score_e_values(held_out, candidates, gamma * LARGEST, LARGEST)
        for j in range(m):
            tried = [brute_force(held_out, candidates, j, loss, gamma) for loss in np.linspace(0, 1, 201)]
            least = min(value for value, _ in tried)
            jumped += len({t for _, t in tried}) > 1
            assert found[j] <= least * (1 + 1e-9)
            assert found[j] == pytest.approx(least, rel=0.04)
    assert jumped > 10


def brute_force(held_out, candidates, j, loss, gamma):
    """SCoRE's e-value of candidate j if its loss were known, and its threshold, by looking at every risk there is."""
    m, total = len(candidates), held_out.weight.sum() + candidates.weight[j]
    best, value = -np.inf, 0.0
    for t in np.concatenate([held_out.risk, candidates.risk]):
        own = candidates.risk[j] <= t
        lost = np.sum((held_out.weight * held_out.loss)[held_out.risk <= t]) / LARGEST
        lost += loss * candidates.weight[j] * own
        others = np.count_nonzero(candidates.risk <= t) - own
        if lost / total / ((1 + others) / m) <= gamma + 1e-12 and t > best:
            best, value = t, (total / lost if lost > 0 else np.inf) if own else 0.0
    return value, best


def test_weights_of_one_are_no_weights_and_their_scale_does_not_matter():
    rng = np.random.default_rng(4)
    held_out, candidates, _ = draw(rng, 300, 500, shifted=True)
    plain = HeldOut(held_out.risk, held_out.loss, np.ones(300))
    n = len(plain)
    summed = [np.sum(plain.loss[plain.risk <= r]) for r in candidates.risk]
    expected = [(LARGEST + s) / (n + 1) <= 0.3 for s in summed]
    ones = Candidates(candidates.risk, np.ones(500))
    np.testing.assert_array_equal(conformal_risk_control(plain, ones, 0.3, LARGEST), expected)
    scaled = HeldOut(held_out.risk, held_out.loss, 8 * held_out.weight)
    kwargs = {"tolerance": 0.5, "delta": 0.1, "largest_loss": LARGEST}
    weighed = compare_baselines(held_out, candidates, **kwargs)
    again = compare_baselines(scaled, Candidates(candidates.risk, 8 * candidates.weight), **kwargs)
    for one, other in zip(weighed, again, strict=True):
        np.testing.assert_array_equal(one.kept, other.kept)


def test_thinned_cells_are_like_the_candidates():
    held_out, candidates, _ = draw(np.random.default_rng(7), 40_000, 40_000, shifted=True)
    sample, same = thinned(held_out, candidates)
    assert (sample.weight == 1).all()
    assert (same.weight == 1).all()
    assert len(sample) == pytest.approx(40_000 * held_out.weight.mean(), rel=0.03)
    np.testing.assert_allclose(
        np.quantile(sample.risk, [0.1, 0.5, 0.9]), np.quantile(same.risk, [0.1, 0.5, 0.9]), rtol=0.03
    )


def test_more_tolerance_and_more_delta_keep_as_much_or_more():
    rng = np.random.default_rng(5)
    held_out, candidates, _ = draw(rng, 800, 1000)
    by_tolerance = [
        [found.share for found in compare_baselines(held_out, candidates, tolerance=t, delta=0.1, largest_loss=LARGEST)]
        for t in (0.3, 0.4, 0.5, 0.6, 0.8)
    ]
    assert (np.diff(by_tolerance, axis=0) >= 0).all()
    assert by_tolerance[-1][0] > by_tolerance[0][0]
    by_delta = [
        [found.share for found in compare_baselines(held_out, candidates, tolerance=0.5, delta=d, largest_loss=LARGEST)]
        for d in (0.02, 0.1, 0.3, 0.9)
    ]
    assert (np.diff(by_delta, axis=0) >= 0).all()
    assert by_delta[-1][3] > by_delta[0][3]


def test_without_candidates_or_held_out_cells_nothing_is_kept():
    held_out, candidates, _ = draw(np.random.default_rng(6), 400, 300)
    kwargs = {"tolerance": 0.6, "delta": 0.1, "largest_loss": LARGEST}
    nobody = Candidates(np.empty(0), np.empty(0))
    assert [found.share for found in compare_baselines(held_out, nobody, **kwargs)] == [0.0] * 6
    nothing = HeldOut(np.empty(0), np.empty(0), np.empty(0))
    assert not any(found.kept.any() for found in compare_baselines(nothing, candidates, **kwargs))


def test_without_a_range_of_losses_nothing_is_selected():
    held_out, candidates = HeldOut(np.ones(3), np.zeros(3), np.ones(3)), Candidates(np.ones(4), np.ones(4))
    assert not score_selection(held_out, candidates, 0.3, 0.0).any()


def test_fallback_passes_levels_on():
    level = np.array([0.02, 0.0, 0.03, 0.0])
    enough = -np.log(np.array([0.02, 0.02, 0.05, 0.05]))
    assert fallback_rejections(enough, level).all()
    assert fallback_rejections(enough - 1e-9, level).tolist() == [False] * 4
    later = np.array([0.0, 9.0, -np.log(0.03), -np.log(0.03)])
    assert fallback_rejections(later, level).tolist() == [False, False, True, True]


def test_fallback_keeps_the_chance_of_any_false_rejection():
    """All hypotheses true, p-values of the first cells that are exact and dependent: the worst case for a sequence."""
    rng, levels, sizes = np.random.default_rng(2), np.array([0.03, 0.0, 0.07, 0.0, 0.0]), np.array([8, 16, 24, 32, 40])
    walks = np.cumsum(rng.normal(size=(4000, 40)), axis=1)[:, sizes - 1] / np.sqrt(sizes)
    false = sum(fallback_rejections(-norm.logsf(walk), levels).any() for walk in walks)
    assert binom.ppf(0.0001, 4000, 0.08) <= false <= binom.ppf(0.9999, 4000, levels.sum())
