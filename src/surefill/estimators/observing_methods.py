"""How a fitted completer goes on learning: suggest cells, observe them, fit again."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from surefill.active import STRATEGIES, Strategy
from surefill.data import Observations
from surefill.data.containers import from_matrix
from surefill.data.frames import AxisLabels, axis_labels
from surefill.data.labels import as_text
from surefill.errors import invalid_parameter, is_seed
from surefill.estimators.atomic import atomic
from surefill.estimators.long_columns import cells_of, cells_of_new_rows, is_long_table, observations_of
from surefill.estimators.observing import NewCells, joined, observe, training_cells
from surefill.estimators.suggestion import CandidateCells, suggest
from surefill.parallel import using_jobs


class ObservingMethods:
    """Methods of :class:`surefill.PartialCompleter` for what comes after the first fit."""

    def suggest(
        self: Any,
        n: int,
        candidates: tuple[ArrayLike, ArrayLike] | None = None,
        strategy: Strategy = "coverage",
        return_utilities: bool = False,
        *,
        rows: ArrayLike | None = None,
    ) -> tuple[NDArray[Any], ...]:
        """The rows and columns of n cells to ask next, chosen one after the other, each for what it adds to the others.

        "coverage" chooses the cells that let most others be kept at the tolerance, "variance" those that lower the sum
        of the posterior variances most, and with it the error, "risk" those of the largest expected error, "random"
        any. The model does not change, and gives the same suggestions when asked again. They do not depend on what
        calibration cells lost, and never name one: a later :meth:`refit` is tested on them and allows for that.

        Parameters
        ----------
        n : how many cells, or how many of each row where ``rows`` are given.
        candidates : rows and columns of the cells that can be asked, by label as for ``predict``; all that
            were not observed when None (a million drawn ones of larger tables). Observed ones are left out.
        strategy : "coverage", "variance", "risk" or "random"; all but the last need completion="auto".
        return_utilities : give a third array: how many more cells each answer lets be kept ("coverage"), by how much it
            lowers the sum of variances ("variance") or its own expected error ("risk"), both in squared units.
        rows : ask each of these rows n questions, for the good of these rows alone; their cells count by how often the
            column was observed, and all alike where ``aim`` is not "observed".

        Examples
        --------
        >>> import surefill as sf
        >>> sim = sf.datasets.make_low_rank((60, 50), rank=2, n_draws=1000, noise=0.1, random_state=0)
        >>> completer = sf.PartialCompleter(tolerance=0.02).fit(sim.observations)
        >>> rows, cols = completer.suggest(20)
        >>> len(rows), int((sim.observations.find(rows, cols) >= 0).sum())
        (20, 0)
        >>> rows, cols, utilities = completer.suggest(5, strategy="variance", rows=[7], return_utilities=True)
        >>> rows.tolist(), bool((utilities > 0).all())
        ([7, 7, 7, 7, 7], True)
        """
        result = self._fitted()
        if not (is_seed(n) and n >= 1):
            raise invalid_parameter("suggest", "n", "a whole number of at least 1", n)
        if strategy not in STRATEGIES:
            raise invalid_parameter("suggest", "strategy", f"one of {', '.join(map(repr, STRATEGIES))}", strategy)
        askable = None if candidates is None else CandidateCells(*self._cells(*candidates))
        ids = None if rows is None else self.observations_.row_index(rows)
        seen = self.observations_
        drawn = seen.select(training_cells(result, seen) & ~self.asked_)
        with using_jobs(self.n_jobs):
            found = suggest(result, seen, drawn, int(n), askable, ids, strategy, self.random_state_)
        cells = seen.row_names(found.rows), seen.col_names(found.cols)
        return (*cells, found.utilities) if return_utilities else cells

    @atomic
    def observe(self: Any, rows: ArrayLike, cols: ArrayLike, values: ArrayLike) -> Any:
        """Learn new cells without fitting again: only their rows and columns are updated.

        The model that was tested is then no longer the one that answers, so that the guarantee is withdrawn, as
        ``result_.guarantee`` says, until :meth:`refit` or ``fit``. Cells must be new, and values within the bounds that
        were given or on the scale that was recognised. Rows and columns may be new: labels that are unknown, or
        positions that follow the last.

        Examples
        --------
        >>> import surefill as sf
        >>> sim = sf.datasets.make_low_rank((60, 50), rank=2, n_draws=1000, noise=0.1, random_state=0)
        >>> completer = sf.PartialCompleter(tolerance=0.02).fit(sim.observations)
        >>> rows, cols = completer.suggest(20)
        >>> completer.observe(rows, cols, sim.truth_at(rows, cols)).result_.guarantee.promised
        False
        """
        self._take_in(joined(self._observed(), rows, cols, values))
        return self

    @atomic
    def partial_fit(self: Any, X: Any, y: Any = None) -> Any:
        """``fit`` at the first call; from then on ``observe`` what X holds: Observations, or a long table of them.

        A long table is a pandas, polars or pyarrow table with a line for each observation; its columns have the names
        of the first call, or usual ones such as user, item and rating. The rows of a matrix are taken for new rows,
        those of a data frame for the rows that its index names.

        Examples
        --------
        >>> import pandas as pd
        >>> import surefill as sf
        >>> seen = sf.datasets.make_low_rank((30, 20), rank=1, n_draws=400, noise=0.1, random_state=0).observations
        >>> ratings = pd.DataFrame({"user": seen.rows, "item": seen.cols, "rating": seen.values})
        >>> completer = sf.PartialCompleter(confidence="posterior").partial_fit(ratings)
        >>> more = pd.DataFrame({"user": [30, 30], "item": [3, 7], "rating": [0.2, -0.1]})
        >>> completer.partial_fit(more).observations_.shape
        (31, 20)
        """
        if not hasattr(self, "result_"):
            return self.fit(observations_of(X) if is_long_table(X) else X)
        seen = self._observed()
        if isinstance(X, Observations) or is_long_table(X, seen):
            cells = cells_of(X if isinstance(X, Observations) else observations_of(X, seen), seen)
        else:
            labels = AxisLabels(axis_labels(X).rows, seen.col_labels, seen.names)
            new = from_matrix(self._validate_matrix(X, reset=False), self.bounds, labels=labels)
            labelled = new.row_labels is not None and seen.row_labels is not None
            cells = cells_of(new, seen) if labelled else cells_of_new_rows(new, seen)
        self._take_in(joined(seen, *cells))
        return self

    @atomic
    def refit(self: Any) -> Any:
        """Fit again on all observations, and renew the guarantee on the calibration cells of the first fit.

        Cells observed since are trained on and never calibrated on: they were chosen, and do not stand for others. The
        test allows for their number, so that after many of them nothing can be promised, which is then said.
        Calibration cells are those of the first fit as long as aim, tolerance, delta and bounds are the same.
        Rows and columns that came after the first fit are learnt and kept by the same thresholds, but the guarantee
        does not cover them, and says so. ``fit(observations_)`` starts over, and covers all.

        Examples
        --------
        >>> import surefill as sf
        >>> sim = sf.datasets.make_low_rank((60, 50), rank=2, n_draws=2000, noise=0.1, random_state=0)
        >>> completer = sf.PartialCompleter(tolerance=0.1, confidence="posterior").fit(sim.observations)
        >>> rows, cols = completer.suggest(200)
        >>> completer.observe(rows, cols, sim.truth_at(rows, cols)).refit().result_.guarantee.promised
        True
        """
        check_is_fitted(self)
        self._validate()
        self.result_ = self._fit(self.observations_, self.asked_, self.result_.weights.shape)
        return self

    def _take_in(self: Any, cells: NewCells) -> None:
        """Update the result with the new cells."""
        train = cells.both.select(training_cells(self.result_, cells.both))
        self.result_ = observe(self.result_, train, cells.new)
        self._add(cells)

    def _add(self: Any, cells: NewCells) -> None:
        """Add the cells to the observations, as ones that were asked for and not drawn."""
        self.asked_ = np.append(self.asked_, np.ones(len(cells.new), dtype=bool))
        self.observations_, self.n_features_in_ = cells.both, cells.both.shape[1]
        if hasattr(self, "feature_names_in_") and cells.both.col_labels is not None:
            self.feature_names_in_ = as_text(cells.both.col_labels).astype(object)
