"""What needs no solver: the decided cases of MP 2 and MP 1, the best C against one adversary, C0 = counts / max."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

from surefill.arrays import Array
from surefill.coverage.linear.factored_confidence import FactoredConfidence
from surefill.spaces.adversary import FactoredAdversary
from surefill.spaces.version_space import VersionSpace

ClosedForm = Literal["all", "none", "counts"]
"""C = 1, C = 0, or C = counts / max(counts)."""


def closed_form(space: VersionSpace, gamma: float) -> ClosedForm | None:
    """Whether C = 1, C = 0 or C = counts / max(counts) is the optimum of MP 2, or None where a solver is needed.

    Members of V have entries at most min(K, 1); the constant matrix c = min(sqrt(beta), K, 1) is a member.
    (i) gamma >= min(K, 1): no mean exceeds gamma, so C = 1.
    (ii) sqrt(beta) > gamma: the constant has mean c > gamma under every C but 0, so C = 0.
    (iii) sqrt(beta) < gamma and all cells seen equally often: C0 = counts / max(counts) is 1 and feasible.
    (iv) sqrt(beta) = gamma: the constant has mean gamma under every C, so C is feasible only if the constant
    maximises <C, M> over V. There the ball alone binds, so C is a multiple of the counts: C0 is the largest.
    """
    root, limit = float(np.sqrt(space.beta)), min(space.matrix_class.radius, 1.0)
    tied = math.isclose(root, gamma, rel_tol=1e-12)
    seen = space.observations
    if gamma >= limit:
        return "all"
    if root > gamma and not tied:
        return "none"
    if tied or (len(seen) == seen.shape[0] * seen.shape[1] and np.ptp(seen.counts) == 0):
        return "counts"
    return None


def closed_form_answer(
    space: VersionSpace, gamma: float, form: ClosedForm
) -> tuple[FactoredConfidence, float, FactoredAdversary]:
    """C as a formula, whatever the shape, |C|, and the constant adversary."""
    (m, n), counts = space.shape, space.observations.counts
    constant = min(float(np.sqrt(space.beta)), space.matrix_class.radius, 1.0)
    left, right = np.full((m, 1), constant), np.ones((n, 1))
    scale, share = 0.0, 0.0  # lambda = 0 leaves C = 1
    if form == "none":
        scale = 2 / (constant - gamma)  # 1 + lambda (gamma - constant) = -1, clipped to 0
    elif form == "counts":
        share = 1.0
    confidence = FactoredConfidence(left, right, 1, scale, gamma, 1.0, share, space.observations)
    coverage = {"all": float(m) * n, "none": 0.0, "counts": float((counts / counts.max()).sum())}[form]
    mean = constant if coverage > 0 else float("nan")
    return confidence, coverage, FactoredAdversary(left, right, constant * coverage, mean, gamma * coverage)


def cover_against(M: Array, gamma: float) -> float:
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


def counts_confidence(space: VersionSpace) -> Array:
    """C0 = counts / max(counts), under which the mean square of M is that on the sample, at most beta for M in V.

    By Cauchy-Schwarz no M in V has a mean above sqrt(beta) under it.
    """
    obs = space.observations
    C0 = np.zeros(space.shape)
    C0[obs.rows, obs.cols] = obs.counts / obs.counts.max()
    return C0


def make_feasible(
    space: VersionSpace, gamma: float, C: Array, bound: float, under_counts: float
) -> tuple[Array, float]:
    """(1 - t) C + t C0 with the smallest t that certifies a bound of at most gamma times its sum; that bound.

    No adversary exceeds ``bound`` against C, so C exceeds by bound - gamma |C|. None has a mean above ``under_counts``
    under C0 (sqrt(beta) for MP 2, beta for MP 1), so C0 has (gamma - under_counts) |C0| to spare.
    """
    C0 = counts_confidence(space)
    counted = float(C0.sum())
    excess = max(0.0, bound - gamma * float(C.sum()))
    t = excess / (excess + (gamma - under_counts) * counted)
    mixed = (1 - t) * C + t * C0
    if mixed.sum() < counted:
        return C0, under_counts * counted
    return mixed, (1 - t) * bound + t * under_counts * counted


def relative_gap(coverage: float, upper_bound: float) -> float:
    """(upper_bound - coverage) / upper_bound, 0 where both are 0."""
    return max(0.0, upper_bound - coverage) / upper_bound if upper_bound > 0 else 0.0
