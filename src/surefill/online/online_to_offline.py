"""From online to offline: what C-bar implies about the sampling distribution, and what the theorem guarantees.

The paper's Theorem "Offline implications", with the constants that its proof gives (docs/mathematics.md, "From the game
to the sample"): draws x_t from mu, alpha = delta^(-1/6), theta = 4 delta^(-2/3) D, D the largest |C|_1. If

    (regret of C + alpha regret of M) / T <= alpha theta delta   and   mean_t f_t(M_t) <= (3/2) delta^(2/3),

then with probability at least 1 - exp(-delta^(4/3) T / (2 R^2)), R = 2 the largest f_t with zero observations and 8
with values,

    H(C-bar) >= H(C_mu) - 14 delta^(1/6) D,
    sup over M^1, M^2 in V_(T, delta) of G(C-bar, M^1, M^2) <= delta^(1/6) (max H - H(C_mu)) + 14 delta^(1/3) D,

with V_(T, delta) = {M : max-norm(M) <= K, |M_x| <= 1, mean_t (M_x_t - o_t)^2 <= delta}, o_t = 0 with zero observations.
Then moreover sum_x C-bar_x (M^1_x - M^2_x)^2 <= pi K sup G for all matrices of the class that are within delta of the
observed values; with values this is false. The supremum is bounded from above by Lagrangian duality: for every
multiplier p >= 0 of the misfit,

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
from surefill.online.dual_descent import OnlineDualDescent
from surefill.online.parameters import (
    GameOptions,
    game_weights,
    largest_confidence,
    require_positive,
    rounds_needed,
)
from surefill.online.regret import ConcaveQuadratic, MatrixRewardSum, maximize_over_class
from surefill.spaces.norms import as_matrix

PROOF_CONSTANT = 14
"""2 for the misfit, 8 for 2 alpha theta delta, 4 for the sum of both regrets; the paper adds them up to 12."""

MULTIPLIERS = 9
"""Multipliers of the misfit tried by bisection; nine halvings of log(10^6) locate it to within 3%."""

MULTIPLIER_RANGE = (1e-3, 1e3)
"""Where the bisection looks, on the scale of sum C = 1 and a mean square; both bounds hold for every multiplier."""

GAP = 1e-4
"""Optimality gap, relative to the scale of the quadratic, to which each maximisation is solved."""

SUM_ROUNDING = 1e-9
"""How far the sum of mu may be from 1: rounding of up to about 10^6 terms of double precision."""


SAME = 1e-9
"""Relative difference up to which alpha and theta count as the theorem's."""


@dataclass(frozen=True)
class OfflineImplication:
    """The theorem's two inequalities beside what was measured, and whether they are guaranteed.

    Attributes
    ----------
    support, support_of_mu, support_theorem_bound : H(C-bar), H(C_mu), and the theorem's lower bound of H(C-bar).
    disagreement_lower_bound, disagreement_upper_bound : bounds of sup G(C-bar, .) over V_(T, delta);
        ``disagreement_theorem_bound`` is the theorem's.
    squared_error_bound : pi K disagreement_upper_bound, which no sum_x C-bar_x (M^1_x - M^2_x)^2 of two completions
        within delta of the observed values exceeds; None with values, where it is false.
    rounds, rounds_needed : T, and the T from which the theorem's steps meet the first condition.
    departures : in which of alpha, theta and the step sizes the game is not the theorem's.
    regret_margin : alpha theta delta - (regret of C + alpha regret of M) / T, the matrix player's an upper bound.
    misfit_margin : (3/2) delta^(2/3) - mean_t f_t(M_t).
    probability : with which the two inequalities hold, if both margins are at least 0.

    Examples
    --------
    >>> import surefill as sf
    >>> import numpy as np
    >>> game = sf.OnlineDualDescent((3, 2), delta=0.5, horizon=3).learn_many([0, 1, 2], [0, 1, 0], [0.0, 0.0, 0.0])
    >>> implied = offline_implication(game, np.full((3, 2), 1 / 6))
    >>> implied.departures, implied.enough_rounds
    ((), False)
    """

    delta: float
    rounds: int
    rounds_needed: int
    departures: tuple[str, ...]
    support: float
    support_of_mu: float
    support_theorem_bound: float
    disagreement_lower_bound: float
    disagreement_upper_bound: float
    disagreement_theorem_bound: float
    squared_error_bound: float | None
    regret_margin: float
    misfit_margin: float
    probability: float

    @property
    def guaranteed(self) -> bool:
        """Whether the proof applies to the game as it was played: alpha and theta, and both margins at least 0.

        The proof uses the regrets, not how the steps were chosen; other steps only leave it without an advance notice.
        """
        weights = {"alpha", "theta"}.isdisjoint(self.departures)
        return weights and min(self.regret_margin, self.misfit_margin) >= 0

    @property
    def enough_rounds(self) -> bool:
        """Whether the theorem, with its own steps, promised this beforehand, and both margins bear it out."""
        return self.guaranteed and not self.departures and self.rounds >= self.rounds_needed

    @property
    def informative(self) -> bool:
        """Whether the theorem's lower bound of H(C-bar) is above 0, which every C reaches."""
        return self.support_theorem_bound > 0

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
        empty = "" if self.informative else " At this delta the first says nothing: H is never below 0."
        return f"{measured}{empty} {self._standing()}"

    def _standing(self) -> str:
        odds = f"with probability {_rounded_down(self.probability):g} over the draws"
        if self.enough_rounds:
            return f"The {self.rounds} rounds are enough for the theorem: both hold {odds}."
        if self.guaranteed:
            return f"The regrets of these {self.rounds} rounds are small enough for the proof: both hold {odds}."
        reasons = [f"{name} is not the theorem's" for name in self.departures]
        if self.rounds < self.rounds_needed:
            reasons.append(f"the theorem asks for {self.rounds_needed} rounds and there were {self.rounds}")
        margins = {"the regrets are": self.regret_margin, "the misfit is": self.misfit_margin}
        reasons += [f"{what} larger than the proof allows by {-over:.3g}" for what, over in margins.items() if over < 0]
        return f"No guarantee: {'; '.join(reasons)}."


def offline_implication(game: OnlineDualDescent, mu: ArrayLike, delta: float | None = None) -> OfflineImplication:
    """The theorem's inequalities for a game played on draws from ``mu``, an m x n array that sums to 1.

    ``delta`` is the game's own where it was given one. The game must have ``matrix="mmw"``.

    Examples
    --------
    >>> import surefill as sf
    >>> import numpy as np
    >>> game = sf.OnlineDualDescent((3, 2)).learn_many([0, 1, 2], [0, 1, 0], [0.0, 0.0, 0.0])
    >>> implied = offline_implication(game, np.full((3, 2), 1 / 6), delta=0.5)
    >>> implied.departures, implied.guaranteed
    (('alpha', 'theta', 'step size'), False)
    """
    exact, options = game.exact_game("offline_implication"), game.options
    distribution = as_matrix(mu, "mu", options.shape)
    if distribution.min() < 0 or abs(distribution.sum() - 1) > SUM_ROUNDING:
        raise InputError("mu must be a distribution over the cells: at least 0, and 1 in all.")
    delta = options.delta if delta is None else delta
    if delta is None:
        raise InputError("offline_implication needs delta: the game was not given one.")
    require_positive("offline_implication", delta=delta)
    if exact.sums.rounds == 0:
        raise InputError("no round has been played: learn from draws first.")
    rounds, regret, player = exact.sums.rounds, exact.regret(), exact.confidence_player
    lower, upper = bound_disagreement(exact.average, exact.matrix_reward_sum(), delta)
    largest, support_of_mu = (
        player.best_reward(1, np.zeros(options.shape)),
        player.support(player.from_distribution(distribution)),
    )
    slack = PROOF_CONSTANT * delta ** (1 / 6) * largest_confidence(options.shape, options.confidence)
    allowed = options.alpha * options.theta * delta
    return OfflineImplication(
        delta=delta,
        rounds=rounds,
        rounds_needed=rounds_needed(delta, options.shape, options.K, options.confidence, options.observations),
        departures=_departures(options, delta, rounds),
        support=player.support(exact.average),
        support_of_mu=support_of_mu,
        support_theorem_bound=support_of_mu - slack,
        disagreement_lower_bound=lower,
        disagreement_upper_bound=upper,
        disagreement_theorem_bound=delta ** (1 / 6) * (largest - support_of_mu + slack),
        squared_error_bound=math.pi * options.K * upper if options.observations == "zero" else None,
        regret_margin=allowed - (regret.confidence + options.alpha * regret.matrix_upper_bound) / rounds,
        misfit_margin=1.5 * delta ** (2 / 3) - exact.sums.misfit / rounds,
        probability=proof_probability(delta, rounds, options.observations),
    )


def proof_probability(delta: float, rounds: int, observations: str) -> float:
    """1 - exp(-delta^(4/3) T / (2 R^2)), R = 2 with zero observations and 8 with values.

    By Azuma and Hoeffding the expected misfit of the matrices played exceeds their observed one by delta^(2/3) / 2 on
    average with no more than the remaining probability; R is the largest f_t.

    >>> round(proof_probability(0.1, 1000, "zero"), 3)
    0.997
    """
    largest = 2.0 if observations == "zero" else 8.0
    return -math.expm1(-(delta ** (4 / 3)) * rounds / (2 * largest**2))


def _departures(options: GameOptions, delta: float, rounds: int) -> tuple[str, ...]:
    """What of alpha, theta and the step sizes is not the theorem's."""
    theorem = game_weights(delta, options.shape, options.confidence)
    departures = [
        name
        for name, here, there in (("alpha", options.alpha, theorem.alpha), ("theta", options.theta, theorem.theta))
        if not math.isclose(here, there, rel_tol=SAME)
    ]
    chosen = options.eta_confidence is not None or options.eta_matrix is not None
    return (*departures, *(["step size"] if chosen or options.horizon != rounds else []))


def _rounded_down(probability: float) -> float:
    """Four digits, never more than holds."""
    return math.floor(probability * 1e4) / 1e4


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
