"""How far the players are from the best fixed decision in hindsight, beside the theorem's bounds."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from surefill.online.comparator import ConcaveQuadratic, maximize_over_class
from surefill.online.simplex import Array


@dataclass(frozen=True)
class GameRegret:
    """Regret after ``rounds`` rounds, as the paper defines it.

    Attributes
    ----------
    confidence : max over C of sum_t r_t(C) - sum_t r_t(C_t), r_t(C) = H(C) - alpha G(C, M_t); exact.
    matrix_lower, matrix_upper : a bracket of max over M of sum_t gamma_t(M) - sum_t gamma_t(M_t), M ranging over pairs
        of matrices of max-norm at most K with entries in [-1, 1].
    confidence_bound, matrix_bound : what the theorem promises for the steps taken; infinite where they are too long.
    alpha : the game's regret is max(confidence, alpha matrix).

    Examples
    --------
    >>> import surefill as sf
    >>> game = sf.OnlineDualDescent((3, 2), K=1.0, alpha=1.0, theta=0.5)
    >>> game = game.learn_many([0, 1, 2], [0, 1, 0], [0.0, 0.0, 0.0])
    >>> regret = game.regret()
    >>> regret.rounds, bool(regret.matrix_lower <= regret.matrix_upper)
    (3, True)
    """

    rounds: int
    alpha: float
    confidence: float
    confidence_bound: float
    matrix_lower: float
    matrix_upper: float
    matrix_bound: float

    @property
    def lower(self) -> float:
        """At most the game's regret."""
        return max(self.confidence, self.alpha * self.matrix_lower)

    @property
    def upper(self) -> float:
        """At least the game's regret."""
        return max(self.confidence, self.alpha * self.matrix_upper)

    @property
    def bound(self) -> float:
        """B_T, the theorem's bound on the game's regret."""
        return max(self.confidence_bound, self.alpha * self.matrix_bound)

    @property
    def sentence(self) -> str:
        """The figures in words."""
        if self.rounds == 0:
            return "No round has been played."
        players = (
            f"After {self.rounds} rounds the confidence player's regret is {self.confidence:.4g} "
            f"({_against(self.confidence_bound)}), the matrix player's between {self.matrix_lower:.4g} and "
            f"{self.matrix_upper:.4g} ({_against(self.matrix_bound)})"
        )
        return f"{players}; the game's is at most {self.upper:.4g} ({_against(self.bound)})."


@dataclass(frozen=True, eq=False)
class MatrixRecord:
    """What the rounds left for the matrix player's comparator.

    sum_t gamma_t(M) = <sum C_t, M^1 - M^2> - theta sum_x n_x [(M^1_x - o_x)^2 + (M^2_x - o_x)^2] - 2 theta scatter,
    with o_x the mean of the n_x values seen at x and scatter their squared deviations. ``earned`` = sum_t gamma_t(M_t).
    """

    K: float
    theta: float
    zero: bool
    confidence: Array
    counts: Array
    values: Array
    squares: float
    earned: float

    @property
    def means(self) -> Array:
        """o_x where x was seen, 0 elsewhere."""
        return self.values / np.maximum(self.counts, 1)

    def best(self, gap: float = 1e-3) -> tuple[float, float]:
        """A bracket of max over M of sum_t gamma_t(M); the two completions are chosen independently."""
        scatter = self.squares - float(np.vdot(self.counts, self.means**2))
        sides = (1.0,) if self.zero else (1.0, -1.0)
        found = [
            maximize_over_class(
                ConcaveQuadratic(side * self.confidence, self.theta * self.counts, self.means), self.K, gap
            )
            for side in sides
        ]
        times = 2 / len(sides)
        lower, upper = times * sum(b.lower for b in found), times * sum(b.upper for b in found)
        return lower - 2 * self.theta * scatter, upper - 2 * self.theta * scatter


def measure_regret(
    rounds: int, alpha: float, confidence: float, record: MatrixRecord, bounds: tuple[float, float]
) -> GameRegret:
    """The regret of a game from its sums; ``bounds`` are the theorem's, for the two players."""
    if rounds == 0:
        return GameRegret(0, alpha, 0.0, 0.0, 0.0, 0.0, 0.0)
    lower, upper = record.best()
    return GameRegret(rounds, alpha, confidence, bounds[0], lower - record.earned, upper - record.earned, bounds[1])


def _against(bound: float) -> str:
    return f"bound {bound:.4g}" if math.isfinite(bound) else "no bound: the steps are longer than the theorem allows"
