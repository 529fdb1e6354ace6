"""MP 2 as one convex program: its dual gives the adversary, the dual's multipliers the confidence."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from surefill.spaces.conic_model import Attempt, ScaledMember, attempts, load_cvxpy
from surefill.spaces.version_space import VersionSpace


@dataclass(frozen=True, eq=False)
class ConicAnswer:
    """A feasible C, since no member of V exceeds ``bound`` <= gamma |C|, and a member M proving ``upper``."""

    C: NDArray[np.float64]
    bound: float
    M: NDArray[np.float64]
    upper: float

    @property
    def gap(self) -> float:
        """(upper - |C|) / upper: how much larger, at most, another coverage could be."""
        return max(0.0, self.upper - float(self.C.sum())) / self.upper if self.upper > 0 else 0.0


def solve_conic(space: VersionSpace, gamma: float, plan: tuple[Attempt, ...]) -> Iterator[ConicAnswer]:
    """min over lambda >= 0, N in lambda V of sum_x max(0, 1 + lambda gamma - N_x): the dual of MP 2.

    C is the multiplier of the hinge and M = N / lambda the adversary, both repaired so that what is said of
    them holds whatever the solver's accuracy. One answer comes from each attempt of ``plan``. Needs
    sqrt(beta) < gamma < min(K, 1), outside of which the answer is known; docs/mathematics.md has the
    derivation.
    """
    cp = load_cvxpy()
    scale, hinge = cp.Variable(nonneg=True), cp.Variable(space.shape, nonneg=True)
    model = ScaledMember(space, scale)
    covers = hinge >= 1 + scale * gamma - model.matrix
    problem = cp.Problem(cp.Minimize(cp.sum(hinge)), [covers, *model.constraints])
    for _ in attempts(problem, plan):
        C = np.clip(covers.dual_value, 0.0, 1.0)
        C, bound = _make_feasible(space, gamma, C, model.bound(C))
        M = model.member()
        yield ConicAnswer(C, bound, M, cover_against(M, gamma))


def cover_against(M: NDArray[np.float64], gamma: float) -> float:
    """max |C| over C in [0, 1] with <C, M> <= gamma |C|: the largest fractional set of lowest entries.

    For a member M of V this relaxes MP 2 to a single adversary, so it bounds the optimum from above. It
    equals min over lambda >= 0 of sum_x max(0, 1 + lambda (gamma - M_x)).
    """
    excess = np.sort(M, axis=None) - gamma
    spent = np.cumsum(excess)
    whole = int(np.count_nonzero(spent <= 0))
    if whole == excess.size:
        return float(whole)
    saved = -spent[whole - 1] if whole else 0.0
    return float(whole + saved / excess[whole])


def counts_confidence(space: VersionSpace) -> NDArray[np.float64]:
    """C0 = counts / max(counts): by Cauchy-Schwarz no M in V has a mean above sqrt(beta) under it."""
    obs = space.observations
    C0 = np.zeros(space.shape)
    C0[obs.rows, obs.cols] = obs.counts / obs.counts.max()
    return C0


def _make_feasible(
    space: VersionSpace, gamma: float, C: NDArray[np.float64], bound: float
) -> tuple[NDArray[np.float64], float]:
    """(1 - t) C + t C0 with the smallest t that certifies a bound of at most gamma times its sum; that bound.

    C exceeds by bound(C) - gamma |C|, and C0 = counts / max(counts) has (gamma - sqrt(beta)) |C0| to spare.
    """
    C0, root = counts_confidence(space), float(np.sqrt(space.beta))
    excess = max(0.0, bound - gamma * float(C.sum()))
    t = excess / (excess + (gamma - root) * float(C0.sum()))
    mixed = (1 - t) * C + t * C0
    if mixed.sum() < C0.sum():
        return C0, root * float(C0.sum())
    return mixed, (1 - t) * bound + t * root * float(C0.sum())
