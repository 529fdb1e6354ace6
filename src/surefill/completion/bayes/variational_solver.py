"""The variational solver of the Bayesian factor model: sweeps over all columns and all rows of one table."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np

from surefill.arrays import Array, Floats
from surefill.completion.bayes.bayesian_completion import BayesianFactorCompletion
from surefill.completion.bayes.factor_posterior import FactorPosterior
from surefill.completion.bayes.noise_precision import NoisePrecision
from surefill.completion.bayes.variational import LEAST_NOISE, PosteriorUpdate, VariationalRegression
from surefill.data import Features, Observations
from surefill.data.features import FeatureScale
from surefill.data.groups import compact_positions, gathered
from surefill.data.splits import bernoulli_mask
from surefill.loop import Outcome, ProgressCallback, Status, run

START_NOISE = 0.8
"""The share of the draws' variance that a fit starts from unless told other."""


def some_lines(observations: Observations, share: float, random_state: int) -> Observations:
    """All cells of a random share of the present rows, or of the columns where those are more."""
    by_row = len(observations.by_row) >= len(observations.by_col)
    lines, of_cell = (observations.by_row, observations.rows) if by_row else (observations.by_col, observations.cols)
    drawn = bernoulli_mask(len(lines), share, random_state)
    return observations.select(gathered(drawn, compact_positions(lines.ids, of_cell)))


@dataclass(frozen=True, eq=False)
class VariationalState:
    """Both posteriors and their prior means, the noise they were solved with, the expected squared errors of the rows'
    entries and of all, each weighed by its noise precisions, the lower bound, and its gain."""

    rows: FactorPosterior
    cols: FactorPosterior
    row_prior_means: Floats
    col_prior_means: Floats
    noise: float
    row_errors: Array
    error: float
    bound: float
    gain: float


@dataclass(frozen=True, eq=False)
class VariationalSolver:
    """The solver that :func:`surefill.loop.run` drives: one step learns the prior, then solves columns and rows.

    As long as ``equal_noise`` holds, all noise precisions are 1: what the first sweeps have not fitted yet would be
    taken for noise.
    """

    observations: Observations
    rows: VariationalRegression
    cols: VariationalRegression
    mean: float
    rank: int
    tol: float
    random_state: int
    start_noise: float = START_NOISE
    start: VariationalState | None = None
    equal_noise: bool = True
    task: str = field(default="fitting factors", init=False)

    @classmethod
    def of(
        cls, observations: Observations, rank: int, tol: float, random_state: int, mean: float | None = None
    ) -> Self:
        """The solver for ``observations``; ``mean`` is that of the draws, on [-1, 1], unless given."""
        obs = observations
        if mean is None:
            total = np.einsum("t,t->", obs.values, obs.counts, dtype=np.float64)
            mean = float(obs.unit.to_unit(total / obs.n_draws))
        rows = VariationalRegression.per_row(obs, obs.by_col.ids, mean, obs.unit)
        cols = VariationalRegression.per_col(obs, obs.by_row.ids, mean, obs.unit)
        rows = rows.with_features(obs.row_features, _scale_of(obs.row_features))
        cols = cols.with_features(obs.col_features, _scale_of(obs.col_features))
        return cls(obs, rows, cols, mean, rank, tol, random_state)

    def init(self) -> VariationalState:
        """Where another run stopped, or one sweep from small random factors under a first guess of the prior."""
        if self.start is not None:
            return self.start
        m, n, rng = len(self.rows.groups), len(self.cols.groups), np.random.default_rng(self.random_state)
        rank = min(self.rank, m, n)
        rows, cols = self.rows.start(rank, n, rng), self.cols.start(rank, m, rng)
        variance = float(self.observations.unit.squared_error_to_unit(self.observations.variance))
        return self._first_sweep(rows, cols, self.start_noise * variance + LEAST_NOISE[self.rows.dtype])

    @property
    def n_cells(self) -> int:
        """Cells that are fitted."""
        return len(self.observations)

    def run(self, max_steps: int, progress: ProgressCallback | None) -> Outcome[VariationalState]:
        """Sweeps until the bound hardly rises."""
        return run(self, max_steps=max_steps, progress=progress)

    def from_noise(self, share: float) -> Self:
        """The same, started from this share of the draws' variance as noise."""
        return replace(self, start_noise=share)

    def from_state(self, state: VariationalState) -> Self:
        """The same, gone on with from ``state`` of one of its runs, with noise precisions."""
        return replace(self, start=state, equal_noise=False)

    def sampled(self, share: float) -> VariationalSolver:
        """The solver of a share of the rows, or of the columns where those are more."""
        sample = some_lines(self.observations, share, self.random_state)
        return VariationalSolver.of(sample, self.rank, self.tol, self.random_state, self.mean)

    def adopting(self, state: VariationalState) -> Self:
        """The same, started from the state of other observations."""
        return self.from_state(self.reindexed(state.rows, state.cols, state.noise))

    def widening(self, state: VariationalState, rank: int) -> Self:
        """The same, started from ``state`` of one of its runs with more factors."""
        return self.from_state(self.widened(state, rank))

    def release(self, state: VariationalState) -> None:
        """A state that is not needed any more: nothing to do here."""

    def completion(self, outcome: Outcome[VariationalState]) -> BayesianFactorCompletion:
        """The completion that a run arrived at."""
        state, seen = outcome.state, self.observations
        fitted = state.noise, outcome.status, state.rows, state.cols
        return BayesianFactorCompletion(seen.shape, seen.unit, self.mean, *fitted)

    def widened(self, state: VariationalState, rank: int) -> VariationalState:
        """One sweep from ``state`` with random factors added up to ``rank``."""
        n_new, rng = rank + 1 - state.rows.mean.shape[1], np.random.default_rng([self.random_state, rank])
        return self._first_sweep(state.rows.widened(n_new, rng), state.cols.widened(n_new, rng), state.noise)

    def reindexed(self, rows: FactorPosterior, cols: FactorPosterior, noise: float) -> VariationalState:
        """One sweep from the posteriors of other observations, columns unknown there at their prior."""
        row_ids, col_ids = self.rows.groups.ids, self.cols.groups.ids
        known_rows = rows.reindexed(row_ids, self.rows.draws).with_implicit_reindexed(cols.ids, col_ids)
        known_cols = cols.reindexed(col_ids, self.cols.draws).with_implicit_reindexed(rows.ids, row_ids)
        # Rows come first: columns would be drawn to 0 by those that are not known yet.
        means, s = self.rows.prior_means(known_rows), known_rows.noise_precision
        rows = self.rows.solve(known_rows, means, known_cols, noise, s).posterior
        return self._first_sweep(rows, known_cols, noise)

    def step(self, state: VariationalState) -> VariationalState:
        """The priors, the rows' noise precisions and the noise given the factors, then all columns, then all rows."""
        rows, row_means = self.rows.with_learnt_prior(state.rows, state.row_prior_means, self.cols)
        cols, col_means = self.cols.with_learnt_prior(state.cols, state.col_prior_means, self.rows)
        if not self.equal_noise:
            strayed = self.rows.strayed(rows, row_means)
            learnt = _relearnt(rows.noise_precision, state.row_errors / state.noise + strayed)
            rows = replace(rows, noise_precision=learnt)
        noise = float(rows.noise_precision.mean[:-1] @ state.row_errors) / self.observations.n_draws
        return self._sweep(rows, cols, row_means, col_means, noise, state.bound)

    def _first_sweep(self, rows: FactorPosterior, cols: FactorPosterior, noise: float) -> VariationalState:
        """A sweep from posteriors that were not learnt from these observations."""
        means = self.rows.prior_means(rows), self.cols.prior_means(cols)
        return self._sweep(rows, cols, *means, noise, -np.inf)

    def _sweep(
        self,
        rows: FactorPosterior,
        cols: FactorPosterior,
        row_means: Floats,
        col_means: Floats,
        noise: float,
        bound_before: float,
    ) -> VariationalState:
        """All columns given the rows, their noise precisions, then all rows given the columns; the lower bound then."""
        new_cols = self.cols.solve(cols, col_means, rows, noise, cols.noise_precision)
        of_cols = self.cols.bound(new_cols.posterior, col_means)
        cols, gained = with_noise_of_columns(self.cols, new_cols, col_means, None if self.equal_noise else noise)
        new_rows = self.rows.solve(rows, row_means, cols, noise, rows.noise_precision)
        error, of_rows = new_rows.error, self.rows.bound(new_rows.posterior, row_means)
        bound = bound_on_evidence(error, noise, self.observations.n_draws) + of_rows + of_cols + gained
        return VariationalState(
            rows=new_rows.posterior,
            cols=cols,
            row_prior_means=row_means,
            col_prior_means=col_means,
            noise=noise,
            row_errors=new_rows.errors,
            error=error,
            bound=bound,
            gain=bound - bound_before,
        )

    def measure(self, state: VariationalState) -> float:
        """The lower bound on the evidence, less a constant."""
        return state.bound

    def terminate(self, state: VariationalState) -> Status | None:
        """Converged once a sweep raises the bound by less than ``tol`` per draw."""
        return Status.CONVERGED if state.gain < self.tol * self.observations.n_draws else None


def bound_on_evidence(error: float, noise: float, n_draws: int) -> float:
    """The draws' part of the lower bound, less a constant."""
    return float(-(error / noise + n_draws * np.log(noise)) / 2)


def with_noise_of_columns(
    regression: VariationalRegression, update: PosteriorUpdate, prior_means: Floats, noise: float | None
) -> tuple[FactorPosterior, float]:
    """The updated columns with noise precisions learnt from their errors, and the bound's gain; None: as they are."""
    cols = update.posterior
    if noise is None:
        return cols, 0.0
    strayed, before = regression.strayed(cols, prior_means), cols.noise_precision
    learnt = _relearnt(before, update.errors / noise + strayed)
    gained = learnt.bound - before.bound - float((learnt.mean - before.mean)[:-1] @ strayed) / 2
    return replace(cols, noise_precision=learnt), gained


def _scale_of(features: Features | None) -> FeatureScale | None:
    return None if features is None else FeatureScale.of(features)


def _relearnt(noise_precision: NoisePrecision, errors: Array) -> NoisePrecision:
    return noise_precision.updated(errors).with_best_strength()
