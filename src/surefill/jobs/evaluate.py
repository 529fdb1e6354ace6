"""Folds held out in turn: how wrong predictions are, and how well ways to rank entries by trust tell it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from surefill.arrays import Array, Indices
from surefill.data import Observations
from surefill.data.splits import fold_numbers, time_blocks
from surefill.errors import InputError
from surefill.estimators.costs import seconds_of_comparison, seconds_of_fit
from surefill.estimators.evaluation import Evaluation, evaluate_folds
from surefill.io import ReadOptions
from surefill.io.readers import check_source, read_ordered
from surefill.jobs.forecast import Announce, Forecast, saying_what_fits
from surefill.jobs.stages import about, check_observed, read_file, stage
from surefill.report import check_picture_target, draw_risk_coverage
from surefill.waiting import Watcher, watched

ORDER_NAMES = {
    "risk": "risk (ours)",
    "confidence": "confidence (ours)",
    "interval": "conformal width",
    "variance": "Bayesian variance",
    "ensemble": "ensemble variance",
    "leverage": "leverage",
    "counts": "counts",
}
"""What people call the orders of :class:`surefill.estimators.evaluation.Evaluation`."""


@watched
def evaluate_file(
    file: str | Path,
    *,
    by: int | str = 5,
    only: Sequence[int] | None = None,
    order_by: str | int | None = None,
    picture: str | Path | None = None,
    read: ReadOptions | None = None,
    tolerance: float | None = None,
    delta: float = 0.05,
    confidence: Any = "auto",
    loss: Any = "squared",
    random_state: int = 0,
    announce: Announce | None = None,
    progress: Watcher = None,
) -> Evaluation:
    """Hold out each fold of ``file`` in turn, predict it, and score the ways to rank entries by trust.

    Parameters
    ----------
    by : the number of random folds, or the column that says which fold a line is in, in whole numbers.
    only : folds to hold out; all where None.
    order_by : a column of times (numbers, ISO dates or date-times). The folds are then ``by`` expanding windows: the
        cells in order of time are cut into ``by`` + 1 blocks, and block k = 1, 2, ... is predicted from those before
        it, see :func:`surefill.data.split_times`. A cell that was drawn more than once counts when it was last.
    picture : where to draw risk-coverage curves as well.
    read, tolerance, delta, confidence, loss, random_state, announce, progress : as in :func:`complete_file`.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from surefill.datasets import make_low_rank
    >>> seen = make_low_rank((30, 20), rank=1, n_draws=500, noise=0.1, random_state=0).observations
    >>> lines = [f"{i},{j},{y}" for i, j, y in zip(seen.rows, seen.cols, seen.values)]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "ratings.csv"
    ...     _ = file.write_text("user,item,rating\\n" + "\\n".join(lines))
    ...     found = evaluate_file(file, by=3, only=[0], confidence="posterior")
    >>> [outcome.fold for outcome in found.outcomes]
    [0]
    """
    if picture is not None:
        check_picture_target(picture)
    source, options = Path(file), read or ReadOptions()
    if order_by is None:
        check_source(source, options)
        _check_read_twice(source, by)
        observations = read_file(source, options, progress)
        check_observed(source, options)
        folds = _folds(source, observations, by, options, random_state)
    else:
        with stage("reading", progress):
            observations, times = read_ordered(source, options, order_by)
        folds = _windows(source, times, by)
    forecast = _forecast(observations, folds, only)
    if announce is not None and forecast.is_long:
        announce(forecast)
    with saying_what_fits(forecast, source), about(source):
        found = evaluate_folds(
            observations,
            folds,
            only=only,
            ordered=order_by is not None,
            tolerance=tolerance,
            delta=delta,
            confidence=confidence,
            loss=loss,
            random_state=random_state,
            progress=progress,
        )
    if picture is not None:
        scores: dict[str, ArrayLike] = {ORDER_NAMES[name]: score for name, score in found.scores.items()}
        draw_risk_coverage(found.losses, scores, picture, found.loss.mean_name)
    return found


def _forecast(observations: Observations, folds: Indices, only: Sequence[int] | None) -> Forecast:
    """A fit and a comparison for each fold, of which one fit is counted by the forecast itself."""
    k = len(np.unique(folds)) if only is None else len(only)
    fits = max(k - 1, 0) * seconds_of_fit(observations)
    return Forecast.of(observations, fits + k * seconds_of_comparison(observations))


def _check_read_twice(file: Path, by: int | str) -> None:
    """Refuse a column of folds in what can be read only once."""
    if isinstance(by, str) and not (file.is_file() or file.is_dir()):
        raise InputError(
            f"{file} is a pipe, which is read once, and a column of folds is read after the values: give a file, or "
            f"the number of folds; got by {by!r}."
        )


def _windows(file: Path, times: Array, by: int | str) -> Indices:
    """The block of time of each observed cell."""
    if not isinstance(by, int) or by < 1:
        raise InputError(f"{file}: in order of time, by must be the number of windows; got {by!r}.")
    with about(file):
        return time_blocks(times, by)


def _folds(file: Path, observations: Observations, by: int | str, options: ReadOptions, random_state: int) -> Indices:
    """The fold of each observed cell: drawn at random for a number, read from the file for a column."""
    n = len(observations)
    if isinstance(by, int):
        if not 2 <= by <= n:
            raise InputError(f"{file}: by must be from 2 to {n} folds, or the name of a column; got {by}.")
        return fold_numbers(n, by, random_state)
    if options.wide:
        raise InputError(f"{file}: a wide table has no column of folds; by must be their number; got {by!r}.")
    try:
        fold = replace(options, value=by, bounds=None).read(file)
    except InputError as error:
        raise InputError(f"by {by!r}: {error}") from None
    whole = np.equal(np.round(fold.values), fold.values)
    if fold.disagreements or not whole.all():
        problem = "has cells in more than one fold" if fold.disagreements else "must hold whole numbers"
        raise InputError(f"{file}: column {by!r} {problem}.")
    return fold.values.astype(np.int64)
