"""The process that fits: one job, told what to do by its standard input, ended with the service that started it."""

from __future__ import annotations

import json
import os
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, Engine

from surefill.data import Observations
from surefill.data.labels import text_array
from surefill.errors import InputError, SolverError
from surefill.estimators import PartialCompleter
from surefill.io.durable import replacing
from surefill.report import render_report
from surefill.service.files import holding, remove_unfinished
from surefill.service.folders import folder_of
from surefill.service.refit import model_name, report_name
from surefill.service.store import open_engine, writing
from surefill.service.store.data_sets import DataSetRecord, all_data_sets
from surefill.service.store.jobs import JobRecord, beat, end_job, find_job
from surefill.service.store.models import ModelRecord, add_model, next_number
from surefill.service.store.observations import asked_mask, read_observations

BEAT_SECONDS = 2.0
"""How often a job says that it is alive."""

NICENESS = 10
"""Fitting gives way to answering."""


def main(line: str) -> None:
    """Do the job of the orders that a line holds."""
    orders = json.loads(line)
    os.nice(NICENESS)
    engine = open_engine(orders["address"])
    threading.Thread(target=_keep_beating, args=(engine, orders["job"]), daemon=True).start()
    try:
        # A process that a killed service left behind may still be writing the same files.
        with holding(Path(orders["folder"]) / "fit.lock"):
            do(engine, orders["job"], Path(orders["folder"]), orders["n_jobs"])
    except (InputError, SolverError, MemoryError) as error:
        problem = str(error) or "there is too little memory to fit this data set."
        with writing(engine) as connection:
            end_job(connection, orders["job"], problem=problem)


def do(engine: Engine, number: int, folder: Path, n_jobs: int | None) -> None:
    """Do the job of that number, unless it has been done or taken back."""
    with engine.connect() as connection:
        job = find_job(connection, number)
        data_set = None if job is None else next((d for d in all_data_sets(connection) if d.id == job.data_set), None)
    if job is None or data_set is None or job.state != "running":
        return
    remove_unfinished(folder_of(folder, data_set))
    run(engine, job, data_set, folder_of(folder, data_set), n_jobs)


def _keep_beating(engine: Engine, job: int) -> None:
    while True:
        time.sleep(BEAT_SECONDS)
        with writing(engine) as connection:
            beat(connection, job)


def run(engine: Engine, job: JobRecord, data_set: DataSetRecord, folder: Path, n_jobs: int | None) -> None:
    """Fit, write model and report, both on the disk when written, then say so in one transaction: that is the swap."""
    start = time.perf_counter()
    with engine.connect() as connection:
        drawn, asked = gather(connection, data_set, job.sequence)
        number = next_number(connection, data_set.id)
    completer = fit(data_set, drawn, asked, n_jobs)
    file = folder / model_name(number)
    completer.save(file)
    _write_report(completer, folder / report_name(file.name), data_set.name)
    result = completer.result_
    record = ModelRecord(
        data_set=data_set.id,
        number=number,
        file=file.name,
        sequence=job.sequence,
        promised=result.guarantee.promised,
        kept_share=result.kept_share(),
        error=result.selection.held_out_error,
        tolerance=result.selection.tolerance,
        seconds=time.perf_counter() - start,
        created=time.time(),
    )
    with writing(engine) as connection:
        if end_job(connection, job.id, model=number):
            add_model(connection, record)


def gather(
    connection: Connection, data_set: DataSetRecord, up_to: int
) -> tuple[Observations, tuple[list[str], list[str], list[float]]]:
    """The observations that were drawn, and (rows, columns, values) of those that answer suggestions.

    A cell that was both drawn and asked is a drawn one; its asked values are left out.
    """
    rows, cols, values = dict[str, int](), dict[str, int](), list[float]()
    i, j = list[int](), list[int]()
    for columns in read_observations(connection, data_set.id, 0, up_to):
        i += [rows.setdefault(row, len(rows)) for row in columns.rows]
        j += [cols.setdefault(col, len(cols)) for col in columns.cols]
        values += columns.values
    if not values:
        raise InputError("nothing was observed yet.")
    asked, labels = asked_mask(connection, data_set.id, up_to), (list(rows), list(cols))
    if asked.all():
        raise InputError("all observations answer suggestions; a promise needs cells that nobody chose.")
    every = np.array(i), np.array(j), np.array(values)
    drawn = _observations(every, ~asked, labels, data_set.options.bounds)
    if not asked.any():
        return drawn, ([], [], [])
    extra = _observations(every, asked, labels, data_set.options.bounds)
    names = extra.row_names(extra.rows), extra.col_names(extra.cols)
    at = drawn.locate(*names)
    new = np.where((at[0] >= 0) & (at[1] >= 0), drawn.find(*at), -1) < 0
    return drawn, (names[0][new].tolist(), names[1][new].tolist(), extra.values[new].tolist())


def _observations(
    every: tuple[NDArray[Any], ...],
    which: NDArray[np.bool_],
    labels: tuple[list[str], list[str]],
    bounds: tuple[float, float] | None,
) -> Observations:
    """Some of all observations (i, j, values), in the rows and columns that have any of them, with their labels."""
    i, j, values = (column[which] for column in every)
    used = [np.unique(each, return_inverse=True) for each in (i, j)]
    names = [text_array(of)[kept] for of, (kept, _) in zip(labels, used, strict=True)]
    return Observations(
        used[0][1],
        used[1][1],
        values,
        bounds=bounds,
        row_labels=names[0],
        col_labels=names[1],
        names=("row", "col", "value"),
    )


def fit(
    data_set: DataSetRecord,
    drawn: Observations,
    asked: tuple[list[str], list[str], list[float]],
    n_jobs: int | None = None,
) -> PartialCompleter:
    """A completer fitted on everything; what was asked is trained on and never calibrated on."""
    options = data_set.options
    completer = PartialCompleter(
        tolerance=options.tolerance,
        delta=options.delta,
        loss=options.loss,
        aim=options.aim,  # type: ignore[arg-type]
        bounds=options.bounds,
        n_jobs=n_jobs,
    ).fit(drawn)
    return completer.observe(*asked).refit() if asked[0] else completer


def _write_report(completer: PartialCompleter, target: Path, title: str) -> None:
    with replacing(target) as partial:
        partial.write_text(render_report(completer, title=title), encoding="utf-8")
