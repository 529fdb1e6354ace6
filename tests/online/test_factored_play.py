"""The facade with the factored player: the same game as FactoredGame, resumed to the bit, and clear refusals."""

import numpy as np
import pytest

from surefill import InputError, OnlineDualDescent
from surefill.datasets import make_blocks
from surefill.online import FactoredGame


@pytest.fixture(scope="module")
def seen():
    return make_blocks((20, 20), n_groups=2, n_draws=600, random_state=0).observations


@pytest.mark.parametrize("confidence", ["entropy", "cube"])
def test_the_facade_plays_the_factored_game(seen, confidence):
    odd = OnlineDualDescent(seen.shape, matrix="factored", observations="zero", confidence=confidence, alpha=2.0)
    odd.learn_many(seen.rows, seen.cols, np.zeros(len(seen.rows)))
    game = FactoredGame(seen.shape, alpha=2.0, confidence_player=confidence)
    game.learn(seen.rows, seen.cols)
    np.testing.assert_array_equal(odd.confidence().dense(), game.confidence().dense())
    assert odd.rounds == len(seen.rows)


def test_it_resumes_to_the_bit(seen):
    values = np.zeros(len(seen.rows))
    whole = OnlineDualDescent(seen.shape, matrix="factored", observations="zero")
    whole.learn_many(seen.rows, seen.cols, values)
    first = OnlineDualDescent(seen.shape, matrix="factored", observations="zero")
    first.learn_many(seen.rows[:50], seen.cols[:50], values[:50])
    second = OnlineDualDescent.from_state(first.state())
    second.learn_many(seen.rows[50:], seen.cols[50:], values[50:])
    np.testing.assert_array_equal(second.confidence().dense(), whole.confidence().dense())
    assert second.rounds == whole.rounds


def test_what_it_does_not_offer_is_said():
    for given in ({}, {"observations": "zero", "horizon": 10}, {"observations": "zero", "eta_confidence": 0.1}):
        with pytest.raises(InputError, match="with matrix='factored'"):
            OnlineDualDescent((3, 3), matrix="factored", **given)
    odd = OnlineDualDescent((3, 3), matrix="factored", observations="zero")
    for name, ask in [
        ("predict", lambda: odd.predict([0], [0])),
        ("regret", odd.regret),
        ("average", lambda: odd.average),
    ]:
        with pytest.raises(InputError, match=f"{name} needs matrix='mmw'"):
            ask()
