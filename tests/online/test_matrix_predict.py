"""Any completion method as matrix-predict of Simplified ODD."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from surefill import SimplifiedODD, StreamingCompleter
from surefill.completion import FactorModel, SoftImpute
from surefill.datasets import Simulation, make_blocks
from surefill.errors import InputError
from surefill.online import CompletionPair


@pytest.fixture(scope="module")
def sim() -> Simulation:
    return make_blocks((10, 10), 2, 400, random_state=2)


def draws(sim: Simulation) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    seen = sim.observations
    cell = np.random.default_rng(0).permutation(np.repeat(np.arange(len(seen)), seen.counts))
    rows, cols = seen.rows[cell].astype(np.int64), seen.cols[cell].astype(np.int64)
    return rows, cols, sim.truth_at(rows, cols)


def test_matrix_predict_receives_what_was_revealed() -> None:
    revealed = []

    def remember(C: np.ndarray, M: np.ndarray, cells: tuple, values: np.ndarray) -> np.ndarray:
        revealed.append((*cells, values))
        return M

    SimplifiedODD((3, 2), matrix_predict=remember).learn_many([0, 2, 1], [1, 0, 1], [0.5, -1.0, 0.0], per_round=2)
    np.testing.assert_array_equal(np.concatenate(revealed, axis=1), [[0, 2, 1], [1, 0, 1], [0.5, -1.0, 0.0]])
    assert [len(values) for _, _, values in revealed] == [2, 1]


@pytest.mark.parametrize("algorithm", [SoftImpute(penalty=1.0), FactorModel(rank=3)], ids=["SoftImpute", "FactorModel"])
def test_two_completions_disagree_off_the_blocks_and_agree_on_them(sim: Simulation, algorithm: object) -> None:
    game = SimplifiedODD((20, 20), matrix_predict=CompletionPair(algorithm)).learn_many(*draws(sim))
    assert game.M[~sim.support].mean() > 0.6
    assert game.M[sim.support].mean() < 0.3
    assert roc_auc_score(sim.support.ravel(), game.average.ravel()) > 0.9


def test_values_count(sim: Simulation) -> None:
    """With values that contradict a low rank the pair has less room than with those of one."""
    rows, cols, values = draws(sim)
    noise = np.random.default_rng(0).choice([-1.0, 1.0], len(values))
    matrices = [
        SimplifiedODD((20, 20), matrix_predict=CompletionPair(SoftImpute(penalty=1.0))).learn_many(rows, cols, given).M
        for given in (values, noise)
    ]
    assert not np.allclose(*matrices, atol=0.01)


def test_a_pair_of_streams(sim: Simulation) -> None:
    """Two streams learn the revealed values, and a guess of +1 or -1 at a cell drawn from C that was not revealed."""
    rng, (rows, cols) = np.random.default_rng(0), np.indices((20, 20)).reshape(2, -1)
    streams, seen = {sign: StreamingCompleter(bounds=(-1, 1)) for sign in (1.0, -1.0)}, np.zeros(400, dtype=bool)

    def predict(C: np.ndarray, M: np.ndarray, cells: tuple, values: np.ndarray) -> np.ndarray:
        seen[np.ravel_multi_index(cells, C.shape)] = True
        guessed = rng.choice(C.size, p=C.ravel())
        for sign, stream in streams.items():
            stream.learn_many(*cells, values)
            if not seen[guessed]:
                stream.learn_one(int(rows[guessed]), int(cols[guessed]), sign)
        return ((streams[1.0].predict(rows, cols) - streams[-1.0].predict(rows, cols)) / 2).reshape(C.shape)

    game = SimplifiedODD((20, 20), matrix_predict=predict).learn_many(*draws(sim))
    assert game.M[~sim.support].mean() > 3 * game.M[sim.support].mean()
    assert roc_auc_score(sim.support.ravel(), game.average.ravel()) > 0.75
    assert game.state()["rounds"] == 400


def test_a_pair_resumed_goes_on_to_the_bit(sim: Simulation) -> None:
    rows, cols, values = (part[:60] for part in draws(sim))
    pairs = [CompletionPair(SoftImpute(penalty=1.0), every=20) for _ in range(3)]
    whole = SimplifiedODD((20, 20), matrix_predict=pairs[0]).learn_many(rows, cols, values)
    saved = SimplifiedODD((20, 20), matrix_predict=pairs[1]).learn_many(rows[:30], cols[:30], values[:30]).state()
    resumed = SimplifiedODD.from_state(saved, pairs[2]).learn_many(rows[30:], cols[30:], values[30:])
    for name, value in whole.state().items():
        np.testing.assert_array_equal(value, resumed.state()[name], err_msg=name)


def test_a_matrix_of_another_shape_and_bad_parameters_get_a_sentence() -> None:
    game = SimplifiedODD((3, 2), matrix_predict=lambda C, M, cells, values: np.zeros(3))
    with pytest.raises(InputError, match=r"shape \(3, 2\), not \(3,\)"):
        game.learn_one(0, 0, 0.5)
    with pytest.raises(InputError, match="'every'"):
        CompletionPair(SoftImpute(), every=0)


def test_nothing_left_to_guess_means_no_disagreement() -> None:
    rows, cols = np.indices((3, 3)).reshape(2, -1)
    game = SimplifiedODD((3, 3), matrix_predict=CompletionPair(SoftImpute(penalty=0.1), every=9))
    game.learn_many(rows, cols, np.linspace(-1, 1, 9))
    np.testing.assert_allclose(game.M, 0, atol=1e-12)
