"""The paper's MovieLens experiment: is the squared error small where the confidence is high?

Completion and confidence are found from the training ratings of fold 1 of ml-100k; then the test ratings are revealed.
The paper's square is users 1 to 250 and films 1 to 250: 5189 ratings to learn from, and 4492 to test on.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import spearmanr

from surefill.arrays import Array
from surefill.completion import BayesianFactorModel, CompletionAlgorithm, SoftImpute
from surefill.data import Observations
from surefill.datasets import load_movielens
from surefill.datasets.movielens import FOLD_SIZE
from surefill.errors import InputError, invalid_parameter
from surefill.loop import ProgressCallback
from surefill.metrics import normalized_aurc
from surefill.reproduction.methods import (
    NO_BOUND,
    Method,
    coverage_program,
    exact_descent,
    factored_descent,
    run_method,
    simplified_descent,
)

SQUARE = 250
"""Users and films of the paper's experiment."""

FEWEST = 10
"""Ratings that a test needs: one for each tenth."""

COUNTS = "ratings of row + column"
"""The order that confidences are compared with."""

SQUARE_METHODS: tuple[Method, ...] = (
    coverage_program(),
    factored_descent("entropy"),
    factored_descent("cube"),
    simplified_descent(),
)
"""Asked about the square."""

EXACT_METHODS: tuple[Method, ...] = (
    exact_descent("entropy"),
    exact_descent("cube"),
)
"""The game with matrix multiplicative weights, about a quarter of an hour each on the square."""

WHOLE_METHODS: tuple[Method, ...] = (
    coverage_program(rank=12, gap=0.02),
    factored_descent("entropy"),
    factored_descent("cube"),
    simplified_descent(per_round=200, eta=0.1),
)
"""Asked about all of fold 1: limited in rank, or many ratings a round, to end within minutes."""


@dataclass(frozen=True, eq=False)
class CompletionErrors:
    """A completion's squared errors at the test cells."""

    name: str
    settings: str
    errors: Array
    seconds: float


@dataclass(frozen=True, eq=False)
class ConfidenceScores:
    """A method's confidence at the test cells, and what it orders them by (C-bar, where C is that clipped at 1)."""

    name: str
    settings: str
    standing: str
    confidence: Array
    order: Array
    seconds: float
    gap: float | None = None


@dataclass(frozen=True, eq=False)
class ErrorByDecile:
    """For each group of entries, by rising confidence: its mean confidence, mean error, and that mean's uncertainty.

    ``spearman`` is the rank correlation between the group's place and its error: -1 where each group has less error
    than the one before, 0 where all errors are equal.
    """

    confidence: Array
    error: Array
    standard_error: Array
    spearman: float


@dataclass(frozen=True, eq=False)
class MovielensOutcome:
    """Every completion's squared errors and every method's confidences at the same test cells."""

    part: str
    shape: tuple[int, int]
    n_train: int
    completions: tuple[CompletionErrors, ...]
    methods: tuple[ConfidenceScores, ...]

    def by_decile(self, completion: CompletionErrors, method: ConfidenceScores) -> ErrorByDecile:
        """The errors of one completion by tenths of one method's confidence."""
        return error_by_decile(method.order, completion.errors)

    def completion_table(self) -> list[dict[str, Any]]:
        """One row of plain numbers per completion."""
        return [
            {
                "part": self.part,
                "completion": one.name,
                "settings": one.settings,
                "error": float(one.errors.mean()),
                "seconds": one.seconds,
            }
            for one in self.completions
        ]

    def table(self) -> list[dict[str, Any]]:
        """One row of plain numbers per completion and method; tenths from least to most confident."""
        return [self._row(completion, method) for completion in self.completions for method in self.methods]

    def _row(self, completion: CompletionErrors, method: ConfidenceScores) -> dict[str, Any]:
        tenths = self.by_decile(completion, method)
        return {
            "part": self.part,
            "completion": completion.name,
            "method": method.name,
            "settings": method.settings,
            "standing": method.standing,
            "gap": method.gap,
            **{f"error_{k}": float(error) for k, error in enumerate(tenths.error, 1)},
            "spearman": tenths.spearman,
            "area": normalized_aurc(completion.errors, -method.order),
            "seconds": method.seconds,
        }


def error_by_decile(confidence: ArrayLike, errors: ArrayLike, n_groups: int = 10) -> ErrorByDecile:
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
    return ErrorByDecile(level, error, spread, _rank_correlation(error))


def _rank_correlation(error: Array) -> float:
    return float(spearmanr(np.arange(len(error)), error).statistic) if np.ptp(error) > 0 else 0.0


def completions(random_state: int = 0) -> dict[str, CompletionAlgorithm]:
    """SoftImpute without centring, as in the tool that the paper used, and the most exact of ours."""
    return {
        "SoftImpute": SoftImpute(centre="none", random_state=random_state),
        "BayesianFactorModel": BayesianFactorModel(random_state=random_state),
    }


def load_fold(folder: str | Path) -> tuple[Observations, Observations]:
    """Training and test ratings of fold 1 of the ml-100k in ``folder``."""
    there = len(load_movielens("ml-100k", folder))
    if there < FOLD_SIZE + FEWEST:
        raise InputError(
            f"{folder} is not all of ml-100k: it has {there:,} ratings, and fold 1 tests on the first {FOLD_SIZE:,}."
        )
    return load_movielens("ml-100k", folder, fold=1)


def take_square(part: Observations, size: int = SQUARE) -> Observations:
    """The ratings of users 1 to ``size`` for films 1 to ``size``, by their ids, as a size x size matrix."""
    if part.row_labels is None or part.col_labels is None or part.row_labels.dtype.kind not in "iu":
        raise InputError("users and films must be numbered from 1, as in ml-100k, to take the paper's square.")
    users, films = part.row_labels[part.rows], part.col_labels[part.cols]
    inside = (users <= size) & (films <= size)
    if inside.sum() < FEWEST:
        raise InputError(f"only {inside.sum()} ratings are of users and films 1 to {size}; {FEWEST} are needed.")
    return Observations(
        users[inside] - 1, films[inside] - 1, part.values[inside], (size, size), part.bounds, counts=part.counts[inside]
    )


def load_square(folder: str | Path, size: int = SQUARE) -> tuple[Observations, Observations]:
    """The paper's square of fold 1: ratings to learn from, ratings to test on."""
    base, test = load_fold(folder)
    return take_square(base, size), take_square(test, size)


def reproduce_movielens(
    base: Observations,
    test: Observations,
    *,
    part: str,
    methods: Sequence[Method],
    algorithms: Mapping[str, CompletionAlgorithm] | None = None,
    random_state: int = 0,
    progress: ProgressCallback | None = None,
) -> MovielensOutcome:
    """Complete ``base``, ask every method how far to trust each entry, and score both on ``test``."""
    chosen = completions(random_state) if algorithms is None else algorithms
    errors = tuple(_score(name, algorithm, base, test, progress) for name, algorithm in chosen.items())
    found = tuple(_ask(method, base, test, random_state, progress) for method in methods)
    return MovielensOutcome(part, base.shape, len(base), errors, (*found, _count(base, test)))


def _score(
    name: str, algorithm: CompletionAlgorithm, base: Observations, test: Observations, progress: ProgressCallback | None
) -> CompletionErrors:
    start = time.perf_counter()
    predicted = algorithm.fit(base, progress).at(test.rows, test.cols)
    seconds = time.perf_counter() - start
    return CompletionErrors(name, repr(algorithm), test.squared_errors(predicted), seconds)


def _ask(
    method: Method, base: Observations, test: Observations, seed: int, progress: ProgressCallback | None
) -> ConfidenceScores:
    run, cells = run_method(method, base, seed, progress), (test.rows, test.cols)
    C, order = run.found.confidence.at(*cells), run.found.order_at(*cells)
    return ConfidenceScores(method.name, method.settings, run.found.standing, C, order, run.seconds, run.found.gap)


def _count(base: Observations, test: Observations) -> ConfidenceScores:
    """How many ratings the row and the column have, for comparison; the largest such sum counts as 1."""
    m, n = base.shape
    rows, cols = np.bincount(base.rows, minlength=m), np.bincount(base.cols, minlength=n)
    seen = (rows[test.rows] + cols[test.cols]) / (rows.max() + cols.max())
    return ConfidenceScores(COUNTS, "for comparison", NO_BOUND, seen, seen, 0.0)
