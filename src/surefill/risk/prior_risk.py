"""The expected loss in rows and columns of which nothing was seen: that of predicting them by the prior's mean."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefill.arrays import Array, IntArray
from surefill.completion import extend_completion
from surefill.data import Groups, Observations
from surefill.data.compact import joined
from surefill.data.groups import locate
from surefill.errors import InputError
from surefill.registry import storable
from surefill.risk.cross_fitting import CrossFit
from surefill.risk.noise_factors import TINY, NoiseFactors, NoisePrior, NoiseSide


@storable
@dataclass(frozen=True, eq=False)
class PriorRisk:
    """risk_ij = L_col a_i(M_ij) where column j was never seen, L_row b_j(M_ij) where row i was not, L where neither.

    The loss at a cell whose column is unknown has as its mean that of cells whose column is hidden. Cells of a fold are
    predicted by the completion of the others from their row alone, from their column alone, and from neither, with the
    prior's mean for what is left out; L_col is the mean of the first losses over columns, each counted once, for a new
    column is one more of them, and one standard error more. a_i says how much larger the losses of row i are
    (:class:`surefill.risk.noise_factors.NoiseFactors`). A model's own variance is no substitute: it is learnt where
    both were seen, and extrapolated to new lines was too small by up to ten times.

    Attributes
    ----------
    row_ids, col_ids : rows and columns that the completion has seen, rising.
    new_row, new_col, neither : L_row, L_col and L.
    of_rows, of_cols : a and b.
    largest : no loss is larger.

    Examples
    --------
    >>> import surefill as sf
    >>> sim = sf.datasets.make_low_rank((60, 50), rank=2, n_draws=2000, noise=0.1, random_state=0)
    >>> prior = sf.PartialCompleter(tolerance=0.1, confidence="posterior").fit(sim.observations).result_.prior
    >>> bool(prior.new_col > 5 * 0.1**2 / 3), prior.seen([0, 0], [3, 50])
    (True, array([ True, False]))
    """

    row_ids: IntArray
    col_ids: IntArray
    new_row: float
    new_col: float
    neither: float
    of_rows: NoiseFactors
    of_cols: NoiseFactors
    largest: float

    def __post_init__(self) -> None:
        if not all(0 <= level < np.inf for level in (self.new_row, self.new_col, self.neither)):
            raise InputError("expected losses in new rows and columns must be finite and at least 0.")

    @classmethod
    def measured(cls, cross_fit: CrossFit) -> PriorRisk:
        """On every cell of the folds that were fitted, as it looks when its row, its column or both are hidden."""
        parts = [_hidden(cross_fit, fold) for fold in cross_fit.fitted_folds()]
        cells = cross_fit.observations.select(joined([part[0] for part in parts]))
        predicted = [joined([part[1][side] for part in parts]) for side in range(3)]
        losses = [cross_fit.loss.at(cells, each) for each in predicted]
        low, high = cells.bounds
        hidden = HiddenLines(cells.rows, cells.cols, cells.counts, predicted, losses)
        ids = cross_fit.observations.by_row.ids, cross_fit.observations.by_col.ids
        return cls.of(hidden, *ids, float(cross_fit.loss.largest(high - low)))[0]

    @classmethod
    def of(
        cls, cells: HiddenLines, row_ids: IntArray, col_ids: IntArray, largest: float
    ) -> tuple[PriorRisk, NoisePrior]:
        """From cells whose lines were hidden; with it the prior that factors of rows were shrunk by."""
        new_row, new_col, neither = (np.maximum(each, TINY) for each in cells.losses)
        by_row, by_col = Groups.of(cells.rows), Groups.of(cells.cols)
        of_rows, _, prior = NoiseSide.of(cells.rows, cells.counts, cells.predicted[1]).learnt(new_col)
        measured = cls(
            row_ids=row_ids,
            col_ids=col_ids,
            new_row=_mean_over(by_row, new_row),
            new_col=_mean_over(by_col, new_col),
            neither=max(_mean_over(by_row, neither), _mean_over(by_col, neither)),
            of_rows=of_rows,
            of_cols=NoiseSide.of(cells.cols, cells.counts, cells.predicted[0]).shrunk(new_row)[0],
            largest=largest,
        )
        return measured, prior

    def seen(self, rows: ArrayLike, cols: ArrayLike) -> NDArray[np.bool_]:
        """Whether both row and column of each pair (rows[t], cols[t]) were seen."""
        return np.asarray(self.row_seen(rows) & self.col_seen(cols))

    def row_seen(self, rows: ArrayLike) -> NDArray[np.bool_]:
        """Whether each row was seen."""
        return np.asarray(locate(self.row_ids, np.asarray(rows)) >= 0)

    def col_seen(self, cols: ArrayLike) -> NDArray[np.bool_]:
        """Whether each column was seen."""
        return np.asarray(locate(self.col_ids, np.asarray(cols)) >= 0)

    def at(self, rows: ArrayLike, cols: ArrayLike, predicted: Array) -> NDArray[np.float64]:
        """Expected losses at pairs of which the row, the column or both were never seen."""
        i, j = np.asarray(rows), np.asarray(cols)
        row_seen, col_seen = self.row_seen(i), self.col_seen(j)
        new_col = self.new_col * np.exp(self.of_rows.log_at(i, predicted))
        new_row = self.new_row * np.exp(self.of_cols.log_at(j, predicted))
        risk = np.where(row_seen, new_col, np.where(col_seen, new_row, self.neither))
        return np.asarray(np.minimum(risk, self.largest))

    def now_seen(self, observations: Observations) -> Self:
        """The same once the lines of ``observations`` were seen."""
        return replace(self, row_ids=observations.by_row.ids, col_ids=observations.by_col.ids)

    def fold_in(self, observations: Observations) -> Self:
        """The same for other rows, seen at ``observations``, as noisy as most."""
        ids = observations.by_row.ids
        return replace(self, row_ids=ids, of_rows=NoiseFactors.none(ids))


@dataclass(frozen=True, eq=False)
class HiddenLines:
    """Cells with what was predicted, and the losses of that, from their column alone, their row alone, and neither."""

    rows: IntArray
    cols: IntArray
    counts: NDArray[np.int64]
    predicted: list[Array]
    losses: list[Array]


def _hidden(cross_fit: CrossFit, fold: int) -> tuple[NDArray[np.int64], tuple[Array, Array, Array]]:
    """The cells of a fold, predicted from their column alone, from their row alone, and from neither."""
    train, cells = cross_fit.split(fold)
    m, n = train.shape
    completion = extend_completion(cross_fit.fold_completion(fold), (m + 1, n + 1), train)
    row, col = np.full(len(cells), m), np.full(len(cells), n)
    pairs = (row, cells.cols), (cells.rows, col), (row, col)
    from_col, from_row, from_none = (completion.at(*pair) for pair in pairs)
    return cross_fit.positions(fold), (from_col, from_row, from_none)


def _mean_over(lines: Groups, losses: Array) -> float:
    """The mean over lines of the mean loss of each, and one standard error more."""
    means = np.add.reduceat(lines.take(losses), lines.starts[:-1]) / lines.sizes
    error = means.std(ddof=1) / np.sqrt(len(means)) if len(means) > 1 else 0.0
    return float(means.mean() + error)
