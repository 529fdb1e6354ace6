"""From observations to a partial completion: complete, find confidences, calibrate on held-out entries, select."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np

from surefill.completion import (
    BayesianFactorModel,
    CompletionAlgorithm,
    FactorModel,
    IterativeSVD,
    MaxNormCompletion,
    SoftImpute,
    TraceNormCompletion,
)
from surefill.coverage.algorithms import ConfidenceAlgorithm, CoverageProgram, PosteriorVariance
from surefill.data import Observations
from surefill.data.splits import split_entries
from surefill.errors import InputError
from surefill.estimators.result import PartialCompletion
from surefill.loop import ProgressCallback
from surefill.risk import Guarantee, RiskCurve, Selection, rounding_threshold, select_by_threshold
from surefill.spaces.conic import SIZE_LIMIT

HELD_OUT = 0.2
COMPLETIONS: dict[str, Callable[..., CompletionAlgorithm]] = {
    "auto": BayesianFactorModel,
    "factor-model": FactorModel,
    "soft-impute": SoftImpute,
    "trace-norm": TraceNormCompletion,
    "max-norm": MaxNormCompletion,
    "iterative-svd": IterativeSVD,
}
"""Completion algorithms by name, with all that is open chosen from the data."""


@dataclass(frozen=True)
class Pipeline:
    """Complete and find confidences twice: without a fifth of the cells, to see how confidence and error go
    together on cells that neither has seen, and with all of them, for the answer.
    """

    completion: CompletionAlgorithm
    confidence: ConfidenceAlgorithm
    tolerance: float
    delta: float
    random_state: int
    progress: ProgressCallback | None
    timings: dict[str, float] = field(default_factory=dict)

    def run(self, observations: Observations) -> PartialCompletion:
        """The whole job."""
        train, held_out = split_entries(observations, HELD_OUT, self.random_state)
        with self._timed("calibration"):
            completion = self.completion.fit(train, self.progress)
            errors = held_out.squared_errors(completion.at(held_out.rows, held_out.cols))
            error = float(np.average(errors, weights=held_out.counts))
            algorithm = self.confidence.chosen_for(train, completion, self.tolerance, error)
            confidence, _ = algorithm.fit(train, completion, self.progress)
            at_held_out = confidence.at(held_out.rows, held_out.cols)
            risk = RiskCurve.fit(at_held_out, errors, held_out.counts)
            floor = rounding_threshold(confidence)
            selection = select_by_threshold(at_held_out, errors, held_out.counts, self.tolerance, floor)
        with self._timed("fit"):
            completion = self.completion.fit(observations, self.progress)
            confidence, certificate = algorithm.fit(observations, completion, self.progress)
            selection = selection.raised_to(rounding_threshold(confidence))
        guarantee = self._guarantee(selection)
        return PartialCompletion(completion, confidence, risk, selection, certificate, guarantee, self.timings)

    def _guarantee(self, selection: Selection) -> Guarantee:
        return Guarantee(
            promised=False,
            delta=self.delta,
            sentence=(
                f"No promise at probability {1 - self.delta:g} is made yet: the threshold was chosen on the same "
                f"{selection.n_held_out} held-out entries that its error was measured on, and the model was refitted "
                "with them afterwards."
            ),
            holds_over="The error measured is that of entries drawn like the observed ones.",
            not_promised=(
                "Nothing is claimed about entries that are drawn differently, and nothing about any single entry."
            ),
        )

    @contextmanager
    def _timed(self, stage: str) -> Iterator[None]:
        start = time.perf_counter()
        yield
        self.timings[stage] = time.perf_counter() - start


def choose_completion(given: object, random_state: int) -> CompletionAlgorithm:
    """The completion algorithm that the user named or gave."""
    if isinstance(given, str) and given in COMPLETIONS:
        return COMPLETIONS[given](random_state=random_state)
    if isinstance(given, CompletionAlgorithm) and not isinstance(given, type):
        return given
    raise InputError(
        f"The 'completion' parameter of PartialCompleter must be one of {', '.join(map(repr, COMPLETIONS))}, "
        f"or an object with a fit method such as SoftImpute(). Got {given!r} instead."
    )


def choose_confidence(given: object, shape: tuple[int, int], random_state: int) -> ConfidenceAlgorithm:
    """The confidence algorithm that the user named or gave.

    "auto" takes the paper's coverage program where the matrix is small, else the posterior.
    """
    if isinstance(given, str) and given in ("auto", "coverage", "posterior"):
        by_program = given == "coverage" or (given == "auto" and max(shape) <= SIZE_LIMIT)
        return CoverageProgram(random_state=random_state) if by_program else PosteriorVariance()
    if isinstance(given, ConfidenceAlgorithm) and not isinstance(given, type):
        return given
    raise InputError(
        "The 'confidence' parameter of PartialCompleter must be 'auto', 'coverage', 'posterior' or an object with a "
        f"fit method such as CoverageProgram(gamma=0.2). Got {given!r} instead."
    )


def default_tolerance(observations: Observations) -> float:
    """Half the variance of the draws: kept entries then explain at least half of it."""
    if observations.variance == 0:
        raise InputError(f"all observed values equal {observations.values[0]:g}, so a tolerance must be given.")
    return observations.variance / 2
