"""From online to offline: what C-bar says about the sampling distribution, and what the theorem promises about it.

The paper's Theorem "Offline implications": draws x_t from mu, values M*_x without noise, alpha = delta^(-1/6),
theta = 4 delta^(-2/3) D, with D = 1 on the simplex and sqrt(m + n) on the cube. For T large enough, most probably,

    H(C-bar) >= H(C_mu) - 12 delta^(1/6) D,
    sup over M^1, M^2 in V_(T, delta) of G(C-bar, M^1, M^2) <= delta^(1/6) max H + 12 delta^(1/3) D,

with V_(T, delta) = {M : max-norm(M) <= K, |M_x| <= 1, mean_t (M_x_t - o_t)^2 <= delta}. The supremum is bracketed by
Lagrangian duality: for every price p >= 0 of the misfit,

    sup over V of <C, M>  <=  p delta + max over the class of <C, M> - p mean_t (M_x_t - o_t)^2,

a concave quadratic (``comparator``); from below by members of V between the maximiser and the best fit.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from surefill.arrays import Array
from surefill.errors import InputError, invalid_parameter
from surefill.online.exact_game import ExactGame
from surefill.online.parameters import largest_confidence, rounds_needed
from surefill.online.regret import ConcaveQuadratic, MatrixRecord, maximize_over_class
from surefill.spaces.norms import as_matrix

PRICES = 9
"""Prices tried for the misfit, from bisection."""


@dataclass(frozen=True)
class OfflineImplication:
    """The theorem's two statements beside what was measured.

    Attributes
    ----------
    support, support_of_mu, support_bound : H(C-bar), H(C_mu), and the least H(C-bar) that the theorem allows.
    disagreement_lower, disagreement_upper : a bracket of sup G(C-bar, .) over V_(T, delta); ``disagreement_bound``
        is the most that the theorem allows.
    rounds, rounds_needed : T, and the T from which B_T / T <= alpha theta delta.
    lemma_margin : delta^(2/3) / 2 - (2 D + regret of the matrix player / T) / theta, with the upper end of the measured
        regret. The lemma assumes that it is not negative.

    Examples
    --------
    >>> import surefill as sf
    >>> import numpy as np
    >>> game = sf.OnlineDualDescent((3, 2), K=1.0, alpha=1.0, theta=0.5)
    >>> game = game.learn_many([0, 1, 2], [0, 1, 0], [0.0, 0.0, 0.0])
    >>> offline_implication(game.game, np.full((3, 2), 1 / 6), delta=0.5).enough
    False
    """

    delta: float
    rounds: int
    rounds_needed: int
    support: float
    support_of_mu: float
    support_bound: float
    disagreement_lower: float
    disagreement_upper: float
    disagreement_bound: float
    lemma_margin: float

    @property
    def enough(self) -> bool:
        """Whether there were as many rounds as the theorem asks for."""
        return self.rounds >= self.rounds_needed

    @property
    def holds(self) -> bool:
        """Whether both inequalities are seen to hold, guaranteed or not."""
        return self.support >= self.support_bound and self.disagreement_upper <= self.disagreement_bound

    @property
    def sentence(self) -> str:
        """The comparison in words."""
        seen = (
            f"H(C-bar) is {self.support:.4g} where the theorem wants at least {self.support_bound:.4g}, and two "
            f"completions that fit differ on it by {self.disagreement_lower:.4g} to {self.disagreement_upper:.4g} "
            f"where it allows {self.disagreement_bound:.4g}: {'both hold' if self.holds else 'not both hold'}."
        )
        if self.enough:
            return f"{seen} The {self.rounds} rounds are as many as the theorem asks for."
        return f"{seen} The theorem asks for {self.rounds_needed} rounds and there were {self.rounds}: no guarantee."


def offline_implication(game: ExactGame, mu: ArrayLike, delta: float) -> OfflineImplication:
    """The theorem's inequalities for a game that was played on draws from ``mu``, an m x n array that adds up to 1.

    Examples
    --------
    >>> import surefill as sf
    >>> import numpy as np
    >>> game = sf.OnlineDualDescent((3, 2), K=1.0, alpha=1.0, theta=0.5)
    >>> game = game.learn_many([0, 1, 2], [0, 1, 0], [0.0, 0.0, 0.0])
    >>> implied = offline_implication(game.game, np.full((3, 2), 1 / 6), delta=0.5)
    >>> implied.rounds, implied.rounds_needed > 3
    (3, True)
    """
    options, player = game.options, game.confidence_player
    distribution = as_matrix(mu, "mu", options.shape)
    if distribution.min() < 0 or abs(distribution.sum() - 1) > 1e-9:
        raise InputError("mu must be a distribution over the cells: at least 0, and 1 in all.")
    if not 0 < delta < math.inf:
        raise invalid_parameter("offline_implication", "delta", "a positive finite number", delta)
    if game.totals.rounds == 0:
        raise InputError("no round has been played: learn from draws first.")
    D = largest_confidence(options.shape, options.confidence)
    C_mu = player.of_distribution(distribution)
    lower, upper = bracket_disagreement(game.average, game.matrix_record(), delta)
    root = delta ** (1 / 6)
    rounds = game.totals.rounds
    return OfflineImplication(
        delta=delta,
        rounds=rounds,
        rounds_needed=rounds_needed(delta, options.shape, options.K, options.confidence),
        support=player.support(game.average),
        support_of_mu=player.support(C_mu),
        support_bound=player.support(C_mu) - 12 * root * D,
        disagreement_lower=lower,
        disagreement_upper=upper,
        disagreement_bound=root * player.best_reward(1, np.zeros(options.shape)) + 12 * root**2 * D,
        lemma_margin=delta ** (2 / 3) / 2 - (2 * D + game.regret().matrix_upper / rounds) / options.theta,
    )


def bracket_disagreement(C: Array, record: MatrixRecord, delta: float) -> tuple[float, float]:
    """A bracket of sup <C, M^1 - M^2> over M^1, M^2 in V_(T, delta); the two are chosen independently."""
    sides = (1.0,) if record.zero else (1.0, -1.0)
    parts = [_bracket_side(side * C, record, delta) for side in sides]
    times = 2 / len(sides)
    return times * sum(low for low, _ in parts), times * sum(high for _, high in parts)


def _bracket_side(A: Array, record: MatrixRecord, delta: float) -> tuple[float, float]:
    """sup <A, M> over V_(T, delta), by bisection on the price of the misfit."""
    weights = record.counts / record.counts.sum()
    means = record.means
    room = delta - (record.squares / record.counts.sum() - float(np.vdot(weights, means**2)))

    def misfit(M: Array) -> float:
        return float(np.vdot(weights, (M - means) ** 2))

    fit = maximize_over_class(ConcaveQuadratic(np.zeros_like(A), weights, means), record.K).matrix
    if misfit(fit) > room:
        raise InputError(f"no matrix of max-norm {record.K:g} found that fits the observations to delta = {delta:g}.")
    lower, upper = float(np.vdot(A, fit)), math.inf
    cheap, dear = 1e-3, 1e3
    for _ in range(PRICES):
        price = math.sqrt(cheap * dear)
        found = maximize_over_class(ConcaveQuadratic(A, price * weights, means), record.K, gap=1e-4)
        upper = min(upper, found.upper + price * room)
        lower = max(lower, float(np.vdot(A, _fitting(found.matrix, fit, misfit(fit), means, weights, room))))
        cheap, dear = (price, dear) if misfit(found.matrix) > room else (cheap, price)
    return lower, max(lower, upper)


def _fitting(M: Array, fit: Array, least: float, means: Array, weights: Array, room: float) -> Array:
    """fit + s (M - fit) with the largest s in [0, 1] whose misfit is at most ``room``: a root of a quadratic."""
    change = M - fit
    a, b = float(np.vdot(weights, change**2)), float(np.vdot(weights, change * (fit - means)))
    s = 1.0 if a + 2 * b + least <= room else (math.sqrt(max(0.0, b * b + a * (room - least))) - b) / a
    return fit + max(0.0, min(1.0, s)) * change
