"""Alternating best responses: the kernel and its twin, members of the version space, at least as strong as L-BFGS."""

import numpy as np
import pytest

from surefill import MaxNorm, Observations, VersionSpace
from surefill.kernels.alternating_response import respond_rows, respond_rows_reference
from surefill.spaces.alternating_oracle import AlternatingOracle
from surefill.spaces.separation_oracle import ResponseSolver, alternates, best_responses, run


def draw_space(rank, K=1.0, shape=(40, 30), seed=0):
    rows, cols = np.nonzero(np.random.default_rng(seed).uniform(size=shape) < 0.2)
    return VersionSpace(Observations(rows, cols, np.zeros(len(rows)), shape), 0.045, MaxNorm(K, rank))


def test_the_kernel_and_its_twin_agree():
    rng = np.random.default_rng(1)
    G, V = rng.normal(size=(5, 6)).astype(np.float32), rng.normal(size=(7, 6)).astype(np.float32)
    G[3] = 0
    starts, others = np.array([0, 3, 3, 5, 6, 9]), rng.integers(7, size=9)
    given = (0, 5, G, V, starts, others, rng.uniform(size=9), np.array([0.5, 40.0]), 0.8)
    found, expected = ((np.empty((5, 6), np.float32), np.empty((5, 2))) for _ in range(2))
    respond_rows(*given, *found)
    respond_rows_reference(*given, *expected)
    # The kernel's Newton method stops where |u|^2 is within 0.1% of K.
    np.testing.assert_allclose(found[0], expected[0], atol=2e-3)
    np.testing.assert_allclose(found[1], expected[1], atol=2e-2)


@pytest.mark.parametrize("rank", [1, 2, 5])
def test_answers_are_members_and_no_weaker_than_those_of_lbfgs(rank):
    space, C = draw_space(rank), np.random.default_rng(2).uniform(0, 1, size=(40, 30))
    found = best_responses(space, C, starts=6, rng=np.random.default_rng(3), tol=1e-4)
    values = [one.value for one in found]
    assert values == sorted(values, reverse=True)
    for one in found:
        assert space.contains(one.matrix)
        assert one.value == pytest.approx(float(np.sum(C * one.matrix)), rel=1e-4)
    other = run(ResponseSolver(space, C, 6, np.random.default_rng(3), 1e-4), max_steps=100).state.responses
    assert values[0] >= other[0].value * 0.99


def test_where_the_ball_does_not_bind_rows_reach_their_length():
    """All cells with C > 0 unobserved: the best member is 1 there, and 0 where it was seen."""
    space = VersionSpace(Observations([0], [0], [0.0], (6, 5)), 0.04, MaxNorm(1.0, 2))
    C = np.zeros((6, 5))
    C[1:, 1:] = 1.0
    assert best_responses(space, C, starts=3, rng=np.random.default_rng(0))[0].mean == pytest.approx(1, abs=2e-3)


def test_no_confidence_has_the_zero_response():
    space = draw_space(2)
    found = best_responses(space, np.zeros((40, 30)), starts=2, rng=np.random.default_rng(0))
    assert [one.value for one in found] == [0.0, 0.0]


def test_the_box_of_a_larger_norm_is_left_to_the_other_solver():
    assert [alternates(draw_space(*given)) for given in ((2,), (2, 2.0), (None,))] == [True, False, False]


def test_a_confidence_in_blocks_gives_the_same_answers(monkeypatch):
    space, C = draw_space(3), np.random.default_rng(2).uniform(0, 1, size=(40, 30))

    class Blocks:
        coverage = float(C.sum())

        def block(self, rows, cols):
            return C[np.ix_(rows, cols)]

    held = run(AlternatingOracle(space, C, 2, np.random.default_rng(5), 1e-3), max_steps=50).state.responses
    monkeypatch.setattr("surefill.spaces.stage.HELD_CELLS", 0)
    monkeypatch.setattr("surefill.arrays.BLOCK_CELLS", 100)
    blocks = run(AlternatingOracle(space, Blocks(), 2, np.random.default_rng(5), 1e-3), max_steps=50).state.responses
    assert blocks[0].value == pytest.approx(held[0].value, rel=1e-3)
