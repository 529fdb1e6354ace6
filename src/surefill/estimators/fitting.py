"""From observations to a partial completion: complete, find confidences and risks, then promise on cells held out."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surefill.completion import Completion, CompletionAlgorithm
from surefill.confidence import Certificate, ConfidenceAlgorithm, ExtendableConfidence
from surefill.confidence.algorithm import TriedConfidence
from surefill.data import BoundsSource, Observations
from surefill.data.compact import PIECE
from surefill.estimators.costs import parts_of_fit
from surefill.estimators.estimates import Estimates, EstimatesAt
from surefill.estimators.result import PartialCompletion
from surefill.guarantee import (
    Calibration,
    CalibrationSplit,
    ConformalScores,
    Population,
    SelectionPlan,
    rounding_threshold,
    select,
    state_guarantee,
)
from surefill.guarantee.plan import ROUNDING, within
from surefill.guarantee.propensity import Aim
from surefill.guarantee.wording import SEEN_BEFORE
from surefill.loop import ProgressCallback
from surefill.losses import SQUARED, ClippedLoss, Loss
from surefill.risk import ConfidenceRisk, CrossFit, PriorRisk, Risk, RiskAlgorithm, RiskCurve
from surefill.spaces.confidence_matrix import some_cells
from surefill.waiting import part, plan

POPULATION = 50_000
"""Cells sampled to make a plan and to count filled cells: a share of them is known to 0.2%."""

MOST_LIKE_OBSERVED = 1_000_000
"""Most training cells that a plan is made on: it needs shares of them to a thousandth."""

UNTESTED = 0.05
"""Quantile of the confidences of held-out cells below which nothing is kept: entries there were hardly tested."""

BETWEEN_FITS = 0.1
"""By how much the program's confidences may fall from one fit to the next: 0.997 everywhere in the trial fit and 0.994
everywhere in the final one would otherwise keep nothing."""

LEAST_FLOOR = 2 * ROUNDING
"""No entry of confidence 0, such as one in a row never seen, is kept, whatever the risk."""

AS_MUCH = 0.02
"""A confidence that proves more is preferred if it supports at most this share of held-out cells less than another."""


@dataclass(frozen=True)
class TrialFit:
    """What a fit without one fold of the training cells showed on that fold.

    ``tested`` is the confidence that all but one in twenty of the held-out cells have, ``supported`` the share of them
    that would not be left out for want of confidence.
    """

    confidence: ConfidenceAlgorithm
    curve: RiskCurve
    tested: float
    supported: float
    name: str
    tried: tuple[TriedConfidence, ...] = ()


@dataclass(frozen=True)
class Fitting:
    """Set calibration cells aside, do everything on the others, and look at the first once, to choose the kept set.

    A fifth of the cells is set aside, of many cells 20,000 or a tenth, and more where losses may be far above the
    tolerance. The others, the training cells, are completed without one fold each, which teaches the risk. The first of
    these fits is the trial fit, made where a confidence algorithm does not set its own floor or several are to be
    compared: it chooses parameters that were not given, and shows which confidences occur on held-out cells. Of several
    algorithms the first is taken that supports as much as the others. Bounds that were not given are those of the
    training cells. Nothing is refitted once the calibration cells have been looked at: what was tested is what is
    delivered.
    """

    completion: CompletionAlgorithm
    confidences: tuple[ConfidenceAlgorithm, ...]
    risk: RiskAlgorithm | None
    loss: Loss
    tolerance: float | None
    delta: float
    propensity: Any
    sensitivity: float
    aim: Aim
    random_state: int
    progress: ProgressCallback | None
    timings: dict[str, float] = field(default_factory=dict)

    def run(
        self, observations: Observations, asked: NDArray[np.bool_], shape: tuple[int, int] | None = None
    ) -> PartialCompletion:
        """The whole job; ``asked`` tells which observations were chosen, not drawn: they are trained on, but the
        promise and what it is settled by rest on the others, in the ``shape`` that the table had at the first fit."""
        plan(self.progress, parts_of_fit(observations, self.confidences, self._tries, self.risk is not None))
        with part(self.progress, "setting aside"):
            given = observations.bounds if observations.bounds_from is BoundsSource.GIVEN else None
            bound = known_bound(self.loss, given, self.tolerance, self.delta)
            split = CalibrationSplit.of(observations, self.aim, self.propensity, self.random_state, asked, shape, bound)
        if observations.bounds_from is not BoundsSource.GIVEN:
            split = replace(split, train=split.train.with_bounds(None))
        train = split.train
        tolerance = self.loss.default_tolerance(split.drawn) if self.tolerance is None else self.tolerance
        # The guarantee is about values at no particular date, so that risks are learnt without times.
        undated = train.with_times(None)
        with self._timed("choice"), part(self.progress, "choice"):
            dated = self.completion if undated is train else chosen_for(train, self.completion, self.progress)
            cross_fit = CrossFit(undated, dated, random_state=self.random_state, progress=self.progress, loss=self.loss)
            algorithm = cross_fit.choose()
        with self._timed("trial fit"):
            trial = self._try(cross_fit, tolerance)
        with self._timed("fit"):
            with part(self.progress, "fit"):
                completion = with_dates(algorithm, cross_fit.whole(), train, self.progress)
            measure = self.confidences[0] if trial is None else trial.confidence
            with part(self.progress, "support"):
                confidence, certificate = measure.fit(train, completion, self.progress)
        with self._timed("risk"):
            risk = self._risk(train, completion, confidence, certificate, cross_fit, trial)
            prior = PriorRisk.measured(cross_fit)
        with self._timed("promise"), part(self.progress, "promise"):
            floor = support_floor(confidence, certificate, 0.0 if trial is None else trial.tested)
            certificate = replace(certificate, tried=() if trial is None else trial.tried)
            found = Estimates(completion, confidence, risk, prior)
            return self._promise(observations, split, found, certificate, tolerance, floor)

    def _try(self, cross_fit: CrossFit, tolerance: float) -> TrialFit | None:
        """The first confidence algorithm that supports as much of the first fold as any, as seen without that fold.

        Entries of less confidence than all but one in twenty of the held-out cells were hardly tested, and are not
        kept, however small their risk: held-out cells are drawn like the observed ones and say nothing of entries that
        are never drawn. None where one algorithm sets its floor by itself and nothing else needs the trial.
        """
        if not self._tries:
            return None
        train, held_out = cross_fit.split(0)
        with part(self.progress, "trial fit"):
            completion = cross_fit.completion(0)
        trials = [self._try_one(each, train, held_out, completion, tolerance) for each in self.confidences]
        enough = max(trial.supported for trial in trials) - AS_MUCH
        taken = next(trial for trial in trials if trial.supported >= enough)
        return replace(taken, tried=tuple(TriedConfidence(trial.name, trial.supported) for trial in trials))

    @property
    def _tries(self) -> bool:
        """Whether there is a trial fit."""
        only = self.confidences[0] if len(self.confidences) == 1 else None
        return self.risk is None or not getattr(only, "sets_floor", False)

    def _try_one(
        self,
        candidate: ConfidenceAlgorithm,
        train: Observations,
        held_out: Observations,
        completion: Completion,
        tolerance: float,
    ) -> TrialFit:
        predicted = completion.at(held_out.rows, held_out.cols)
        error = float(np.average(held_out.squared_errors(predicted), weights=held_out.counts))
        # Confidence algorithms measure errors by their squares, whatever the loss.
        squared_tolerance = tolerance if self.loss == SQUARED else SQUARED.default_tolerance(train)
        algorithm = candidate.chosen_for(train, completion, squared_tolerance, error)
        with part(self.progress, "trial support"):
            confidence, certificate = algorithm.fit(train, completion, self.progress)
        at_held_out = confidence.at(held_out.rows, held_out.cols)
        curve = RiskCurve.fit(at_held_out, self.loss.at(held_out, predicted), held_out.counts)
        tested = float(np.quantile(at_held_out, UNTESTED))
        floor = support_floor(confidence, certificate, tested)
        supported = float(np.mean(within(0.0, at_held_out, 0.0, floor)))
        return TrialFit(algorithm, curve, tested, supported, certificate.name)

    def _risk(
        self,
        train: Observations,
        completion: Completion,
        confidence: ExtendableConfidence,
        certificate: Certificate,
        cross_fit: CrossFit,
        trial: TrialFit | None,
    ) -> Risk:
        if self.risk is None:
            assert trial is not None
            return ConfidenceRisk(trial.curve, confidence)
        floor = certificate.floor
        return self.risk.fit(train, completion, cross_fit, confidence, floor, self.progress)

    def _promise(
        self,
        observations: Observations,
        split: CalibrationSplit,
        found: Estimates,
        certificate: Certificate,
        tolerance: float,
        floor: float,
    ) -> PartialCompletion:
        """Settle the plan on the training cells, then look at the calibration cells, once."""
        held_out, weights = split.calibration, split.weights
        loss = self._bounded_loss(observations, split.drawn, found.completion)
        plan = SelectionPlan(
            tolerance=tolerance,
            delta=self.delta,
            floor=floor,
            n_calibration=len(held_out),
            n_observed=len(observations),
            population=self._population(split, found, loss, floor),
            loss=self.loss,
            sensitivity=self.sensitivity,
            leaves_out_calibration=weights.leaves_out_calibration,
            n_asked=split.n_asked,
        )
        at_held_out = found.at(held_out.rows, held_out.cols)
        calibration = Calibration(
            risk=at_held_out.risk,
            confidence=at_held_out.confidence,
            loss=loss.at(held_out, at_held_out.predicted),
            largest_loss=loss.largest_at(at_held_out.predicted),
            weight=weights.at(held_out.rows, held_out.cols),
        )
        errors = np.sqrt(held_out.squared_errors(np.clip(at_held_out.predicted, *loss.predicted_range)))
        selection = select(plan, calibration, advise=not self._withheld)
        return PartialCompletion(
            **vars(found),
            selection=selection,
            certificate=certificate,
            guarantee=state_guarantee(
                plan, selection, calibration, weights, loss, withheld=self._withheld, shape=observations.shape
            ),
            plan=plan,
            calibration=calibration,
            calibration_cells=(held_out.rows, held_out.cols),
            weights=weights,
            loss=loss,
            scores=ConformalScores.of(errors, self.loss.error_scale(calibration.risk), calibration.weight),
            timings=self.timings,
            col_labels=observations.col_labels,
        )

    @property
    def _withheld(self) -> str:
        """Why nothing can be promised, whatever the calibration cells show; empty where nothing stands in the way."""
        return SEEN_BEFORE if getattr(self.completion, "may_have_seen_all", False) else ""

    def _population(self, split: CalibrationSplit, found: Estimates, loss: ClippedLoss, floor: float) -> Population:
        """The supported cells that the guarantee is about, or cells that stand for them."""
        if split.weights.propensity is not None:
            return self._cells_outside(split, found, loss, floor)
        drawn = split.drawn
        some = slice(None, None, max(1, len(drawn) // MOST_LIKE_OBSERVED))
        at_train = found.at(drawn.rows[some], drawn.cols[some])
        return _cells_like_observed(at_train, loss, floor, len(split.calibration))

    def _cells_outside(self, split: CalibrationSplit, found: Estimates, loss: ClippedLoss, floor: float) -> Population:
        """Supported cells outside the training cells, or a uniform sample of them, where chances are known."""
        train, weights = split.train, split.weights
        shape = weights.shape or train.shape
        cells = some_cells(shape, POPULATION, self.random_state)
        count = shape[0] * shape[1] / len(cells[0])
        outside = train.find(*cells) < 0
        rows, cols = cells[0][outside], cells[1][outside]
        at = found.at(rows, cols)
        missing = split.calibration.find(rows, cols) < 0
        supported = within(0.0, at.confidence, 0.0, floor)
        return Population.of(
            at.risk[supported],
            weights.at(rows[supported], cols[supported]),
            loss.largest_at(at.predicted[supported]),
            count,
            missing[supported],
            count * np.count_nonzero(missing),
        )

    def _bounded_loss(self, observations: Observations, train: Observations, completion: Completion) -> ClippedLoss:
        """The loss, clipped at what bounds and predictions of the training cells allow.

        A scale that the training cells lie on counts as known only where all cells lie on it.
        """
        agrees = (train.bounds, train.bounds_from) == (observations.bounds, observations.bounds_from)
        source = train.bounds_from if agrees else BoundsSource.SEEN
        return ClippedLoss(self.loss, train.bounds, source, _range_within(completion, train))

    @contextmanager
    def _timed(self, stage: str) -> Iterator[None]:
        start = time.perf_counter()
        yield
        self.timings[stage] = time.perf_counter() - start


def known_bound(
    loss: Loss, given_bounds: tuple[float, float] | None, tolerance: float | None, delta: float
) -> tuple[float, float] | None:
    """(L / tolerance, delta), L the least that a largest loss may be; None where that rests on values."""
    if tolerance is None or (given_bounds is None and not loss.has_limit):
        return None
    low, high = given_bounds or (0.0, 0.0)  # a loss with a limit has it whatever the bounds are
    return loss.largest((high - low) / 2) / tolerance, delta


def _range_within(completion: Completion, cells: Observations) -> tuple[float, float]:
    """The smallest and the largest prediction at the cells, within the bounds."""
    lowest, highest = np.inf, -np.inf
    for first in range(0, len(cells), PIECE):
        predicted = completion.at(cells.rows[first : first + PIECE], cells.cols[first : first + PIECE])
        lowest, highest = min(lowest, float(predicted.min())), max(highest, float(predicted.max()))
    low, high = np.clip([lowest, highest], *cells.bounds)
    return float(low), float(high)


def _cells_like_observed(at_train: EstimatesAt, loss: ClippedLoss, floor: float, n_calibration: int) -> Population:
    """The supported training cells, standing for the calibration cells that are to come."""
    supported = within(0.0, at_train.confidence, 0.0, floor)
    risk, largest = at_train.risk[supported], loss.largest_at(at_train.predicted[supported])
    none_missing = np.zeros(len(risk), dtype=bool)
    return Population.of(risk, np.ones(len(risk)), largest, n_calibration / len(supported), none_missing, None)


def support_floor(confidence: ExtendableConfidence, certificate: Certificate, tested: float) -> float:
    """The least confidence kept: the algorithm's own floor, or else one that was tested.

    Where the coverage is a bound's, it is also within its rounding, and what was tested in a trial is lowered a little:
    the program gives all supported entries nearly the same confidence, which differs from fit to fit. A heuristic
    confidence orders entries by support, but its sum bounds nothing, so that rounding would be arbitrary.
    """
    if certificate.floor is not None:
        floor = certificate.floor
    elif certificate.coverage is None:
        floor = tested
    else:
        floor = max((1.0 - BETWEEN_FITS) * tested, rounding_threshold(confidence))
    return max(floor, LEAST_FLOOR)


def chosen_for(
    observations: Observations, algorithm: CompletionAlgorithm, progress: ProgressCallback | None
) -> CompletionAlgorithm:
    """The algorithm with its data-dependent parameters chosen, once for all folds."""
    choose = getattr(algorithm, "chosen_for", None)
    chosen: CompletionAlgorithm = algorithm if choose is None else choose(observations, progress)
    return chosen


def with_dates(
    algorithm: CompletionAlgorithm,
    completion: Completion,
    observations: Observations,
    progress: ProgressCallback | None,
) -> Completion:
    """``completion`` extended to values at given times, if the observations have times and the algorithm can."""
    add = getattr(algorithm, "with_dates", None)
    if add is None or observations.times is None:
        return completion
    dated: Completion = add(completion, observations, progress)
    return dated
