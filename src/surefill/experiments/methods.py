"""The ways to a confidence that the experiments compare, with every setting in sight."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surefill.coverage import Confidence, solve_coverage
from surefill.data import Observations
from surefill.experiments.one_pass import play
from surefill.loop import ProgressCallback
from surefill.online import BestResponse, OnlineDualDescent, SimplifiedODD

Array = NDArray[np.float64]
Indices = NDArray[np.int64]

NO_BOUND = "no bound"
CONFIDENCE_STEP = {"entropy": 0.05, "cube": 0.02}


@dataclass(frozen=True, eq=False)
class Answer:
    """C, what is known about it, and C-bar where C is that cut at 1, which makes the surest cells equal."""

    confidence: Confidence
    standing: str
    average: Array | None = None

    def order_at(self, rows: NDArray[Any], cols: NDArray[Any]) -> Array:
        """What the cells are ordered by: C-bar where there is one, else C."""
        return self.confidence.at(rows, cols) if self.average is None else self.average[rows, cols]


Search = Callable[[Observations, int, ProgressCallback | None], Answer]


@dataclass(frozen=True)
class Method:
    """A name, the settings in words, and the search: observations, a seed and progress in, an answer out."""

    name: str
    settings: str
    search: Search


@dataclass(frozen=True, eq=False)
class Found:
    """What a method answered, and the seconds it took."""

    method: Method
    answer: Answer
    seconds: float


def find(method: Method, observations: Observations, seed: int, progress: ProgressCallback | None = None) -> Found:
    """Run one method."""
    start = time.perf_counter()
    answer = method.search(observations, seed, progress)
    return Found(method, answer, time.perf_counter() - start)


def coverage_program(gamma: float = 0.3, rank: int | None = None, gap: float = 0.01) -> Method:
    """MP 2 with K = 1 and beta = gamma^2 / 2: the paper's class, certified, or with a rank, searched."""

    def search(seen: Observations, seed: int, progress: ProgressCallback | None) -> Answer:
        found = solve_coverage(seen, gamma=gamma, rank=rank, gap=gap, random_state=seed, progress=progress)
        return Answer(found.confidence, f"certified, gap {found.gap:.1%}" if rank is None else "searched")

    limit = "" if rank is None else f", rank {rank}"
    return Method(f"MP 2{limit}", f"K 1, gamma {gamma:g}, beta {gamma**2 / 2:g}{limit}, gap {gap:g}", search)


def exact_descent(setting: str, alpha: float = 4.0, theta: float = 2.0) -> Method:
    """ODD with matrix multiplicative weights, one matrix and steps by hand (docs/mathematics.md, "The online game")."""
    step = CONFIDENCE_STEP[setting]

    def search(seen: Observations, seed: int, progress: ProgressCallback | None) -> Answer:
        game = OnlineDualDescent(
            seen.shape, K=0.7, alpha=alpha, theta=theta, confidence=setting, observations="zero", eta_matrix=1.0,
            eta_confidence=step * (1.0 if setting == "entropy" else sum(seen.shape) ** -1.5), tolerance=1e-5,
        )  # fmt: skip
        _one_pass(game, f"ODD, {setting}", seen, seed, progress)
        return Answer(game.confidence(), NO_BOUND, game.average)

    cap = "" if setting == "entropy" else " (m + n)^(-3/2)"
    settings = f"K 0.7, alpha {alpha:g}, theta {theta:g}, steps {step:g}{cap} and 1, zero observations"
    return Method(f"ODD, {setting}", settings, search)


def factored_descent(setting: str) -> Method:
    """ODD with thin factors: the same game at any size (:class:`surefill.FactoredGame`)."""

    def search(seen: Observations, seed: int, progress: ProgressCallback | None) -> Answer:
        game = OnlineDualDescent(seen.shape, confidence=setting, matrix="factored", observations="zero")
        _one_pass(game, f"ODD factored, {setting}", seen, seed, progress)
        return Answer(game.confidence(), NO_BOUND)

    return Method(f"ODD factored, {setting}", "K 1, alpha 3, theta 1, rank 8, zero observations", search)


def simplified_descent(per_round: int = 1, eta: float = 0.02) -> Method:
    """Simplified ODD, what the paper's experiments ran, with best responses as its matrix-predict."""

    def search(seen: Observations, seed: int, progress: ProgressCallback | None) -> Answer:
        game = SimplifiedODD(seen.shape, matrix_predict=BestResponse(random_state=seed), eta=eta)
        _one_pass(game, "Simplified ODD", seen, seed, progress, per_round)
        return Answer(game.confidence(), NO_BOUND, game.average)

    several = "" if per_round == 1 else f", {per_round} ratings a round"
    settings = f"eta {eta:g}, alpha 0.01, best responses of K 1, beta 0.01, rank 8 every 10 rounds{several}"
    return Method("Simplified ODD", settings, search)


def _one_pass(
    game: Any, task: str, seen: Observations, seed: int, progress: ProgressCallback | None, per_round: int = 1
) -> None:
    """Let the game see every draw once; the values play no part in any of these games."""
    together = {"per_round": per_round} if per_round > 1 else {}

    def learn(rows: Indices, cols: Indices) -> None:
        game.learn_many(rows, cols, np.zeros(len(rows)), **together)

    play(task, learn, seen, seed, per_round, progress)
