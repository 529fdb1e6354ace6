"""Predictions of every observed cell by completions that did not see it."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefill.arrays import Array, IntArray
from surefill.completion import BayesianFactorCompletion, Completion, CompletionAlgorithm
from surefill.data import COMPACT_CELLS, Observations
from surefill.data.compact import joined
from surefill.data.groups import Groups, compact_positions, gathered, locate
from surefill.data.splits import bernoulli_mask, fold_numbers
from surefill.errors import InputError
from surefill.loop import ProgressCallback
from surefill.losses import SQUARED, Loss
from surefill.parallel import current_map
from surefill.registry import storable
from surefill.risk.line_curves import LineSummaries
from surefill.risk.noise_factors import TINY
from surefill.waiting import Waiting, part

FEWEST = 20
"""Cells that each part of a split into blocks needs: the mean of fewer losses has an error of a third or more."""

N_FOLDS, MOST_FOLDS = 5, 20
"""Folds of the cells: each completion sees four fifths of them, as a usual cross-validation has it, or more."""

DETAILED_CELLS, FOLDED_CELLS = 20_000, 1_600_000
"""From the first on, and up to ``COMPACT_CELLS``, there are as many folds as fit the second number of cells in all, and
parts of the variance and summaries of rows and columns are looked at: fewer cells do not tell so much, and more would
take long (docs/benchmarks.md)."""

MANY_CELLS, ENOUGH_RESIDUALS, LEAST_SHARE = 2_000_000, 2_000_000, 0.1
"""Beyond ``MANY_CELLS`` the risk is learnt on one fold: a fifth of the cells, of more than ten million cells two
million, but at least a tenth. The variance of a row of a hundred cells is then estimated from ten of them, to 45% if
errors are normal, and shrunk towards that of the others; the curves that all cells share are known far better."""

FOLD_FACTORS = 20
"""Most factors of the completions of folds from ``COMPACT_CELLS`` cells on. On MovieLens 1M, completed by 80 factors,
AURC is .4262 with 20 in each fold and .4258 with 40 in twice the time."""

MOST_IN_BLOCKS = 2_000_000
"""Largest number of cells, from randomly drawn rows, on which the one factor for cells without support is measured."""


@storable
@dataclass(frozen=True, eq=False)
class CountVariance:
    """1 + 1 / (1 + n_i) + 1 / (1 + n_j) with n_i and n_j the draws in row i and column j:

    the variance of a draw, in units of the noise, where rows and columns have an effect each, as varied as the noise,
    and nothing else. The tables end with a 0 for rows and columns without draws.
    """

    row_ids: IntArray
    row_draws: Array
    col_ids: IntArray
    col_draws: Array

    @classmethod
    def of(cls, observations: Observations) -> CountVariance:
        """Count the draws."""
        by_row, by_col = observations.by_row, observations.by_col
        return cls(by_row.ids, _draws(by_row, observations.counts), by_col.ids, _draws(by_col, observations.counts))

    def variance(self, rows: ArrayLike, cols: ArrayLike) -> NDArray[np.float64]:
        """At the pairs (rows[t], cols[t])."""
        of_row = self.row_draws[locate(self.row_ids, np.asarray(rows))]
        of_col = self.col_draws[locate(self.col_ids, np.asarray(cols))]
        return np.asarray(1.0 + 1.0 / (1.0 + of_row) + 1.0 / (1.0 + of_col))

    def fold_in(self, observations: Observations) -> Self:
        """The same for other rows, seen at ``observations``."""
        by_row = observations.by_row
        return replace(self, row_ids=by_row.ids, row_draws=_draws(by_row, observations.counts))


def _draws(groups: Groups, counts: NDArray[np.int64]) -> Array:
    return np.append(np.add.reduceat(groups.take(counts), groups.starts[:-1]), 0).astype(np.float64)


@storable
@dataclass(frozen=True, eq=False)
class Evidence:
    """What the risk of entries is computed from: their predictions and the variance of these.

    ``spread`` is where the variance v comes from; None for the completion itself. ``shift`` is added to log v. Where
    the risk was learnt from another completion, it is the log of the ratio of that one's noise to that of the one which
    v comes from, so that v is in the same units.
    """

    completion: Completion
    spread: CountVariance | BayesianFactorCompletion | None
    shift: float = 0.0

    @classmethod
    def of(
        cls,
        observations: Observations,
        completion: Completion,
        learnt_from: Completion | None = None,
        spread: BayesianFactorCompletion | None = None,
    ) -> Self:
        """For ``completion``, fitted on ``observations``; where it has no variance, draws are counted."""
        noises = [getattr(each, "noise", None) for each in (learnt_from, spread or completion)]
        shift = 0.0 if None in noises else float(np.log(noises[0] / noises[1]))  # type: ignore[operator]
        counted = None if hasattr(completion, "variance") else CountVariance.of(observations)
        return cls(completion, spread or counted, shift)

    def fold_in(self, observations: Observations, completion: Completion | None = None) -> Self:
        """The same for other rows, seen at ``observations`` and completed by ``completion``, if given."""
        spread = None if self.spread is None else self.spread.fold_in(observations)
        completion = self.completion.fold_in(observations) if completion is None else completion
        return replace(self, completion=completion, spread=spread)

    def log_parts(self, rows: ArrayLike, cols: ArrayLike) -> tuple[Array, Array]:
        """Logs of what the uncertainty of the row and of the column add to v, in the units that v is in."""
        source = self.completion if self.spread is None else self.spread
        of_row, of_col = source.variance_parts(rows, cols)  # type: ignore[union-attr]
        return np.log(np.maximum(of_row, TINY)) + self.shift, np.log(np.maximum(of_col, TINY)) + self.shift

    def log_variance(self, rows: ArrayLike, cols: ArrayLike) -> Array:
        """log v at the pairs (rows[t], cols[t])."""
        source = self.completion if self.spread is None else self.spread
        log_variance = np.log(source.variance(rows, cols))  # type: ignore[union-attr]
        return np.asarray(log_variance + self.shift if self.shift else log_variance)


def folds_for(n_cells: int) -> int:
    """Into how many folds so many cells are split, unless they are thinned.

    >>> folds_for(10_000), folds_for(80_000), folds_for(200_000), folds_for(10**6)
    (5, 20, 8, 5)
    """
    return int(np.clip(FOLDED_CELLS // n_cells, N_FOLDS, MOST_FOLDS)) if _in_detail(n_cells) else N_FOLDS


def _in_detail(n_cells: int) -> bool:
    return DETAILED_CELLS <= n_cells < COMPACT_CELLS


class CrossFit:
    """Completions of the observations, each fitted without one of ``n_folds`` random folds of the cells.

    A fold is fitted once, when it is first needed: the first serves as the trial fit, and the risk, the expectation of
    ``loss``, is learnt from all of them. Of many cells, folds are completed with few factors, and the first also with
    all of them, which tells how large losses are then. Beyond two million cells there is one fold, of a tenth to a
    fifth of the cells, and that with all factors.

    Examples
    --------
    >>> import surefill as sf
    >>> seen = sf.datasets.make_low_rank((30, 20), rank=2, n_draws=400, random_state=0).observations
    >>> folds = CrossFit(seen, sf.completion.FactorModel(rank=2), n_folds=4)
    >>> train, held_out = folds.split(0)
    >>> len(train) + len(held_out) == len(seen)
    True
    """

    def __init__(
        self,
        observations: Observations,
        algorithm: CompletionAlgorithm,
        n_folds: int | None = None,
        random_state: int = 0,
        progress: ProgressCallback | None = None,
        loss: Loss = SQUARED,
    ) -> None:
        if len(observations) < 2:
            raise InputError("fitting without a part of the cells needs at least 2 observed cells; there is 1.")
        self.observations, self.loss = observations, loss
        n_cells = len(observations)
        self.thinned = n_cells > MANY_CELLS
        self.detailed = _in_detail(n_cells)
        n_folds = folds_for(n_cells) if n_folds is None else n_folds
        self.n_folds = 1 if self.thinned else min(n_folds, n_cells)
        self._seed = random_state
        if self.thinned:  # 0 inside the one fold, 1 outside
            share = min(1 / n_folds, max(LEAST_SHARE, ENOUGH_RESIDUALS / n_cells))
            self._fold = (~bernoulli_mask(n_cells, share, random_state)).view(np.uint8)
        else:
            self._fold = fold_numbers(n_cells, self.n_folds, random_state)
        self._progress = progress
        self._many = COMPACT_CELLS <= n_cells <= MANY_CELLS
        self._use(algorithm)

    def _use(self, algorithm: CompletionAlgorithm) -> None:
        """Complete by ``algorithm`` from here on; folds of many cells with few factors, if it has them."""
        few = getattr(algorithm, "with_few_factors", None)
        self.algorithm: CompletionAlgorithm = algorithm
        self._of_folds: CompletionAlgorithm = few(FOLD_FACTORS) if few is not None and self._many else algorithm
        self._coarse = self._of_folds is not algorithm
        self._with_all_factors: dict[int, Completion] = {}
        self._completions: dict[int, Completion] = {} if self._coarse else self._with_all_factors

    def choose(self) -> CompletionAlgorithm:
        """Settle what the algorithm leaves open to the observations, once for all folds.

        Of many cells the rank is chosen on the first fold, where the algorithm can: what was grown without that fold
        to choose it is then what a fit without it arrives at.
        """
        grown_on, choose = (getattr(self.algorithm, name, None) for name in ("grown_on", "chosen_for"))
        if self._many and grown_on is not None:
            chosen, grown = grown_on(*self.split(0), self._progress)
            self._use(chosen)
            self._with_all_factors[0] = grown[chosen.rank]
            if self._coarse and FOLD_FACTORS in grown:
                self._completions[0] = grown[FOLD_FACTORS]
        elif choose is not None:
            self._use(choose(self.observations, self._progress))
        return self.algorithm

    def fitted_folds(self) -> list[int]:
        """The folds that are fitted already; the first is fitted if none is."""
        self.fold_completion(0)
        return sorted(self._completions)

    def positions(self, fold: int) -> NDArray[np.int64]:
        """Positions of the cells of this fold among the observations."""
        return np.flatnonzero(self._fold == fold)

    def split(self, fold: int) -> tuple[Observations, Observations]:
        """(the other cells, the cells of this fold)."""
        return self._outside(fold), self.observations.select(self._fold == fold)

    def completion(self, fold: int) -> Completion:
        """The completion of the cells outside this fold, with all factors."""
        if fold not in self._with_all_factors:
            self._with_all_factors[fold] = self._fitted(self.algorithm, fold, self._progress)
        return self._with_all_factors[fold]

    def fold_completion(self, fold: int) -> Completion:
        """The same, of many cells with few factors: what the risk is learnt from."""
        if fold not in self._completions:
            self._completions[fold] = self._fitted(self._of_folds, fold, self._progress)
        return self._completions[fold]

    def fit_all(self) -> None:
        """Fit the folds that are not fitted yet, in parallel."""
        missing = [fold for fold in range(self.n_folds) if fold not in self._completions]
        # Steps of several folds come from several threads at once, which only a progress bar can make sense of.
        progress = self._progress if isinstance(self._progress, Waiting) else None
        with part(progress, "cross-fitting"):
            fitted = current_map().map(lambda fold: self._fitted(self._of_folds, fold, progress), missing)
        self._completions.update(zip(missing, fitted, strict=True))

    def _fitted(self, algorithm: CompletionAlgorithm, fold: int, progress: ProgressCallback | None) -> Completion:
        """The completion of the cells outside a fold; of very many cells, without what keeps these in memory."""
        completion = algorithm.fit(self._outside(fold), progress)
        thinned = self.thinned and isinstance(completion, BayesianFactorCompletion)
        return completion.values_only() if thinned else completion  # type: ignore[attr-defined]

    def _outside(self, fold: int) -> Observations:
        return self.observations.select(self._fold != fold)

    def evidence(self, completion: Completion) -> Evidence:
        """The evidence of ``completion``, which was fitted on all cells.

        Where folds have few factors, so has the completion that variances come from: what was learnt of them is about
        such ones, and a variance costs the square of the rank.
        """
        if not (self.thinned or self._coarse):
            return Evidence.of(self.observations, completion)
        fit_from, learnt_from = getattr(self._of_folds, "fit_from", None), self.fold_completion(0)
        few = fit_from(learnt_from, self.observations, self._progress) if self._coarse and fit_from else None
        return Evidence.of(self.observations, completion, learnt_from, few)

    def whole(self) -> Completion:
        """The completion of all cells; of many it continues from that of the first fold, if the algorithm can."""
        fit_from = getattr(self.algorithm, "fit_from", None)
        if (self.thinned or self._coarse) and fit_from is not None:
            completion: Completion = fit_from(self.completion(0), self.observations, self._progress)
            return completion
        return self.algorithm.fit(self.observations, self._progress)

    def residuals(self, loss: Loss | None = None) -> Residuals:
        """The residuals of all folds in turn, each predicted by the completion of the other cells."""
        self.fit_all()
        parts = current_map().map(lambda fold: self._residuals_of(fold, loss or self.loss), range(self.n_folds))
        columns = {field.name: [getattr(part, field.name) for part in parts] for field in fields(Residuals)}
        known = {name: joined(column) for name, column in columns.items() if column[0] is not None}
        found = Residuals(**known)
        if not self._coarse:
            return found
        return replace(found, loss=found.loss * self._relative_loss(loss or self.loss, parts[0]))

    def _relative_loss(self, loss: Loss, coarse: Residuals) -> float:
        """The mean loss of the first fold with all factors, over that of ``coarse``, with few."""
        held_out = self.split(0)[1]
        losses = loss.at(held_out, self.completion(0).at(held_out.rows, held_out.cols))
        mean, mean_coarse = (float(np.average(each, weights=coarse.counts)) for each in (losses, coarse.loss))
        return mean / max(mean_coarse, TINY)

    def _residuals_of(self, fold: int, loss: Loss) -> Residuals:
        completion = self.fold_completion(fold)
        if isinstance(completion, BayesianFactorCompletion):  # the covariances of all folds would take much memory
            anew = completion.with_covariances_now(self._outside(fold)) if self.thinned else None
            completion = anew or completion.with_own_covariances()
        # The other cells are counted only where the completion has no variance of its own.
        counted = self.observations if hasattr(completion, "variance") else self._outside(fold)
        evidence = Evidence.of(counted, completion)
        found = Residuals.of(self.observations.select(self._fold == fold), evidence, loss)
        if not (self.detailed and hasattr(completion, "variance_parts")):
            return found
        return found.detailed(evidence, LineSummaries.of(self._outside(fold)))

    def without_blocks(self) -> HiddenBlocks | None:
        """A completion of the cells inside two random blocks of rows and columns, and the cells outside them.

        Rows and columns are halved at random. Cells of both first or both second halves are inside; no training cell
        connects the two blocks, so that the others are predicted without support. One fold of the cells inside is held
        out for comparison. None where a part has too few cells.
        """
        cells, fold = self._some_lines()
        rng = np.random.default_rng(self._seed)
        halves = [rng.permutation(size) % 2 == 0 for size in (len(cells.by_row), len(cells.by_col))]
        inside = halves[0][cells.by_row.locate(cells.rows)] == halves[1][cells.by_col.locate(cells.cols)]
        held_out = inside & (fold == 0)
        if min(np.count_nonzero(inside & ~held_out), np.count_nonzero(held_out), np.count_nonzero(~inside)) < FEWEST:
            return None
        train = cells.select(inside & ~held_out)
        with part(self._progress, "hidden blocks"):
            evidence = Evidence.of(train, self._of_folds.fit(train, self._progress))
        return HiddenBlocks(evidence, cells.select(held_out), cells.select(~inside))

    def _some_lines(self) -> tuple[Observations, NDArray[Any]]:
        """The cells and their folds; of very many cells, those of rows (or columns) drawn at random."""
        cells = self.observations
        if len(cells) <= MOST_IN_BLOCKS:
            return cells, self._fold
        by_row = len(cells.by_row) >= len(cells.by_col)
        lines, of_cell = (cells.by_row, cells.rows) if by_row else (cells.by_col, cells.cols)
        drawn = bernoulli_mask(len(lines), MOST_IN_BLOCKS / len(cells), self._seed)
        taken = gathered(drawn, compact_positions(lines.ids, of_cell))
        return cells.select(taken), fold_numbers(int(taken.sum()), N_FOLDS, self._seed)


@dataclass(frozen=True, eq=False)
class HiddenBlocks:
    """The evidence of a completion of two blocks, cells inside them that were held out, and cells outside them."""

    evidence: Evidence
    inside: Observations
    crossing: Observations


@dataclass(frozen=True, eq=False)
class Residuals:
    """Losses of cells that were predicted by completions fitted without them, and the evidence there.

    ``log_parts`` are those of :meth:`Evidence.log_parts`, two columns, ``lines`` the four of :class:`LineSummaries`.
    """

    rows: IntArray
    cols: IntArray
    counts: NDArray[np.int64]
    loss: Array
    predicted: Array
    log_variance: Array
    log_parts: Array | None = None
    lines: Array | None = None

    @classmethod
    def of(cls, cells: Observations, evidence: Evidence, loss: Loss = SQUARED) -> Self:
        """Residuals of ``cells``, which the completion of ``evidence`` was not fitted on."""
        predicted = evidence.completion.at(cells.rows, cells.cols)
        log_variance = evidence.log_variance(cells.rows, cells.cols)
        return cls(cells.rows, cells.cols, cells.counts, loss.at(cells, predicted), predicted, log_variance)

    def detailed(self, evidence: Evidence, summaries: LineSummaries) -> Self:
        """The same with the parts of the variance and the summaries of rows and columns."""
        parts = np.column_stack(evidence.log_parts(self.rows, self.cols))
        return replace(self, log_parts=parts, lines=summaries.at(self.rows, self.cols))
