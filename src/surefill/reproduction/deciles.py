"""Does the error fall where the confidence rises? Means over groups of equally many entries, and over levels of C."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import spearmanr

from surefill.arrays import Array
from surefill.errors import InputError, invalid_parameter


@dataclass(frozen=True, eq=False)
class ErrorByConfidence:
    """For each group of entries, by rising confidence: its mean confidence, mean error, and that mean's uncertainty.

    ``spearman`` is the rank correlation between the group's place and its error: -1 where each group has less error
    than the one before, 0 where all errors are equal.
    """

    confidence: Array
    error: Array
    standard_error: Array
    spearman: float


def error_by_decile(confidence: ArrayLike, errors: ArrayLike, n_groups: int = 10) -> ErrorByConfidence:
    """Entries in order of confidence, cut into ``n_groups`` groups of equal size as nearly as may be.

    Entries of equal confidence cannot be told apart: each counts with the mean error of all of them.

    >>> table = error_by_decile([0.1, 0.2, 0.9, 0.9], [4.0, 2.0, 0.0, 1.0], n_groups=4)
    >>> table.error.tolist(), round(table.spearman, 2)
    ([4.0, 2.0, 0.5, 0.5], -0.95)
    """
    C, loss = np.asarray(confidence, dtype=np.float64), np.asarray(errors, dtype=np.float64)
    if C.ndim != 1 or C.shape != loss.shape:
        raise InputError(f"confidences and errors must be lists of one length; got {C.shape} and {loss.shape}.")
    if not 1 <= n_groups <= len(C):
        raise invalid_parameter("error_by_decile", "n_groups", f"from 1 to {len(C)}, the entries", n_groups)
    order = np.argsort(C, kind="stable")
    _, tie = np.unique(C[order], return_inverse=True)
    shared = (np.bincount(tie, loss[order]) / np.bincount(tie))[tie]
    parts = np.array_split(np.arange(len(C)), n_groups)
    error = np.array([shared[part].mean() for part in parts])
    spread = np.array([loss[order[part]].std() / np.sqrt(len(part)) for part in parts])
    level = np.array([C[order[part]].mean() for part in parts])
    return ErrorByConfidence(level, error, spread, _rank_correlation(error))


def _rank_correlation(error: Array) -> float:
    return float(spearmanr(np.arange(len(error)), error).statistic) if np.ptp(error) > 0 else 0.0
