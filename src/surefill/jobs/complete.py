"""A table of observations in, a table of trusted entries out."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from surefill.cluster import choose_backend
from surefill.data import Observations
from surefill.errors import InputError
from surefill.estimators import PartialCompleter, PartialCompletion
from surefill.estimators.storage import dump
from surefill.guarantee import Shortfall
from surefill.guarantee.propensity import Aim
from surefill.io import ReadOptions
from surefill.io.durable import check_distinct, replacing
from surefill.io.files import check_folder
from surefill.io.writers import check_table_target
from surefill.jobs.completed_table import WrittenTable, write_rows
from surefill.jobs.forecast import Announce, Forecast, saying_what_fits
from surefill.jobs.stages import about, check_observed, plan_completing, read_file, stage
from surefill.jobs.table_size import N_SAMPLED, Confirm, confirmed_before_fit
from surefill.jobs.write_options import WriteOptions
from surefill.report import check_report_target, render_report
from surefill.report.page import write_page
from surefill.risk.cross_fitting import MANY_CELLS
from surefill.waiting import Watcher, part, watched


@dataclass(frozen=True)
class CompletedFile:
    """What :func:`complete_file` read, found, promises and wrote.

    Attributes
    ----------
    columns_read : what the file calls rows, columns and values.
    observed_cells, draws : distinct cells seen, and observations with repeats.
    skipped_lines : lines of the file that had no value and were left out, as was asked for.
    cells_with_differing_repeats : cells seen more than once with different values; their means were used.
    bounds, bounds_from, about_bounds : the range of values, how it is known ("given", "scale", "seen"), one sentence.
    dominance : figures and the sentence of :class:`surefill.data.Dominance` where a few values dominate; else None.
    loss : what the tolerance is about, such as "mean squared error".
    kept_share : share of all cells that are kept, estimated where there are many.
    aim : cells that the promise is about: "unobserved" (those filled), "all" or "observed".
    rows_written : rows that were asked for, all where none were named.
    missing_in_rows : cells of these rows that were not observed.
    filled_cells : those of them that are kept, counted while writing; of a large table of the top n of each row an
        estimate from a sample of the cells.
    n_filled : the same as the promise counts them, on a sample of the cells where there are many; None where the
        promise is not about filled cells, or there is none.
    sensitivity : the factor by which values may change the odds of being observed without breaking the promise; None
        where nothing is promised, or where these odds play no part in it.
    held_out_error : that of the kept calibration cells; None where none are kept.
    held_out_entries : how many calibration cells there were.
    limited_by : what keeps the kept set from being larger: "tolerance", "support", "calibration" or "sensitivity".
    shortfall : the figures of :class:`surefill.guarantee.Shortfall` where nothing is kept; else None.
    completed_by : what gave the values, with what was chosen for it, such as "Bayesian factors of rank 20".
    selection, certificate, guarantee, holds_over, not_promised : the sentences of the result.
    seconds : spent in each stage of the fit.
    lines : written to ``output``.
    cells_looked_at, writing_seconds : cells of the rows written, and how long it took to look at them and to write.
    layout, digits, rounded : "long" or "wide"; digits after the point of completed values, and whether they were asked
        for: a promise is about values before rounding, which digits that are chosen hardly change.
    top_n : how many cells of each row were written at most; None for all.
    backend : where factors were fitted: "local", or "ray"; "cluster" where all of it was done on row blocks.

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
    skipped_lines: int
    cells_with_differing_repeats: int
    bounds: tuple[float, float]
    bounds_from: str
    about_bounds: str
    dominance: dict[str, Any] | None
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
    completed_by: str
    selection: str
    confidence_standing: str
    certificate: str
    promised: bool
    guarantee: str
    holds_over: str
    not_promised: str
    seconds: dict[str, float]
    rows_written: int
    missing_in_rows: int
    filled_cells: int
    output: Path
    lines: int
    cells_looked_at: int
    writing_seconds: float
    layout: str
    digits: int
    rounded: bool = False
    top_n: int | None = None
    model: Path | None = None
    report: Path | None = None
    backend: str = "local"

    @property
    def missing_cells(self) -> int:
        """Cells that were not observed."""
        return self.rows * self.columns - self.observed_cells

    @property
    def filled_share(self) -> float:
        """Share of the missing cells of the rows written that is filled; 0 where none are missing."""
        return self.filled_cells / self.missing_in_rows if self.missing_in_rows else 0.0

    @property
    def filled_is_estimate(self) -> bool:
        """Whether filled cells were counted on a sample: for the top n of each row most cells are never looked at."""
        return self.top_n is not None and self.cells_looked_at > N_SAMPLED

    def as_json(self) -> dict[str, Any]:
        """The fields as plain values; files that were not asked for are left out."""
        plain = {name: str(value) if isinstance(value, Path) else value for name, value in asdict(self).items()}
        return {name: value for name, value in plain.items() if value is not None or name not in ("model", "report")}


@watched
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
    backend: Any = None,
    write: WriteOptions | None = None,
    model: str | Path | None = None,
    report: str | Path | None = None,
    command: str | None = None,
    confirm: Confirm | None = None,
    announce: Announce | None = None,
    progress: Watcher = None,
) -> CompletedFile:
    """Read observations from ``file``, keep what can be trusted at the tolerance, and write it to ``output``.

    Parameters
    ----------
    output : the table to write; its suffix says how, see :func:`surefill.io.write_table`.
    read : how ``file`` is read; guessed where None.
    tolerance, delta, completion, confidence, loss, aim, sensitivity, random_state : those of
        :class:`surefill.PartialCompleter`.
    backend : where factors are fitted, as :class:`surefill.PartialCompleter` has it.
    write : which cells are written, with how many digits, long or wide; kept and observed ones where None.
    model : where to save the fitted completer as well, for :func:`surefill.load`.
    report : where to write a page for the browser as well.
    command : what the page says one has to run to repeat it; the completer's parameters where None.
    confirm : called with the expected :class:`TableSize` of a table of more than 100 MB; InputError where it is not
        true. When None, tables of up to a gigabyte are written.
    announce : called before the fit with the expected time and memory (:class:`Forecast`) where it takes a minute or
        more, or more memory than there is.
    progress : True for a bar over the whole job, or a function that is called after each step of each stage.

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
    source, target, options = Path(file), Path(output), read or ReadOptions()
    model_target, report_target = (None if path is None else Path(path) for path in (model, report))
    check_table_target(output)
    written = (write or WriteOptions()).in_layout("wide" if options.wide else "long")
    beside_file = {"rows": written.rows, "row_features": options.row_features, "col_features": options.col_features}
    check_targets({"FILE": source} | beside_file, target, model_target, report_target)
    observations = read_file(source, options, progress)
    check_observed(source, options)
    rows = written.rows_of(observations)
    written.check_size(observations, len(rows), target)
    confirm = confirmed_before_fit(observations, output, rows, written, confirm)
    beside = plan_completing(observations, len(rows), report is not None, progress)
    forecast = Forecast.of(observations, beside)
    if announce is not None and forecast.is_long:
        announce(forecast)
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
        backend=backend,
    )
    with saying_what_fits(forecast, source), about(source):
        completer.fit(observations)
    # Model and report wait under temporary names until the table is complete: all appear, or none.
    with saying_what_fits(forecast, source), ExitStack() as unfinished:
        if model_target is not None:
            dump(completer, unfinished.enter_context(replacing(model_target)))
        if report_target is not None:
            with stage("reporting", progress):
                page = render_report(completer, title=source.name, command=command)
            write_page(unfinished.enter_context(replacing(report_target)), page)
        with part(progress, "writing"):
            table = write_rows(completer, output, written, rows, confirm, progress)
    files = {"model": model_target, "report": report_target}
    n_training = len(observations) - completer.result_.selection.n_held_out
    where = "ray" if on_cluster(n_training, backend) else "local"
    return _summary(
        completer.result_,
        observations,
        table,
        top_n=written.top_n,
        rounded=written.digits is not None,
        backend=where,
        **files,
    )


def on_cluster(n_cells: int, backend: object) -> bool:
    """Whether factors of so many training cells are fitted on a cluster: it was asked for, and they are many."""
    return choose_backend(backend) is not None and n_cells > MANY_CELLS


def check_targets(given: Mapping[str, Any], output: Path, model: Path | None, report: Path | None) -> None:
    """Refuse places that cannot be written, and ones that would overwrite a file that is ``given``."""
    if model is not None:
        check_folder(model)
    if report is not None:
        check_report_target(report)
    read = {name: Path(path) for name, path in given.items() if path is not None}
    for name, path in read.items():
        check_distinct(**{name: path}, output=output, model=model, report=report)
    others = [path for path in (*read.values(), model, report) if path is not None]
    inside = [path for path in others if Path(os.path.realpath(output)) in Path(os.path.realpath(path)).parents]
    if inside:
        raise InputError(
            f"what is read and written must be different files, but {inside[0]} lies in the folder {output}, which is "
            "replaced as a whole."
        )


def _summary(result: PartialCompletion, observations: Observations, table: WrittenTable, **more: Any) -> CompletedFile:
    m, n = observations.shape
    return CompletedFile(
        rows=m,
        columns=n,
        columns_read=observations.names,
        observed_cells=len(observations),
        draws=observations.n_draws,
        skipped_lines=observations.skipped,
        cells_with_differing_repeats=observations.disagreements,
        bounds=observations.bounds,
        bounds_from=observations.bounds_from.name.lower(),
        about_bounds=observations.about_bounds,
        dominance=_dominating(observations),
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
        shortfall=None if result.selection.shortfall is None else plain_shortfall(result.selection.shortfall),
        completed_by=result.completed_by,
        selection=result.selection.sentence,
        confidence_standing=result.certificate.standing,
        certificate=result.certificate.sentence,
        promised=result.guarantee.promised,
        guarantee=result.guarantee.sentence,
        holds_over=result.guarantee.holds_over,
        not_promised=result.guarantee.not_promised,
        seconds=dict(result.timings),
        rows_written=table.rows_written,
        missing_in_rows=table.missing_cells,
        filled_cells=table.filled_cells,
        output=table.output,
        lines=table.lines,
        cells_looked_at=table.cells,
        writing_seconds=table.seconds,
        layout=table.layout,
        digits=table.digits,
        **more,
    )


def _dominating(observations: Observations) -> dict[str, Any] | None:
    """What is told of values that dominate, ready for JSON."""
    found = observations.dominance
    return None if found is None else asdict(found) | {"sentence": found.sentence}


def plain_shortfall(shortfall: Shortfall) -> dict[str, Any]:
    """The figures of a shortfall, ready for JSON."""
    named = {"limited_by": shortfall.limited_by.name.lower(), "loss": shortfall.loss.mean_name}
    return asdict(shortfall) | named
