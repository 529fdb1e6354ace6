"""The one loop that runs every iterative solver: ``init``, then ``step`` until ``terminate`` gives a reason.

Progress and time limits are written here once; a solver writes only its mathematics. ``step`` is a function of the
state alone, so that a state can be saved, moved to another machine and gone on from.
"""

from __future__ import annotations

import enum
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from threading import Event
from typing import Any, Generic, Protocol, TypeVar

import numpy as np

from surefill.registry import storable


@storable
class Status(enum.Enum):
    """Why a solver stopped; the value is a sentence that advises.

    Examples
    --------
    >>> Status.STEP_LIMIT.value
    'The step limit was reached before the tolerance; allow more steps for a tighter answer.'
    """

    CONVERGED = "The stopping tolerance was reached."
    NO_GAIN = "Held-out error stopped improving; the best state seen was kept."
    STEP_LIMIT = "The step limit was reached before the tolerance; allow more steps for a tighter answer."
    TIME_LIMIT = "The time limit was reached; the best state so far was kept, allow more time for a tighter answer."


@dataclass(frozen=True)
class Progress:
    """What a progress callback receives after each step.

    Examples
    --------
    >>> import surefill as sf
    >>> sim = sf.datasets.make_low_rank((30, 20), rank=2, n_draws=400, noise=0.1, random_state=0)
    >>> steps = []
    >>> _ = sf.completion.FactorModel().fit(sim.observations, steps.append)
    >>> steps[0].task, steps[0].step
    ('choosing the penalty', 1)
    """

    task: str
    step: int
    max_steps: int
    seconds: float
    measure: float


ProgressCallback = Callable[[Progress], None]

State = TypeVar("State")


class Cancelled(BaseException):
    """A step was the last because another thread, which waits for this one, was interrupted.

    Examples
    --------
    >>> issubclass(Cancelled, Exception)  # like KeyboardInterrupt it passes by whoever catches errors
    False
    """


_STOP: ContextVar[Event | None] = ContextVar("surefill_stop", default=None)


@contextmanager
def stopping_at(event: Event) -> Iterator[None]:
    """Solvers that run inside end after the step in which ``event`` was set.

    Examples
    --------
    >>> import surefill as sf
    >>> seen = sf.datasets.make_low_rank((30, 20), rank=2, n_draws=400, random_state=0).observations
    >>> stop = Event()
    >>> stop.set()
    >>> with stopping_at(stop):
    ...     try:
    ...         sf.completion.FactorModel().fit(seen)
    ...     except Cancelled:
    ...         print("stopped")
    stopped
    """
    token = _STOP.set(event)
    try:
        yield
    finally:
        _STOP.reset(token)


class Solver(Protocol[State]):
    """What the loop needs: a name, a first state, a step, and a reason to stop (or None to go on).

    Examples
    --------
    >>> class Halve:
    ...     task = "halving"
    ...
    ...     def init(self):
    ...         return 1.0
    ...
    ...     def step(self, state):
    ...         return state / 2
    ...
    ...     def measure(self, state):
    ...         return state
    ...
    ...     def terminate(self, state):
    ...         return Status.CONVERGED if state < 0.1 else None
    >>> run(Halve(), max_steps=10).state
    0.0625
    """

    @property
    def task(self) -> str:
        """What is being done, for a person who waits."""
        ...

    def init(self) -> State:
        """The first state."""
        ...

    def step(self, state: State) -> State:
        """The next state, from this one alone; the given one may be reused as memory."""
        ...

    def measure(self, state: State) -> float:
        """The number worth showing while it runs (an objective, a gap, an error)."""
        ...

    def terminate(self, state: State) -> Status | None:
        """Why to stop now, or None."""
        ...


@dataclass(frozen=True)
class Outcome(Generic[State]):
    """The last state and why, when and after how long the loop ended.

    Examples
    --------
    >>> import surefill as sf
    >>> sim = sf.datasets.make_low_rank((30, 20), rank=2, n_draws=400, noise=0.1, random_state=0)
    >>> sf.completion.SoftImpute(penalty=1.0, max_steps=2, tol=1e-12).fit(sim.observations).status.name
    'STEP_LIMIT'
    """

    state: State
    status: Status
    steps: int
    seconds: float


def run(
    solver: Solver[State],
    *,
    max_steps: int,
    time_limit: float | None = None,
    progress: ProgressCallback | None = None,
) -> Outcome[State]:
    """Run ``solver`` until it terminates, ``max_steps`` are done or ``time_limit`` seconds have passed.

    Examples
    --------
    >>> class Count:
    ...     task = "counting"
    ...     init, measure = int, float
    ...
    ...     def step(self, state):
    ...         return state + 1
    ...
    ...     def terminate(self, state):
    ...         return None
    >>> run(Count(), max_steps=3).status
    <Status.STEP_LIMIT: 'The step limit was reached before the tolerance; allow more steps for a tighter answer.'>
    """
    start, stop = time.perf_counter(), _STOP.get()
    state = solver.init()
    steps = 0
    status = solver.terminate(state)
    while status is None:
        state = solver.step(state)
        steps += 1
        if stop is not None and stop.is_set():
            raise Cancelled
        seconds = time.perf_counter() - start
        if progress is not None:
            progress(Progress(solver.task, steps, max_steps, seconds, solver.measure(state)))
        status = solver.terminate(state)
        if status is None and steps >= max_steps:
            status = Status.STEP_LIMIT
        if status is None and time_limit is not None and seconds >= time_limit:
            status = Status.TIME_LIMIT
    return Outcome(state, status, steps, time.perf_counter() - start)


def generator_at(state: Mapping[str, Any]) -> np.random.Generator:
    """A random generator that goes on where one with this ``bit_generator.state`` stopped; states hold that.

    >>> rng = np.random.default_rng(0)
    >>> stopped = rng.bit_generator.state
    >>> bool(generator_at(stopped).random() == rng.random())
    True
    """
    rng = np.random.default_rng()
    rng.bit_generator.state = state
    return rng
