"""Ways to a confidence: the paper's coverage program, and a posterior for matrices it does not reach yet."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from surefill.completion import BayesianFactorCompletion, BayesianFactorModel, Completion, Factored
from surefill.confidence.new_rows import FittedRows
from surefill.confidence.posterior import PosteriorConfidence
from surefill.confidence.program_parameters import choose_parameters
from surefill.coverage.linear.coverage_result import Coverage
from surefill.coverage.linear.factored_confidence import FactoredConfidence
from surefill.coverage.linear.solver import solve_coverage
from surefill.data import Observations
from surefill.errors import InputError, invalid_parameter, is_seed
from surefill.loop import ProgressCallback
from surefill.registry import storable
from surefill.spaces.confidence_matrix import Confidence, DenseConfidence
from surefill.spaces.conic_model import SIZE_LIMIT


class ExtendableConfidence(Confidence, Protocol):
    """A confidence that can also be asked about rows that were not there when it was found.

    Examples
    --------
    >>> import surefill as sf
    >>> sim = sf.datasets.make_low_rank((30, 20), rank=2, n_draws=400, noise=0.1, random_state=0)
    >>> completer = sf.PartialCompleter(tolerance=0.2, confidence="posterior").fit(sim.observations)
    >>> confidence: ExtendableConfidence = completer.result_.confidence
    >>> confidence.fold_in(sf.Observations([0], [3], [0.5], shape=(1, 20))).shape
    (1, 20)
    """

    def fold_in(self, observations: Observations) -> Self:
        """The confidence for other rows, seen at ``observations``."""
        ...


@storable
@dataclass(frozen=True)
class Certificate:
    """How good a confidence is known to be: bounds on the coverage program's optimum, or why there are none.

    Examples
    --------
    >>> import surefill as sf
    >>> sim = sf.datasets.make_low_rank((30, 20), rank=2, n_draws=400, noise=0.1, random_state=0)
    >>> completer = sf.PartialCompleter(tolerance=0.2, confidence="posterior").fit(sim.observations)
    >>> certificate = completer.result_.certificate
    >>> certificate.standing, certificate.coverage
    ('heuristic', None)
    """

    standing: str
    coverage: float | None
    upper_bound: float | None
    gap: float | None
    sentence: str


OTHER_SEEDS = 1000
"""Far from the seeds people give: a start given twice would agree with itself."""


@runtime_checkable
class ConfidenceAlgorithm(Protocol):
    """Observations and a completion of them in, a confidence and its certificate out.

    Examples
    --------
    >>> import surefill as sf
    >>> isinstance(sf.confidence.CoverageProgram(), ConfidenceAlgorithm)
    True
    """

    def chosen_for(
        self, observations: Observations, completion: Completion, tolerance: float, held_out_error: float
    ) -> Self:
        """The same algorithm with every parameter that was left open chosen, from what held-out cells showed."""
        ...

    def fit(
        self, observations: Observations, completion: Completion, progress: ProgressCallback | None = None
    ) -> tuple[ExtendableConfidence, Certificate]:
        """Find the confidence of every entry."""
        ...


@storable
@dataclass(frozen=True)
class CoverageProgram:
    """The paper's MP 2: the largest C that no matrix of max-norm K, small where we looked, can break.

    It looks at locations alone, never at values. What is not given is chosen from the data, and the certificate says
    what was used: see :func:`surefill.confidence.program_parameters.choose_parameters`.

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
        """The program with every open parameter chosen."""
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
    ) -> tuple[SeenRows | FittedRows, Certificate]:
        """Solve MP 2 for ``observations``; the completion plays no part once every parameter is given."""
        if self.gamma is None or self.rank == "auto":  # fitted by hand, without a pipeline to choose
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


def _extendable(found: Coverage, observations: Observations) -> SeenRows | FittedRows:
    """A form of the confidence that answers for other rows too, held in full where the matrix is small."""
    if isinstance(found.confidence, FactoredConfidence) and max(observations.shape) > SIZE_LIMIT:
        return FittedRows.of(found.confidence)
    return SeenRows.of(found.confidence.dense(), observations)


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
    return Certificate(found.standing, found.coverage, found.upper_bound, found.gap, sentence)


@storable
@dataclass(frozen=True, eq=False)
class SeenRows(DenseConfidence):
    """The coverage program's C as a function of what was seen of a row, so that it can be asked about other rows.

    C depends on locations and counts only, so the program is unchanged when rows seen alike change places, and the
    mean of C over them is as good: feasible, and of the same coverage. A new row seen like a fitted one gets its
    confidence. Any other gets, for each column, the largest confidence among the fitted rows seen at no column that
    it was not seen at, and 0 where there is none; that is a rule of thumb, which the certificate does not cover.

    Examples
    --------
    >>> import numpy as np
    >>> confidence = SeenRows(np.array([[0.9, 0.1], [0.2, 0.8]]), np.array([[3, 0], [0, 2]]))
    >>> confidence.fold_in(Observations([0], [1], [1.0], shape=(1, 2))).dense()
    array([[0.2, 0.8]])
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


@storable
@dataclass(frozen=True)
class PosteriorVariance:
    """The share of each entry's prior variance that the observations removed, under the Bayesian factor model.

    The model is fitted ``n_restarts`` times more, from other random starts, and where the fits disagree confidence is
    low: see :class:`PosteriorConfidence`. With 0 restarts the posterior of any factor model is taken as it is.

    Examples
    --------
    >>> import surefill as sf
    >>> sim = sf.datasets.make_blocks((30, 20), n_groups=2, rank=2, n_draws=2000, noise=0.1, random_state=0)
    >>> completion = sf.completion.BayesianFactorModel().fit(sim.observations)
    >>> confidence, certificate = sf.confidence.PosteriorVariance().fit(sim.observations, completion)
    >>> certificate.standing
    'heuristic'
    >>> C = confidence.dense()
    >>> bool(C[sim.support].mean() > C[~sim.support].mean() + 0.2)
    True
    """

    n_restarts: int = 7
    random_state: int = 0

    def chosen_for(
        self, observations: Observations, completion: Completion, tolerance: float, held_out_error: float
    ) -> Self:
        """Nothing is open."""
        return self

    def fit(
        self, observations: Observations, completion: Completion, progress: ProgressCallback | None = None
    ) -> tuple[PosteriorConfidence, Certificate]:
        """Read the posterior off ``completion``, or off a factor model fitted for it where that is none itself."""
        self._validate()
        own = Factored if self.n_restarts == 0 else BayesianFactorCompletion
        if isinstance(completion, own):
            model, whose = completion, "the factor model's"
        else:
            model, whose = BayesianFactorModel().fit(observations, progress), "a separate factor model's"
        seeds = self.random_state + OTHER_SEEDS + np.arange(self.n_restarts)
        others = tuple(BayesianFactorModel(model.rank, random_state=int(s)).fit(observations, progress) for s in seeds)
        agree = f", and how far {len(others)} fits from other starts agree with it" if others else ""
        sentence = f"A heuristic: how far {whose} posterior variance fell below its prior{agree}; no bound is known."
        return PosteriorConfidence.of(model, observations, others), Certificate("heuristic", None, None, None, sentence)

    def _validate(self) -> None:
        for name, given in (("n_restarts", self.n_restarts), ("random_state", self.random_state)):
            if not is_seed(given):
                raise invalid_parameter("PosteriorVariance", name, "a whole number of at least 0", given)
