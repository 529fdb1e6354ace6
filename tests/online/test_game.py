from __future__ import annotations

import math
from pathlib import Path

import cvxpy as cp
import numpy as np
import pytest

from surefill.datasets import Simulation, make_blocks, make_low_rank
from surefill.errors import InputError
from surefill.online import (
    BestResponse,
    GradientAdversary,
    MatrixPredict,
    OnlineDualDescent,
    SimplifiedODD,
)
from surefill.online.parameters import RegretConstants, matrix_constants
from surefill.online.players import CubePlayer, EntropyPlayer, MatrixMultiplicativeWeights
from surefill.online.regret import ConcaveQuadratic, maximize_over_class

SETTINGS = ["entropy", "cube"]
LONG_STEPS = {"K": 0.7, "alpha": 4.0, "theta": 2.0, "eta_matrix": 1.0, "tol": 1e-6}
"""Steps far longer than the theorem's, which show a confidence after a few draws of each cell."""


def stream(sim: Simulation, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    seen = sim.observations
    rows, cols = np.repeat(seen.rows, seen.counts), np.repeat(seen.cols, seen.counts)
    order = np.random.default_rng(seed).permutation(len(rows))
    return rows[order], cols[order], sim.truth_at(rows[order], cols[order])


def with_long_steps(setting: str, shape: tuple[int, int], **changes: object) -> OnlineDualDescent:
    eta = 0.05 if setting == "entropy" else 0.02 * sum(shape) ** -1.5
    return OnlineDualDescent(shape, confidence=setting, **{**LONG_STEPS, "eta_confidence": eta, **changes})


def separation(confidence: np.ndarray, support: np.ndarray) -> float:
    """Probability that a cell of the support has more confidence than one off it."""
    inside, outside = confidence[support], confidence[~support]
    return float(np.mean(inside[:, None] > outside) + 0.5 * np.mean(inside[:, None] == outside))


@pytest.mark.parametrize("setting", SETTINGS)
def test_the_defaults_find_the_blocks_of_figure_1(setting: str) -> None:
    """30 x 30, 1,500 draws, nothing but the confidence player chosen."""
    sim = make_blocks((15, 15), 2, 1500, random_state=1)
    game = OnlineDualDescent(sim.observations.shape, confidence=setting).learn_many(*stream(sim))
    assert separation(game.average, sim.support) >= 0.98
    C = game.confidence().dense()
    assert C[sim.support].mean() > C[~sim.support].mean() + 0.4


@pytest.mark.parametrize("matrix_predict", [GradientAdversary(), BestResponse()], ids=["gradient", "best response"])
def test_the_simplified_game_finds_the_blocks(matrix_predict: MatrixPredict) -> None:
    sim = make_blocks((10, 10), 2, 400, random_state=1)
    game = SimplifiedODD(sim.observations.shape, matrix_predict=matrix_predict)
    game.learn_many(*stream(sim)[:2])
    assert separation(game.confidence().dense(), sim.support) >= 0.98
    assert game.average.sum() == pytest.approx(1)
    assert game.M[~sim.support].mean() > 0.5 > game.M[sim.support].mean()


def streams(name: str, shape: tuple[int, int], rounds: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Uniform draws of a low-rank truth, draws that drift from the first rows to the last, contradicting values."""
    rng, (m, n) = np.random.default_rng(5), shape
    truth = make_low_rank(shape, 1, 10, random_state=2).truth
    rows, cols = rng.integers(m, size=rounds), rng.integers(n, size=rounds)
    if name == "drifting":
        rows = np.minimum(m - 1, (np.arange(rounds) * m // rounds + rng.integers(2, size=rounds)))
    values = truth[rows, cols] if name != "adversarial" else np.where(np.arange(rounds) % 2, 1.0, -1.0)
    return rows, cols, values


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("name", ["random", "drifting", "adversarial"])
def test_regret_stays_below_the_theorem(name: str, setting: str) -> None:
    rounds, shape = 200, (5, 4)
    options = {"K": 1.0, "alpha": 1.0, "theta": 0.5, "observations": "values"}
    game = OnlineDualDescent(shape, confidence=setting, horizon=rounds, **options)
    game.learn_many(*streams(name, shape, rounds))
    regret = game.regret()
    assert regret.confidence <= regret.confidence_theorem_bound < math.inf
    assert regret.matrix_lower_bound <= regret.matrix_upper_bound <= regret.matrix_theorem_bound < math.inf
    assert regret.upper_bound <= regret.theorem_bound
    assert regret.matrix_upper_bound - regret.matrix_lower_bound <= 2e-3 * rounds
    assert str(rounds) in regret.sentence


@pytest.mark.parametrize("setting", SETTINGS)
def test_regret_grows_more_slowly_than_the_rounds(setting: str) -> None:
    """Four times the rounds: less than 4^0.7 times the regret."""
    regrets = []
    for rounds in (150, 600):
        game = OnlineDualDescent((3, 3), theta=0.2, alpha=1.0, confidence=setting, horizon=rounds, tol=1e-6)
        regrets.append(game.learn_many(*streams("drifting", (3, 3), rounds)).regret().upper_bound)
    assert 0 < regrets[1] < 4**0.7 * regrets[0]


@pytest.mark.parametrize("setting", SETTINGS)
def test_regret_is_what_the_definition_says(setting: str) -> None:
    """Played again with every r_t kept; the best C in hindsight by a conic solver."""
    shape, alpha = (4, 3), 1.5
    game = with_long_steps(setting, shape, alpha=alpha, observations="values")
    inner = game.game
    played = []
    for i, j, o in zip(*streams("random", shape, 30), strict=True):
        first, second = inner.matrix_player.decision(inner.matrix_state)
        played.append((inner.C.copy(), first - second, (first[i, j] - o) ** 2 + (second[i, j] - o) ** 2))
        game.learn_one(i, j, o)
    earned = sum(inner.confidence_player.support(C) - alpha * np.vdot(C, D) for C, D, _ in played)
    C = cp.Variable(shape, nonneg=True)
    support = cp.sum(cp.entr(C)) if setting == "entropy" else cp.sum(C)
    within = [cp.sum(C) == 1] if setting == "entropy" else [sum(shape) ** 1.5 * C <= 1]
    goal = len(played) * support - alpha * cp.sum(cp.multiply(sum(D for _, D, _ in played), C))
    best = cp.Problem(cp.Maximize(goal), within).solve(solver=cp.CLARABEL)
    assert game.regret().confidence == pytest.approx(best - earned, abs=1e-4)
    sums = inner.sums
    assert sums.deviation == pytest.approx(sum(np.vdot(C, D) for C, D, _ in played))
    assert sums.misfit == pytest.approx(sum(loss for _, _, loss in played))


@pytest.mark.parametrize("K", [0.8, 1.6])
def test_the_comparator_agrees_with_a_conic_solver(K: float) -> None:
    rng = np.random.default_rng(4)
    quadratic = ConcaveQuadratic(rng.normal(size=(5, 4)), 3 * rng.random((5, 4)), rng.uniform(-1, 1, (5, 4)))
    found = maximize_over_class(quadratic, K, gap=1e-5)
    G = cp.Variable((9, 9), PSD=True)
    M = G[:5, 5:]
    misfit = cp.sum(cp.multiply(quadratic.weights, cp.square(M - quadratic.targets)))
    goal = cp.sum(cp.multiply(quadratic.linear, M)) - misfit
    best = cp.Problem(cp.Maximize(goal), [cp.diag(G) <= K, cp.abs(M) <= 1]).solve(solver=cp.CLARABEL)
    assert found.lower_bound <= best + 1e-6
    assert found.upper_bound >= best - 1e-6
    assert found.upper_bound - found.lower_bound <= 1e-4 * quadratic.scale
    assert np.abs(found.matrix).max() <= 1


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("observations", ["zero", "values"])
def test_a_game_resumed_from_its_state_goes_on_to_the_bit(setting: str, observations: str, tmp_path: Path) -> None:
    """Without a horizon, so that an epoch ends on the way; the state goes through a file of arrays."""
    shape = (5, 4)
    rows, cols, values = streams("random", shape, 90)
    options = {"K": 0.7, "alpha": 2.0, "theta": 0.3, "confidence": setting, "observations": observations, "delta": 0.1}
    whole = OnlineDualDescent(shape, **options).learn_many(rows, cols, values)
    saved = OnlineDualDescent(shape, **options).learn_many(rows[:20], cols[:20], values[:20]).state()
    np.savez(tmp_path / "state.npz", **saved)
    with np.load(tmp_path / "state.npz", allow_pickle=False) as stored:
        resumed = OnlineDualDescent.from_state(stored)
    resumed.learn_many(rows[20:], cols[20:], values[20:])
    first, second = whole.state(), resumed.state()
    assert first.keys() == second.keys()
    for name in first:
        np.testing.assert_array_equal(first[name], second[name], err_msg=name)
    assert all(isinstance(value, int | float | str | tuple | np.ndarray) for value in first.values())


@pytest.mark.parametrize("make", [GradientAdversary, BestResponse])
def test_a_simplified_game_resumed_goes_on_to_the_bit(make: type) -> None:
    rows, cols, _ = streams("random", (6, 5), 40)
    whole = SimplifiedODD((6, 5), matrix_predict=make()).learn_many(rows, cols)
    saved = SimplifiedODD((6, 5), matrix_predict=make()).learn_many(rows[:20], cols[:20]).state()
    resumed = SimplifiedODD.from_state(saved, make()).learn_many(rows[20:], cols[20:])
    for name, value in whole.state().items():
        np.testing.assert_array_equal(value, resumed.state()[name], err_msg=name)


def test_several_observations_in_a_round_of_the_simplified_game() -> None:
    rows, cols = np.array([0, 0, 1, 2, 2, 3, 0]), np.array([1, 1, 0, 2, 1, 0, 2])
    seen = np.zeros((4, 3))
    np.add.at(seen, (rows, cols), 1)
    counting, remembering = BestResponse(every=1), GradientAdversary()
    games = [SimplifiedODD((4, 3), matrix_predict=given) for given in (counting, remembering)]
    for game in games:
        assert game.learn_many(rows, cols, per_round=3).rounds == 3
    np.testing.assert_array_equal(counting.state()["counts"], seen)
    np.testing.assert_array_equal(remembering.state()["observed"], seen > 0)
    parts = (
        SimplifiedODD((4, 3)).learn_many(rows[:3], cols[:3], per_round=3).learn_many(rows[3:], cols[3:], per_round=3)
    )
    np.testing.assert_array_equal(parts.average, games[1].average)
    with pytest.raises(InputError, match="'per_round'"):
        parts.learn_many(rows, cols, per_round=0)


def test_without_a_horizon_epochs_double_and_their_bounds_add_up() -> None:
    game = OnlineDualDescent((3, 2), K=1.0, alpha=1.0, theta=0.1, delta=0.1)
    first = game.game.sums.epoch_length
    rows, cols, values = streams("random", (3, 2), 3 * first)
    game.learn_many(rows, cols, values)
    sums = game.game.sums
    assert (sums.epoch_length, sums.epoch_rounds) == (4 * first, 0)
    constants = game.game.matrix_player.constants
    expected = sum(constants.bound(length, constants.step(length)) for length in (first, 2 * first))
    assert sums.matrix_bound == pytest.approx(expected)
    assert game.regret().upper_bound <= game.regret().theorem_bound


def test_confidence_updates_are_the_mirror_steps_of_the_paper() -> None:
    rng = np.random.default_rng(0)
    D = rng.uniform(-1, 1, (4, 3))
    player = EntropyPlayer((4, 3), 2.0)
    C = rng.dirichlet(np.ones(12)).reshape(4, 3)
    gradient = -1 - np.log(C) - 2.0 * D
    stepped = C * np.exp(0.3 * gradient)
    expected = stepped / stepped.sum()  # the projection in relative entropy onto the simplex
    np.testing.assert_allclose(player.update(C, D, 0.3), expected, rtol=1e-12)
    cube = CubePlayer((4, 3), 2.0)
    inside = np.full((4, 3), cube.cap / 2)
    expected = np.clip(inside + 0.01 * (1 - 2.0 * D), 0, 7**-1.5)
    np.testing.assert_allclose(cube.update(inside, D, 0.01), expected)
    uniform = np.zeros((4, 3))
    uniform[:2, :2] = 0.25
    np.testing.assert_allclose(player.to_unit(uniform), (uniform > 0).astype(float), atol=1e-12)
    np.testing.assert_allclose(cube.to_unit(cube.from_distribution(uniform)), (uniform > 0).astype(float))


def test_bounds_are_smallest_at_their_step_and_absent_where_it_is_too_long() -> None:
    constants = matrix_constants((20, 30), 2.0, 5.0, "values")
    best = constants.step(1000)
    assert constants.bound(1000, best) == pytest.approx(2 * 21 * 2.0 * math.sqrt(2 * 50 * math.log(50) * 1000))
    assert constants.bound(1000, best) < min(constants.bound(1000, f * best) for f in (0.9, 1.1))
    assert best == pytest.approx(math.sqrt(50 * math.log(50) / 2000) / 21)
    assert constants.bound(10, 2 / (1 + 4 * 5.0)) == math.inf
    assert matrix_constants((20, 30), 2.0, 5.0, "zero").max_step == pytest.approx(1 / 11)
    assert RegretConstants(1.0, 1.0, 1.0, 1.0).bound(0, 9.0) == 0.0


def test_the_longest_step_is_the_edge_of_stability() -> None:
    """Visits to one cell of a matrix near 0: M_x alternates with 1 / (theta K), dies out below, grows above."""
    K, theta, nothing = 0.8, 2.0, np.zeros((3, 2))
    player = MatrixMultiplicativeWeights((3, 2), K, theta, tol=1e-12)
    sizes = {}
    for factor in (0.9, 1.0, 1.1):
        state = player.update(player.init(), np.full((3, 2), 1e-4), (0, 0), 0.0, 1.0)
        for _ in range(20):
            state = player.update(state, nothing, (0, 0), 0.0, factor * player.constants.longest_step)
        sizes[factor] = abs(player.decision(state)[0][0, 0]) / (K * 1e-4)
    assert sizes[0.9] < 0.1 < 0.9 < sizes[1.0] < 1.1 < 10 < sizes[1.1]


def test_predictions_follow_the_values_and_need_them() -> None:
    sim = make_low_rank((6, 5), 1, 150, random_state=0)
    rows, cols, values = stream(sim)
    game = with_long_steps("entropy", (6, 5), K=1.0, eta_matrix=0.25, observations="values")
    game.learn_many(rows, cols, values)
    assert np.corrcoef(game.predict(rows, cols), values)[0, 1] > 0.9
    with pytest.raises(InputError, match="predicts none"):
        with_long_steps("entropy", (6, 5)).predict([0], [0])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([0], [0], [1.5]), "values must lie in"),
        (([9], [0], [0.5]), "rows must be below 4"),
        (([0], [3], [0.5]), "cols must be below 3"),
        (([0, 1], [0], [0.5]), "equally long"),
    ],
)
def test_bad_observations_get_a_sentence_and_change_nothing(arguments: tuple, message: str) -> None:
    for game in (with_long_steps("entropy", (4, 3)), SimplifiedODD((4, 3))):
        with pytest.raises(InputError, match=message):
            game.learn_many(*arguments)
        assert game.rounds == 0


@pytest.mark.parametrize(
    "wrong",
    [
        {"matrix": "none"},
        {"confidence": "box"},
        {"observations": "all"},
        {"K": -1.0},
        {"theta": 0.0},
        {"horizon": 0},
        {"delta": -0.1},
    ],
)
def test_bad_parameters_get_a_sentence(wrong: dict) -> None:
    with pytest.raises(InputError, match=next(iter(wrong))):
        OnlineDualDescent((4, 3), **wrong)
