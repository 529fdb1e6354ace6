"""Choose a parameter on held-out cells, walking a path on which each fit starts from the one before."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from surefill.completion.spectral_descent import Spectrum
from surefill.loop import Status

PATIENCE, LEAST_GAIN = 2, 1e-3


@dataclass(frozen=True, eq=False)
class PathState:
    """How far down the path the walk is, the last fit, the best parameter so far, its fit, error, and tries since."""

    position: int = 0
    last: Spectrum | None = None
    last_error: float = np.inf
    best: float | None = None
    best_fit: Spectrum | None = None
    best_error: float = np.inf
    without_gain: int = 0


@dataclass(frozen=True, eq=False)
class PathSearch:
    """Walk along ``candidates``, from the tightest limit to the loosest, while the error on held-out cells falls.

    A looser one is taken only if it is better by a thousandth: with less and less of a limit fits become slow, and the
    loose fits of the path would be better than the exact one.
    """

    candidates: tuple[float, ...]
    fit: Callable[[float, Spectrum | None], Spectrum]
    error: Callable[[Spectrum], float]
    parameter: str

    task: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "task", f"choosing the {self.parameter}")

    def init(self) -> PathState:
        """Nothing tried yet."""
        return PathState()

    def step(self, state: PathState) -> PathState:
        """Fit the next candidate from the last fit and score it on the held-out cells."""
        candidate = self.candidates[state.position]
        fitted = self.fit(candidate, state.last)
        error = self.error(fitted)
        if error < (1 - LEAST_GAIN) * state.best_error:
            return PathState(state.position + 1, fitted, error, candidate, fitted, error)
        tries = state.without_gain + 1
        return replace(state, position=state.position + 1, last=fitted, last_error=error, without_gain=tries)

    def measure(self, state: PathState) -> float:
        """The held-out mean squared error of the last candidate."""
        return state.last_error

    def terminate(self, state: PathState) -> Status | None:
        """Stop after two candidates without gain: one may be chance."""
        return Status.NO_GAIN if state.without_gain >= PATIENCE else None
