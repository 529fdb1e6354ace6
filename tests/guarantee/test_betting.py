"""The capital is fair at the boundary of the hypothesis, in each of the three ways entries may be drawn."""

from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from surefill.guarantee.betting import choose_bets, fallback_rejections, running_log_capital

TOLERANCE, LARGEST, DELTA = 0.3, 4.0, 0.1


def final(gains, bets):
    return np.exp(running_log_capital(gains, bets)[-1])


def losses_at_the_boundary(rng, size):
    """Mean exactly the tolerance: rare large losses, the hardest bounded case, and squared errors."""
    rare = np.where(rng.random(size) < TOLERANCE / LARGEST, LARGEST, 0.0)
    smooth = rng.beta(0.3, 0.3 * (LARGEST / TOLERANCE - 1), size) * LARGEST
    return {"rare": rare, "smooth": smooth}


@pytest.mark.parametrize("n", [50, 400])
@pytest.mark.parametrize("kind", ["rare", "smooth"])
def test_independent_draws_at_the_boundary_are_rejected_at_most_delta_of_the_time(n, kind):
    draws = losses_at_the_boundary(np.random.default_rng(n), (4000, n))[kind]
    bets = choose_bets(TOLERANCE, LARGEST, n, DELTA)
    capital = np.array([final(TOLERANCE - losses, bets) for losses in draws])
    assert np.mean(capital >= 1 / DELTA) <= binom.ppf(0.9999, len(draws), DELTA) / len(draws)
    assert capital.mean() <= 1 + 5 * capital.std() / np.sqrt(len(draws))


def test_cells_seen_by_their_own_coins_exactly():
    """E K <= 1 by summing over every outcome, for chances and losses that balance at the boundary."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        chance, weight = rng.uniform(0.05, 0.95, 8), rng.uniform(0.1, 1, 8)
        loss = balanced(rng, chance * weight)
        bets = choose_bets(TOLERANCE, LARGEST, 4, DELTA)
        expected = 0.0
        for seen in product([False, True], repeat=8):
            which = np.array(seen)
            probability = np.prod(np.where(which, chance, 1 - chance))
            expected += probability * final((weight * (TOLERANCE - loss))[which], bets)
        assert expected <= 1 + 1e-12


def test_samples_of_fixed_size_without_replacement_exactly():
    """The same for samples of 4 of 8 cells with probability in proportion to the product of their odds."""
    rng = np.random.default_rng(1)
    for _ in range(20):
        odds, weight = rng.uniform(0.05, 5, 8), rng.uniform(0.1, 1, 8)
        samples = [np.array(sample) for sample in combinations(range(8), 4)]
        probability = np.array([odds[sample].prod() for sample in samples])
        probability /= probability.sum()
        included = np.zeros(8)
        for sample, p in zip(samples, probability, strict=True):
            included[sample] += p
        loss = balanced(rng, included * weight)
        bets = choose_bets(TOLERANCE, LARGEST, 4, DELTA)
        capital = [final((weight * (TOLERANCE - loss))[sample], bets) for sample in samples]
        assert probability @ capital <= 1 + 1e-12


def balanced(rng, weight):
    """Losses in [0, LARGEST] whose weighted mean is the tolerance."""
    loss = rng.exponential(size=len(weight))
    loss *= TOLERANCE / np.average(loss, weights=weight)
    assert loss.max() <= LARGEST
    return loss


def test_losses_of_zero_have_a_closed_form():
    bets = choose_bets(TOLERANCE, LARGEST, 100, DELTA)
    running = running_log_capital(np.full(100, TOLERANCE), bets)
    expected = [np.mean((1 + bets * TOLERANCE) ** k) for k in range(101)]
    np.testing.assert_allclose(np.exp(running), expected)


@given(st.lists(st.floats(0, LARGEST), min_size=1, max_size=30), st.floats(0.01, LARGEST))
def test_capital_stays_positive_and_falls_with_every_loss(losses, tolerance):
    bets = choose_bets(tolerance, LARGEST, len(losses), DELTA)
    running = running_log_capital(tolerance - np.array(losses), bets)
    assert np.isfinite(running).all()
    better = running_log_capital(tolerance - np.array(losses) / 2, bets)
    assert (better >= running - 1e-12).all()


def test_fallback_passes_levels_on():
    level = np.array([0.02, 0.0, 0.03, 0.0])
    enough = -np.log(np.array([0.02, 0.02, 0.05, 0.05]))
    assert fallback_rejections(enough, level).all()
    assert fallback_rejections(enough - 1e-9, level).tolist() == [False] * 4
    later = np.array([0.0, 9.0, -np.log(0.03), -np.log(0.03)])
    assert fallback_rejections(later, level).tolist() == [False, False, True, True]


def test_fallback_keeps_the_chance_of_any_false_rejection():
    """All hypotheses true, capitals that are dependent (nested sets): the worst case for a sequence."""
    rng = np.random.default_rng(2)
    levels = np.array([0.03, 0.0, 0.07, 0.0, 0.0])
    bets, false = choose_bets(TOLERANCE, LARGEST, 200, DELTA), 0
    for losses in losses_at_the_boundary(rng, (3000, 200))["smooth"]:
        running = running_log_capital(TOLERANCE - losses, bets)
        false += fallback_rejections(running[[40, 80, 120, 160, 200]], levels).any()
    assert false <= binom.ppf(0.9999, 3000, DELTA)
