"""Conformal risk control (Angelopoulos, Bates, Fisch, Lei, Schuster, 2022), weighted towards the candidates."""

from __future__ import annotations

import numpy as np

from surefill.guarantee.baselines.cells import Candidates, HeldOut, Kept, running


def conformal_risk_control(held_out: HeldOut, candidates: Candidates, level: float, largest_loss: float) -> Kept:
    """Keep j if  w_j B + sum_{i : s_i <= s_j} w_i L_i  <=  level (w_j + sum_i w_i).

    This is the largest threshold at which the weighted mean of the losses L_i 1{s_i <= t}, which rise with t, is at
    most the level where the candidate's own is taken at its worst. E(L_j 1{j is kept}) <= level. The marginal form of
    SCoRE at gamma = alpha keeps the same cells.

    Examples
    --------
    >>> import numpy as np
    >>> held_out = HeldOut(np.array([0.1, 0.2, 0.3]), np.array([0.0, 1.0, 1.0]), np.ones(3))
    >>> conformal_risk_control(held_out, Candidates(np.array([0.1, 0.2, 0.9]), np.ones(3)), 0.5, 1.0)
    array([ True,  True, False])
    """
    loss = running(np.add, held_out.risk, held_out.weight * held_out.loss, candidates.risk)
    total = held_out.weight.sum() + candidates.weight
    return np.asarray(candidates.weight * largest_loss + loss <= level * total)


def marginal_at_equal_promise(held_out: HeldOut, candidates: Candidates, strict: float, largest_loss: float) -> Kept:
    """Conformal risk control at level strict k, if it keeps at least the share k of the candidates; else nothing.

    Then the mean loss of the kept exceeds strict / delta only if the sum of their losses over m exceeds strict k /
    delta, of which Markov's inequality says that its probability is at most delta. k is half the share of candidates
    whose mean risk is ``strict``: less than what would be kept if losses are as risks say, for one sample may keep
    less.
    """
    ranked = np.sort(candidates.risk)
    mean = np.cumsum(ranked) / np.arange(1, len(ranked) + 1)
    share = np.count_nonzero(mean <= strict) / max(len(ranked), 1) / 2
    if share == 0:
        return np.zeros(len(candidates), dtype=bool)
    kept = conformal_risk_control(held_out, candidates, strict * share, largest_loss)
    return kept if kept.mean() >= share else np.zeros(len(candidates), dtype=bool)
