"""Wide tables: their columns compared with those of the fit, and the fitted table with its trusted holes filled."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np
from narwhals import dependencies
from numpy.typing import NDArray

from surefill.arrays import Array, row_blocks
from surefill.data import Observations
from surefill.data.frames import axis_labels, is_frame
from surefill.data.labels import as_text
from surefill.errors import InputError, MissingPackageError, few
from surefill.estimators.kept_cells import KeptCells
from surefill.estimators.result import PartialCompletion
from surefill.parallel import current_map

if TYPE_CHECKING:
    from surefill.estimators.partial_completer import PartialCompleter

MOST_CELLS = 10**9
"""Cells of the largest table that is made in memory: 8 gigabytes."""

BLOCK_CELLS = 1 << 20
"""Cells that are asked about at once: some tens of megabytes."""


def compare_columns(X: Any, fitted_on: Observations) -> Any:
    """X, if it is a table, without the names of its columns, which must be those of the fit in the same order.

    scikit-learn compares names that were there when fitting and are all text; this is for integers, and for what was
    fitted on observations with labels.
    """
    if not is_frame(X) or fitted_on.col_labels is None:
        return X
    labels = axis_labels(X).cols
    if labels is not None:
        _require_same(as_text(labels), as_text(fitted_on.col_labels))
    if dependencies.is_pandas_dataframe(X):
        return X.set_axis(range(X.shape[1]), axis=1)
    return X.to_numpy() if dependencies.is_polars_dataframe(X) else np.asarray(X)


def _require_same(labels: NDArray[Any], fitted: NDArray[Any]) -> None:
    if np.array_equal(labels, fitted):
        return
    advice = "give those of the fit, in their order: observations_.col_labels"
    if new := sorted(set(labels.tolist()) - set(fitted.tolist())):
        raise InputError(f"X has columns that were not there when fitting ({few(new)}); {advice}.")
    if missing := sorted(set(fitted.tolist()) - set(labels.tolist())):
        raise InputError(f"X lacks columns that were there when fitting ({few(missing)}); {advice}.")
    raise InputError(f"the columns of X are those of the fit in another order; {advice}.")


def complete_frame(completer: PartialCompleter) -> Any:
    """The fitted table, holes that are kept filled, the others NaN: pandas or polars, as it was given to ``fit``."""
    observations: Observations = completer.observations_
    m, n = observations.shape
    if m * n > MOST_CELLS:
        raise InputError(
            f"a table of {m:,} x {n:,} cells is too large for memory; estimators.iterate_table gives it in parts."
        )
    matrix = completed_matrix(completer.result_, observations)
    if _library(completer) == "polars":
        return _polars_frame(matrix, observations)
    return _pandas_frame(matrix, observations, getattr(completer, "_axes", None))


def completed_matrix(result: PartialCompletion, observations: Observations) -> Array:
    """What was observed, and what is kept; NaN elsewhere."""
    matrix, (m, n) = observations.dense(), observations.shape

    def fill(rows: slice) -> None:
        missing = np.isnan(matrix[rows])
        answer = KeptCells(result).block(np.arange(m)[rows], np.arange(n), np.zeros_like(missing))
        filled = missing & answer.keep
        matrix[rows][filled] = answer.value[filled]

    current_map().map(fill, row_blocks(m, n, BLOCK_CELLS))
    return matrix


def _library(completer: PartialCompleter) -> str:
    """What the table was when fitting; else the first that is installed."""
    fitted_on = getattr(completer, "_library", None)
    for name in (fitted_on,) if fitted_on in ("pandas", "polars") else ("pandas", "polars"):
        try:
            import_module(name)
        except ImportError:
            continue
        return name
    raise MissingPackageError("a table in memory", "pandas")


def _pandas_frame(matrix: Array, observations: Observations, axes: tuple[Any, Any] | None) -> Any:
    """With the very index and columns that were fitted, or, of what was loaded or has grown since, with the labels."""
    import pandas as pd  # type: ignore[import-untyped]

    if axes is not None and (len(axes[0]), len(axes[1])) == matrix.shape:
        return pd.DataFrame(matrix, index=axes[0], columns=axes[1])
    (m, n), (row, column, _) = matrix.shape, observations.names
    index = pd.Index(observations.row_names(range(m)), name=None if row == "row" else row)
    columns = pd.Index(observations.col_names(range(n)), name=None if column == "column" else column)
    return pd.DataFrame(matrix, index=index, columns=columns)


def _polars_frame(matrix: Array, observations: Observations) -> Any:
    import polars as pl

    names = [str(name) for name in observations.col_names(range(observations.shape[1])).tolist()]
    table = pl.DataFrame(matrix, schema=names)
    if observations.row_labels is None:
        return table
    return table.insert_column(0, pl.Series(observations.names[0], observations.row_labels.tolist()))
