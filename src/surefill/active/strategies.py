"""Ways to choose the cells to ask next: what each candidate is worth, and a batch that does not repeat itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
from scipy.special import ndtr, polygamma

from surefill.active.lookahead import Lookahead
from surefill.arrays import Array, Indices
from surefill.completion import BayesianFactorCompletion
from surefill.data.groups import Groups, locate

Strategy = Literal["coverage", "variance", "risk", "random"]
STRATEGIES = ("coverage", "variance", "risk", "random")
"""Ways to choose: to keep more, to err less, where the error is expected to be largest, and at random."""

LEAST_KEPT = 0.05
"""Where the risks allow to keep less than this share, the twentieth of least risk is worked on."""

RiskAt = Callable[[Indices, Indices], Array]
"""Expected squared errors at the cells (rows[t], cols[t])."""


class Utility(Protocol):
    """What answers at candidates are worth, and what is left once some are taken for given."""

    def at(self, which: Indices | slice) -> Array:
        """The worth of some of the candidates."""
        ...

    def learn(self, candidate: int) -> None:
        """Take an answer at this candidate for given."""
        ...


@dataclass(frozen=True, eq=False)
class LookaheadUtility:
    """The fall of the weighted sum of variances, times ``scale``.

    Examples
    --------
    >>> import surefill as sf
    >>> seen = sf.datasets.make_low_rank((30, 20), rank=2, n_draws=200, noise=0.1, random_state=0).observations
    >>> completion = sf.completion.BayesianFactorModel(rank=2).fit(seen)
    >>> ahead = sf.active.Lookahead(completion, np.array([0, 1]), np.array([3, 3]), sf.active.every_cell)
    >>> bool((LookaheadUtility(ahead, scale=2.0).at(slice(None)) == 2 * ahead.utilities()).all())
    True
    """

    lookahead: Lookahead
    scale: float = 1.0

    def at(self, which: Indices | slice) -> Array:
        """The worth of some of the candidates."""
        return self.scale * self.lookahead.utilities(which)

    def learn(self, candidate: int) -> None:
        """Take an answer at this candidate for given."""
        self.lookahead.learn(candidate)


@dataclass(frozen=True, eq=False)
class RiskUtility:
    """risk d / d_0: the expected loss of the candidate itself, lowered as the variance of its answer has fallen.

    ``per_variance`` is risk / d_0, with d_0 the variance d before anything was asked.

    Examples
    --------
    >>> import surefill as sf
    >>> seen = sf.datasets.make_low_rank((30, 20), rank=2, n_draws=200, noise=0.1, random_state=0).observations
    >>> completion = sf.completion.BayesianFactorModel(rank=2).fit(seen)
    >>> ahead = sf.active.Lookahead(completion, np.array([0, 1]), np.array([3, 3]), sf.active.every_cell)
    >>> utility = RiskUtility.of(ahead, risk=np.array([0.4, 0.3]))
    >>> utility.learn(0)
    >>> bool((utility.at(slice(None)) < [0.4, 0.3]).all())
    True
    """

    lookahead: Lookahead
    per_variance: Array

    @classmethod
    def of(cls, lookahead: Lookahead, risk: Array) -> RiskUtility:
        """From the candidates' risks before anything is asked."""
        return cls(lookahead, risk / lookahead.variances())

    def at(self, which: Indices | slice) -> Array:
        """The worth of some of the candidates."""
        return self.per_variance[which] * self.lookahead.variances(which)

    def learn(self, candidate: int) -> None:
        """Take an answer at this candidate for given."""
        self.lookahead.learn(candidate)


@dataclass(frozen=True, eq=False)
class KeptMargin:
    """How the number of cells that can be kept at a tolerance changes with their risks r_x:

        max { |kept| : mean of r over kept <= tol }  =  min over lambda >= 0 of sum_x max(0, 1 - lambda (r_x - tol)),

    reached at lambda = 1 / (tau - tol), with tau the largest risk kept. So a small fall of a risk is worth lambda
    where the cell is kept, 0 elsewhere. The risks are not certain: log r_x is taken for normal with the variance
    h_x^2 that the noise precisions of row and column have, so that a cell is kept with probability Phi(z),
    z = log(tau / r_x) / h_x, and to know the noise better, h_x^2 lower by D, is worth lambda tau phi(z) / (2 h_x) D.

    Squared errors fall as their variance v does. Of another loss, which grows with the power p of the error
    (``degree``), r is taken to go with v^(p/2): h_x is then p/2 of it, and a fall of v worth p/2 r_x / v as much.

    Examples
    --------
    >>> import numpy as np
    >>> import surefill as sf
    >>> seen = sf.datasets.make_low_rank((30, 20), rank=2, n_draws=200, noise=0.1, random_state=0).observations
    >>> completion = sf.completion.BayesianFactorModel(rank=2).fit(seen)
    >>> rows, cols = np.arange(30), np.zeros(30, dtype=int)
    >>> margin = KeptMargin.of(completion, lambda i, j: 0.1 + 0.01 * i, 0.2, rows, cols)
    >>> round(margin.threshold, 3), round(1 / margin.per_risk, 3)
    (0.3, 0.1)
    """

    completion: BayesianFactorCompletion
    risk_at: RiskAt
    threshold: float
    per_risk: float
    degree: float = 2.0

    @classmethod
    def of(
        cls,
        completion: BayesianFactorCompletion,
        risk_at: RiskAt,
        tolerance: float,
        rows: Indices,
        cols: Indices,
        degree: float = 2.0,
    ) -> KeptMargin:
        """With tau and lambda as the risks at these cells have them."""
        risk = np.sort(risk_at(rows, cols))
        mean = np.cumsum(risk) / np.arange(1, len(risk) + 1)
        kept = max(int(np.searchsorted(mean, tolerance, side="right")), int(np.ceil(LEAST_KEPT * len(risk))))
        tau = float(risk[kept - 1])
        spare = max(tau - min(tolerance, float(mean[kept - 1])), np.finfo(float).tiny)
        return cls(completion, risk_at, tau, 1.0 / spare, max(degree, 1.0))

    def __call__(self, rows: Indices, cols: Indices) -> tuple[Array, Array]:
        """What falls of the variance and of the log noise's are worth at the cells, in units of lambda."""
        x, y = self.completion.rows, self.completion.cols
        h2 = _log_noise_variance(x.noise_precision.shape)[locate(x.ids, rows)]
        h2 = h2 + _log_noise_variance(y.noise_precision.shape)[locate(y.ids, cols)]
        risk, power = self.risk_at(rows, cols), self.degree / 2
        h = power * np.sqrt(h2)
        z = np.log(self.threshold / risk) / h
        density = np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi)
        slope = 1.0 if power == 1 else power * risk / self.completion.variance(rows, cols)
        return slope * ndtr(z), power**2 * self.threshold * density / (2 * h)


def every_cell(rows: Indices, cols: Indices) -> tuple[Array, Array]:
    """Weights 1 for variance and 0 for noise.

    Examples
    --------
    >>> every_cell(np.array([0, 1]), np.array([2, 2]))
    (array([1., 1.]), array([0., 0.]))
    """
    return np.ones(len(rows)), np.zeros(len(rows))


def choose_batch(rows: Indices, cols: Indices, utility: Utility, n: int) -> tuple[Indices, Array]:
    """The n candidates chosen one after the other, each for what it adds to those before, and its worth then.

    An answer changes what is known of one row and one column, so only candidates there are looked at again.

    Examples
    --------
    >>> import numpy as np
    >>> import surefill as sf
    >>> seen = sf.datasets.make_low_rank((30, 20), rank=2, n_draws=200, noise=0.1, random_state=0).observations
    >>> completion = sf.completion.BayesianFactorModel(rank=2).fit(seen)
    >>> rows, cols = np.repeat(np.arange(5), 20), np.tile(np.arange(20), 5)
    >>> ahead = sf.active.Lookahead(completion, rows, cols, sf.active.every_cell)
    >>> chosen, worth = choose_batch(rows, cols, LookaheadUtility(ahead), n=10)
    >>> len(set(chosen.tolist()))
    10
    """
    by_row, by_col = Groups.of(rows), Groups.of(cols)
    worth = utility.at(slice(None)).copy()
    chosen, gains = np.empty(n, dtype=np.int64), np.empty(n)
    for t in range(n):
        best = int(np.argmax(worth))
        chosen[t], gains[t], worth[best] = best, worth[best], -np.inf
        utility.learn(best)
        near = np.concatenate([_members(by_row, rows[best]), _members(by_col, cols[best])])
        near = near[worth[near] > -np.inf]
        worth[near] = utility.at(near)
    return chosen, gains


def choose_per_row(rows: Indices, cols: Indices, utility: Utility, n: int) -> tuple[Indices, Array]:
    """The n candidates of each row, row after row and one after the other, and the worth of each when it was chosen.

    Examples
    --------
    >>> import numpy as np
    >>> import surefill as sf
    >>> seen = sf.datasets.make_low_rank((30, 20), rank=2, n_draws=200, noise=0.1, random_state=0).observations
    >>> completion = sf.completion.BayesianFactorModel(rank=2).fit(seen)
    >>> rows, cols = np.repeat(np.arange(5), 20), np.tile(np.arange(20), 5)
    >>> ahead = sf.active.Lookahead(completion, rows, cols, sf.active.every_cell)
    >>> chosen, worth = choose_per_row(rows, cols, LookaheadUtility(ahead), n=2)
    >>> rows[chosen]
    array([0, 0, 1, 1, 2, 2, 3, 3, 4, 4])
    """
    groups, chosen, gains = Groups.of(rows), [], []
    for left in np.split(groups.order.astype(np.int64), groups.starts[1:-1]):
        for _ in range(n):
            worth = utility.at(left)
            best = int(np.argmax(worth))
            chosen.append(left[best])
            gains.append(worth[best])
            utility.learn(int(left[best]))
            left = np.delete(left, best)
    return np.array(chosen, dtype=np.int64), np.array(gains)


def _members(groups: Groups, which: int) -> Indices:
    position = int(groups.locate(np.array([which]))[0])
    return np.asarray(groups.order[groups.starts[position] : groups.starts[position + 1]])


def _log_noise_variance(shape: Array) -> Array:
    """psi_1(a), the variance of the logarithm of a gamma variable of shape a."""
    return np.asarray(polygamma(1, shape))
