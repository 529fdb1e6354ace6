"""Ways to a confidence: the paper's coverage program, and a posterior for matrices it does not reach yet."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from surefill.completion import Completion, FactorCompletion
from surefill.coverage.confidence import Confidence, DenseConfidence
from surefill.coverage.posterior import PosteriorConfidence
from surefill.coverage.solve import solve_coverage
from surefill.data import Observations
from surefill.errors import InputError


class ExtendableConfidence(Confidence, Protocol):
    """A confidence that can also be asked about rows that were not there when it was found."""

    def fold_in(self, observations: Observations) -> Self:
        """The confidence for other rows, seen at ``observations``."""
        ...


@dataclass(frozen=True)
class Certificate:
    """How good a confidence is known to be: bounds on the coverage program's optimum, or why there are none."""

    standing: str
    coverage: float | None
    upper_bound: float | None
    gap: float | None
    sentence: str


@runtime_checkable
class ConfidenceAlgorithm(Protocol):
    """Observations and a completion of them in, a confidence and its certificate out."""

    def fit(self, observations: Observations, completion: Completion) -> tuple[ExtendableConfidence, Certificate]:
        """Find the confidence of every entry."""
        ...


@dataclass(frozen=True)
class CoverageProgram:
    """The paper's MP 2: the largest C that no matrix of max-norm K, small where we looked, can break.

    See :func:`surefill.solve_coverage` for the parameters. It looks at locations alone, never at values.
    """

    K: float = 1.0
    gamma: float = 0.3
    beta: float | None = None

    def fit(self, observations: Observations, completion: Completion) -> tuple[SeenRows, Certificate]:
        """Solve MP 2 for ``observations``; the completion plays no part."""
        found = solve_coverage(observations, self.K, gamma=self.gamma, beta=self.beta)
        sentence = (
            f"It is proved to be within {100 * found.gap:.2g}% of the best that the observed locations allow: its "
            f"confidences add up to {found.coverage:.1f} cells, and none that are safe add up to more than "
            f"{found.upper_bound:.1f} (MP 2 of the paper with K {found.K:g}, gamma {found.gamma:g}, "
            f"beta {found.beta:g})."
        )
        certificate = Certificate(found.standing, found.coverage, found.upper_bound, found.gap, sentence)
        return SeenRows.of(found.confidence.dense(), observations), certificate


@dataclass(frozen=True, eq=False)
class SeenRows(DenseConfidence):
    """The coverage program's C as a function of what was seen of a row, so that it can be asked about other rows.

    C depends on locations and counts only, so the program is unchanged when rows seen alike change places, and the
    mean of C over them is as good: feasible, and of the same coverage. A new row seen like a fitted one gets its
    confidence. Any other gets, for each column, the largest confidence among the fitted rows seen at no column that
    it was not seen at, and 0 where there is none; that is a rule of thumb, which the certificate does not cover.
    """

    counts: NDArray[np.int64]

    @classmethod
    def of(cls, C: NDArray[np.float64], observations: Observations) -> SeenRows:
        """C with rows that were seen alike made equal."""
        counts = _dense_counts(observations)
        _, kind = np.unique(counts, axis=0, return_inverse=True)
        mean = np.zeros((kind.max() + 1, C.shape[1]))
        np.add.at(mean, kind, C)
        return cls(np.clip(mean / np.bincount(kind)[:, None], 0.0, 1.0)[kind], counts)

    def fold_in(self, observations: Observations) -> Self:
        """The confidence for other rows, seen at ``observations``."""
        if observations.shape[1] != self.shape[1]:
            raise InputError(f"new rows must have {self.shape[1]} columns; got {observations.shape[1]}.")
        counts = _dense_counts(observations)
        fitted = {row.tobytes(): confidence for row, confidence in zip(self.counts, self.matrix, strict=True)}
        extended = [fitted.get(row.tobytes(), self._bounded_by(row > 0)) for row in counts]
        return replace(self, matrix=np.array(extended), counts=counts)

    def _bounded_by(self, seen: NDArray[np.bool_]) -> NDArray[np.float64]:
        less_seen = ~((self.counts > 0) & ~seen).any(axis=1)
        return np.asarray(self.matrix[less_seen].max(axis=0, initial=0.0))


def _dense_counts(observations: Observations) -> NDArray[np.int64]:
    counts = np.zeros(observations.shape, dtype=np.int64)
    counts[observations.rows, observations.cols] = observations.counts
    return counts


@dataclass(frozen=True)
class PosteriorVariance:
    """The share of each entry's prior variance that the observations removed, under the factor model."""

    def fit(self, observations: Observations, completion: Completion) -> tuple[PosteriorConfidence, Certificate]:
        """Read the posterior off ``completion``, which must be a factor model's."""
        if not isinstance(completion, FactorCompletion):
            raise InputError(
                "confidence='posterior' needs a completion by FactorModel; "
                f"got {type(completion).__name__}, use confidence='coverage' with it."
            )
        sentence = "A heuristic: how far the factor model's posterior variance fell below its prior; no bound is known."
        return PosteriorConfidence.of(completion, observations), Certificate("heuristic", None, None, None, sentence)
