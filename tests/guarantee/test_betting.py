"""The capital is fair at the boundary of the hypothesis, in each of the three ways entries may be drawn."""

from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from surefill.guarantee.betting import LARGEST_BET, robust_gains, running_log_capital

TOLERANCE, LARGEST, DELTA = 0.3, 4.0, 0.1


def bets_for(n, largest_weight=1.0):
    """Half, all and twice of the best bet on n squared normal errors, as far as they may be made."""
    best = np.array([0.5, 1.0, 2.0]) * np.sqrt(np.log(1 / DELTA) / n) / TOLERANCE
    return np.minimum(best / largest_weight, LARGEST_BET / (largest_weight * (LARGEST - TOLERANCE)))


def final(gains, bets, weights=1.0, leave_out=0.0):
    """Mean of the capitals of several bets."""
    weights, leave_out = (np.broadcast_to(each, gains.shape) for each in (weights, leave_out))
    return np.mean([np.exp(running_log_capital(gains, weights, bet, leave_out)[-1]) for bet in bets])


def losses_at_the_boundary(rng, size):
    """Mean exactly the tolerance: rare large losses, the hardest bounded case, and squared errors."""
    rare = np.where(rng.random(size) < TOLERANCE / LARGEST, LARGEST, 0.0)
    smooth = rng.beta(0.3, 0.3 * (LARGEST / TOLERANCE - 1), size) * LARGEST
    return {"rare": rare, "smooth": smooth}


@pytest.mark.parametrize("n", [50, 400])
@pytest.mark.parametrize("kind", ["rare", "smooth"])
def test_independent_draws_at_the_boundary_are_rejected_at_most_delta_of_the_time(n, kind):
    draws = losses_at_the_boundary(np.random.default_rng(n), (4000, n))[kind]
    bets = bets_for(n)
    capital = np.array([final(TOLERANCE - losses, bets) for losses in draws])
    assert np.mean(capital >= 1 / DELTA) <= binom.ppf(0.9999, len(draws), DELTA) / len(draws)
    assert capital.mean() <= 1 + 5 * capital.std() / np.sqrt(len(draws))


def test_cells_seen_by_their_own_coins_exactly():
    """E K <= 1 by summing over every outcome, for chances and losses that balance at the boundary."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        chance, weight = rng.uniform(0.05, 0.95, 8), rng.uniform(0.1, 1, 8)
        loss = balanced(rng, chance * weight)
        bets = bets_for(4)
        expected = 0.0
        for seen in product([False, True], repeat=8):
            which = np.array(seen)
            probability = np.prod(np.where(which, chance, 1 - chance))
            expected += probability * final((TOLERANCE - loss)[which], bets, weight[which])
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
        bets = bets_for(4)
        capital = [final((TOLERANCE - loss)[sample], bets, weight[sample]) for sample in samples]
        assert probability @ capital <= 1 + 1e-12


def balanced(rng, weight):
    """Losses in [0, LARGEST] whose weighted mean is the tolerance."""
    loss = rng.exponential(size=len(weight))
    loss *= TOLERANCE / np.average(loss, weights=weight)
    assert loss.max() <= LARGEST
    return loss


def test_cells_never_observed_exactly():
    """P(capital >= 1 / delta and the mean loss of the cells left over is at least the tolerance) <= delta.

    By summing over every outcome of the coins, for losses whose mean over all cells is near the tolerance, so that the
    mean over those left over is above it about half of the time. Without leaving the calibration cells out, or without
    weights, the same sum exceeds delta: the check can fail.
    """
    rng = np.random.default_rng(3)
    worst = {"right": 0.0, "unweighted": 0.0}
    for _ in range(40):
        chance = np.sort(rng.uniform(0.1, 0.9, 10))
        loss = np.where(rng.random(10) < 0.4, 0.0, rng.uniform(0.2, 1.2, 10)) if rng.random() < 0.5 else np.sort(
            rng.uniform(0, 0.8, 10))[::-1]  # fmt: skip
        tolerance = loss.mean() * rng.uniform(0.8, 1.2)
        gains, most = tolerance - loss, (1 / chance * np.maximum(loss - tolerance, 0)).max()
        for bet in LARGEST_BET / max(most, 1e-9) * np.array([1.0, 0.3]):
            wrong = {"right": [], "unweighted": []}
            for seen in product([False, True], repeat=10):
                which = np.array(seen)
                probability = np.prod(np.where(which, chance, 1 - chance))
                if which.all() or gains[~which].mean() > 0:
                    continue
                log_capital = running_log_capital(gains[which], 1 / chance[which], bet, gains[which])[-1]
                wrong["right"].append((log_capital, probability))
                plain = LARGEST_BET / max((loss - tolerance).max(), 1e-9)
                wrong["unweighted"].append((running_log_capital(gains[which], 1.0, plain)[-1], probability))
            for name, outcomes in wrong.items():
                for level in (0.5, 0.2, 0.1):
                    broken = sum(p for log_capital, p in outcomes if log_capital >= -np.log(level))
                    worst[name] = max(worst[name], broken / level)
    assert worst["right"] <= 1 + 1e-12
    assert worst["unweighted"] > 1


def test_values_that_change_the_chance_of_being_seen_exactly():
    """E K <= 1 at the boundary for every chance within a factor of G of the one that weights are made of."""
    rng, G = np.random.default_rng(4), 1.5
    plain = 0.0
    for _ in range(30):
        chance = rng.uniform(0.1, 0.6, 8)
        loss = balanced(rng, np.ones(8))
        gains = TOLERANCE - loss
        true = np.where(gains > 0, np.minimum(chance * G, 1.0), chance / G)  # the worst: what is right is seen more
        bets = bets_for(4, largest_weight=G / chance.min())
        for outcome in ("robust", "plain"):
            used = robust_gains(gains, G) if outcome == "robust" else gains
            expected = sum(
                np.prod(np.where(which, true, 1 - true)) * final(used[which], bets, 1 / chance[which])
                for which in map(np.array, product([False, True], repeat=8))
            )
            if outcome == "robust":
                assert expected <= 1 + 1e-12
            else:
                plain = max(plain, expected)
    assert plain > 1


def test_losses_of_zero_have_a_closed_form():
    for bet in bets_for(100):
        running = running_log_capital(np.full(100, TOLERANCE), np.ones(100), bet)
        np.testing.assert_allclose(np.exp(running), (1 + bet * TOLERANCE) ** np.arange(101))


@given(st.lists(st.floats(0, LARGEST), min_size=1, max_size=30), st.floats(0.01, LARGEST), st.floats(1, 3))
def test_capital_falls_with_every_loss_and_with_sensitivity(losses, tolerance, G):
    gains, better = tolerance - np.array(losses), tolerance - np.array(losses) / 2
    bet = LARGEST_BET / max(G * (LARGEST - tolerance), 0.1)
    ones = np.ones(len(losses))
    running = running_log_capital(gains, ones, bet)
    assert np.isfinite(running).all()
    assert (running_log_capital(better, ones, bet) >= running - 1e-12).all()
    assert (running_log_capital(robust_gains(gains, G), ones, bet) <= running + 1e-12).all()


def test_a_bet_that_could_lose_all_is_not_made():
    running = running_log_capital(np.array([0.1, -1.0, 0.1]), np.ones(3), 1.0)
    assert running.tolist() == [0.0, pytest.approx(np.log(1.1)), -np.inf, -np.inf]
