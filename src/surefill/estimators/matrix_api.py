"""scikit-learn's matrix API: a matrix with holes in, the same matrix with its trusted holes filled out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from surefill.arrays import Indices
from surefill.data import Observations
from surefill.data.containers import from_matrix
from surefill.data.frames import AxisLabels
from surefill.errors import InputError
from surefill.estimators.result import PartialCompletion


@dataclass(frozen=True, eq=False)
class RowAnswers:
    """Answers for the rows of a matrix: the fitted ones where a row was there when fitting, else those of its fold-in.

    ``fitted_row`` is the row of the fit that has the very same entries, -1 where there is none.
    """

    fitted: PartialCompletion
    folded: PartialCompletion
    fitted_row: Indices

    @classmethod
    def of(cls, observations: Observations, fitted: PartialCompletion, fitted_on: Observations) -> Self:
        """For the rows seen at ``observations``."""
        known = {entries: row for row, entries in reversed(list(_entries_of_rows(fitted_on)))}
        fitted_row = np.full(observations.shape[0], -1)
        for row, entries in _entries_of_rows(observations):
            fitted_row[row] = known.get(entries, -1)
        return cls(fitted, fitted.fold_in(observations), fitted_row)

    def at(self, rows: Indices, cols: Indices) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """Completed values, and whether each entry is kept."""
        value, keep = np.empty(len(rows)), np.empty(len(rows), dtype=bool)
        for which, result, own_rows in self._sources(rows):
            answer = result.answer(own_rows, cols[which])
            value[which], keep[which] = answer.value, answer.keep
        return value, keep

    def values(self, rows: Indices, cols: Indices) -> NDArray[np.float64]:
        """Completed values alone."""
        value = np.empty(len(rows))
        for which, result, own_rows in self._sources(rows):
            value[which] = result.values_at(own_rows, cols[which])
        return value

    def _sources(self, rows: Indices) -> list[tuple[NDArray[np.bool_], PartialCompletion, Indices]]:
        """Which entries to ask the fit about, which the fold-in, and their rows there."""
        known = self.fitted_row[rows] >= 0
        return [(known, self.fitted, self.fitted_row[rows[known]]), (~known, self.folded, rows[~known])]


def _entries_of_rows(observations: Observations) -> list[tuple[int, bytes]]:
    """Of each row that has any, its columns in order and their values, as bytes that can be compared."""
    groups, found = observations.by_row, []
    for g, row in enumerate(groups.ids.tolist()):
        entries = groups.order[groups.starts[g] : groups.starts[g + 1]]
        cols = observations.cols[entries].astype(np.int64)
        order = np.argsort(cols)
        found.append((row, cols[order].tobytes() + observations.values[entries][order].astype(np.float64).tobytes()))
    return found


def fill(X: Any, result: PartialCompletion, fitted_on: Observations) -> NDArray[Any] | sparse.sparray | sparse.spmatrix:
    """Fill the entries of X that are kept; seen entries stay as they are."""
    if not _holds_entries(X):
        untouched: NDArray[Any] | sparse.sparray | sparse.spmatrix = X.copy()
        return untouched
    observations = from_matrix(X, labels=AxisLabels(cols=fitted_on.col_labels))
    answers = RowAnswers.of(observations, result, fitted_on)
    if sparse.issparse(X):
        return _fill_sparse(X, observations, answers)
    filled = np.array(X)
    rows, cols = np.nonzero(np.isnan(filled))
    value, kept = answers.at(rows, cols)
    filled[rows[kept], cols[kept]] = value[kept]
    return filled


def _holds_entries(X: Any) -> bool:
    """Whether anything was seen; of rows of which nothing was, nothing is trusted."""
    return bool(np.isfinite(X if isinstance(X, np.ndarray) else X.data).any())


def complete_rows(X: Any, result: PartialCompletion, fitted_on: Observations) -> NDArray[Any]:
    """The model's value of every entry of the rows of a dense X, in its floating type."""
    if sparse.issparse(X):
        raise InputError("predict(X) fills every entry, which sparse rows are too long for: ask predict(rows, cols).")
    rows, cols = np.indices(X.shape).reshape(2, -1)
    observations = from_matrix(_with_an_entry(X, result), labels=AxisLabels(cols=fitted_on.col_labels))
    answers = RowAnswers.of(observations, result, fitted_on)
    return answers.values(rows, cols).reshape(X.shape).astype(X.dtype, copy=False)


def _with_an_entry(X: NDArray[Any], result: PartialCompletion) -> NDArray[Any]:
    """X; where nothing was seen, below it a row with one value, for observations cannot be empty."""
    if _holds_entries(X):
        return X
    other = np.full((1, X.shape[1]), np.nan)
    other[0, 0] = np.mean(result.bounds)
    return np.vstack([X, other])


def _fill_sparse(X: Any, observations: Observations, answers: RowAnswers) -> sparse.sparray | sparse.spmatrix:
    """Stored where seen or kept; one row's holes at a time."""
    rows, cols, values = [observations.rows], [observations.cols], [observations.values]
    every = np.arange(X.shape[1])
    for row in range(X.shape[0]):
        here = np.full(X.shape[1], row)
        missing = np.flatnonzero(observations.find(here, every) < 0)
        value, kept = answers.at(here[missing], missing)
        rows.append(here[missing][kept])
        cols.append(missing[kept])
        values.append(value[kept])
    entries = np.concatenate(values).astype(X.dtype), (np.concatenate(rows), np.concatenate(cols))
    container = sparse.csr_array if isinstance(X, sparse.sparray) else sparse.csr_matrix
    return container(entries, shape=X.shape)  # type: ignore[arg-type]
