"""The Bayesian factor model where each draw has a date: rows drift around what they are on average.

    y_t ~ N(mean + b_i + c_j + p_i . q_j + e_i(when_t), noise / (s_i t_j))

with e_i the process of :mod:`surefill.completion.bayes.drift` and all else as in :class:`BayesianFactorModel`. q(e_i)
is a factor of the posterior like q(x_i): given all others it is exact, and its mean is taken from the targets and its
variance added to the squared errors while rows, columns, prior and noise are updated. The bound gains

    - 1/2 sum_t w_t (E (r_t - e)^2 - before) / noise - sum_i KL(q(e_i) | p(e_i)),

and never falls. Sweeps begin at the posterior of the model without dates: begun with drifts, factors that several rows
share are mistaken for them, and held-out errors were larger (docs/benchmarks.md).

What a row is on average is needed for cells whose date nobody knows; the factors without dates are better at that, and
are kept beside these.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Self

import numpy as np

from surefill.arrays import Array, IntArray
from surefill.completion.bayes.drift import Drift, DriftUpdate, Sittings, updated_drift
from surefill.completion.bayes.factor_posterior import FactorPosterior
from surefill.completion.bayes.variational import NEW_GROUP_STEPS, VariationalRegression
from surefill.data import Observations, UnitMap
from surefill.data.groups import locate
from surefill.errors import InputError
from surefill.kernels.least_squares import biased_products
from surefill.loop import Status
from surefill.registry import storable

if TYPE_CHECKING:
    from surefill.completion.bayes.variational_solver import VariationalSolver, VariationalState


@storable
@dataclass(frozen=True, eq=False)
class DatedFactors:
    """The posterior of a fit that knows when each cell was drawn: factors of rows and columns, noise, and drift."""

    rows: FactorPosterior
    cols: FactorPosterior
    noise: float
    drift: Drift

    def __post_init__(self) -> None:
        if self.rows.mean.shape[1] != self.cols.mean.shape[1]:
            raise InputError("the rows and columns of a dated completion must have as many factors each.")

    def at(self, rows: IntArray, cols: IntArray, times: Array) -> Array:
        """b_i + c_j + p_i . q_j + e_i(t) at (rows[n], cols[n], times[n]), on [-1, 1] and less the mean."""
        i, j = locate(self.rows.ids, rows), locate(self.cols.ids, cols)
        return biased_products(self.rows.mean, self.cols.mean, i, j) + self.drift.at(rows, times)[0]

    def fold_in(self, observations: Observations, mean: float, unit: UnitMap) -> Self | None:
        """The same for other rows, factors and drift by turns; None where their cells have no dates."""
        if observations.times is None:
            return None
        plain = VariationalRegression.per_row(observations, self.cols.ids, mean, unit)
        plain = plain.with_features(observations.row_features, self.rows.scale)
        cells = DatedCells.of(observations, mean, unit)
        rows = plain.solve_new_groups(self.rows, self.cols, self.noise)
        drift = self.drift
        for _ in range(NEW_GROUP_STEPS):
            found = cells.update(rows, self.cols, self.noise, drift.scales, drift.amplitude)
            rows = cells.less(plain, found).solve_new_groups(self.rows, self.cols, self.noise)
        found = cells.update(rows, self.cols, self.noise, drift.scales, drift.amplitude)
        cols = self.cols.with_implicit_reindexed(self.rows.ids, rows.ids)
        return replace(self, rows=rows, cols=cols, drift=found.drift)


@dataclass(frozen=True, eq=False)
class DatedCells:
    """Cells with their dates: ``target`` is the value on [-1, 1] less the mean."""

    observations: Observations
    target: Array
    sittings: Sittings

    @classmethod
    def of(cls, observations: Observations, mean: float, unit: UnitMap) -> Self:
        """Cells that all have a date; ``mean``, on [-1, 1], and ``unit`` are the model's."""
        assert observations.times is not None
        target = unit.to_unit(observations.values) - mean
        return cls(observations, target, Sittings.of(observations.rows, observations.times))

    def update(
        self, rows: FactorPosterior, cols: FactorPosterior, noise: float, scales: Array, amplitude: float
    ) -> DriftUpdate:
        """The drift given the factors."""
        weight, residual = self._left(rows, cols)
        return updated_drift(self.sittings, residual, weight, noise, scales, amplitude)

    def less(self, regression: VariationalRegression, drift: DriftUpdate) -> VariationalRegression:
        """The regression with the drift's mean taken from its targets, its variance added to the squared errors."""
        entries = regression.groups.take(self.sittings.of_cell)
        mean, variance = (table[entries].astype(regression.dtype) for table in (drift.mean, drift.variance))
        return replace(
            regression,
            values=regression.values - mean / regression.scale,
            scatter=regression.scatter + regression.counts * variance,
        )

    def errors(self, rows: FactorPosterior, cols: FactorPosterior, drift: DriftUpdate) -> Array:
        """sum_t c_t t_j ((r_t - E e)^2 + Var e) of each row: the part of its expected errors that the drift changes."""
        (weight, residual), of_cell = self._left(rows, cols), self.sittings.of_cell
        error = weight * ((residual - drift.mean[of_cell]) ** 2 + drift.variance[of_cell])
        i = locate(rows.ids, self.observations.rows)
        return np.bincount(i, error, len(rows.ids)) / rows.noise_precision.mean[:-1]

    def _left(self, rows: FactorPosterior, cols: FactorPosterior) -> tuple[Array, Array]:
        """w_t, and what the factors leave of each target."""
        i, j = locate(rows.ids, self.observations.rows), locate(cols.ids, self.observations.cols)
        weight = self.observations.counts * rows.noise_precision.mean[i] * cols.noise_precision.mean[j]
        return weight, self.target - biased_products(rows.mean, cols.mean, i, j)


@dataclass(frozen=True, eq=False)
class DatedState:
    """The factors' state, the drift, the lower bound and its gain."""

    factors: VariationalState
    drift: DriftUpdate
    bound: float
    gain: float


@dataclass(frozen=True, eq=False)
class DatedSolver:
    """The solver that :func:`surefill.loop.run` drives: one step is a sweep over factors, then the drift."""

    plain: VariationalSolver
    start: VariationalState
    cells: DatedCells
    scales: Array
    amplitude: float
    task: str = field(default="fitting dates", init=False)

    @classmethod
    def of(cls, plain: VariationalSolver, start: VariationalState, share: float) -> Self:
        """From the posterior ``start`` without dates; v of the drift is ``share`` of its noise."""
        cells = DatedCells.of(plain.observations, plain.mean, plain.observations.unit)
        scales = cells.sittings.scales()
        return cls(replace(plain, equal_noise=False), start, cells, scales, share * start.noise / len(scales))

    def init(self) -> DatedState:
        """The drift given the factors without dates."""
        at = self.cells.sittings
        zeros = np.zeros(len(at.times))
        drift = Drift(at.ids, at.starts, at.times, zeros, zeros, self.scales, self.amplitude)
        return self._with_drift(self.start, DriftUpdate(drift, zeros, zeros, divergence=0.0), -np.inf)

    def step(self, state: DatedState) -> DatedState:
        """Prior, noise, columns and rows given the drift, then the drift given these."""
        rows, cols = (self.cells.less(each, state.drift) for each in (self.plain.rows, self.plain.cols))
        factors = replace(self.plain, rows=rows, cols=cols).step(state.factors)
        return self._with_drift(factors, state.drift, state.bound)

    def _with_drift(self, factors: VariationalState, before: DriftUpdate, bound_before: float) -> DatedState:
        """The factors' bound and errors count the drift as it was ``before``."""
        rows, cols = factors.rows, factors.cols
        drift = self.cells.update(rows, cols, factors.noise, self.scales, self.amplitude)
        less = self.cells.errors(rows, cols, before) - self.cells.errors(rows, cols, drift)
        gain = float(rows.noise_precision.mean[:-1] @ less) / (2 * factors.noise)
        bound = factors.bound + gain - drift.divergence
        now = replace(factors, row_errors=factors.row_errors - less)
        return DatedState(now, drift, bound, bound - bound_before)

    def measure(self, state: DatedState) -> float:
        """The lower bound on the evidence, less a constant."""
        return state.bound

    def terminate(self, state: DatedState) -> Status | None:
        """Converged as the model without dates is."""
        enough = self.plain.tol * self.plain.observations.n_draws
        return Status.CONVERGED if state.gain < enough else None


def dated_factors(state: DatedState) -> DatedFactors:
    """What is kept of a fit."""
    return DatedFactors(state.factors.rows, state.factors.cols, state.factors.noise, state.drift.drift)
