"""The result of the coverage solvers, and how each solver's answer becomes it."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from surefill.arrays import row_blocks
from surefill.coverage.closed_form import ClosedForm, closed_form_answer, relative_gap
from surefill.coverage.linear.certified import CertifiedState
from surefill.coverage.linear.conic_dual import ConicAnswer
from surefill.coverage.linear.factored_confidence import FactoredConfidence
from surefill.coverage.linear.factored_dual import WarmStart
from surefill.coverage.linear.mixture import MixtureState
from surefill.loop import Outcome, Status
from surefill.notebook import card
from surefill.plots import plot_confidence
from surefill.spaces.adversary import FactoredAdversary
from surefill.spaces.confidence_matrix import Confidence, DenseConfidence
from surefill.spaces.version_space import Adversary, VersionSpace

if TYPE_CHECKING:
    from matplotlib.axes import Axes


STANDINGS = {
    "certified": "That they are safe is proved.",
    "searched": "That they are safe is not proved: searches found nothing against them beyond what the status says.",
}


class CoverageStatus(enum.Enum):
    """How a coverage was reached; the value is a sentence.

    Examples
    --------
    >>> CoverageStatus.EXACT.value
    'The answer follows from a closed form; no solver was needed.'
    """

    EXACT = "The answer follows from a closed form; no solver was needed."
    WITHIN_GAP = "The certified gap is within the one asked for."
    WIDE_GAP = "The solver left a certified gap wider than the one asked for; both bounds hold as they stand."
    NO_VIOLATION_FOUND = "Fresh searches found no adversary beyond gamma by more than the tolerance; others may exist."
    VIOLATION_FOUND = "Fresh searches still found adversaries beyond the tolerance; their means say how far."
    TIME_LIMIT = "The time limit was reached; what is said of this answer holds, allow more time for a better one."


@dataclass(frozen=True, eq=False)
class Coverage:
    """A confidence C for MP 2, and a proof of how much larger any other could be.

    Attributes
    ----------
    confidence : C in [0, 1]^(m x n).
    coverage : |C|, a lower bound on the optimum if certified.
    upper_bound : at least the optimum, by weak duality.
    gap : (upper_bound - coverage) / upper_bound, 0 when both are 0.
    standing : "certified", C is proved feasible; or "searched", no adversary was found against it (with a rank).
        The upper bound is proved in both.
    adversaries : members of the version space, the strongest against C first; ``value`` is what each reaches and
        ``bound`` what no member exceeds, at most gamma |C| if certified. Their mean proves the upper bound.
    status : how the answer was reached.
    K, gamma, beta, rank : the parameters used.

    Examples
    --------
    >>> import surefill as sf
    >>> sim = sf.datasets.make_blocks((5, 5), n_groups=2, n_draws=200, random_state=0)
    >>> found = sf.solve_coverage(sim.observations, K=1, gamma=0.16)
    >>> found.standing, found.coverage <= found.upper_bound
    ('certified', True)
    >>> round(found.gap, 2) <= 0.01
    True
    """

    confidence: Confidence
    coverage: float
    upper_bound: float
    gap: float
    standing: Literal["certified", "searched"]
    adversaries: tuple[Adversary | FactoredAdversary, ...]
    status: CoverageStatus
    K: float
    gamma: float
    beta: float
    rank: int | None = None
    warm: WarmStart | None = field(default=None, repr=False)

    def __repr__(self) -> str:
        m, n = self.confidence.shape
        return (
            f"Coverage({self.coverage:.6g} of {m * n} cells, at most {self.upper_bound:.6g} possible, "
            f"gap {self.gap:.2g}, {self.standing})"
        )

    def _repr_html_(self) -> str:
        (m, n), rank = self.confidence.shape, "no limit" if self.rank is None else self.rank
        sentence = (
            f"The confidences add up to {self.coverage:,.1f} of {m * n:,} cells; none that are safe add up to more "
            f"than {self.upper_bound:,.1f}. "
        ) + STANDINGS[self.standing]
        facts = {"gap": f"{self.gap:.2%}", "K": self.K, "gamma": self.gamma, "beta": self.beta, "rank": rank}
        return card("Coverage", sentence, {**facts, "reached": self.status.value})

    def plot(self, ax: Axes | None = None, order: bool = True) -> Axes:
        """A heat map of C, in an order in which blocks show; at most 600 rows and columns, drawn at random."""
        return plot_confidence(self.confidence, ax, order)


def _result(space: VersionSpace, gamma: float, **found: Any) -> Coverage:
    """A ``Coverage`` of these fields, its gap, and the problem's parameters."""
    # Both bounds are rounded sums; where they meet, rounding may put them in the wrong order.
    found["upper_bound"] = max(found["upper_bound"], found["coverage"])
    gap, kind = relative_gap(found["coverage"], found["upper_bound"]), space.matrix_class
    return Coverage(**found, gap=gap, K=kind.radius, gamma=gamma, beta=space.beta, rank=kind.rank)


def closed_form_coverage(space: VersionSpace, gamma: float, form: ClosedForm) -> Coverage:
    """The answer to a case decided without a solver."""
    confidence, coverage, adversary = closed_form_answer(space, gamma, form)
    return _result(
        space,
        gamma,
        confidence=confidence,
        coverage=coverage,
        upper_bound=coverage,
        standing="certified",
        adversaries=(adversary,),
        status=CoverageStatus.EXACT,
    )


def conic_coverage(space: VersionSpace, gamma: float, gap: float, answer: ConicAnswer) -> Coverage:
    """The conic solver's answer."""
    confidence = DenseConfidence(answer.C)
    return _result(
        space,
        gamma,
        confidence=confidence,
        coverage=confidence.coverage,
        upper_bound=answer.upper_bound,
        standing="certified",
        adversaries=(Adversary.against(answer.C, answer.M, answer.bound),),
        status=CoverageStatus.WITHIN_GAP if answer.gap <= gap else CoverageStatus.WIDE_GAP,
    )


def _against(
    confidence: FactoredConfidence, left: Any, right: Any, bound: float, count: int = 1
) -> list[FactoredAdversary]:
    """``count`` members, their factors side by side, played against C in one pass by blocks of rows."""
    total, values, width = 0.0, np.zeros(count), left.shape[1] // count
    cols = np.arange(confidence.shape[1])
    for rows in row_blocks(*confidence.shape):
        C = confidence.block(np.arange(rows.start, rows.stop), cols)
        total += float(C.sum())
        products = (C @ right) * left[rows]
        values += products.reshape(len(C), count, width).sum(axis=(0, 2), dtype=np.float64)
    parts = [slice(t * width, (t + 1) * width) for t in range(count)]
    means = values / total if total > 0 else np.full(count, np.nan)
    return [
        FactoredAdversary(left[:, part], right[:, part], float(value), float(mean), bound)
        for part, value, mean in zip(parts, values, means, strict=True)
    ]


def certified_coverage(space: VersionSpace, gamma: float, outcome: Outcome[CertifiedState]) -> Coverage:
    """The factored solver's certified answer."""
    state = outcome.state
    assert state.confidence is not None
    statuses = {Status.CONVERGED: CoverageStatus.WITHIN_GAP, Status.TIME_LIMIT: CoverageStatus.TIME_LIMIT}
    C = state.confidence
    return _result(
        space,
        gamma,
        confidence=C,
        coverage=state.coverage,
        upper_bound=state.upper_bound,
        standing="certified",
        adversaries=tuple(_against(C, state.left, state.right, state.bound)),
        status=statuses.get(outcome.status, CoverageStatus.WIDE_GAP),
        warm=WarmStart(C.left, C.right, C.count, state.ball, C.scale, C.mu),
    )


def mixture_coverage(space: VersionSpace, gamma: float, outcome: Outcome[MixtureState]) -> Coverage:
    """The factored solver's answer with a rank."""
    state = outcome.state
    multipliers = state.iterate.multipliers.ball
    C = state.confidence
    assert C is not None
    members = _against(C, state.left, state.right, float("inf"), C.count)
    strongest = [] if state.strongest is None else [state.strongest]
    statuses = {Status.CONVERGED: CoverageStatus.NO_VIOLATION_FOUND, Status.TIME_LIMIT: CoverageStatus.TIME_LIMIT}
    return _result(
        space,
        gamma,
        confidence=C,
        coverage=state.coverage,
        upper_bound=state.upper_bound,
        standing="searched",
        adversaries=tuple(strongest + sorted(members, key=lambda one: -one.value)),
        status=statuses.get(outcome.status, CoverageStatus.VIOLATION_FOUND),
        warm=WarmStart(C.left, C.right, C.count, multipliers[: C.count], C.scale, C.mu),
    )
