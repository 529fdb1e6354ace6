import itertools
import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from surefill.loop import Progress
from surefill.waiting import Part, Waiting, WaitingState, part, plan

STEP = Progress("solving", 1, 10, 0.0, 0.0)


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def waiting(clock):
    return Waiting(clock)


def test_parts_that_are_done_correct_those_to_come_of_their_kind_most(waiting, clock):
    waiting.plan([Part("trial", 10, kind="fit"), Part("fit", 10, kind="fit"), Part("write", 10)])
    with waiting.part("trial"):
        clock.now = 40.0
    # of its kind (40 + 2 r) / (10 + 2) with r = (40 + 2) / (10 + 2) over all, of others r
    overall = 42 / 12
    assert waiting.state().seconds_left == pytest.approx(10 * (40 + 2 * overall) / 12 + 10 * overall)


def test_steps_move_the_part_that_runs_and_an_early_end_moves_to_its_end(waiting, clock):
    waiting.plan([Part("fit", 100, steps=100), Part("write", 100)])
    shares = []
    with waiting.part("fit"):
        for step in range(1, 31):
            clock.now = float(step)
            waiting(STEP)
            shares.append(waiting.state().share)
        assert np.all(np.diff(shares) > 0)
        assert 0.1 < shares[-1] < 0.3
    after = waiting.state()
    assert after.share > shares[-1] + 0.1  # 70 of its 100 steps were not needed
    assert after.doing == "fit"


def test_more_steps_than_expected_never_reach_the_end(waiting, clock):
    waiting.plan([Part("fit", 1.0, steps=10)])
    with waiting.part("fit"):
        for step in range(200):
            clock.now = step / 10
            waiting(STEP)
            assert waiting.state().share < 1


@given(st.lists(st.tuples(st.floats(0.01, 100), st.floats(0.0, 300), st.integers(0, 30)), min_size=1, max_size=6))
def test_the_share_never_falls_nor_do_seconds_rise_unless_they_double(parts):
    clock = Clock()
    waiting, states = Waiting(clock), []
    waiting.plan([Part(str(k), expected, steps=steps) for k, (expected, _, steps) in enumerate(parts)])
    for k, (_, taken, steps) in enumerate(parts):
        with waiting.part(str(k)):
            for _ in range(steps + 1):
                clock.now += taken / (steps + 1)
                waiting(STEP)
                states.append(waiting.state())
    assert all(0 <= before.share <= after.share <= 1 for before, after in itertools.pairwise(states))
    told = [state.seconds_left for state in states if state.seconds_left is not None]
    assert all(after <= before or after > 2 * before + 10 for before, after in itertools.pairwise(told))


def test_parts_have_parts_and_skipped_ones_count_no_more(waiting, clock):
    waiting.plan([Part("fold 1", 10, kind="fold"), Part("fold 2", 10, kind="fold")])
    with waiting.part("fold 1"):
        waiting.plan([Part("trial", 5), Part("fit", 5)])
        with waiting.part("fit"):
            assert waiting.state().doing == "fold 1, fit"
            clock.now = 5.0
        with waiting.part("unforeseen"):
            clock.now = 6.0
    assert waiting.state().seconds_left == pytest.approx(10 * (6 + 2 * 1) / 12, rel=0.2)
    waiting.plan([Part("fold 2", 100, kind="fold")])
    assert waiting.state().seconds_left > 60


def test_nothing_is_told_before_a_part_is_done_unless_its_length_is_known(waiting, clock):
    assert waiting.state() == WaitingState(0.0, None, "")
    waiting.plan([Part("reading", 10.0)])
    with waiting.part("reading"):
        clock.now = 5.0
        assert waiting.state().words == ""
        waiting.reached(0.25)
        assert waiting.state().seconds_left == pytest.approx(0.75 * (0.75 * 10 + 5))


def test_an_error_ends_the_part(waiting):
    with pytest.raises(KeyboardInterrupt), waiting.part("fit"):
        raise KeyboardInterrupt
    with waiting.part("again"):
        assert waiting.state().doing == "again"


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (None, ""), (1, "a few seconds left"), (7, "about 10 s left"), (44, "about 40 s left"),
        (56, "about 1 min left"), (118, "about 2 min left"), (700, "about 10 min left"), (1000, "about 15 min left"),
        (3600, "about 1 h left"), (5400, "about 1.5 h left"),
    ],
)  # fmt: skip
def test_no_more_digits_than_are_known(seconds, words):
    assert WaitingState(0.5, seconds, "fit").words == words


def test_steps_come_from_any_thread(waiting, clock):
    waiting.plan([Part("folds", 10.0, steps=4000)])
    with waiting.part("folds"):
        threads = [threading.Thread(target=lambda: [waiting(STEP) for _ in range(500)]) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert waiting._open.steps == 2000


def test_plain_callbacks_are_told_nothing_of_parts():
    told = []
    plan(told.append, [Part("fit", 1.0)])
    with part(told.append, "fit"), part(None, "fit"):
        pass
    assert told == []
