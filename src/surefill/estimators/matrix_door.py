"""scikit-learn's door: a matrix with holes in, the same matrix with its trusted holes filled out."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from surefill.data import Observations
from surefill.errors import InputError
from surefill.estimators.result import PartialCompletion


def fill(X: Any, result: PartialCompletion) -> NDArray[Any] | sparse.sparray | sparse.spmatrix:
    """Fold in the rows of X and fill the entries that are kept; seen entries stay as they are."""
    if not _holds_entries(X):
        untouched: NDArray[Any] | sparse.sparray | sparse.spmatrix = X.copy()
        return untouched
    observations = Observations.from_matrix(X)
    completion, confidence = result.completion.fold_in(observations), result.confidence.fold_in(observations)
    if sparse.issparse(X):
        return _fill_sparse(X, observations, completion, confidence, result)
    filled = np.array(X)
    rows, cols = np.nonzero(np.isnan(filled))
    kept = result.selection.keeps(confidence.at(rows, cols))
    rows, cols = rows[kept], cols[kept]
    filled[rows, cols] = completion.at(rows, cols)
    return filled


def _holds_entries(X: Any) -> bool:
    """Whether anything was seen; of rows of which nothing was, nothing is trusted."""
    return bool(np.isfinite(X if isinstance(X, np.ndarray) else X.data).any())


def complete_rows(X: Any, result: PartialCompletion) -> NDArray[Any]:
    """The model's value of every entry of the rows of a dense X, in its floating type."""
    if sparse.issparse(X):
        raise InputError("predict(X) fills every entry, which sparse rows are too long for: ask predict(rows, cols).")
    return result.completion.fold_in(Observations.from_matrix(X)).dense().astype(X.dtype, copy=False)


def _fill_sparse(
    X: Any, observations: Observations, completion: Any, confidence: Any, result: PartialCompletion
) -> sparse.sparray | sparse.spmatrix:
    """Stored where seen or kept; one row's holes at a time."""
    rows, cols, values = [observations.rows], [observations.cols], [observations.values]
    every = np.arange(X.shape[1])
    for row in range(X.shape[0]):
        here = np.full(X.shape[1], row)
        missing = observations.find(here, every) < 0
        kept = every[missing & result.selection.keeps(confidence.at(here, every))]
        rows.append(here[: len(kept)])
        cols.append(kept)
        values.append(completion.at(here[: len(kept)], kept))
    entries = np.concatenate(values).astype(X.dtype), (np.concatenate(rows), np.concatenate(cols))
    container = sparse.csr_array if isinstance(X, sparse.sparray) else sparse.csr_matrix
    return container(entries, shape=X.shape)  # type: ignore[arg-type]
