"""The cases of MP 2 whose answer is known without a solver."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

from surefill.coverage.linear.factored_confidence import FactoredConfidence
from surefill.spaces.separation_oracle import FactoredAdversary
from surefill.spaces.version_space import VersionSpace

Known = Literal["all", "none", "counts"]


def decide(space: VersionSpace, gamma: float) -> Known | None:
    """Whether C = 1, C = 0 or C = counts / max(counts) is the answer, or None where a solver is needed.

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


def known_answer(
    space: VersionSpace, gamma: float, known: Known
) -> tuple[FactoredConfidence, float, FactoredAdversary]:
    """C as a formula, whatever the shape, |C|, and the constant adversary."""
    (m, n), counts = space.shape, space.observations.counts
    constant = min(float(np.sqrt(space.beta)), space.matrix_class.radius, 1.0)
    left, right = np.full((m, 1), constant), np.ones((n, 1))
    scale, share = 0.0, 0.0
    if known == "none":
        scale = 2 / (constant - gamma)
    elif known == "counts":
        share = 1.0
    confidence = FactoredConfidence(left, right, 1, scale, gamma, 1.0, share, space.observations)
    coverage = {"all": float(m) * n, "none": 0.0, "counts": float((counts / counts.max()).sum())}[known]
    mean = constant if coverage > 0 else float("nan")
    return confidence, coverage, FactoredAdversary(left, right, constant * coverage, mean, gamma * coverage)
