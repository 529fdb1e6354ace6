"""Bayesian matrix factorisation by variational inference."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Literal, Self

import numpy as np

from surefill.arrays import Array, Floats
from surefill.completion.bayes.bayesian_completion import BayesianFactorCompletion
from surefill.completion.bayes.dated import DatedSolver, dated_factors
from surefill.completion.bayes.noise_precision import NoisePrecision
from surefill.completion.bayes.variational import LEAST_NOISE, FactorPosterior, VariationalRegression
from surefill.data import COMPACT_CELLS, Features, Observations
from surefill.data.features import FeatureScale
from surefill.data.splits import split_entries
from surefill.errors import InputError, invalid_parameter, is_number, is_seed
from surefill.loop import Outcome, ProgressCallback, Status, run
from surefill.parallel import one_blas_thread
from surefill.registry import storable

START_NOISES = (0.8, 0.1)
"""Shares of the draws' variance to start from. After the first all factors may vanish for good where little was seen;
after the second they fit some noise before they shrink."""

FIRST_SWEEPS = 6
"""Sweeps with equal noise that each start is given before the better one goes on; learning noise precisions from the
first sweep on cost accuracy (docs/benchmarks.md)."""


SAMPLED_CELLS = 4 * COMPACT_CELLS
"""From this many cells on, two million, a fit starts on a sample: ten million ratings then take 11 processor seconds
instead of 17, with the same error; so do MovieLens 1M's, cut to a sample of an eighth (docs/benchmarks.md)."""

SAMPLE_SHARE = 1 / 8
"""The part of the rows, or of the columns where those are more, that a fit of many cells starts with."""

FIRST_RANK = 10
"""Factors that a fit starts with."""

GROWTH_SWEEPS = 8
"""Sweeps after each growth: with 15 or 60 held-out errors on MovieLens 100K were larger, on drug responses the same."""

HELD_OUT = 0.1
"""The share of cells held out where the rank is to be chosen."""

DRIFTS = (1 / 64, 1 / 16, 1 / 4, 1.0, 4.0)
"""Variances of a row's drift that are tried, in units of the noise: of standard deviations 1/8, 1/4, ..., 2 of it."""

DATED_SWEEPS = 10
"""Sweeps with dates, from the posterior without: held-out errors fell by 1% in ten of them, 0.02% in the last."""

LEAST_GAIN = 0.0025
"""More factors are tried while the last ones lowered the squared error of the held-out cells by this share, and by more
than one standard error: less is not worth the time, which grows with the square of the rank (docs/benchmarks.md)."""

FACTORS_PER_CELL, MOST_FACTORS = 5, 80
"""Most factors that are tried, for each cell that rows and columns were seen at on average, and in any case: complete
tables, such as those of drug responses or of digits, have use for more factors than a row has cells."""

FEWEST_CELLS = 5000
"""Cells from which on the rank is chosen: of fewer, the tenth held out cannot tell such a gain from chance."""


@storable
@dataclass(frozen=True)
class BayesianFactorModel:
    """y_t ~ N(mean + b_i + c_j + p_i . q_j, noise / (s_i t_j)) at (i, j); x_i = (b_i, p_i), z_j = (c_j, q_j):

        x_i ~ N(a + sum_{j seen in row i} g_j / sqrt(n_i), (s_i L)^-1),  s_i ~ Gamma(k/2, rate k/2),
        g_j ~ N(g_0, (3 L)^-1),  a, g_0 ~ N(0, (3 L)^-1),  and z_j with K, t_j, h_i, h_0, b likewise

    on values mapped to [-1, 1]. The posterior is approximated by independent normals, q(x_i) = N(., diag), q(z_j)
    likewise, and gammas for s_i and t_j; noise, L, K, a, b, g, h and k are learnt with it, all by raising one lower
    bound on the evidence, which never falls: nothing is searched and no cell is held out. The bound may have several
    local maxima, so that two starts are given a few sweeps each and the better one goes on. g and h, implicit factors,
    say that *which* cells a row was seen at tells something about the row before any value does, and by g_0 *how many*;
    s and t, noise precisions, that some rows and columns are less noisy than others, and are learnt from more. One
    sweep costs 2 nnz rank^2 multiply-adds, as one of :class:`FactorModel` does, and O((m + n) rank) memory beside the
    observations; the result's variances take one pass more and O((m + n) rank^2), once they are asked for.

    More than ten factors are grown: ten are fitted, and the posterior goes on, a few sweeps each time, with twice as
    many, the new ones small and random. That is faster than to start with all of them, and at least as accurate
    (docs/benchmarks.md). From two million cells on the starts are tried on an eighth of the rows, or of the columns if
    they are more; from half a million on tables are in single precision.

    Parameters
    ----------
    rank : number of factors; fewer are used where the matrix is smaller, and the prior shrinks those without use.
        "auto" grows as long as cells that are held out are predicted better by it, up to five times as many factors as
        rows and columns were seen times on average, and 80.
    max_sweeps : stop after this many sweeps of the better start, at least 2.
    tol : stop once a sweep raises the bound by less than this per draw.
    random_state : seed of the starting factors; same seed, same result.
    drift : where observations have times, the variance of a row's drift around its mean, in units of the noise
        (:mod:`surefill.completion.bayes.dated`); values at known times are then predicted by it. "auto" tries a few on
        a tenth of the cells, none among them; 0 leaves times alone.

    Examples
    --------
    >>> from surefill.datasets import make_low_rank
    >>> sim = make_low_rank((40, 30), rank=2, n_draws=900, random_state=0)
    >>> completion = BayesianFactorModel(rank=2).fit(sim.observations)
    >>> bool(np.mean((completion.dense() - sim.truth) ** 2) < 0.01)
    True
    """

    rank: int | Literal["auto"] = "auto"
    max_sweeps: int = 200
    tol: float = 1e-3
    random_state: int = 0
    drift: float | Literal["auto"] = "auto"

    def fit(self, observations: Observations, progress: ProgressCallback | None = None) -> BayesianFactorCompletion:
        """Complete the whole matrix."""
        self._validate()
        chosen = self.chosen_for(observations, progress)
        *_, grown = chosen.growth(observations, progress)
        return chosen.with_dates(grown, observations, progress).with_unseen(observations).with_covariances(observations)

    def chosen_for(self, observations: Observations, progress: ProgressCallback | None = None) -> Self:
        """The same model with the rank that was given, or with one chosen on a tenth of the cells, of two million or of
        an eighth of the lines where there are more."""
        self._validate()
        if observations.times is not None and self.drift == "auto":
            drift = self._chosen_drift(observations, progress)
            return replace(self, drift=drift).chosen_for(observations, progress)
        if self.rank != "auto":
            return self
        most = _most_factors(observations)
        if most == FIRST_RANK:
            return replace(self, rank=FIRST_RANK)
        if len(observations) > SAMPLED_CELLS:
            share = max(SAMPLE_SHARE, SAMPLED_CELLS / len(observations))
            observations = _some_lines(observations, share, self.random_state)
        train, held_out = split_entries(observations, HELD_OUT, self.random_state)
        growth = replace(self, rank=most).growth(train, progress)
        rank, best = FIRST_RANK, _held_out_errors(next(growth), held_out)
        for grown in growth:
            errors = _held_out_errors(grown, held_out)
            gain = best - errors
            if gain.sum() < LEAST_GAIN * best.sum() or gain.sum() < np.sqrt(len(gain)) * gain.std():
                break
            rank, best = grown.rank, errors
        return replace(self, rank=rank)

    def growth(
        self, observations: Observations, progress: ProgressCallback | None = None
    ) -> Iterator[BayesianFactorCompletion]:
        """Completions of ten, twenty, ... and ``rank`` factors, each gone on with from the one before."""
        assert self.rank != "auto"
        target = min(self.rank, *observations.shape)
        solver = VariationalSolver.of(observations, min(target, FIRST_RANK), self.tol, self.random_state)
        with one_blas_thread():  # its matrices are of the rank's size; the kernels use all cores by themselves
            outcome = self._maximise(solver, progress)
        yield _completion(observations, solver.mean, outcome)
        rank = solver.rank
        while rank < target:
            rank = min(2 * rank, target)
            with one_blas_thread():
                grown = replace(solver, start=solver.widened(outcome.state, rank), equal_noise=False)
                outcome = run(grown, max_steps=min(GROWTH_SWEEPS, self.max_sweeps), progress=progress)
            yield _completion(observations, solver.mean, outcome)

    def with_dates(
        self, completion: BayesianFactorCompletion, observations: Observations, progress: ProgressCallback | None = None
    ) -> BayesianFactorCompletion:
        """``completion`` of these observations, and a posterior that knows their times, gone on with from it."""
        if observations.times is None or not self.drift:
            return completion
        assert self.drift != "auto"
        solver = VariationalSolver.of(observations, completion.rank, self.tol, self.random_state, completion.mean)
        with one_blas_thread():
            start = solver.reindexed(completion.rows, completion.cols, completion.noise)
            dated = DatedSolver.of(solver, start, self.drift)
            outcome = run(dated, max_steps=min(DATED_SWEEPS, self.max_sweeps), progress=progress)
        return replace(completion, dated=dated_factors(outcome.state))

    def _chosen_drift(self, observations: Observations, progress: ProgressCallback | None) -> float:
        """The drift that predicts a tenth of the cells best, after few factors and sweeps; 0 where none does."""
        if len(observations) < 2:
            return 0.0
        train, held_out = split_entries(observations, HELD_OUT, self.random_state)
        few = replace(self, rank=FIRST_RANK, drift=0.0, max_sweeps=DATED_SWEEPS)
        *_, plain = few.growth(train, progress)

        def error(drift: float) -> float:
            dated = replace(few, drift=drift, max_sweeps=2).with_dates(plain, train, progress)
            times = held_out.times if drift else None
            errors = held_out.squared_errors(dated.at(held_out.rows, held_out.cols, times))
            return float(np.average(errors, weights=held_out.counts))

        return min((0.0, *DRIFTS), key=error)

    def fit_from(
        self,
        start: BayesianFactorCompletion,
        observations: Observations,
        progress: ProgressCallback | None = None,
    ) -> BayesianFactorCompletion:
        """Complete the whole matrix from the posterior of another fit, at most a few sweeps: for cells that come after.

        Rows and columns that ``start`` knows begin where they are there, all others at its prior; rank, mean and bounds
        are those of ``start``. Only ``tol`` and ``max_sweeps`` of this model matter.

        >>> from surefill.datasets import make_low_rank
        >>> seen = make_low_rank((40, 30), rank=2, n_draws=900, random_state=0).observations
        >>> first = BayesianFactorModel(rank=2).fit(seen.select(seen.rows < 30))
        >>> BayesianFactorModel().fit_from(first, seen).shape
        (40, 30)
        """
        self._validate()
        if observations.unit != start.unit:
            raise InputError("a fit goes on from one of the same bounds only; give both the same 'bounds'.")
        solver = VariationalSolver.of(observations, start.rank, self.tol, self.random_state, start.mean)
        with one_blas_thread():
            again = replace(solver, start=solver.reindexed(start.rows, start.cols, start.noise), equal_noise=False)
            outcome = run(again, max_steps=min(GROWTH_SWEEPS, self.max_sweeps), progress=progress)
        return _completion(observations, solver.mean, outcome).with_unseen(observations).with_covariances(observations)

    def _maximise(self, solver: VariationalSolver, progress: ProgressCallback | None) -> Outcome[VariationalState]:
        """A few sweeps from each start, then the better one to its end; on a sample first where cells are many."""
        if len(solver.observations) >= SAMPLED_CELLS:
            return self._maximise_from_sample(solver, progress)
        first_sweeps = min(FIRST_SWEEPS, self.max_sweeps - 1)
        started = [
            run(replace(solver, start_noise=noise), max_steps=first_sweeps, progress=progress).state
            for noise in START_NOISES
        ]
        best = replace(solver, start=max(started, key=solver.measure), equal_noise=False)
        return run(best, max_steps=self.max_sweeps - first_sweeps, progress=progress)

    def _maximise_from_sample(
        self, solver: VariationalSolver, progress: ProgressCallback | None
    ) -> Outcome[VariationalState]:
        """The fit of a part of the rows (or columns) to its end, then sweeps over all from there."""
        sample = _some_lines(solver.observations, SAMPLE_SHARE, self.random_state)
        small = VariationalSolver.of(sample, solver.rank, self.tol, self.random_state, solver.mean)
        state = self._maximise(small, progress).state
        start = solver.reindexed(state.rows, state.cols, state.noise)
        return run(replace(solver, start=start, equal_noise=False), max_steps=self.max_sweeps, progress=progress)

    def _validate(self) -> None:
        if self.rank != "auto" and not (isinstance(self.rank, int | np.integer) and self.rank >= 1):
            raise invalid_parameter("BayesianFactorModel", "rank", "a whole number of at least 1, or 'auto'", self.rank)
        if not (isinstance(self.max_sweeps, int | np.integer) and self.max_sweeps >= 2):
            raise invalid_parameter(
                "BayesianFactorModel", "max_sweeps", "a whole number of at least 2", self.max_sweeps
            )
        if not (is_number(self.tol) and self.tol >= 0):
            raise invalid_parameter("BayesianFactorModel", "tol", "a number of at least 0", self.tol)
        if not is_seed(self.random_state):
            raise invalid_parameter(
                "BayesianFactorModel", "random_state", "a whole number of at least 0", self.random_state
            )
        if self.drift != "auto" and not (is_number(self.drift) and 0 <= self.drift < np.inf):
            raise invalid_parameter("BayesianFactorModel", "drift", "a number of at least 0, or 'auto'", self.drift)


def _some_lines(observations: Observations, share: float, random_state: int) -> Observations:
    """All cells of a random share of the present rows, or of the columns where those are more."""
    by_row = len(observations.by_row) >= len(observations.by_col)
    groups = observations.by_row if by_row else observations.by_col
    size = max(1, round(share * len(groups)))
    chosen = np.random.default_rng(random_state).choice(groups.ids, size, replace=False)
    return observations.select(np.isin(observations.rows if by_row else observations.cols, chosen))


def _most_factors(observations: Observations) -> int:
    """10, 20, 40 or 80: up to how many factors are tried."""
    if len(observations) < FEWEST_CELLS or min(observations.shape) <= FIRST_RANK:
        return FIRST_RANK
    n_lines = len(observations.by_row) + len(observations.by_col)
    most = min(FACTORS_PER_CELL * len(observations) / n_lines, MOST_FACTORS)
    return FIRST_RANK << max(0, int(np.log2(most / FIRST_RANK)))


def _held_out_errors(completion: BayesianFactorCompletion, held_out: Observations) -> Array:
    """Squared errors of cells that were held out, each as often as it was drawn."""
    return held_out.counts * held_out.squared_errors(completion.at(held_out.rows, held_out.cols))


def _completion(
    observations: Observations, mean: float, outcome: Outcome[VariationalState]
) -> BayesianFactorCompletion:
    state = outcome.state
    return BayesianFactorCompletion(
        shape=observations.shape,
        unit=observations.unit,
        mean=mean,
        noise=state.noise,
        status=outcome.status,
        rows=state.rows,
        cols=state.cols,
    )


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
    start_noise: float = START_NOISES[0]
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
        rows, cols = FactorPosterior.start(self.rows, rank, n, rng), FactorPosterior.start(self.cols, rank, m, rng)
        variance = float(self.observations.unit.squared_error_to_unit(self.observations.variance))
        return self._first_sweep(rows, cols, self.start_noise * variance + LEAST_NOISE[self.rows.dtype])

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
        cols, of_cols = new_cols.posterior, new_cols.bound
        if not self.equal_noise:
            strayed, before = self.cols.strayed(cols, col_means), cols.noise_precision
            learnt = _relearnt(before, new_cols.errors / noise + strayed)
            of_cols += learnt.bound - before.bound - float((learnt.mean - before.mean)[:-1] @ strayed) / 2
            cols = replace(cols, noise_precision=learnt)
        new_rows = self.rows.solve(rows, row_means, cols, noise, rows.noise_precision)
        error, n_draws = new_rows.error, self.observations.n_draws
        bound = -(error / noise + n_draws * np.log(noise)) / 2 + new_rows.bound + of_cols
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


def _scale_of(features: Features | None) -> FeatureScale | None:
    return None if features is None else FeatureScale.of(features)


def _relearnt(noise_precision: NoisePrecision, errors: Array) -> NoisePrecision:
    return noise_precision.updated(errors).with_best_strength()
