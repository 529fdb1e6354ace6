"""The paper's coverage program MP 2 as a confidence algorithm, and its parameters where the user gives none."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, Self

import numpy as np

from surefill.completion import Completion
from surefill.confidence.algorithm import Certificate
from surefill.confidence.row_patterns import DensePatterns, FactoredPatterns
from surefill.coverage.linear.coverage_result import Coverage
from surefill.coverage.linear.factored_confidence import FactoredConfidence
from surefill.coverage.linear.linear_program import solve_coverage
from surefill.data import Observations, UnitMap
from surefill.errors import InputError
from surefill.loop import ProgressCallback
from surefill.registry import storable
from surefill.spaces.conic_model import SIZE_LIMIT


@storable
@dataclass(frozen=True)
class CoverageProgram:
    """The paper's MP 2: the largest C that no matrix of max-norm K, small where we looked, can break.

    It looks at locations alone, never at values. What is not given is chosen from the data, and the certificate says
    what was used: see :func:`choose_parameters`.

    Parameters
    ----------
    K, gamma, beta : see :func:`surefill.solve_coverage`; chosen from the data where None.
    rank : largest rank of the adversaries; None for the paper's convex class, whose answer is certified; "auto" for
        twice the completion's, which covers more, takes longer and is searched rather than proved.
    time_limit : seconds for one solution.
    random_state : seed of the solver's random starts.

    Examples
    --------
    >>> import surefill as sf
    >>> sim = sf.datasets.make_low_rank((30, 20), rank=2, n_draws=400, noise=0.1, random_state=0)
    >>> program = sf.confidence.CoverageProgram(K=1.0, gamma=0.3)
    >>> completer = sf.PartialCompleter(tolerance=0.2, confidence=program).fit(sim.observations)
    >>> completer.result_.certificate.standing
    'certified'
    """

    K: float | None = None
    gamma: float | None = None
    beta: float | None = None
    rank: int | Literal["auto"] | None = None
    time_limit: float | None = None
    random_state: int = 0

    def chosen_for(
        self, observations: Observations, completion: Completion, tolerance: float, held_out_error: float
    ) -> Self:
        """The program with every parameter that was not given chosen."""
        unit = observations.unit
        chosen = choose_parameters(
            completion,
            unit,
            tolerance=float(unit.squared_error_to_unit(tolerance)),
            held_out_error=float(unit.squared_error_to_unit(held_out_error)),
            gamma=self.gamma,
        )
        return replace(
            self,
            K=chosen.K if self.K is None else self.K,
            gamma=chosen.gamma,
            beta=chosen.beta if self.beta is None else self.beta,
            rank=chosen.rank if self.rank == "auto" else self.rank,
        )

    def fit(
        self, observations: Observations, completion: Completion, progress: ProgressCallback | None = None
    ) -> tuple[DensePatterns | FactoredPatterns, Certificate]:
        """Solve MP 2 for ``observations``; the completion plays no part once every parameter is given."""
        if self.gamma is None or self.rank == "auto":  # used directly, so that nothing chose them
            raise InputError("CoverageProgram needs gamma and rank to be given, or chosen_for to choose them.")
        found = solve_coverage(
            observations,
            1.0 if self.K is None else self.K,
            gamma=self.gamma,
            beta=self.beta,
            rank=self.rank,
            time_limit=self.time_limit,
            random_state=self.random_state,
            progress=progress,
        )
        return _extendable(found, observations), _certificate(found)


def _extendable(found: Coverage, observations: Observations) -> DensePatterns | FactoredPatterns:
    """A form of the confidence that answers for other rows too, held in full where the matrix is small."""
    if isinstance(found.confidence, FactoredConfidence) and max(observations.shape) > SIZE_LIMIT:
        return FactoredPatterns.of(found.confidence)
    return DensePatterns.of(found.confidence.dense(), observations)


def _certificate(found: Coverage) -> Certificate:
    rank = "" if found.rank is None else f", rank {found.rank}"
    parameters = f"(MP 2 of the paper with K {found.K:.3g}, gamma {found.gamma:.3g}, beta {found.beta:.3g}{rank})"
    if found.standing == "certified":
        sentence = (
            f"It is proved to be within {100 * found.gap:.2g}% of the best that the observed locations allow: its "
            f"confidences add up to {found.coverage:.1f} cells, and none that are safe add up to more than "
            f"{found.upper_bound:.1f} {parameters}."
        )
    else:
        sentence = (
            f"Its confidences add up to {found.coverage:.1f} cells, which no proof but a search stands for "
            f"{parameters}. {found.status.value}"
        )
    return Certificate(found.standing, found.coverage, found.upper_bound, found.gap, sentence, NAME)


NAME = "the coverage program"
"""What sentences call it."""

SAMPLE = 300
"""Rows and columns of the completion whose singular values are looked at: a tenth of a second."""

ENERGY = 0.9
"""Share of the sum of squares that the directions counted as the completion's rank hold."""

LARGEST_GAMMA = 0.9
"""Entries are at most 1, so that gamma = 1 would cover everything whatever was observed."""

LEAST_BETA = 0.005
"""Least beta over gamma^2: below, the version space has hardly an interior and solvers stall."""


@dataclass(frozen=True)
class ProgramChoice:
    """K, rank, gamma and beta for :func:`surefill.solve_coverage`, all on the [-1, 1] scale."""

    K: float
    rank: int
    gamma: float
    beta: float


def choose_parameters(
    completion: Completion, unit: UnitMap, *, tolerance: float, held_out_error: float, gamma: float | None = None
) -> ProgramChoice:
    """gamma = sqrt(tolerance) / 2, beta = min(held-out error / 4, gamma^2 / 2), rank = 2 k, K the norm of M-hat.

    The adversary stands for (M* - M-hat) / 2. A mean of gamma on the covered cells is a squared error of 4 gamma^2
    where it is spread evenly, so gamma is half the root of the tolerance; the theorem's own choice, which guards
    against every spread, is ``sf.theory.efficient_parameters``. Its mean square on the sample is a quarter of the
    completion's error, which held-out cells measure (with their noise, so from above); the paper's gamma^2 / 2 is the
    most that leaves anything to cover, and is taken where gamma is given; gamma^2 / 200 is the least, on the safe side,
    where an almost exact completion would leave the program without an interior. M-hat and M* of rank k leave a
    difference of rank 2 k, with k the number of directions that hold 90% of M-hat's sum of squares. K is the product of
    the longest rows of its balanced factors in these directions, at least 1.

    Both last are read off up to 300 rows and columns of the completion, whose own size was learnt from the cells.
    """
    rng = np.random.default_rng(0)
    rows, cols = (rng.permutation(size)[:SAMPLE] for size in completion.shape)
    U, s, Vt = np.linalg.svd(unit.to_unit(completion.block(rows, cols)), full_matrices=False)
    energy = np.cumsum(s**2)
    k = int(np.searchsorted(energy, ENERGY * energy[-1])) + 1
    left, right = U[:, :k] * np.sqrt(s[:k]), Vt[:k].T * np.sqrt(s[:k])
    norm = np.linalg.norm(left, axis=1).max() * np.linalg.norm(right, axis=1).max()
    g = min(np.sqrt(tolerance) / 2, LARGEST_GAMMA) if gamma is None else gamma
    beta = g**2 / 2 if gamma is not None else min(max(held_out_error / 4, LEAST_BETA * g**2), g**2 / 2)
    return ProgramChoice(K=max(1.0, float(norm)), rank=2 * k, gamma=float(g), beta=float(beta))
