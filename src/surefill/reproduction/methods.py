"""The ways to a confidence that the experiments compare, with every setting in sight.

MP 2 is solved at once; the online games see every draw once, in random order, through the one loop.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surefill.arrays import Array, Indices
from surefill.coverage import solve_coverage
from surefill.data import Observations
from surefill.loop import ProgressCallback, Status, run
from surefill.online import BestResponse, OnlineDualDescent, SimplifiedODD
from surefill.spaces import Confidence

NO_BOUND = "no bound"
"""Standing of a confidence that nothing is proved about."""

N_PIECES = 100
"""Pieces that the draws are learnt in, about: progress moves by a percent."""


@dataclass(frozen=True, eq=False)
class MethodConfidence:
    """C and what is known about it.

    Attributes
    ----------
    confidence : C.
    standing : "certified", "searched" or "no bound".
    average : C-bar, where C is that clipped at 1, which makes the surest cells equal; else None.
    gap : relative optimality gap of a certified C; else None.
    """

    confidence: Confidence
    standing: str
    average: Array | None = None
    gap: float | None = None

    def order_at(self, rows: NDArray[Any], cols: NDArray[Any]) -> Array:
        """What the cells are ordered by: C-bar where there is one, else C."""
        return self.confidence.at(rows, cols) if self.average is None else self.average[rows, cols]


ConfidenceSearch = Callable[[Observations, int, ProgressCallback | None], MethodConfidence]
"""Observations, a seed and progress in, a confidence out."""


@dataclass(frozen=True)
class Method:
    """A way to a confidence: its name, its settings in words, and the search itself."""

    name: str
    settings: str
    search: ConfidenceSearch


@dataclass(frozen=True, eq=False)
class MethodRun:
    """What a method found, and the seconds it took."""

    method: Method
    found: MethodConfidence
    seconds: float


def run_method(
    method: Method, observations: Observations, seed: int, progress: ProgressCallback | None = None
) -> MethodRun:
    """Run one method."""
    start = time.perf_counter()
    found = method.search(observations, seed, progress)
    return MethodRun(method, found, time.perf_counter() - start)


def coverage_program(gamma: float = 0.3, rank: int | None = None, gap: float = 0.01) -> Method:
    """MP 2 with K = 1 and beta = gamma^2 / 2: the paper's class, certified, or with a rank, searched."""

    def search(seen: Observations, seed: int, progress: ProgressCallback | None) -> MethodConfidence:
        found = solve_coverage(seen, gamma=gamma, rank=rank, gap=gap, random_state=seed, progress=progress)
        return MethodConfidence(found.confidence, found.standing, gap=found.gap if rank is None else None)

    limit = "" if rank is None else f", rank {rank}"
    return Method(f"MP 2{limit}", f"K 1, gamma {gamma:g}, beta {gamma**2 / 2:g}{limit}, gap {gap:g}", search)


def exact_descent(setting: str) -> Method:
    """ODD with matrix multiplicative weights and its defaults (docs/mathematics.md, "Usual weights and steps")."""

    def search(seen: Observations, seed: int, progress: ProgressCallback | None) -> MethodConfidence:
        game = OnlineDualDescent(seen.shape, confidence=setting)
        _play_game(game, f"ODD, {setting}", seen, seed, progress)
        return MethodConfidence(game.confidence(), NO_BOUND, game.average)

    theta = "1" if setting == "entropy" else "mn (m + n)^(-3/2)"
    settings = f"K 1, alpha 2, theta {theta}, the longest steps, zero observations"
    return Method(f"ODD, {setting}", settings, search)


def factored_descent(setting: str) -> Method:
    """ODD with thin factors: the same game at any size (:class:`surefill.online.FactoredGame`)."""

    def search(seen: Observations, seed: int, progress: ProgressCallback | None) -> MethodConfidence:
        game = OnlineDualDescent(seen.shape, confidence=setting, matrix="factored")
        _play_game(game, f"ODD factored, {setting}", seen, seed, progress)
        return MethodConfidence(game.confidence(), NO_BOUND)

    return Method(f"ODD factored, {setting}", "K 1, alpha 3, theta 1, rank 8, zero observations", search)


def simplified_descent(per_round: int = 1, eta: float = 0.02) -> Method:
    """Simplified ODD, what the paper's experiments ran, with best responses as its matrix-predict."""

    def search(seen: Observations, seed: int, progress: ProgressCallback | None) -> MethodConfidence:
        game = SimplifiedODD(seen.shape, matrix_predict=BestResponse(random_state=seed), eta=eta)
        _play_game(game, "Simplified ODD", seen, seed, progress, per_round)
        return MethodConfidence(game.confidence(), NO_BOUND, game.average)

    several = "" if per_round == 1 else f", {per_round} ratings a round"
    settings = f"eta {eta:g}, alpha 0.01, best responses of K 1, beta 0.01, rank 8 every 10 rounds{several}"
    return Method("Simplified ODD", settings, search)


def _play_game(
    game: Any, task: str, seen: Observations, seed: int, progress: ProgressCallback | None, per_round: int = 1
) -> None:
    """Let the game see every draw once; the values play no part in any of these games."""
    together = {"per_round": per_round} if per_round > 1 else {}

    def learn(rows: Indices, cols: Indices) -> None:
        game.learn_many(rows, cols, np.zeros(len(rows)), **together)

    play_one_pass(task, learn, seen, seed, per_round, progress)


def play_one_pass(
    task: str,
    learn: Callable[[Indices, Indices], None],
    observations: Observations,
    seed: int,
    per_round: int = 1,
    progress: ProgressCallback | None = None,
) -> None:
    """Let ``learn`` see every draw once, in about a hundred pieces that are multiples of ``per_round``."""
    rows, cols = shuffled_draws(observations, seed)
    piece = per_round * max(1, -(-len(rows) // (N_PIECES * per_round)))
    steps = -(-len(rows) // piece)
    run(OnePass(task, learn, rows, cols, piece), max_steps=steps, progress=progress)


def shuffled_draws(observations: Observations, seed: int) -> tuple[Indices, Indices]:
    """Row and column of every draw, a cell as often as it was drawn, in random order."""
    cell = np.random.default_rng(seed).permutation(np.repeat(np.arange(len(observations)), observations.counts))
    return observations.rows[cell].astype(np.int64), observations.cols[cell].astype(np.int64)


@dataclass
class OnePass:
    """A solver for the one loop: a step learns the next piece of the draws; the state is how many are learnt."""

    task: str
    learn: Callable[[Indices, Indices], None]
    rows: Indices
    cols: Indices
    piece: int

    def init(self) -> int:
        """No draw is learnt yet."""
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
