"""What SoftImpute, TraceNormCompletion and IterativeSVD share: min f + h, from parameters to a certified completion."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import Any

import numpy as np

from surefill.completion.effects import Effects
from surefill.completion.low_rank_completion import LowRankCompletion
from surefill.completion.path_search import PathSearch, hold_out
from surefill.completion.spectral.proximal_gradient import FittedSVD, ProximalGradient
from surefill.completion.spectral.shrinkage import Shrinkage, certify
from surefill.completion.spectral.squared_loss import SquaredLoss
from surefill.data import Observations
from surefill.errors import invalid_parameter, is_number, is_seed
from surefill.loop import ProgressCallback, Status, run
from surefill.spaces.spectral_norm import SparseOperator, lanczos

LEAST_GAIN = 1e-3
"""Share by which a looser candidate must lower the held-out error: with less and less of a limit fits become slow, and
the unfinished fits of the path would look better than the exact one."""

PATH_TOL, PATH_STEPS = 1e-2, 40
"""Duality gap and most steps of a candidate's fit: enough to rank them, since each goes on from the last."""

TOP_LANCZOS_STEPS = 60
"""Steps of Lanczos for the largest singular value, which only places the path."""

SMALLEST = 1e-300
"""Keeps a path above 0 where all residuals are 0."""


class SpectralAlgorithm(ABC):
    """min f(M) + h(M), f the squared loss, h of one parameter that is given or chosen on held-out cells.

    A subclass is a frozen dataclass of parameters; it says what h is, which candidates its parameter has, and what
    solves the problem where that is not the proximal gradient.
    """

    centre: Any
    max_steps: int
    tol: float
    random_state: int

    @property
    @abstractmethod
    def _parameter(self) -> str:
        """The name of h's parameter."""

    @abstractmethod
    def _given(self) -> float | None:
        """The parameter, or None where it is to be chosen."""

    @abstractmethod
    def _check_own(self) -> None:
        """Refuse bad parameters that only this algorithm has."""

    @abstractmethod
    def _path(self, loss: SquaredLoss) -> tuple[float, ...]:
        """Candidates for the parameter, from the tightest limit on M to the loosest."""

    @abstractmethod
    def _default(self, loss: SquaredLoss) -> float:
        """What to take where there are too few cells to choose."""

    @abstractmethod
    def _shrinkage(self, parameter: float) -> Shrinkage:
        """h."""

    def _loss(self, observations: Observations) -> SquaredLoss:
        """f, in the user's units."""
        return SquaredLoss(observations, Effects.of(observations, self.centre, type(self).__name__))

    def _solver(self, loss: SquaredLoss, shrinkage: Shrinkage, tol: float, start: FittedSVD | None) -> Any:
        return ProximalGradient(loss, shrinkage, tol, min(loss.shape), self.random_state, start)

    def _factor(self, loss: SquaredLoss) -> float:
        """The objective that the user reads, in units of f + h."""
        return 1.0

    def fit(self, observations: Observations, progress: ProgressCallback | None = None) -> LowRankCompletion:
        """Complete the whole matrix."""
        self._validate()
        loss = self._loss(observations)
        parameter, start = self._given(), None
        if parameter is None:
            parameter, start = self._chosen(observations, loss, progress)
        shrinkage = self._shrinkage(parameter)
        found, status = self._solved(loss, shrinkage, self.tol, self.max_steps, start, progress)
        return self._completion(loss, shrinkage, found, status, parameter)

    def _validate(self) -> None:
        owner = type(self).__name__
        self._check_own()
        check_whole(owner, "max_steps", self.max_steps)
        if not (is_number(self.tol) and 0 <= self.tol < np.inf):
            raise invalid_parameter(owner, "tol", "a number of at least 0", self.tol)
        if not is_seed(self.random_state):
            raise invalid_parameter(owner, "random_state", "a whole number of at least 0", self.random_state)

    def _chosen(
        self, observations: Observations, whole: SquaredLoss, progress: ProgressCallback | None
    ) -> tuple[float, FittedSVD | None]:
        """The parameter with the least error on held-out cells, and its fit, where to start on all.

        With a tiny penalty the optimum is far from 0, and only steps from the fits before it get there in time.
        """
        split = hold_out(observations, self.random_state)
        if split is None:
            return self._default(whole), None
        train, held = split
        loss = self._loss(train)
        i, j = train.by_row.locate(held.rows), train.by_col.locate(held.cols)
        common, known = loss.effects.at(i, j), (i >= 0) & (j >= 0)

        def fit(parameter: float, start: FittedSVD | None) -> FittedSVD:
            return self._solved(loss, self._shrinkage(parameter), PATH_TOL, PATH_STEPS, start, None)[0]

        def error(found: FittedSVD) -> float:
            product = np.einsum("xk,xk->x", (found.left * found.values)[i], found.right[j])
            predicted = np.clip(common + loss.scale * np.where(known, product, 0.0), *train.bounds)
            return float(np.average(held.squared_errors(predicted), weights=held.counts))

        search = PathSearch(self._path(loss), fit, error, f"choosing the {self._parameter}", LEAST_GAIN)
        parameter, found = search.search(progress=progress)
        return parameter, _extended(found, loss, whole)

    def _solved(
        self,
        loss: SquaredLoss,
        shrinkage: Shrinkage,
        tol: float,
        max_steps: int,
        start: FittedSVD | None,
        progress: ProgressCallback | None,
    ) -> tuple[FittedSVD, Status]:
        solver = self._solver(loss, shrinkage, tol, start)
        outcome = run(solver, max_steps=max_steps, progress=progress)
        return solver.solution(outcome.state), outcome.status

    def _completion(
        self, loss: SquaredLoss, shrinkage: Shrinkage, found: FittedSVD, status: Status, parameter: float
    ) -> LowRankCompletion:
        balanced = np.sqrt(loss.scale * found.values)
        return LowRankCompletion.of(
            loss.observations,
            loss.effects,
            (found.left * balanced, found.right * balanced),
            has_effects=self.centre == "effects",
            penalty=loss.scale * self._multiplier(loss, shrinkage, found),
            chosen={self._parameter: parameter},
            gap=certify(loss, shrinkage, found.residual, found.values, self._factor(loss)),
            status=status,
        )

    def _multiplier(self, loss: SquaredLoss, shrinkage: Shrinkage, found: FittedSVD) -> float:
        """The multiplier of the trace norm at the solution, with which rows are folded in."""
        return 0.0


def _extended(found: FittedSVD, part: SquaredLoss, whole: SquaredLoss) -> FittedSVD:
    """A matrix over the rows and columns of ``part`` as one over those of ``whole``, 0 where part has none."""
    left, right = (np.zeros((size, len(found.values))) for size in whole.shape)
    left[whole.observations.by_row.locate(part.observations.by_row.ids)] = found.left
    right[whole.observations.by_col.locate(part.observations.by_col.ids)] = found.right
    return replace(found, left=left, right=right, values=found.values * part.scale / whole.scale)


def top_singular_value(loss: SquaredLoss) -> float:
    """|E|_2 at M = 0, by Lanczos: the penalty from which on nothing is fitted."""
    residual = loss.rows.weight * loss.rows.target
    return float(lanczos(SparseOperator(loss.matrix(residual)), TOP_LANCZOS_STEPS).values[0])


def check_whole(owner: str, name: str, given: object) -> None:
    """Refuse anything but a whole number of at least 1."""
    if not (is_seed(given) and given != 0):
        raise invalid_parameter(owner, name, "a whole number of at least 1", given)


def check_positive(owner: str, name: str, given: object, otherwise: str = "'auto'") -> None:
    """Refuse anything but a finite number above 0."""
    if not (is_number(given) and 0 < given < np.inf):  # type: ignore[operator]
        raise invalid_parameter(owner, name, f"a number above 0 or {otherwise}", given)
