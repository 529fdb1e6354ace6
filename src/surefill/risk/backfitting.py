"""The regression behind the risk model: losses on features, and noise factors of rows and columns."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from scipy.linalg import cholesky, solve_triangular
from scipy.optimize import lsq_linear

from surefill.arrays import Array, Floats
from surefill.data.compact import PIECE, piecewise
from surefill.loop import Status
from surefill.risk.noise_factors import NoiseFactors, NoisePrior, NoiseSide

ENDS = 0.005
"""Share of the entries beyond the first and the last knot: a curve is not learnt from outliers."""


def knots_for(x: Array, n_knots: int) -> Array:
    """Quantiles of ``x``, without its last half percent at either end; fewer than asked where they coincide."""
    return np.unique(np.quantile(x, np.linspace(ENDS, 1 - ENDS, n_knots)))


def hats(x: Array, knots: Array) -> Array:
    """B with B_tk the value at x_t of the curve that is 1 at knot k, 0 at the others, linear between, flat beyond."""
    basis = np.zeros((len(x), len(knots)))
    if len(knots) == 1:
        return basis + 1.0
    inside = np.clip(x, knots[0], knots[-1])
    left = np.clip(np.searchsorted(knots, inside, side="right") - 1, 0, len(knots) - 2)
    share = (inside - knots[left]) / (knots[left + 1] - knots[left])
    entry = np.arange(len(x))
    basis[entry, left], basis[entry, left + 1] = 1.0 - share, share
    return basis


def roughness(n_knots: int, steps: float, bends: float) -> Array:
    """The matrix R with h' R h = steps sum (h_k+1 - h_k)^2 + bends sum (h_k+1 - 2 h_k + h_k-1)^2."""
    first, second = (np.diff(np.eye(n_knots), order, axis=0) for order in (1, 2))
    return np.asarray(steps * first.T @ first + bends * second.T @ second)


STEPS, BENDS = 1.0, 10.0
"""Penalties on first and second differences of the curve, in draws: a few draws bend it where data are dense."""

LEVEL = 1e-3
"""Penalty on the heights of further curves, in draws: their levels would be undetermined."""

LONGEST_STEP = 1.0
"""Largest change of a coefficient per step, a factor of e in the risk: scoring may overshoot from a poor start."""


@dataclass(frozen=True, eq=False)
class NoiseFit:
    """State: coefficients t, factors of rows and columns, what every entry's own residual had no part in, the prior
    that factors of rows were shrunk by, its fit."""

    coefficients: Array
    rows: NoiseFactors
    cols: NoiseFactors
    left_out: Array
    row_prior: NoisePrior
    loss: float
    gain: float


@dataclass(frozen=True, eq=False)
class Backfitting:
    """log r_x = X_x t + log a_i + log b_j, so that r_x fits the losses l_x of entries x = (i, j).

    Given t, the factors a and b are shrunk means of l over what is expected without them. Given the factors *each
    entry has without its own residual*, t takes a step of Fisher's scoring towards the minimum of

        f(t) = (1/2) sum_x w_x (log r_x + l_x / r_x) + (1/2) (t - t0)' P (t - t0)    with its first entries >= 0,

    the negative log-likelihood of residuals N(0, r_x) where l is the squared error, convex in t, whose expected second
    derivative X'WX / 2 + P is formed once. Only means matter to its gradient: residuals need not be normal, and any
    loss of at least 0 will do. One step costs O(entries columns).

    Parameters
    ----------
    features : X, first ``n_slopes`` monotone features, then the values of the hat functions of a curve, or of several.
    curves : how many knots each curve has; one curve of all that follow the slopes where empty.
    losses : l, above 0. ``sides`` groups the same entries by row and by column.
    prior_slope : of the completion's variance: 1 for squared errors, one half for a loss that grows with their root.
    tol : stop once a step changes f by less than this per draw.
    """

    features: Floats
    n_slopes: int
    losses: Array
    sides: tuple[NoiseSide, NoiseSide]
    tol: float
    prior_slope: float = 1.0
    curves: tuple[int, ...] = ()
    task: str = field(default="learning the risk", init=False)

    @cached_property
    def prior(self) -> Array:
        """t0: the first slope, that of the completion's own variance, and all else 0."""
        t0 = np.zeros(self.features.shape[1])
        t0[0] = self.prior_slope
        return t0

    @cached_property
    def penalty(self) -> Array:
        """P: 1 for slopes; for curves as much as a few draws, on their steps and bends and not on the first's level."""
        P, first = np.eye(self.features.shape[1]), self.n_slopes
        for size in self._sizes:
            here, level = slice(first, first + size), 0.0 if first == self.n_slopes else LEVEL
            P[here, here] = roughness(size, STEPS, BENDS) + level * np.eye(size)
            first += size
        return P

    @property
    def _sizes(self) -> tuple[int, ...]:
        return self.curves or (self.features.shape[1] - self.n_slopes,)

    @cached_property
    def _root(self) -> Array:
        """Upper triangular R with R'R = X'WX / 2 + P."""
        gram = np.zeros_like(self.penalty)
        for here in self._pieces:
            X, w = self.features[here].astype(np.float64, copy=False), self.sides[0].weight[here]
            gram += (X * w[:, None]).T @ X
        return np.asarray(cholesky(gram / 2 + self.penalty))

    @property
    def _pieces(self) -> list[slice]:
        return [slice(first, first + PIECE) for first in range(0, len(self.losses), PIECE)]

    def log_expected(self, t: Array) -> Array:
        """X t, without the factors of rows and columns."""
        return piecewise(lambda X: X.astype(np.float64, copy=False) @ t, self.features)

    def _ratio(self, t: Array, factors: Array | None = None) -> Array:
        """Losses over what is expected of them, with these factors of rows and columns, if any."""

        def of_piece(losses: Array, X: Floats, *factors: Array) -> Array:
            expected = np.exp(X.astype(np.float64, copy=False) @ t)
            return losses / (expected * factors[0] if factors else expected)

        return piecewise(of_piece, self.losses, self.features, *(() if factors is None else (factors,)))

    def init(self) -> NoiseFit:
        """No factors, the variance as it is but for one scale."""
        t, w, (rows, cols) = self.prior.copy(), self.sides[0].weight, self.sides
        first = slice(self.n_slopes, self.n_slopes + self._sizes[0])
        t[first] = np.log(np.average(self._ratio(t), weights=w))
        nothing = NoiseFactors.none(rows.ids), NoiseFactors.none(cols.ids)
        return NoiseFit(t, *nothing, np.ones(len(w)), NoisePrior(1.0, 1.0, 0.0, 1.0), np.inf, np.inf)

    def step(self, state: NoiseFit) -> NoiseFit:
        """Row factors, column factors, then coefficients."""
        (rows, cols), t = self.sides, state.coefficients
        ratio = self._ratio(t)
        a, left_out, prior = rows.learnt(ratio / state.cols.of(cols.group, cols.predicted))
        ratio /= a.of(rows.group, rows.predicted)
        b, without_own = cols.shrunk(ratio)
        left_out *= without_own
        loss = self.loss(t, left_out)
        return NoiseFit(self._scored(t, left_out), a, b, left_out, prior, loss, state.loss - loss)

    def _scored(self, t: Array, left_out: Array) -> Array:
        towards = solve_triangular(self._root, self.gradient(t, left_out), trans="T")
        low = np.r_[np.zeros(self.n_slopes), np.full(len(t) - self.n_slopes, -np.inf)]
        best = lsq_linear(self._root, self._root @ t - towards, bounds=(low, np.inf), method="bvls").x
        return np.asarray(t + np.clip(best - t, -LONGEST_STEP, LONGEST_STEP))

    def loss(self, t: Array, factors: Array) -> float:
        """f at t, with the product of both factors given for each entry."""

        def of_piece(X: Floats, factors: Array, losses: Array) -> Array:
            log_risk = X.astype(np.float64, copy=False) @ t + np.log(factors)
            return np.asarray(log_risk + losses * np.exp(-log_risk))

        off = t - self.prior
        each = piecewise(of_piece, self.features, factors, self.losses)
        return float(self.sides[0].weight @ each + off @ self.penalty @ off) / 2

    def gradient(self, t: Array, factors: Array) -> Array:
        """Of f in t."""
        slope, away = np.zeros(len(t)), self.sides[0].weight * (1.0 - self._ratio(t, factors))
        for here in self._pieces:
            slope += self.features[here].astype(np.float64, copy=False).T @ away[here]
        return slope / 2 + self.penalty @ (t - self.prior)

    def measure(self, state: NoiseFit) -> float:
        """f per draw."""
        return state.loss / float(self.sides[0].weight.sum())

    def terminate(self, state: NoiseFit) -> Status | None:
        """Converged once a step changes f by less than ``tol`` per draw."""
        small = abs(state.gain) < self.tol * self.sides[0].weight.sum()
        return Status.CONVERGED if small else None
