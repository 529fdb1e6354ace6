"""How a fitted completer takes in what was observed since: by label, or as a long table."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from surefill.data import Observations
from surefill.data.containers import from_matrix
from surefill.data.frames import AxisLabels, axis_labels
from surefill.data.labels import as_text
from surefill.estimators.atomic import atomic
from surefill.estimators.long_columns import cells_of, cells_of_new_rows, is_long_table, observations_of
from surefill.estimators.observing import NewCells, joined, observe, training_cells


class ObservingMethods:
    """Methods of :class:`surefill.PartialCompleter` that learn without fitting again."""

    @atomic
    def observe(self: Any, rows: ArrayLike, cols: ArrayLike, values: ArrayLike) -> Any:
        """Take answers in without fitting again: their rows and columns are learnt anew, all else stays.

        Nothing is promised from then on, and ``result_.guarantee`` says so, until :meth:`refit` or ``fit``: the model
        that was tested is no longer the one that answers. Cells must be new, and values within bounds that were given
        or on the scale that was recognised. Rows and columns may be new: labels that are unknown, or positions that
        follow the last.

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

        A long table is a pandas, polars or pyarrow one with a line for each observation; its columns are called as at
        the first call, or have usual names such as user, item and rating. The rows of a matrix with holes are new rows,
        those of a table with an index the rows that it names.

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

    def _take_in(self: Any, cells: NewCells) -> None:
        """Learn the new cells."""
        train = cells.both.select(training_cells(self.result_, cells.both))
        self.result_ = observe(self.result_, train, cells.new)
        self._add(cells)

    def _add(self: Any, cells: NewCells) -> None:
        """Keep the new cells as ones that were asked for, not drawn."""
        self.asked_ = np.append(self.asked_, np.ones(len(cells.new), dtype=bool))
        self.observations_, self.n_features_in_ = cells.both, cells.both.shape[1]
        if hasattr(self, "feature_names_in_") and cells.both.col_labels is not None:
            self.feature_names_in_ = as_text(cells.both.col_labels).astype(object)
