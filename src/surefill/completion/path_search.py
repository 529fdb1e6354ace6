"""The one search for a parameter on held-out cells: along a path of candidates, while the error falls.

A tenth of the cells is held out, candidates are fitted on the rest in their order, and the search stops after two
without gain. What a fit is, what it starts from and how it is scored is the caller's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

import numpy as np

from surefill.data import Observations
from surefill.data.splits import split_entries
from surefill.loop import ProgressCallback, Status, run

FEWEST_CELLS = 20
"""Observed cells from which on a parameter is chosen: with fewer the tenth held out is a cell or two."""

HELD_OUT = 0.1
"""Share of the cells held out, the convention of tenfold cross-validation."""

PATIENCE = 2
"""Candidates without gain after which the search stops: one may be chance, or a plateau."""

Fit = TypeVar("Fit")


def hold_out(observations: Observations, random_state: int) -> tuple[Observations, Observations] | None:
    """(train, held out) to choose a parameter on, None where there are too few cells to choose anything."""
    if len(observations) < FEWEST_CELLS:
        return None
    return split_entries(observations, HELD_OUT, random_state)


@dataclass(frozen=True, eq=False)
class PathState(Generic[Fit]):
    """How far along the path the search is, the last fit, and the best candidate with its fit and held-out error."""

    position: int = 0
    last_fit: Fit | None = None
    last_error: float = np.inf
    best: float = np.nan
    best_fit: Fit | None = None
    best_error: float = np.inf
    without_gain: int = 0


@dataclass(frozen=True, eq=False)
class PathSearch(Generic[Fit]):
    """argmin of the held-out error over ``candidates``, in their order, ended early after two without gain.

    ``fit`` makes a fit of a candidate, from the last fit where it likes; ``error`` is its mean squared error on the
    held-out cells; a candidate counts as better if its error is below 1 - ``least_gain`` times the least so far.
    """

    candidates: Sequence[float]
    fit: Callable[[float, Fit | None], Fit]
    error: Callable[[Fit], float]
    task: str
    least_gain: float = 0.0

    def search(self, *, time_limit: float | None = None, progress: ProgressCallback | None = None) -> tuple[float, Fit]:
        """The best candidate and its fit."""
        found = run(self, max_steps=len(self.candidates), time_limit=time_limit, progress=progress).state
        assert found.best_fit is not None  # the first candidate's error is finite
        return found.best, found.best_fit

    def init(self) -> PathState[Fit]:
        """Nothing tried yet."""
        return PathState()

    def step(self, state: PathState[Fit]) -> PathState[Fit]:
        """Fit the next candidate and score it."""
        candidate = self.candidates[state.position]
        fitted = self.fit(candidate, state.last_fit)
        error = self.error(fitted)
        tried = replace(state, position=state.position + 1, last_fit=fitted, last_error=error)
        if error < (1 - self.least_gain) * state.best_error:
            return replace(tried, best=candidate, best_fit=fitted, best_error=error, without_gain=0)
        return replace(tried, without_gain=state.without_gain + 1)

    def measure(self, state: PathState[Fit]) -> float:
        """The held-out mean squared error of the last candidate."""
        return state.last_error

    def terminate(self, state: PathState[Fit]) -> Status | None:
        """Stop after two candidates without gain."""
        return Status.NO_GAIN if state.without_gain >= PATIENCE else None
