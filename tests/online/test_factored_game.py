import cvxpy as cp
import numpy as np
import pytest
from scipy.stats import rankdata

from surefill import InputError, OnlineDualDescent
from surefill.datasets import make_blocks, make_pattern
from surefill.online.factored_game import FactoredGame
from surefill.spaces import max_norm


def draws_of(sim, seed=0):
    """All draws of a simulation in random order."""
    seen = sim.observations
    order = np.random.default_rng(seed).permutation(seen.n_draws)
    return np.repeat(seen.rows, seen.counts)[order].astype(np.int64), np.repeat(seen.cols, seen.counts)[order]


def auc(score, positive):
    ranks, n_positive = rankdata(score.ravel())[positive.ravel()], positive.sum()
    return (ranks.sum() - n_positive * (n_positive + 1) / 2) / (n_positive * (~positive).sum())


def played(rows, cols, shape=None, **parameters):
    game = FactoredGame(shape, **parameters)
    game.learn(rows, cols)
    return game


@pytest.mark.parametrize("player", ["entropy", "cube"])
def test_the_payoff_comes_down_to_the_value_that_an_independent_solver_finds(player):
    """min over the max-norm ball of mean phi(M) + alpha theta mean_S M^2, phi(M) = max_c H(c) - alpha c M."""
    m, n, alpha, theta, rng = 8, 7, 3.0, 1.0, np.random.default_rng(0)
    inside = np.add.outer(np.arange(m) < 4, np.arange(n) < 3) != 1
    cells = np.flatnonzero(inside.ravel())[rng.integers(inside.sum(), size=40)]
    rows, cols = cells // n, cells % n
    W = cp.Variable((m + n, m + n), PSD=True)
    M, above, below = W[:m, m:], cp.Variable((m, n), nonneg=True), cp.Variable((m, n), nonneg=True)
    phi = cp.exp(-alpha * above) if player == "entropy" else cp.square(cp.pos(1 - alpha * above)) / 2
    weights = np.bincount(cells, minlength=m * n).reshape(m, n) / len(cells)
    objective = cp.sum(phi + alpha * below) / (m * n) + alpha * theta * cp.sum(cp.multiply(weights, cp.square(M)))
    problem = cp.Problem(cp.Minimize(objective), [cp.diag(W) <= 1, above - below == M])
    problem.solve(solver=cp.CLARABEL)
    value = problem.value

    again = np.random.default_rng(1).integers(len(cells), size=4000)
    rough = {"rank": 8, "eta": 0.02, "n_snapshots": 16, "confidence_player": player}
    game = played(rows[again], cols[again], (m, n), alpha=alpha, theta=theta, **rough)
    payoff = game.payoff()
    assert value - 0.001 <= payoff <= 1.04 * value
    confidence = game.confidence()
    grid = np.meshgrid(np.arange(m), np.arange(n), indexing="ij")
    average = confidence.adversary_at(grid[0].ravel(), grid[1].ravel()).reshape(m, n)
    assert max_norm(average).value <= 1 + 1e-4
    expected = np.exp(-alpha * M.value) if player == "entropy" else 1 - alpha * M.value
    assert abs(confidence.dense() - np.clip(expected, 0, 1)).mean() < 0.03


@pytest.mark.parametrize(
    "sim",
    [
        make_blocks((10, 10), n_groups=2, n_draws=300, random_state=3),
        make_blocks((15, 12), n_groups=3, n_draws=900, random_state=4),
        make_pattern("blocks", (60, 50), n_groups=2, random_state=5),
    ],
    ids=["two blocks", "three blocks", "uneven blocks"],
)
def test_confidence_separates_the_support_from_the_rest_in_any_order(sim):
    rows, cols = draws_of(sim)
    by_row = np.argsort(rows, kind="stable")
    for seed in range(3):
        C = played(rows, cols, sim.support.shape, random_state=seed).confidence().dense()
        assert auc(C, sim.support) >= 0.98
        C = played(rows[by_row], cols[by_row], sim.support.shape, random_state=seed).confidence().dense()
        assert auc(C, sim.support) >= 0.95


def test_what_is_observed_only_in_the_second_half_gains_confidence():
    sim = make_pattern("blocks", (40, 40), n_groups=2, n_draws=1600, random_state=0)
    rows, cols = draws_of(sim)
    late = sim.row_groups[rows] == 1
    late_block = np.outer(sim.row_groups == 1, sim.col_groups == 1)
    game = played(rows[~late], cols[~late], (40, 40))
    middle = game.confidence()
    game.learn(rows[late], cols[late])
    end = game.confidence().dense()
    assert middle.dense()[late_block].mean() < 0.2
    assert end[late_block].mean() > middle.dense()[late_block].mean() + 0.4
    assert end[sim.support & ~late_block].mean() > 0.5
    assert end[~sim.support].mean() < 0.2


@pytest.mark.parametrize("size", [1 << 20, 100])
def test_batches_of_any_size_and_a_rebuilt_state_give_the_same_bits(size):
    rows, cols = draws_of(make_blocks((10, 10), n_groups=2, n_draws=400, random_state=3))
    whole, parts = FactoredGame(reservoir_size=size), FactoredGame(reservoir_size=size)
    before = whole.learn(rows, cols)
    in_parts = []
    for first, last in [(0, 1), (1, 2), (2, 57), (57, 57), (57, 400)]:
        in_parts.append(parts.learn(rows[first:last], cols[first:last]))
        parts = FactoredGame(reservoir_size=size).restore(parts.state())
    assert np.array_equal(before, np.concatenate(in_parts))
    for name, array in whole.state().items():
        assert array.tobytes() == parts.state()[name].tobytes(), name
    assert whole.state()["reservoir"].shape == (min(size, 400), 2)


def test_an_observed_cell_takes_eight_bytes_and_states_with_sixteen_are_read():
    rows, cols = np.arange(300) % 17, np.arange(300) % 13
    game = played(rows, cols)
    state = game.state()
    assert state["reservoir"].nbytes == 8 * 300
    again = FactoredGame().restore(state | {"reservoir": state["reservoir"].astype(np.int64)})
    for each in (game, again):
        each.learn(cols, rows)
    assert all(np.array_equal(again.state()[name], array) for name, array in game.state().items())
    assert again.state()["reservoir"].nbytes == 8 * 600


def test_the_reservoir_is_uniform_over_time():
    """A reservoir of 100 of 1000 cells holds about as many of each tenth of the stream."""
    rows = np.arange(1000) // 100
    games = [played(rows, rows, rank=1, batch_size=1, reservoir_size=100, random_state=seed) for seed in range(10)]
    held = sum(np.bincount(game.state()["reservoir"][:, 0], minlength=10) for game in games)
    assert abs(held - 100).max() < 5 * np.sqrt(90)


def test_a_confidence_stays_as_it_was_and_obeys_the_protocol():
    rows, cols = draws_of(make_blocks((10, 8), n_groups=2, n_draws=300, random_state=3))
    game = played(rows, cols, (20, 16))
    confidence = game.confidence()
    dense = confidence.dense()
    game.learn(rows, cols)
    assert np.array_equal(confidence.dense(), dense)
    assert confidence.shape == dense.shape == (20, 16)
    assert dense.min() >= 0
    assert dense.max() <= 1
    assert confidence.coverage == pytest.approx(dense.sum())
    assert np.array_equal(confidence.at([3, 5], [2, 15]), dense[[3, 5], [2, 15]])
    assert np.array_equal(confidence.block([3, 5], [2, 15]), dense[np.ix_([3, 5], [2, 15])])
    with pytest.raises(InputError, match="cols must be from 0 to 15"):
        confidence.at([0], [16])
    with pytest.raises(InputError, match="rows must be from 0 to 19"):
        confidence.at([-1], [0])


def test_more_observations_of_a_row_raise_its_confidence():
    rng = np.random.default_rng(0)
    rows, cols = rng.integers(0, 30, 3000), rng.integers(0, 30, 3000)
    rows = np.where((rows >= 15) & (rng.random(3000) < 0.95), rows - 15, rows)
    C = played(rows, cols, (30, 30)).confidence().dense()
    assert C[:15].mean() > C[15:].mean() + 0.1


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        ({"K": 0}, "'K' parameter of FactoredGame must be a positive finite number"),
        ({"rank": 0}, "'rank' parameter"),
        ({"confidence_player": "cone"}, "'entropy' or 'cube'"),
        ({"shape": (3, 0)}, "'shape' parameter"),
        ({"random_state": -1}, "'random_state' parameter"),
    ],
)
def test_bad_parameters_get_one_sentence(parameters, sentence):
    with pytest.raises(InputError, match=sentence):
        FactoredGame(**parameters)


def test_bad_input_gets_one_sentence():
    game = FactoredGame()
    with pytest.raises(InputError, match="one item per observation"):
        game.learn([1, 2], [1])
    with pytest.raises(InputError, match="0 or more"):
        game.learn([-1], [0])
    with pytest.raises(InputError, match="from one observation on"):
        game.payoff()
    with pytest.raises(InputError, match="other parameters"):
        FactoredGame(rank=3).restore(played([0], [0]).state())


class TestBehindOnlineDualDescent:
    """matrix="factored": the same game, resumed to the bit, and clear refusals."""

    @pytest.fixture(scope="class")
    @classmethod
    def seen(cls):
        return make_blocks((20, 20), n_groups=2, n_draws=600, random_state=0).observations

    @pytest.mark.parametrize("confidence", ["entropy", "cube"])
    def test_online_dual_descent_plays_it(self, seen, confidence):
        odd = OnlineDualDescent(seen.shape, matrix="factored", confidence=confidence, alpha=2.0)
        odd.learn_many(seen.rows, seen.cols, np.zeros(len(seen.rows)))
        game = FactoredGame(seen.shape, alpha=2.0, confidence_player=confidence)
        game.learn(seen.rows, seen.cols)
        np.testing.assert_array_equal(odd.confidence().dense(), game.confidence().dense())
        assert odd.rounds == len(seen.rows)

    def test_it_resumes_to_the_bit(self, seen):
        values = np.zeros(len(seen.rows))
        whole = OnlineDualDescent(seen.shape, matrix="factored")
        whole.learn_many(seen.rows, seen.cols, values)
        first = OnlineDualDescent(seen.shape, matrix="factored")
        first.learn_many(seen.rows[:50], seen.cols[:50], values[:50])
        second = OnlineDualDescent.from_state(first.state())
        second.learn_many(seen.rows[50:], seen.cols[50:], values[50:])
        np.testing.assert_array_equal(second.confidence().dense(), whole.confidence().dense())
        assert second.rounds == whole.rounds

    def test_what_it_cannot_do_is_said_in_one_sentence(self):
        for given in ({"observations": "values"}, {"delta": 0.1}, {"horizon": 10}, {"eta_confidence": 0.1}):
            with pytest.raises(InputError, match="with matrix='factored'"):
                OnlineDualDescent((3, 3), matrix="factored", **given)
        odd = OnlineDualDescent((3, 3), matrix="factored")
        for name, ask in [
            ("predict", lambda: odd.predict([0], [0])),
            ("regret", odd.regret),
            ("average", lambda: odd.average),
        ]:
            with pytest.raises(InputError, match=f"{name} needs matrix='mmw'"):
                ask()
