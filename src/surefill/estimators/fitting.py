"""From observations to a partial completion: complete, find confidences and risks, then promise on cells left out."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from surefill.completion import Completion, CompletionAlgorithm
from surefill.confidence.algorithms import (
    Certificate,
    ConfidenceAlgorithm,
    ExtendableConfidence,
)
from surefill.data import Observations
from surefill.data.splits import split_entries
from surefill.errors import InputError, invalid_parameter
from surefill.estimators.result import PartialCompletion
from surefill.guarantee import (
    Calibration,
    SelectionPlan,
    TargetWeights,
    choose_propensity,
    rounding_threshold,
    select,
    state_guarantee,
)
from surefill.guarantee.plan import within
from surefill.guarantee.target_weights import Aim
from surefill.loop import ProgressCallback
from surefill.registry import AUTO, COMPLETIONS, CONFIDENCES
from surefill.risk import ConfidenceRisk, Risk, RiskAlgorithm, RiskCurve, RiskModel
from surefill.spaces.conic_model import SIZE_LIMIT

CALIBRATION, LEAST_CALIBRATION, ENOUGH_CALIBRATION = 0.2, 0.1, 10_000
HELD_OUT = 0.2
UNTESTED = 0.05
LEAST_SUPPORTED = 0.5
FALLBACK = "The paper's program would support less than half of cells like those seen, so another confidence is taken."


@dataclass(frozen=True)
class Rehearsal:
    """What a fit without a part of the training cells showed on that part.

    ``tested`` is the confidence that all but one in twenty of the cells left out have, ``supported`` the share of them
    that would not be left out for want of confidence.
    """

    confidence: ConfidenceAlgorithm
    curve: RiskCurve
    tested: float
    supported: float
    fallback: bool = False


@dataclass(frozen=True)
class Pipeline:
    """Set calibration cells aside, do everything on the others, and look at the first once, to choose the kept set.

    A fifth of the cells is set aside, of many cells 10,000 or a tenth. The others, the training cells, are rehearsed
    on first: without a fifth of them, to choose what the confidence algorithm leaves open and to see which confidences
    occur on cells that were left out. Of several confidence algorithms the first is taken that supports at least half
    of those cells, else the last. Nothing is refitted once the calibration cells have been looked at: what was
    tested is what is delivered.
    """

    completion: CompletionAlgorithm
    confidences: tuple[ConfidenceAlgorithm, ...]
    risk: RiskAlgorithm | None
    tolerance: float
    delta: float
    propensity: Any
    aim: Aim
    random_state: int
    progress: ProgressCallback | None
    timings: dict[str, float] = field(default_factory=dict)

    def run(self, observations: Observations) -> PartialCompletion:
        """The whole job."""
        share = calibration_share(len(observations))
        train, held_out = split_calibration(observations, self.random_state)
        propensity = choose_propensity(self.propensity, self.aim, train, share)
        with self._timed("rehearsal"):
            rehearsal = self._rehearse(train)
        with self._timed("fit"):
            completion = self.completion.fit(train, self.progress)
            confidence, certificate = rehearsal.confidence.fit(train, completion, self.progress)
            if rehearsal.fallback:
                certificate = replace(certificate, sentence=f"{FALLBACK} {certificate.sentence}")
        with self._timed("risk"):
            risk = self._risk(train, completion, confidence, rehearsal.curve)
        with self._timed("promise"):
            weights = TargetWeights.of(self.aim, propensity, share, train)
            predicted_range = range_of_predictions(completion, train)
            floor = support_floor(confidence, certificate, rehearsal.tested)
            plan = self._plan(train, len(observations), confidence, risk, weights, floor, predicted_range)
            predicted = np.clip(completion.at(held_out.rows, held_out.cols), *predicted_range)
            calibration = Calibration(
                risk=risk.at(held_out.rows, held_out.cols),
                confidence=confidence.at(held_out.rows, held_out.cols),
                loss=held_out.squared_errors(predicted),
                weight=weights.at(held_out.rows, held_out.cols),
            )
            selection = select(plan, calibration)
        return PartialCompletion(
            completion=completion,
            confidence=confidence,
            risk=risk,
            selection=selection,
            certificate=certificate,
            guarantee=state_guarantee(plan, selection, weights, observations.bounds),
            plan=plan,
            calibration=calibration,
            weights=weights,
            bounds=observations.bounds,
            predicted_range=predicted_range,
            timings=self.timings,
        )

    def _rehearse(self, train: Observations) -> Rehearsal:
        """Fit without a part of the training cells: what the algorithm leaves open, errors, and tested confidences.

        Entries of less confidence than all but one in twenty of the cells left out were hardly tested, and are not
        kept, however small their risk: cells left out are drawn like the observed ones and say nothing of entries that
        are never drawn.
        """
        inner, held_out = split_entries(train, HELD_OUT, self.random_state)
        completion = self.completion.fit(inner, self.progress)
        for candidate in self.confidences:
            rehearsal = self._rehearse_with(candidate, inner, held_out, completion)
            if rehearsal.supported >= LEAST_SUPPORTED:
                break
        return replace(rehearsal, fallback=candidate is not self.confidences[0])

    def _rehearse_with(
        self, candidate: ConfidenceAlgorithm, inner: Observations, held_out: Observations, completion: Completion
    ) -> Rehearsal:
        errors = held_out.squared_errors(completion.at(held_out.rows, held_out.cols))
        error = float(np.average(errors, weights=held_out.counts))
        algorithm = candidate.chosen_for(inner, completion, self.tolerance, error)
        confidence, certificate = algorithm.fit(inner, completion, self.progress)
        at_held_out = confidence.at(held_out.rows, held_out.cols)
        curve = RiskCurve.fit(at_held_out, errors, held_out.counts)
        tested = float(np.quantile(at_held_out, UNTESTED))
        floor = support_floor(confidence, certificate, tested)
        return Rehearsal(algorithm, curve, tested, float(np.mean(within(0.0, at_held_out, 0.0, floor))))

    def _risk(
        self, train: Observations, completion: Completion, confidence: ExtendableConfidence, curve: RiskCurve
    ) -> Risk:
        if self.risk is None:
            return ConfidenceRisk(curve, confidence)
        return self.risk.fit(train, self.completion, completion, None, self.progress)

    def _plan(
        self,
        train: Observations,
        n_observed: int,
        confidence: ExtendableConfidence,
        risk: Risk,
        weights: TargetWeights,
        floor: float,
        predicted_range: tuple[float, float],
    ) -> SelectionPlan:
        (low, high), (least, most) = train.bounds, predicted_range
        supported = confidence.at(train.rows, train.cols) >= floor
        return SelectionPlan(
            tolerance=self.tolerance,
            delta=self.delta,
            largest_loss=max(most - low, high - least) ** 2,
            floor=floor,
            n_calibration=n_observed - len(train),
            n_observed=n_observed,
            reference=np.sort(risk.at(train.rows, train.cols)[supported]),
            reference_share=float(supported.mean()),
            mean_square_weight=float(np.mean(weights.at(train.rows, train.cols) ** 2)),
        )

    @contextmanager
    def _timed(self, stage: str) -> Iterator[None]:
        start = time.perf_counter()
        yield
        self.timings[stage] = time.perf_counter() - start


def range_of_predictions(completion: Completion, train: Observations) -> tuple[float, float]:
    """The least and the largest prediction at a training cell, within the bounds."""
    predicted = np.clip(completion.at(train.rows, train.cols), *train.bounds)
    return float(predicted.min()), float(predicted.max())


def support_floor(confidence: ExtendableConfidence, certificate: Certificate, tested: float) -> float:
    """The least confidence kept: one that was tested and, where the coverage is a bound's, is within its rounding.

    A heuristic confidence orders entries by support, but its sum bounds nothing, so that rounding would be arbitrary.
    """
    return tested if certificate.coverage is None else max(tested, rounding_threshold(confidence))


def calibration_share(n_cells: int) -> float:
    """The share of the cells set aside: a fifth, of more than 50,000 cells 10,000 of them, but at least a tenth."""
    return max(LEAST_CALIBRATION, min(CALIBRATION, ENOUGH_CALIBRATION / n_cells))


def split_calibration(observations: Observations, random_state: int) -> tuple[Observations, Observations]:
    """(training cells, calibration cells)."""
    return split_entries(observations, calibration_share(len(observations)), random_state)


def choose_completion(given: object, random_state: int) -> CompletionAlgorithm:
    """The completion algorithm that the user named or gave."""
    if isinstance(given, str) and given in COMPLETIONS:
        named: CompletionAlgorithm = COMPLETIONS[given].make(random_state=random_state)
        return named
    if isinstance(given, CompletionAlgorithm) and not isinstance(given, type):
        return given
    raise _not_an_algorithm("completion", list(COMPLETIONS), "SoftImpute()", given)


def choose_confidence(given: object, shape: tuple[int, int], random_state: int) -> tuple[ConfidenceAlgorithm, ...]:
    """The confidence algorithms to try, in this order, for what the user named or gave.

    "auto" takes the paper's coverage program where the matrix is small and the program supports enough of it, else the
    posterior.
    """
    if isinstance(given, str) and given == AUTO:
        names = ("coverage", "posterior") if max(shape) <= SIZE_LIMIT else ("posterior",)
        return tuple(CONFIDENCES[name].make(random_state=random_state) for name in names)
    if isinstance(given, str) and given in CONFIDENCES:
        return (CONFIDENCES[given].make(random_state=random_state),)
    if isinstance(given, ConfidenceAlgorithm) and not isinstance(given, type):
        return (given,)
    raise _not_an_algorithm("confidence", [AUTO, *CONFIDENCES], "CoverageProgram(gamma=0.2)", given)


def choose_risk(given: object, random_state: int) -> RiskAlgorithm | None:
    """The risk algorithm that the user named or gave; None for the curve over confidence alone."""
    if isinstance(given, str) and given in (AUTO, "confidence"):
        return RiskModel(random_state=random_state) if given == AUTO else None
    if isinstance(given, RiskAlgorithm) and not isinstance(given, type):
        return given
    raise _not_an_algorithm("risk", [AUTO, "confidence"], "RiskModel()", given)


def _not_an_algorithm(parameter: str, names: list[str], example: str, given: object) -> InputError:
    valid = f"one of {', '.join(map(repr, names))}, or an object with a fit method such as {example}"
    return invalid_parameter("PartialCompleter", parameter, valid, given)


def default_tolerance(observations: Observations) -> float:
    """Half the variance of the draws: kept entries then explain at least half of it.

    Where a promise is to follow, ``observations`` are the training cells alone.
    """
    if observations.variance == 0:
        raise InputError(f"all observed values equal {observations.values[0]:g}, so a tolerance must be given.")
    return observations.variance / 2
