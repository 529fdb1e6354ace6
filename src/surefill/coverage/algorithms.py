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
        seen = np.zeros(observations.shape, dtype=bool)
        seen[observations.rows, observations.cols] = True
        sentence = (
            f"The confidence covers {found.coverage:.1f} cells and no feasible one covers more than "
            f"{found.upper_bound:.1f} (K {found.K:g}, gamma {found.gamma:g}, beta {found.beta:g}). {found.status.value}"
        )
        certificate = Certificate(found.standing, found.coverage, found.upper_bound, found.gap, sentence)
        return SeenRows(found.confidence.dense(), seen), certificate


@dataclass(frozen=True, eq=False)
class SeenRows(DenseConfidence):
    """The coverage program's C, extended to other rows by what was seen of them.

    C depends on locations only, so by symmetry rows seen at the same columns may share their confidence. A new row
    gets, for each column, the largest confidence among the fitted rows seen at no column that it was not seen at,
    and 0 where there is none: it is taken to be known at least as well as a row of which less was seen.
    """

    seen: NDArray[np.bool_]

    def fold_in(self, observations: Observations) -> Self:
        """The confidence for other rows, seen at ``observations``."""
        if observations.shape[1] != self.shape[1]:
            raise InputError(f"new rows must have {self.shape[1]} columns; got {observations.shape[1]}.")
        extended = np.zeros(observations.shape)
        seen = np.zeros(observations.shape, dtype=bool)
        seen[observations.rows, observations.cols] = True
        for row, pattern in enumerate(seen):
            known_by = ~(self.seen & ~pattern).any(axis=1)
            extended[row] = self.matrix[known_by].max(axis=0, initial=0.0)
        return replace(self, matrix=extended, seen=seen)


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
