"""From online to offline: what C-bar implies about the sampling distribution, and what the theorem guarantees.

The paper's Theorem "Offline implications": draws x_t from mu, values M*_x without noise, alpha = delta^(-1/6),
theta = 4 delta^(-2/3) D, D = 1 on the simplex and sqrt(m + n) on the cube. With high probability for large enough T,

    H(C-bar) >= H(C_mu) - 12 delta^(1/6) D,
    sup over M^1, M^2 in V_(T, delta) of G(C-bar, M^1, M^2) <= delta^(1/6) max H + 12 delta^(1/3) D,

with V_(T, delta) = {M : max-norm(M) <= K, |M_x| <= 1, mean_t (M_x_t - o_t)^2 <= delta}. The supremum is bounded from
above by Lagrangian duality: for every multiplier p >= 0 of the misfit,

    sup over V of <C, M>  <=  p delta + max over the class of <C, M> - p mean_t (M_x_t - o_t)^2,

a concave quadratic (``regret.maximize_over_class``); from below by the members of V on the segment between the
maximiser and the best fit.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from surefill.arrays import Array
from surefill.errors import InputError
from surefill.online.exact_game import ExactGame
from surefill.online.parameters import largest_confidence, require_positive, rounds_needed
from surefill.online.regret import ConcaveQuadratic, MatrixRewardSum, maximize_over_class
from surefill.spaces.norms import as_matrix

MULTIPLIERS = 9
"""Multipliers of the misfit tried by bisection; nine halvings of log(10^6) locate it to within 3%."""

MULTIPLIER_RANGE = (1e-3, 1e3)
"""Where the bisection looks, on the scale of sum C = 1 and a mean square; both bounds hold for every multiplier."""

GAP = 1e-4
"""Optimality gap, relative to the scale of the quadratic, to which each maximisation is solved."""

SUM_ROUNDING = 1e-9
"""How far the sum of mu may be from 1: rounding of up to about 10^6 terms of double precision."""


@dataclass(frozen=True)
class OfflineImplication:
    """The theorem's two inequalities beside what was measured.

    Attributes
    ----------
    support, support_of_mu, support_theorem_bound : H(C-bar), H(C_mu), and the theorem's lower bound of H(C-bar).
    disagreement_lower_bound, disagreement_upper_bound : bounds of sup G(C-bar, .) over V_(T, delta);
        ``disagreement_theorem_bound`` is the theorem's.
    rounds, rounds_needed : T, and the T from which B_T / T <= alpha theta delta.
    lemma_margin : delta^(2/3) / 2 - (2 D + regret of the matrix player / T) / theta, with the upper bound of the
        measured regret. The theorem's lemma assumes that it is not negative.

    Examples
    --------
    >>> import surefill as sf
    >>> import numpy as np
    >>> game = sf.OnlineDualDescent((3, 2), K=1.0, alpha=1.0, theta=0.5)
    >>> game = game.learn_many([0, 1, 2], [0, 1, 0], [0.0, 0.0, 0.0])
    >>> offline_implication(game.game, np.full((3, 2), 1 / 6), delta=0.5).enough_rounds
    False
    """

    delta: float
    rounds: int
    rounds_needed: int
    support: float
    support_of_mu: float
    support_theorem_bound: float
    disagreement_lower_bound: float
    disagreement_upper_bound: float
    disagreement_theorem_bound: float
    lemma_margin: float

    @property
    def enough_rounds(self) -> bool:
        """Whether there were as many rounds as the theorem requires."""
        return self.rounds >= self.rounds_needed

    @property
    def holds(self) -> bool:
        """Whether both inequalities hold as measured, guaranteed or not."""
        broad = self.support >= self.support_theorem_bound
        return broad and self.disagreement_upper_bound <= self.disagreement_theorem_bound

    @property
    def sentence(self) -> str:
        """The comparison in words."""
        lower, upper = self.disagreement_lower_bound, self.disagreement_upper_bound
        measured = (
            f"H(C-bar) is {self.support:.4g} where the theorem wants at least {self.support_theorem_bound:.4g}, and "
            f"two completions that fit differ on it by {lower:.4g} to {upper:.4g} where it allows "
            f"{self.disagreement_theorem_bound:.4g}: {'both hold' if self.holds else 'not both hold'}."
        )
        if self.enough_rounds:
            return f"{measured} The {self.rounds} rounds are as many as the theorem asks for."
        return (
            f"{measured} The theorem asks for {self.rounds_needed} rounds and there were {self.rounds}: no guarantee."
        )


def offline_implication(game: ExactGame, mu: ArrayLike, delta: float) -> OfflineImplication:
    """The theorem's inequalities for a game played on draws from ``mu``, an m x n array that sums to 1.

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
    if distribution.min() < 0 or abs(distribution.sum() - 1) > SUM_ROUNDING:
        raise InputError("mu must be a distribution over the cells: at least 0, and 1 in all.")
    require_positive("offline_implication", delta=delta)
    if game.sums.rounds == 0:
        raise InputError("no round has been played: learn from draws first.")
    D = largest_confidence(options.shape, options.confidence)
    C_mu = player.from_distribution(distribution)
    lower, upper = bound_disagreement(game.average, game.matrix_reward_sum(), delta)
    root = delta ** (1 / 6)
    rounds = game.sums.rounds
    return OfflineImplication(
        delta=delta,
        rounds=rounds,
        rounds_needed=rounds_needed(delta, options.shape, options.K, options.confidence),
        support=player.support(game.average),
        support_of_mu=player.support(C_mu),
        support_theorem_bound=player.support(C_mu) - 12 * root * D,
        disagreement_lower_bound=lower,
        disagreement_upper_bound=upper,
        disagreement_theorem_bound=root * player.best_reward(1, np.zeros(options.shape)) + 12 * root**2 * D,
        lemma_margin=delta ** (2 / 3) / 2 - (2 * D + game.regret().matrix_upper_bound / rounds) / options.theta,
    )


def bound_disagreement(C: Array, rewards: MatrixRewardSum, delta: float) -> tuple[float, float]:
    """Lower and upper bound of sup <C, M^1 - M^2> over M^1, M^2 in V_(T, delta), which are chosen independently."""
    # with zero observations V is symmetric and both suprema are equal
    signs = (1.0,) if rewards.zero else (1.0, -1.0)
    parts = [_bound_linear(sign * C, rewards, delta) for sign in signs]
    times = 2 / len(signs)
    return times * sum(low for low, _ in parts), times * sum(high for _, high in parts)


def _bound_linear(A: Array, rewards: MatrixRewardSum, delta: float) -> tuple[float, float]:
    """Lower and upper bound of sup <A, M> over V_(T, delta), by bisection on the multiplier of the misfit."""
    weights = rewards.counts / rewards.counts.sum()
    means = rewards.means
    # mean_t (M_x_t - o_t)^2 = misfit(M) + the scatter of the values around their cells' means
    allowed = delta - (rewards.squares / rewards.counts.sum() - float(np.vdot(weights, means**2)))

    def misfit(M: Array) -> float:
        return float(np.vdot(weights, (M - means) ** 2))

    fit = maximize_over_class(ConcaveQuadratic(np.zeros_like(A), weights, means), rewards.K).matrix
    if misfit(fit) > allowed:
        raise InputError(f"no matrix of max-norm {rewards.K:g} found that fits the observations to delta = {delta:g}.")
    lower, upper = float(np.vdot(A, fit)), math.inf
    smallest, largest = MULTIPLIER_RANGE
    for _ in range(MULTIPLIERS):
        multiplier = math.sqrt(smallest * largest)
        found = maximize_over_class(ConcaveQuadratic(A, multiplier * weights, means), rewards.K, gap=GAP)
        upper = min(upper, found.upper_bound + multiplier * allowed)
        member = _furthest_member(found.matrix, fit, misfit(fit), means, weights, allowed)
        lower = max(lower, float(np.vdot(A, member)))
        smallest, largest = (multiplier, largest) if misfit(found.matrix) > allowed else (smallest, multiplier)
    return lower, max(lower, upper)


def _furthest_member(M: Array, fit: Array, least: float, means: Array, weights: Array, allowed: float) -> Array:
    """fit + s (M - fit) with the largest s in [0, 1] whose misfit is at most ``allowed``: a root of a quadratic."""
    change = M - fit
    a, b = float(np.vdot(weights, change**2)), float(np.vdot(weights, change * (fit - means)))
    s = 1.0 if a + 2 * b + least <= allowed else (math.sqrt(max(0.0, b * b + a * (allowed - least))) - b) / a
    return fit + max(0.0, min(1.0, s)) * change
