from __future__ import annotations

import math

import cvxpy as cp
import numpy as np
import pytest

from surefill.datasets import Simulation, make_low_rank
from surefill.errors import InputError
from surefill.online import (
    OnlineDualDescent,
    game_weights,
    offline_implication,
    rounds_needed,
    uniform_sampling_implication,
)


def draws(sim: Simulation) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    seen = sim.observations
    rows, cols = np.repeat(seen.rows, seen.counts), np.repeat(seen.cols, seen.counts)
    order = np.random.default_rng(0).permutation(len(rows))
    return rows[order], cols[order], sim.truth_at(rows[order], cols[order])


def upper_half(shape: tuple[int, int]) -> np.ndarray:
    mu = np.zeros(shape)
    mu[: shape[0] // 2] = 1
    return mu / mu.sum()


def test_the_supremum_is_bracketed_and_a_game_with_other_steps_has_no_guarantee() -> None:
    """Against the conic solver on the off-centre version space, and the theorem's inequalities seen to hold."""
    shape, delta = (6, 5), 0.05
    mu = upper_half(shape)
    sim = make_low_rank(shape, 1, 80, sampling=mu, random_state=3)
    steps = {"alpha": 4.0, "theta": 2.0, "eta_matrix": 0.5, "eta_confidence": 0.05}
    game = OnlineDualDescent(shape, observations="values", **steps).learn_many(*draws(sim))
    found = offline_implication(game, mu, delta)
    seen = sim.observations
    supremum = 0.0
    for side in (1.0, -1.0):
        G = cp.Variable((11, 11), PSD=True)
        M = G[:6, 6:]
        misfit = cp.sum(cp.multiply(seen.weights, cp.square(G[seen.rows, 6 + seen.cols] - seen.values)))
        goal = cp.sum(cp.multiply(side * game.average, M))
        limits = [cp.diag(G) <= 1, misfit <= delta]
        supremum += cp.Problem(cp.Maximize(goal), limits).solve(solver=cp.CLARABEL)
    assert found.disagreement_lower_bound - 1e-6 <= supremum <= found.disagreement_upper_bound + 1e-6
    assert found.disagreement_upper_bound - found.disagreement_lower_bound <= 0.02 * supremum
    assert found.holds
    assert found.departures == ("alpha", "theta", "step size")
    assert not found.guaranteed
    assert "No guarantee: alpha is not the theorem's" in found.sentence
    assert found.squared_error_bound is None


@pytest.mark.parametrize("setting", ["entropy", "cube"])
def test_on_the_theorem_s_own_parameters_the_margins_are_what_they_say(setting: str) -> None:
    """Margins by their definitions, from the regret and the misfit; "enough" only where both are at least 0."""
    shape, delta, rounds = (4, 3), 0.5, 600
    mu = upper_half(shape)
    game = OnlineDualDescent(shape, confidence=setting, delta=delta, horizon=rounds)
    game.learn_many(*draws(make_low_rank(shape, 1, rounds, sampling=mu, random_state=1)))
    found, regret, weights = offline_implication(game, mu), game.regret(), game_weights(delta, shape, setting)
    assert found.departures == ()
    summed = regret.confidence + weights.alpha * regret.matrix_upper_bound
    assert found.regret_margin == pytest.approx(weights.alpha * weights.theta * delta - summed / rounds)
    assert found.misfit_margin == pytest.approx(1.5 * delta ** (2 / 3) - game.game.sums.misfit / rounds)
    assert min(found.regret_margin, found.misfit_margin) >= 0
    assert found.guaranteed
    assert found.holds
    assert found.rounds_needed == rounds_needed(delta, shape, 1.0, setting) > rounds
    assert not found.enough_rounds
    assert not found.informative
    assert "says nothing" in found.sentence
    assert "small enough for the proof: both hold with probability 0.9999 over" in found.sentence
    D = 1.0 if setting == "entropy" else 12 * 7**-1.5
    assert found.support_of_mu - found.support_theorem_bound == pytest.approx(14 * delta ** (1 / 6) * D)
    assert found.squared_error_bound == pytest.approx(math.pi * found.disagreement_upper_bound)


def test_steps_for_other_rounds_and_a_large_regret_are_named() -> None:
    shape = (3, 3)
    mu = np.full(shape, 1 / 9)
    sim = make_low_rank(shape, 1, 30, random_state=1)
    game = OnlineDualDescent(shape, delta=1e-6, horizon=1000).learn_many(*draws(sim))
    found = offline_implication(game, mu)
    assert found.departures == ("step size",)
    assert found.regret_margin < 0
    assert not found.guaranteed
    assert not found.enough_rounds
    assert "the regrets are larger than the proof allows" in found.sentence


def test_the_bound_on_both_regrets_is_met_from_the_rounds_needed_on() -> None:
    for setting in ("entropy", "cube"):
        for mode in ("zero", "values"):
            delta, shape = 0.3, (5, 4)
            T, weights = rounds_needed(delta, shape, 1.0, setting, mode), game_weights(delta, shape, setting)
            game = OnlineDualDescent(shape, confidence=setting, observations=mode, delta=delta, horizon=T).game
            players = game.confidence_player.constants, game.matrix_player.constants
            bounds = [player.bound(T, eta) for player, eta in zip(players, game.step_sizes, strict=True)]
            mean = (bounds[0] + weights.alpha * bounds[1]) / T
            assert 0.99 * weights.alpha * weights.theta * delta <= mean <= weights.alpha * weights.theta * delta + 1e-9


def test_the_expected_misfit_exceeds_the_observed_one_no_more_often_than_promised() -> None:
    """1 - probability bounds how often an average of f_t in [0, 2] falls short of its mean by delta^(2/3) / 2."""
    delta, rounds, rng = 0.3, 60, np.random.default_rng(0)
    worst = 2.0 * rng.integers(0, 2, size=(20_000, rounds))  # the widest spread there is
    short = np.mean(1.0 - worst.mean(axis=1) > delta ** (2 / 3) / 2)
    implied = offline_implication(
        OnlineDualDescent((2, 2), delta=delta).learn_many([0] * rounds, [0] * rounds, [0.0] * rounds),
        np.array([[1.0, 0.0], [0.0, 0.0]]),
    )
    assert 0 < short <= 1 - implied.probability < 0.5


def test_uniform_sampling_follows_from_the_theorem_s_inequalities() -> None:
    """|C_mu|, H(C_mu) and the two inequalities put together, for a share of the cells that is all of them or half."""
    shape, delta, K = (8, 8), 1e-10, 1.5
    for c in (0.5, 1.0):
        a, mn, cap = delta ** (1 / 6), 64, 16**-1.5
        cube = uniform_sampling_implication(c, delta, shape, K=K)
        least = c * mn * cap - 14 * a * mn * cap  # |C-bar| >= |C_mu| - 14 a D, D = mn cap
        gap = a * (mn * cap - c * mn * cap) + 14 * a**2 * mn * cap
        assert cube.coverage == pytest.approx(least / cap)
        assert cube.disagreement == pytest.approx(gap / least)
        assert cube.squared_error == pytest.approx(math.pi * K * gap / least)
        simplex = uniform_sampling_implication(c, delta, shape, K=K, confidence="entropy")
        assert simplex.coverage == pytest.approx(math.exp(math.log(c * mn) - 14 * a))
        assert simplex.disagreement == pytest.approx(a * (math.log(mn) - math.log(c * mn)) + 14 * a**2)
    assert uniform_sampling_implication(0.5, delta, shape, observations="values").squared_error is None
    with pytest.raises(InputError, match="'fraction'"):
        uniform_sampling_implication(1.5, delta, shape)


def test_what_it_cannot_do_is_said_in_one_sentence() -> None:
    mu = np.full((2, 2), 0.25)
    with pytest.raises(InputError, match="needs matrix='mmw'"):
        offline_implication(OnlineDualDescent((2, 2), matrix="factored"), mu, 0.1)
    with pytest.raises(InputError, match="needs delta"):
        offline_implication(OnlineDualDescent((2, 2)), mu)
    with pytest.raises(InputError, match="no round"):
        offline_implication(OnlineDualDescent((2, 2)), mu, 0.1)
    with pytest.raises(InputError, match="distribution"):
        offline_implication(OnlineDualDescent((2, 2)), 2 * mu, 0.1)
