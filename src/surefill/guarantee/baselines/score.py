"""SCoRE: selection with e-values (Bai, Jin, "Conformal selective prediction with general risk control", 2026)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from surefill.arrays import Array
from surefill.guarantee.baselines.cells import Candidates, HeldOut, Kept


def score_selection(
    held_out: HeldOut, candidates: Candidates, level: float, largest_loss: float, pruning: float = 1.0
) -> Kept:
    """The candidates that the e-BH procedure selects by :func:`score_e_values`; E(mean loss of the kept) <= level.

    With E_(1) >= E_(2) >= ... those of the k largest e-values, k the largest with k E_(k) >= pruning m B / level. A
    number drawn uniformly from (0, 1] may be given as ``pruning``: the number selected falls as it rises, so that the
    expectation is still at most the level ("homogeneous pruning"). Without it hardly anything is selected where losses
    take many values, since what a candidate's own loss might do to the threshold then always matters.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> risk = rng.uniform(0.1, 1.0, 1000)
    >>> held_out = HeldOut(risk, np.minimum(risk * rng.chisquare(1, 1000), 4.0), np.ones(1000))
    >>> kept = score_selection(held_out, Candidates(risk, np.ones(1000)), 0.4, 4.0, pruning=0.5)
    >>> round(float(kept.mean()), 1)
    0.8
    """
    if largest_loss == 0.0:  # a single value was learnt from: no error is measured, and none can be bounded
        return np.zeros(len(candidates), dtype=bool)
    e_values = score_e_values(held_out, candidates, level, largest_loss)
    ranked = np.sort(e_values)[::-1]
    needed = pruning * len(ranked) * largest_loss / level
    enough = np.flatnonzero(ranked * np.arange(1, len(ranked) + 1) >= needed * (1 - 1e-12))
    return e_values >= ranked[enough[-1]] if enough.size else np.zeros(len(candidates), dtype=bool)


def score_e_values(held_out: HeldOut, candidates: Candidates, level: float, largest_loss: float) -> Array:
    """SCoRE's e-values E_j with E(L_j / B E_j) <= 1, for its selective guarantee with gamma = alpha = level / B.

    Let S(t) = sum_{i : s_i <= t} w_i L_i / B, W = sum_i w_i, N(t) the number of candidates with s <= t, and m that of
    all. If the loss of candidate j were l B, the weighted mean loss per kept candidate at t >= s_j would be

        F_j(t, l) = (S(t) + l w_j) / (W + w_j)  m / N(t),     t_j(l) = max {t : F_j(t, l) <= gamma},

        E_j = min_{0 <= l <= 1}  (W + w_j) 1{s_j <= t_j(l)} / (S(t_j(l)) + l w_j).

    With the true l this is a function of the calibration cells and j together that does not depend on which of them j
    is, up to the weights, so that E(L_j / B E_j) = 1 or 0: the terms w L 1{s <= t} of the numerator sum to the
    denominator. The minimum is at hand: t_j falls with l, the denominator is at most gamma N(t_j(l)) (W + w_j) / m,
    reached as l rises to where t_j jumps, so that

        E_j = 0                                   where s_j > t_j(1),
              (W + w_j) / (S(t) + w_j)            where t_j(1) = t_j(0) = t,
              m / (gamma N(t_j(0)))               else.

    Examples
    --------
    >>> import numpy as np
    >>> held_out = HeldOut(np.array([0.1, 0.2, 0.9]), np.array([0.0, 0.1, 1.0]), np.ones(3))
    >>> score_e_values(held_out, Candidates(np.array([0.1, 0.2, 0.8]), np.ones(3)), 0.5, 1.0)
    array([2., 2., 2.])
    """
    m, gamma, total = len(candidates), level / largest_loss, float(held_out.weight.sum())
    order = np.argsort(held_out.risk, kind="stable")
    ranked = np.sort(candidates.risk)
    # F falls with t between calibration cells: it is enough to look just below each of their risks, and at the end.
    risks = held_out.risk[order]
    sizes = np.append(np.searchsorted(ranked, risks, side="left"), m)
    summed = np.append(0.0, np.cumsum((held_out.weight * held_out.loss)[order])) / largest_loss
    looked_at = (sizes > 0) & np.r_[True, np.diff(risks) > 0, True][: len(sizes)]
    sizes, summed = sizes[looked_at], summed[looked_at]
    if m == 0 or len(sizes) == 0:
        return np.zeros(m)
    # F_j(t, 0) <= gamma where w_j >= least, F_j(t, 1) <= gamma where w_j <= most.
    least = m * summed / (gamma * sizes) - total
    slack = m - gamma * sizes
    most = np.where(slack > 0, (gamma * total * sizes - m * summed) / np.where(slack > 0, slack, 1.0), np.inf)
    at_best = _last_at_most(least, candidates.weight)
    at_worst = _last_at_most(-most, -candidates.weight)
    end = np.where(at_worst >= 0, ranked[sizes[at_worst] - 1], -np.inf)
    fixed = (total + candidates.weight) / (summed[at_worst] + candidates.weight)
    jumping = m / (gamma * sizes[at_best])
    e_values = np.where(at_worst == at_best, fixed, np.minimum(fixed, jumping))
    return np.where(candidates.risk <= end, e_values, 0.0)


def _last_at_most(values: Array, limits: Array) -> NDArray[np.int64]:
    """For each limit the last place at which a value is at most that; -1 where there is none."""
    records = np.minimum.accumulate(values[::-1])
    place = np.searchsorted(-records, -limits, side="left")
    return np.where(place < len(values), len(values) - 1 - place, -1)
