"""One pass over a sample in random order, as the online algorithms see it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from surefill.data import Observations
from surefill.loop import ProgressCallback, Status, run

Indices = NDArray[np.int64]
PIECES = 100


@dataclass
class OnePass:
    """A solver for the one loop: a step learns the next piece of the draws; the state is how many are learnt."""

    task: str
    learn: Callable[[Indices, Indices], None]
    rows: Indices
    cols: Indices
    piece: int

    def init(self) -> int:
        """Nothing is learnt."""
        return 0

    def step(self, state: int) -> int:
        """Learn the next piece."""
        part = slice(state, state + self.piece)
        self.learn(self.rows[part], self.cols[part])
        return min(state + self.piece, len(self.rows))

    def measure(self, state: int) -> float:
        """Share of the draws that are learnt."""
        return state / len(self.rows)

    def terminate(self, state: int) -> Status | None:
        """The pass is over when every draw is learnt."""
        return Status.CONVERGED if state == len(self.rows) else None


def shuffled_draws(observations: Observations, seed: int) -> tuple[Indices, Indices]:
    """Row and column of every draw, a cell as often as it was drawn, in random order."""
    cell = np.random.default_rng(seed).permutation(np.repeat(np.arange(len(observations)), observations.counts))
    return observations.rows[cell].astype(np.int64), observations.cols[cell].astype(np.int64)


def play(
    task: str,
    learn: Callable[[Indices, Indices], None],
    observations: Observations,
    seed: int,
    per_round: int = 1,
    progress: ProgressCallback | None = None,
) -> None:
    """Let ``learn`` see every draw once, in about a hundred pieces that are multiples of ``per_round``."""
    rows, cols = shuffled_draws(observations, seed)
    piece = per_round * max(1, -(-len(rows) // (PIECES * per_round)))
    steps = -(-len(rows) // piece)
    run(OnePass(task, learn, rows, cols, piece), max_steps=steps, progress=progress)
