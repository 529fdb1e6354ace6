"""What SoftImpute, TraceNormCompletion and IterativeSVD share: sample, path, solver, certificate, completion."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from surefill.completion.effects import Effects
from surefill.completion.low_rank_completion import LowRankCompletion
from surefill.completion.optimality_gap import certify
from surefill.completion.spectral.proximal_gradient import SpectralDescent, Spectrum
from surefill.completion.spectral.shrinkage import Shrinkage
from surefill.completion.spectral.squared_loss import Sample
from surefill.data import Observations
from surefill.data.splits import split_entries
from surefill.errors import invalid_parameter, is_number, is_seed
from surefill.loop import ProgressCallback, Status, run
from surefill.spaces.spectral_norm import SparseOperator, lanczos

PATIENCE, LEAST_GAIN = 2, 1e-3


@dataclass(frozen=True, eq=False)
class PathState:
    """How far down the path the walk is, the last fit, the best parameter so far, its fit, error, and tries since."""

    position: int = 0
    last: Spectrum | None = None
    last_error: float = np.inf
    best: float | None = None
    best_fit: Spectrum | None = None
    best_error: float = np.inf
    without_gain: int = 0


@dataclass(frozen=True, eq=False)
class PathSearch:
    """Walk along ``candidates``, from the tightest limit to the loosest, while the error on held-out cells falls.

    A looser one is taken only if it is better by a thousandth: with less and less of a limit fits become slow, and the
    loose fits of the path would be better than the exact one.
    """

    candidates: tuple[float, ...]
    fit: Callable[[float, Spectrum | None], Spectrum]
    error: Callable[[Spectrum], float]
    parameter: str

    task: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "task", f"choosing the {self.parameter}")

    def init(self) -> PathState:
        """Nothing tried yet."""
        return PathState()

    def step(self, state: PathState) -> PathState:
        """Fit the next candidate from the last fit and score it on the held-out cells."""
        candidate = self.candidates[state.position]
        fitted = self.fit(candidate, state.last)
        error = self.error(fitted)
        if error < (1 - LEAST_GAIN) * state.best_error:
            return PathState(state.position + 1, fitted, error, candidate, fitted, error)
        tries = state.without_gain + 1
        return replace(state, position=state.position + 1, last=fitted, last_error=error, without_gain=tries)

    def measure(self, state: PathState) -> float:
        """The held-out mean squared error of the last candidate."""
        return state.last_error

    def terminate(self, state: PathState) -> Status | None:
        """Stop after two candidates without gain: one may be chance."""
        return Status.NO_GAIN if state.without_gain >= PATIENCE else None


FEWEST_TO_CHOOSE = 20
HELD_OUT = 0.1
PATH_TOL = 1e-2
PATH_STEPS = 40


class SpectralAlgorithm(ABC):
    """A frozen dataclass of parameters turned into f + h, its solver, and the path of its one open parameter."""

    centre: Any
    max_steps: int
    tol: float
    random_state: int
    parameter: ClassVar[str]

    @abstractmethod
    def _given(self) -> float | None:
        """The parameter, or None for the path to choose it."""

    @abstractmethod
    def _check_own(self) -> None:
        """Refuse bad parameters that only this algorithm has."""

    @abstractmethod
    def _path(self, sample: Sample) -> tuple[float, ...]:
        """Candidates from the tightest limit to the loosest."""

    @abstractmethod
    def _default(self, sample: Sample) -> float:
        """What to take where there are too few cells to choose."""

    @abstractmethod
    def _shrinkage(self, parameter: float) -> Shrinkage:
        """h."""

    def _sample(self, observations: Observations) -> Sample:
        """f, in the user's units."""
        return Sample(observations, Effects.of(observations, self.centre, type(self).__name__))

    def _solver(self, sample: Sample, shrinkage: Shrinkage, tol: float, start: Spectrum | None) -> Any:
        return SpectralDescent(sample, shrinkage, tol, min(sample.shape), self.random_state, start)

    def _factor(self, sample: Sample) -> float:
        """What turns f + h into the objective that the user reads."""
        return 1.0

    def fit(self, observations: Observations, progress: ProgressCallback | None = None) -> LowRankCompletion:
        """Complete the whole matrix."""
        self._validate()
        sample = self._sample(observations)
        parameter, start = self._given(), None
        if parameter is None and len(observations) < FEWEST_TO_CHOOSE:
            parameter = self._default(sample)
        elif parameter is None:
            parameter, start = self._chosen(observations, sample, progress)
        shrinkage = self._shrinkage(parameter)
        found, status = self._solved(sample, shrinkage, self.tol, self.max_steps, start, progress)
        return self._completion(sample, shrinkage, found, status, parameter)

    def _validate(self) -> None:
        owner = type(self).__name__
        self._check_own()
        check_whole(owner, "max_steps", self.max_steps)
        if not (is_number(self.tol) and 0 <= self.tol < np.inf):
            raise invalid_parameter(owner, "tol", "a number of at least 0", self.tol)
        if not is_seed(self.random_state):
            raise invalid_parameter(owner, "random_state", "a whole number of at least 0", self.random_state)

    def _chosen(
        self, observations: Observations, whole: Sample, progress: ProgressCallback | None
    ) -> tuple[float, Spectrum]:
        """The parameter with the least error on a tenth of the cells held out, and its fit, where to start on all.

        With a tiny penalty the optimum is far from 0, and only steps from the fits before it get there in time.
        """
        train, held = split_entries(observations, HELD_OUT, self.random_state)
        sample = self._sample(train)
        i, j = train.by_row.locate(held.rows), train.by_col.locate(held.cols)
        common = sample.effects.at(i, j)
        known = (i >= 0) & (j >= 0)

        def fit(parameter: float, start: Spectrum | None) -> Spectrum:
            return self._solved(sample, self._shrinkage(parameter), PATH_TOL, PATH_STEPS, start, None)[0]

        def error(found: Spectrum) -> float:
            product = np.einsum("xk,xk->x", (found.left * found.values)[i], found.right[j])
            predicted = np.clip(common + sample.scale * np.where(known, product, 0.0), *train.bounds)
            return float(np.average(held.squared_errors(predicted), weights=held.counts))

        path = self._path(sample)
        search = PathSearch(path, fit, error, self.parameter)
        found = run(search, max_steps=len(path), progress=progress).state
        assert found.best is not None
        assert found.best_fit is not None
        return found.best, _extended(found.best_fit, sample, whole)

    def _solved(
        self,
        sample: Sample,
        shrinkage: Shrinkage,
        tol: float,
        max_steps: int,
        start: Spectrum | None,
        progress: ProgressCallback | None,
    ) -> tuple[Spectrum, Status]:
        solver = self._solver(sample, shrinkage, tol, start)
        outcome = run(solver, max_steps=max_steps, progress=progress)
        return solver.spectrum(outcome.state), outcome.status

    def _completion(
        self, sample: Sample, shrinkage: Shrinkage, found: Spectrum, status: Status, parameter: float
    ) -> LowRankCompletion:
        balanced = np.sqrt(sample.scale * found.values)
        return LowRankCompletion.of(
            sample.observations,
            sample.effects,
            (found.left * balanced, found.right * balanced),
            has_effects=self.centre == "effects",
            penalty=sample.scale * self._multiplier(sample, shrinkage, found),
            chosen={self.parameter: parameter},
            gap=certify(sample, shrinkage, found.residual, found.values, self._factor(sample)),
            status=status,
        )

    def _multiplier(self, sample: Sample, shrinkage: Shrinkage, found: Spectrum) -> float:
        """The trace norm's multiplier at the solution."""
        return 0.0


def _extended(found: Spectrum, part: Sample, whole: Sample) -> Spectrum:
    """A matrix over the rows and columns of ``part`` as one over those of ``whole``, 0 where part has none."""
    left, right = (np.zeros((size, len(found.values))) for size in whole.shape)
    left[whole.observations.by_row.locate(part.observations.by_row.ids)] = found.left
    right[whole.observations.by_col.locate(part.observations.by_col.ids)] = found.right
    return replace(found, left=left, right=right, values=found.values * part.scale / whole.scale)


def top_singular_value(sample: Sample) -> float:
    """|E|_2 at M = 0, by Lanczos: the penalty from which on nothing is fitted."""
    residual = sample.rows.weight * sample.rows.target
    return float(lanczos(SparseOperator(sample.matrix(residual)), 60).values[0])


def check_whole(owner: str, name: str, given: object) -> None:
    """Refuse anything but a whole number of at least 1."""
    if not (is_seed(given) and given != 0):
        raise invalid_parameter(owner, name, "a whole number of at least 1", given)


def check_positive(owner: str, name: str, given: object, otherwise: str = "'auto'") -> None:
    """Refuse anything but a finite number above 0."""
    if not (is_number(given) and 0 < given < np.inf):  # type: ignore[operator]
        raise invalid_parameter(owner, name, f"a number above 0 or {otherwise}", given)
