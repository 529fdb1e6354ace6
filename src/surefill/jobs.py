"""Jobs from file to file, which the command line and a service both call: they print nothing, and raise InputError.

A job checks where it is to write before it starts to work, and leaves either all of its files or none.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefill.arrays import Indices
from surefill.data import Observations
from surefill.data.splits import fold_numbers
from surefill.errors import InputError
from surefill.estimators import PartialCompleter, PartialCompletion, iterate_table, load
from surefill.estimators.evaluation import Evaluation, evaluate_folds
from surefill.estimators.long_table import BLOCK_CELLS, Entries
from surefill.guarantee import Shortfall
from surefill.guarantee.propensity import Aim
from surefill.io import ReadOptions, write_table
from surefill.io.files import check_folder, replacing
from surefill.io.writers import check_table_target
from surefill.loop import Progress, ProgressCallback
from surefill.report import check_picture_target, check_report_target, draw_risk_coverage, render_report

ADDED_COLUMNS = {"confidence", "risk", "keep", "observed"}
"""Columns that a completed table has beside those of the file it was made from."""

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


@dataclass(frozen=True)
class CompletedFile:
    """What :func:`complete_file` read, found, promises and wrote.

    Attributes
    ----------
    columns_read : what the file calls rows, columns and values.
    observed_cells, draws : distinct cells seen, and observations with repeats.
    cells_with_differing_repeats : cells seen more than once with different values; their means were used.
    bounds, bounds_from, about_bounds : the range of values, how it is known ("given", "scale", "seen"), one sentence.
    loss : what the tolerance is about, such as "mean squared error".
    kept_share : share of all cells that are kept, estimated where there are many.
    aim : cells that the promise is about: "unobserved" (those filled), "all" or "observed".
    filled_cells : missing cells that are kept, counted while writing.
    n_filled : the same as the promise counts them, on a sample of the cells where there are many; None where the
        promise is not about filled cells, or there is none.
    sensitivity : the factor by which values may change the odds of being observed without breaking the promise; None
        where nothing is promised, or where these odds play no part in it.
    held_out_error : that of the kept calibration entries; None where none are kept.
    held_out_entries : how many calibration entries there were.
    limited_by : what keeps the kept set from being larger: "tolerance", "support" or "calibration".
    shortfall : the figures of :class:`surefill.guarantee.Shortfall` where nothing is kept; else None.
    selection, certificate, guarantee, holds_over, not_promised : the sentences of the result.
    seconds : spent in each stage of the fit.
    lines : written to ``output``.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> lines = [f"{i},{j},{i * j % 7}" for i in range(8) for j in range(9)]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "ratings.csv"
    ...     _ = file.write_text("user,item,rating\\n" + "\\n".join(lines))
    ...     done = complete_file(file, Path(folder) / "filled.csv", confidence="posterior")
    >>> done.rows, done.columns, done.missing_cells, done.as_json()["columns_read"]
    (8, 9, 0, ('user', 'item', 'rating'))
    """

    rows: int
    columns: int
    columns_read: tuple[str, str, str]
    observed_cells: int
    draws: int
    cells_with_differing_repeats: int
    bounds: tuple[float, float]
    bounds_from: str
    about_bounds: str
    loss: str
    tolerance: float
    delta: float
    aim: str
    n_filled: float | None
    sensitivity: float | None
    kept_share: float
    held_out_error: float | None
    held_out_entries: int
    limited_by: str
    shortfall: dict[str, Any] | None
    selection: str
    confidence_standing: str
    certificate: str
    promised: bool
    guarantee: str
    holds_over: str
    not_promised: str
    seconds: dict[str, float]
    filled_cells: int
    output: Path
    lines: int
    model: Path | None = None
    report: Path | None = None

    @property
    def missing_cells(self) -> int:
        """Cells that were not observed."""
        return self.rows * self.columns - self.observed_cells

    @property
    def filled_share(self) -> float:
        """Share of the missing cells that is filled; 0 where none are missing."""
        return self.filled_cells / self.missing_cells if self.missing_cells else 0.0

    def as_json(self) -> dict[str, Any]:
        """The fields as plain values; files that were not asked for are left out."""
        plain = {name: str(value) if isinstance(value, Path) else value for name, value in asdict(self).items()}
        return {name: value for name, value in plain.items() if value is not None or name not in ("model", "report")}


def complete_file(
    file: str | Path,
    output: str | Path,
    *,
    read: ReadOptions | None = None,
    tolerance: float | None = None,
    delta: float = 0.05,
    completion: Any = "auto",
    confidence: Any = "auto",
    loss: Any = "squared",
    aim: Aim = "unobserved",
    sensitivity: float = 1.0,
    random_state: int = 0,
    entries: Entries = "kept",
    model: str | Path | None = None,
    report: str | Path | None = None,
    command: str | None = None,
    progress: ProgressCallback | None = None,
) -> CompletedFile:
    """Read observations from ``file``, keep what can be trusted at the tolerance, and write it to ``output``.

    Parameters
    ----------
    output : the table to write; its suffix says how, see :func:`surefill.io.write_table`.
    read : how ``file`` is read; guessed where None.
    tolerance, delta, completion, confidence, loss, aim, sensitivity, random_state : those of
        :class:`surefill.PartialCompleter`.
    entries : cells to write: "kept" and observed ones, all "missing" ones, or "all".
    model : where to save the fitted completer as well, for :func:`surefill.load`.
    report : where to write a page for the browser as well.
    command : what the page says one has to run to repeat it; the completer's parameters where None.
    progress : called after each step of each stage.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from surefill.datasets import make_low_rank
    >>> seen = make_low_rank((30, 20), rank=1, n_draws=500, noise=0.1, random_state=0).observations
    >>> lines = [f"{i},{j},{y}" for i, j, y in zip(seen.rows, seen.cols, seen.values)]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file, output = Path(folder) / "ratings.csv", Path(folder) / "filled.csv"
    ...     _ = file.write_text("user,item,rating\\n" + "\\n".join(lines))
    ...     done = complete_file(file, output, tolerance=0.3, confidence="posterior")
    ...     done.lines == len(output.read_text().splitlines()) - 1
    True
    >>> done.promised, done.observed_cells + done.missing_cells
    (True, 600)
    """
    source, target = Path(file), Path(output)
    model_target, report_target = (None if path is None else Path(path) for path in (model, report))
    _check_targets(source, target, model_target, report_target)
    observations = _read(source, read or ReadOptions(), progress)
    completer = PartialCompleter(
        tolerance=tolerance,
        delta=delta,
        completion=completion,
        confidence=confidence,
        loss=loss,
        aim=aim,
        sensitivity=sensitivity,
        random_state=random_state,
        progress=progress,
    )
    with _about(source):
        completer.fit(observations)
    blocks = _CountedBlocks(completer, entries, progress)
    # Model and report wait under temporary names until the table is complete: all appear, or none.
    with ExitStack() as unfinished:
        if model_target is not None:
            completer.save(unfinished.enter_context(replacing(model_target)))
        if report_target is not None:
            with _stage("reporting", progress):
                page = render_report(completer, title=source.name, command=command)
            unfinished.enter_context(replacing(report_target)).write_text(page, encoding="utf-8")
        lines = write_table(target, blocks, columns=_column_names(observations))
    files = {"output": target, "model": model_target, "report": report_target}
    return _summary(completer.result_, observations, filled_cells=blocks.filled, lines=lines, **files)


def _check_targets(file: Path, output: Path, model: Path | None, report: Path | None) -> None:
    """Refuse places that cannot be written, and ones that would overwrite what was given."""
    check_table_target(output)
    if model is not None:
        check_folder(model)
    if report is not None:
        check_report_target(report)
    given = [path.resolve() for path in (file, output, model, report) if path is not None]
    if len(set(given)) < len(given):
        raise InputError(
            "the file read and those written (output, model, report) must be different files, or one would overwrite "
            "another."
        )


def _read(file: Path, options: ReadOptions, progress: ProgressCallback | None) -> Observations:
    with _stage("reading", progress):
        return options.read(file)


@contextmanager
def _about(file: Path) -> Iterator[None]:
    """Name the file where something is wrong with what it holds."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{file}: {error}") from None


@contextmanager
def _stage(task: str, progress: ProgressCallback | None) -> Iterator[None]:
    """Report a stage that has no steps of its own as begun, then as done."""
    if progress is None:
        yield
        return
    start = time.perf_counter()
    progress(Progress(task, 0, 1, 0.0, 0.0))
    yield
    progress(Progress(task, 1, 1, time.perf_counter() - start, 1.0))


def _column_names(observations: Observations) -> dict[str, str]:
    """The file's own column names, unless they would clash with those added."""
    names = dict(zip(("row", "column", "value"), observations.names, strict=True))
    return {} if ADDED_COLUMNS & set(names.values()) else names


class _CountedBlocks:
    """The blocks of a completed table, with progress and a count of the missing cells that are filled."""

    def __init__(self, completer: PartialCompleter, entries: Entries, progress: ProgressCallback | None) -> None:
        self._completer, self._entries, self._progress = completer, entries, progress
        self.filled = 0

    def __iter__(self) -> Iterator[dict[str, NDArray[Any]]]:
        m, n = self._completer.observations_.shape
        start, n_blocks = time.perf_counter(), -(-m * n // BLOCK_CELLS)
        for step, block in enumerate(iterate_table(self._completer, self._entries), 1):
            self.filled += int((block["keep"] & ~block["observed"]).sum())
            yield block
            if self._progress is not None:
                seconds = time.perf_counter() - start
                self._progress(Progress("writing", step, n_blocks, seconds, step / n_blocks))


def _summary(result: PartialCompletion, observations: Observations, **written: Any) -> CompletedFile:
    m, n = observations.shape
    return CompletedFile(
        rows=m,
        columns=n,
        columns_read=observations.names,
        observed_cells=len(observations),
        draws=observations.n_draws,
        cells_with_differing_repeats=observations.disagreements,
        bounds=observations.bounds,
        bounds_from=observations.bounds_from.name.lower(),
        about_bounds=observations.about_bounds,
        loss=result.loss.loss.mean_name,
        tolerance=result.selection.tolerance,
        delta=result.guarantee.delta,
        aim=result.weights.aim,
        n_filled=result.selection.n_filled if result.guarantee.promised else None,
        sensitivity=result.guarantee.sensitivity,
        kept_share=result.kept_share(),
        held_out_error=result.selection.held_out_error,
        held_out_entries=result.selection.n_held_out,
        limited_by=result.selection.limited_by.name.lower(),
        shortfall=None if result.selection.shortfall is None else _plain(result.selection.shortfall),
        selection=result.selection.sentence,
        confidence_standing=result.certificate.standing,
        certificate=result.certificate.sentence,
        promised=result.guarantee.promised,
        guarantee=result.guarantee.sentence,
        holds_over=result.guarantee.holds_over,
        not_promised=result.guarantee.not_promised,
        seconds=dict(result.timings),
        **written,
    )


def _plain(shortfall: Shortfall) -> dict[str, Any]:
    """The figures of a shortfall, ready for JSON."""
    named = {"limited_by": shortfall.limited_by.name.lower(), "loss": shortfall.loss.mean_name}
    return asdict(shortfall) | named


def evaluate_file(
    file: str | Path,
    *,
    by: int | str = 5,
    only: Sequence[int] | None = None,
    picture: str | Path | None = None,
    read: ReadOptions | None = None,
    tolerance: float | None = None,
    delta: float = 0.05,
    confidence: Any = "auto",
    loss: Any = "squared",
    random_state: int = 0,
    progress: ProgressCallback | None = None,
) -> Evaluation:
    """Hold out each fold of ``file`` in turn, predict it, and score the ways to rank entries by trust.

    Parameters
    ----------
    by : the number of random folds, or the column that says which fold a line is in, in whole numbers.
    only : folds to hold out; all where None.
    picture : where to draw risk-coverage curves as well.
    read, tolerance, delta, confidence, loss, random_state, progress : as in :func:`complete_file`.

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
    observations = _read(source, options, progress)
    folds = _folds(source, observations, by, options, random_state)
    with _about(source):
        found = evaluate_folds(
            observations,
            folds,
            only=only,
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


def _folds(file: Path, observations: Observations, by: int | str, options: ReadOptions, random_state: int) -> Indices:
    """The fold of each observed cell: drawn at random for a number, read from the file for a column."""
    n = len(observations)
    if isinstance(by, int):
        if not 2 <= by <= n:
            raise InputError(f"{file}: by must be from 2 to {n} folds, or the name of a column; got {by}.")
        return fold_numbers(n, by, random_state)
    try:
        fold = replace(options, value=by, bounds=None).read(file)
    except InputError as error:
        raise InputError(f"by {by!r}: {error}") from None
    whole = np.equal(np.round(fold.values), fold.values)
    if fold.disagreements or not whole.all():
        problem = "has cells in more than one fold" if fold.disagreements else "must hold whole numbers"
        raise InputError(f"{file}: column {by!r} {problem}.")
    return fold.values.astype(np.int64)


@dataclass(frozen=True, eq=False)
class SuggestedCells:
    """Cells to ask next, by label, in the order they were chosen: what is predicted there, its risk, its utility.

    ``table`` maps the names of the columns to arrays; rows and columns have the names of the file the model was made
    from.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import surefill as sf
    >>> seen = sf.datasets.make_low_rank((30, 20), rank=1, n_draws=300, noise=0.1, random_state=0).observations
    >>> completer = sf.PartialCompleter(tolerance=0.2, confidence="posterior").fit(seen)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     completer.save(Path(folder) / "model.surefill")
    ...     found = suggest_cells(Path(folder) / "model.surefill", 3, strategy="variance")
    >>> list(found.table), len(found.as_records())
    (['row', 'column', 'predicted', 'risk', 'utility'], 3)
    """

    table: dict[str, NDArray[Any]]

    def as_records(self) -> list[dict[str, Any]]:
        """One mapping per cell, of plain values."""
        columns = [values.tolist() for values in self.table.values()]
        return [dict(zip(self.table, cell, strict=True)) for cell in zip(*columns, strict=True)]


def suggest_cells(
    model: str | Path,
    n: int,
    *,
    strategy: str = "coverage",
    rows: Sequence[str] = (),
    output: str | Path | None = None,
) -> SuggestedCells:
    """Read a saved model and say which n cells to ask next, or which n of each of the labelled ``rows``.

    Parameters
    ----------
    model : a file written by :meth:`surefill.PartialCompleter.save`, or by ``surefill complete --save``.
    n, strategy : see :meth:`surefill.PartialCompleter.suggest`.
    rows : labels of rows, or their 0-based positions where the model has no labels.
    output : a table to write as well; its suffix says how, see :func:`surefill.io.write_table`.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import surefill as sf
    >>> seen = sf.datasets.make_low_rank((30, 20), rank=1, n_draws=300, noise=0.1, random_state=0).observations
    >>> completer = sf.PartialCompleter(tolerance=0.2, confidence="posterior").fit(seen)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     completer.save(Path(folder) / "model.surefill")
    ...     found = suggest_cells(Path(folder) / "model.surefill", 2, rows=["7"])
    >>> found.table["row"].tolist()
    [7, 7]
    """
    if output is not None:
        check_table_target(output)
    completer = load(model)
    seen = completer.observations_
    ids = _row_positions(seen, rows) if rows else None
    i, j, utility = completer.suggest(n, strategy=strategy, return_utilities=True, rows=ids)  # type: ignore[arg-type]
    answer, (row, column, _) = completer.result_.answer(i, j), seen.names
    table = {
        row: i if seen.row_labels is None else seen.row_labels[i],
        column: j if seen.col_labels is None else seen.col_labels[j],
        "predicted": answer.value,
        "risk": answer.risk,
        "utility": utility,
    }
    if output is not None:
        write_table(output, [table])
    return SuggestedCells(table)


def _row_positions(observations: Observations, labels: Sequence[str]) -> Indices:
    """Positions of rows by label, or by number where there are no labels."""
    if observations.row_labels is not None:
        return observations.row_index(np.array(labels))
    if not all(label.isdigit() for label in labels):
        raise InputError(f"this model's rows have no labels; give positions from 0 to {observations.shape[0] - 1}.")
    return np.array([int(label) for label in labels])
