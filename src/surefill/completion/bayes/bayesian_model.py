"""Bayesian matrix factorisation by variational inference."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal, Protocol, Self, TypeVar

import numpy as np

from surefill.arrays import Array
from surefill.completion.bayes.bayesian_completion import BayesianFactorCompletion
from surefill.completion.bayes.dated import DatedSolver, dated_factors
from surefill.completion.bayes.variational_solver import START_NOISE, VariationalSolver, some_lines
from surefill.data import COMPACT_CELLS, Observations
from surefill.data.splits import split_entries
from surefill.errors import InputError, invalid_parameter, is_number, is_seed
from surefill.loop import Outcome, ProgressCallback, run
from surefill.parallel import one_blas_thread
from surefill.registry import storable

START_NOISES = (START_NOISE, 0.1)
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


State = TypeVar("State")


class GrowingSolver(Protocol[State]):
    """What the model needs of a solver, be it of a table in memory or of blocks of rows that lie elsewhere."""

    @property
    def rank(self) -> int:
        """Factors that it fits."""
        ...

    @property
    def n_cells(self) -> int:
        """Cells that are fitted."""
        ...

    def measure(self, state: State) -> float:
        """The lower bound on the evidence, less a constant."""
        ...

    def run(self, max_steps: int, progress: ProgressCallback | None) -> Outcome[State]:
        """Sweeps until the bound hardly rises."""
        ...

    def from_noise(self, share: float) -> Self:
        """The same, started from this share of the draws' variance as noise."""
        ...

    def from_state(self, state: State) -> Self:
        """The same, gone on with from a state of one of its runs."""
        ...

    def sampled(self, share: float) -> GrowingSolver[State]:
        """The solver of a share of the rows, or of the columns where those are more."""
        ...

    def adopting(self, state: State) -> Self:
        """The same, started from the state of a sample."""
        ...

    def widening(self, state: State, rank: int) -> Self:
        """The same, started from a state of one of its runs with more factors."""
        ...

    def release(self, state: State) -> None:
        """Forget a state that is not needed any more."""
        ...


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
            observations = some_lines(observations, share, self.random_state)
        train, held_out = split_entries(observations, HELD_OUT, self.random_state)
        return replace(self, rank=max(_while_it_pays(replace(self, rank=most).growth(train, progress), held_out)))

    def grown_on(
        self, train: Observations, held_out: Observations, progress: ProgressCallback | None = None
    ) -> tuple[Self, dict[int, BayesianFactorCompletion]]:
        """The same model with the rank that was given, or with one that predicts ``held_out`` well.

        With it the completions of ``train`` that it grew through, by their ranks.
        """
        rank = _most_factors(train) if self.rank == "auto" else min(self.rank, *train.shape)
        growth = replace(self, rank=rank).growth(train, progress)
        grown = _while_it_pays(growth, held_out) if self.rank == "auto" else {each.rank: each for each in growth}
        whole = {rank: each.with_unseen(train).with_covariances(train) for rank, each in grown.items()}
        return replace(self, rank=max(whole)), whole

    def growth(
        self, observations: Observations, progress: ProgressCallback | None = None
    ) -> Iterator[BayesianFactorCompletion]:
        """Completions of ten, twenty, ... and ``rank`` factors, each gone on with from the one before."""
        assert self.rank != "auto"
        target = min(self.rank, *observations.shape)
        solver = VariationalSolver.of(observations, min(target, FIRST_RANK), self.tol, self.random_state)
        for outcome in self.grow(solver, target, progress):
            yield solver.completion(outcome)

    def grow(
        self, solver: GrowingSolver[State], target: int, progress: ProgressCallback | None = None
    ) -> Iterator[Outcome[State]]:
        """What ``solver`` arrives at with ten, twenty, ... and ``target`` factors."""
        with one_blas_thread():  # its matrices are of the rank's size; the kernels use all cores by themselves
            outcome = self._maximise(solver, progress)
        yield outcome
        rank = solver.rank
        while rank < target:
            rank = min(2 * rank, target)
            with one_blas_thread():
                wider = solver.widening(outcome.state, rank)
                outcome = wider.run(min(GROWTH_SWEEPS, self.max_sweeps), progress)
            yield outcome

    def with_few_factors(self, most: int) -> Self:
        """The same with at most so many factors; itself where it has no more."""
        return self if self.rank != "auto" and self.rank <= most else replace(self, rank=most)

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
            again = solver.from_state(solver.reindexed(start.rows, start.cols, start.noise))
            outcome = again.run(min(GROWTH_SWEEPS, self.max_sweeps), progress)
        return solver.completion(outcome).with_unseen(observations).with_covariances(observations)

    def _maximise(self, solver: GrowingSolver[State], progress: ProgressCallback | None) -> Outcome[State]:
        """A few sweeps from each start, then the better one to its end; on a sample first where cells are many."""
        if solver.n_cells >= SAMPLED_CELLS:
            state = self._maximise(solver.sampled(SAMPLE_SHARE), progress).state
            return solver.adopting(state).run(self.max_sweeps, progress)
        first_sweeps = min(FIRST_SWEEPS, self.max_sweeps - 1)
        started = [solver.from_noise(noise).run(first_sweeps, progress).state for noise in START_NOISES]
        best = max(started, key=solver.measure)
        for state in started:
            if state is not best:
                solver.release(state)
        return solver.from_state(best).run(self.max_sweeps - first_sweeps, progress)

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


def _most_factors(observations: Observations) -> int:
    """10, 20, 40 or 80: up to how many factors are tried."""
    if len(observations) < FEWEST_CELLS or min(observations.shape) <= FIRST_RANK:
        return FIRST_RANK
    n_lines = len(observations.by_row) + len(observations.by_col)
    most = min(FACTORS_PER_CELL * len(observations) / n_lines, MOST_FACTORS)
    return FIRST_RANK << max(0, int(np.log2(most / FIRST_RANK)))


def _while_it_pays(
    growth: Iterator[BayesianFactorCompletion], held_out: Observations
) -> dict[int, BayesianFactorCompletion]:
    """Completions by their rank, as long as more factors lower the squared errors of the held-out cells by enough."""
    first = next(growth)
    grown, best = {first.rank: first}, _held_out_errors(first, held_out)
    for completion in growth:
        errors = _held_out_errors(completion, held_out)
        gain = best - errors
        if gain.sum() < LEAST_GAIN * best.sum() or gain.sum() < np.sqrt(len(gain)) * gain.std():
            break
        grown[completion.rank], best = completion, errors
    return grown


def _held_out_errors(completion: BayesianFactorCompletion, held_out: Observations) -> Array:
    """Squared errors of cells that were held out, each as often as it was drawn."""
    return held_out.counts * held_out.squared_errors(completion.at(held_out.rows, held_out.cols))
