from dataclasses import dataclass

import pytest

from surefill.loop import Status, run


@dataclass
class Halving:
    """Halve a number until it is small."""

    start: float
    goal: float
    task: str = "halving"

    def init(self):
        return self.start

    def step(self, state):
        return state / 2

    def measure(self, state):
        return state

    def terminate(self, state):
        return Status.CONVERGED if state <= self.goal else None


def test_runs_until_the_solver_terminates():
    outcome = run(Halving(1.0, 0.1), max_steps=100)
    assert (outcome.state, outcome.status, outcome.steps) == (0.0625, Status.CONVERGED, 4)


def test_a_state_that_is_good_from_the_start_takes_no_step():
    assert run(Halving(0.05, 0.1), max_steps=100).steps == 0


def test_step_limit_and_time_limit_say_so():
    limited = run(Halving(1.0, 0.0), max_steps=3)
    assert (limited.status, limited.steps) == (Status.STEP_LIMIT, 3)
    stopped = run(Halving(1.0, 0.0), max_steps=10**6, time_limit=0.0)
    assert (stopped.status, stopped.steps) == (Status.TIME_LIMIT, 1)


def test_progress_sees_every_step_in_order():
    seen = []
    run(Halving(1.0, 0.1), max_steps=9, progress=seen.append)
    assert [(p.task, p.step, p.max_steps, p.measure) for p in seen] == [
        ("halving", step, 9, 0.5**step) for step in (1, 2, 3, 4)
    ]


def test_interruption_passes_through():
    def interrupt(progress):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(Halving(1.0, 0.0), max_steps=3, progress=interrupt)
