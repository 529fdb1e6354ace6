import numpy as np
import pytest

from surefill import Observations
from surefill.reproduction import PATTERNS, reproduce_pattern
from surefill.reproduction.figure1_study import METHODS
from surefill.reproduction.methods import coverage_program, play_one_pass, shuffled_draws


@pytest.fixture(scope="module")
def outcomes():
    asked = {"blocks": METHODS, "overlapping": METHODS[:1], "half": METHODS[:2]}
    return {pattern: reproduce_pattern(pattern, size=16, methods=methods) for pattern, methods in asked.items()}


def test_every_method_tells_the_blocks_from_the_rest(outcomes):
    rows = outcomes["blocks"].table()
    assert [row["method"] for row in rows] == ["MP 2", "MP 2, rank 4", "ODD, entropy", "ODD, cube", "Simplified ODD"]
    for row in rows:
        assert row["auc"] > 0.9, row
        assert row["confidence_on"] > 1.5 * row["confidence_off"], row
        assert row["error_over_confidence"] < 0.5 * outcomes["blocks"].errors()["off"], row


def test_numbers_are_those_of_the_answer(outcomes):
    outcome = outcomes["overlapping"]
    C, support = outcome.runs[0].found.confidence.dense(), outcome.simulation.support
    error = (outcome.completion - outcome.simulation.truth) ** 2
    row = outcome.table()[0]
    assert row["confidence_on"] == pytest.approx(C[support].mean())
    assert row["error_over_confidence"] == pytest.approx(np.average(error, weights=C))
    above = (C[support][:, None] > C[~support]).mean() + (C[support][:, None] == C[~support]).mean() / 2
    assert row["auc"] == pytest.approx(above)
    assert row["standing"] == "certified"
    assert 0 <= row["gap"] <= 0.01


def test_with_a_rank_an_arbitrary_half_says_more_about_the_rest(outcomes):
    full, limited = outcomes["half"].table()[:2]
    assert limited["confidence_off"] > full["confidence_off"] + 0.05


@pytest.mark.parametrize("pattern", PATTERNS)
def test_undoing_the_shuffle_is_a_permutation_that_puts_groups_together(outcomes, pattern):
    outcome = outcomes[pattern]
    sim = outcome.simulation
    for order, groups in zip(outcome.undone(), (sim.row_groups, sim.col_groups), strict=True):
        np.testing.assert_array_equal(np.sort(order), np.arange(16))
        if pattern != "half":
            assert (np.diff(groups[order]) >= 0).all()


def test_the_same_seed_gives_the_same_answer_and_another_seed_another():
    first, again, other = (
        reproduce_pattern("blocks", size=10, methods=[coverage_program()], random_state=seed) for seed in (1, 1, 2)
    )
    C = [outcome.runs[0].found.confidence.dense() for outcome in (first, again, other)]
    np.testing.assert_array_equal(C[0], C[1])
    assert np.abs(C[0] - C[2]).max() > 0.1


def test_one_pass_shows_every_draw_once_in_whole_rounds():
    seen = Observations([0, 1, 2, 2], [0, 1, 0, 1], [1.0, 0.5, 0.2, 0.3], (3, 2), (0, 1), counts=[100, 300, 1, 49])
    pieces, steps = [], []
    play_one_pass("a task", lambda rows, cols: pieces.append((rows, cols)), seen, 3, 4, steps.append)
    rows, cols = (np.concatenate(side) for side in zip(*pieces, strict=True))
    assert np.bincount(2 * rows + cols).tolist() == [100, 0, 0, 300, 1, 49]
    assert {len(piece) % 4 for piece, _ in pieces[:-1]} == {0}
    assert (steps[-1].task, steps[-1].step, steps[-1].max_steps) == ("a task", len(pieces), len(pieces))
    assert steps[-1].measure == 1
    np.testing.assert_array_equal(shuffled_draws(seen, 3), (rows, cols))
