"""The largest confidence that no adversary in the version space can break (the paper's MP 2)."""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from surefill.coverage.confidence import Confidence, DenseConfidence
from surefill.coverage.conic import ConicAnswer, counts_confidence, solve_conic
from surefill.data.observations import Observations
from surefill.errors import invalid_parameter
from surefill.spaces.classes import MaxNorm
from surefill.spaces.conic import first_tight, plan_for
from surefill.spaces.version_space import Adversary, VersionSpace

METHODS = ("auto", "conic")


class CoverageStatus(enum.Enum):
    """How a coverage was reached; the value is a sentence."""

    EXACT = "The answer follows from a closed form; no solver was needed."
    WITHIN_GAP = "The certified gap is within the one asked for."
    WIDE_GAP = "The solver left a certified gap wider than the one asked for; both bounds hold as they stand."


@dataclass(frozen=True, eq=False)
class Coverage:
    """A confidence C, feasible for MP 2, and a proof of how much larger any other could be.

    Attributes
    ----------
    confidence : C in [0, 1]^(m x n).
    coverage : |C|, a lower bound on the optimum.
    upper_bound : at least the optimum, by weak duality.
    gap : (upper_bound - coverage) / upper_bound, 0 when both are 0.
    standing : "certified", both bounds are proved.
    adversaries : members of the version space that prove the upper bound; ``value`` is what each reaches
        against C and ``bound`` what no member exceeds, at most gamma |C|.
    status : how the answer was reached.
    K, gamma, beta : the parameters used.
    """

    confidence: Confidence
    coverage: float
    upper_bound: float
    gap: float
    standing: Literal["certified"]
    adversaries: tuple[Adversary, ...]
    status: CoverageStatus
    K: float
    gamma: float
    beta: float

    def __repr__(self) -> str:
        m, n = self.confidence.shape
        return (
            f"Coverage({self.coverage:.6g} of {m * n} cells, at most {self.upper_bound:.6g} possible, "
            f"gap {self.gap:.2g}, {self.standing})"
        )


def solve_coverage(
    obs: Observations,
    K: float = 1.0,
    *,
    gamma: float,
    beta: float | None = None,
    rank: int | None = None,
    method: str = "auto",
    gap: float = 0.01,
) -> Coverage:
    """MP 2: max |C| over C in [0, 1]^(m x n) with <C, M> <= gamma |C| for all M in V(0, beta, S; MaxNorm(K)).

    Parameters
    ----------
    obs : where the matrix was seen and how often; the values play no part.
    K : max-norm of the adversaries.
    gamma : largest mean that an adversary may reach on the covered cells.
    beta : largest mean square of an adversary on the observed cells; gamma^2 / 2 when not given, as in the
        paper's proposition on the coverage of the efficient algorithm.
    rank : largest rank of the adversaries; the conic method knows the convex class alone, without a rank.
    method : "conic", a semidefinite program up to 150 rows and columns; "auto" chooses it.
    gap : relative gap between ``coverage`` and ``upper_bound`` to aim for; what was reached is in the result.
    """
    if method not in METHODS:
        raise invalid_parameter("solve_coverage", "method", " or ".join(map(repr, METHODS)), method)
    for name, number in (("gamma", gamma), ("gap", gap)):
        if not 0 < number < np.inf:
            raise invalid_parameter("solve_coverage", name, "a positive finite number", number)
    space = VersionSpace(obs, gamma**2 / 2 if beta is None else beta, MaxNorm(K, rank))
    space.require_conic()
    decided = _decide(space, gamma)
    if decided is not None:
        return _result(space, gamma, decided, CoverageStatus.EXACT)
    answers = solve_conic(space, gamma, plan_for(space.shape))
    best = first_tight(answers, lambda answer: answer.gap, gap)
    return _result(space, gamma, best, CoverageStatus.WITHIN_GAP if best.gap <= gap else CoverageStatus.WIDE_GAP)


def _decide(space: VersionSpace, gamma: float) -> ConicAnswer | None:
    """The cases that need no solver, or None.

    Members of V have entries at most min(K, 1); the constant matrix c = min(sqrt(beta), K, 1) is a member.
    (i) gamma >= min(K, 1): no mean exceeds gamma, so C = 1.
    (ii) sqrt(beta) > gamma: the constant has mean c > gamma under every C but 0, so C = 0.
    (iii) sqrt(beta) < gamma and all cells seen equally often: C0 = counts / max(counts) is 1 and feasible.
    (iv) sqrt(beta) = gamma: the constant has mean gamma under every C, so C is feasible only if the constant
    maximises <C, M> over V. There the ball alone binds, so C is a multiple of the counts: C0 is the largest.
    """
    root, limit = float(np.sqrt(space.beta)), min(space.matrix_class.radius, 1.0)
    C0, tied = counts_confidence(space), math.isclose(root, gamma, rel_tol=1e-12)
    if gamma >= limit:
        C = np.ones(space.shape)
    elif root > gamma and not tied:
        C = np.zeros(space.shape)
    elif tied or C0.min() == 1:
        C = C0
    else:
        return None
    coverage = float(C.sum())
    return ConicAnswer(C, gamma * coverage, np.full(space.shape, min(root, limit)), coverage)


def _result(space: VersionSpace, gamma: float, answer: ConicAnswer, status: CoverageStatus) -> Coverage:
    confidence = DenseConfidence(answer.C)
    return Coverage(
        confidence=confidence,
        coverage=confidence.coverage,
        upper_bound=max(answer.upper, confidence.coverage),
        gap=answer.gap,
        standing="certified",
        adversaries=(Adversary.against(answer.C, answer.M, answer.bound),),
        status=status,
        K=space.matrix_class.radius,
        gamma=gamma,
        beta=space.beta,
    )
