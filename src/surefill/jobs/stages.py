"""What every job does: read with progress, name the file in what is wrong with it, report a stage."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from surefill.arrays import row_blocks
from surefill.data import Observations
from surefill.errors import InputError
from surefill.estimators.costs import seconds_of_fit
from surefill.estimators.long_table import BLOCK_CELLS
from surefill.io import ReadOptions
from surefill.io.pairs import first_fields
from surefill.io.readers import check_source
from surefill.loop import Progress
from surefill.waiting import Part, Watcher, part, plan

WRITTEN = {"confidence", "risk", "keep", "observed"}
"""Columns that every long table written here has beside rows, columns and values."""

READING_PER_BYTE = 2e-8
"""Seconds of one core to read a byte of text: 50 MB in a second or so."""

FITTING_PER_BYTE = 2e-6
"""Seconds of a fit for each byte of the file, before it is known what the file holds: 4 s for MovieLens 100K, 2 MB."""

WRITING_PER_CELL = 5e-8
"""Seconds to look at a cell of the matrix on two cores and write some of them; measured on 50,000 x 10,000 cells."""

REPORT, REPORT_PER_CELL = 2.0, 2e-5
"""Seconds to make a report, and for each observed cell."""


def plan_completing(observations: Observations, m: int, reports: bool, progress: Watcher) -> float:
    """What is to come once a file is read, of which m rows are to be written; the seconds beside those of the fit."""
    n = observations.shape[1]
    report = [Part("reporting", REPORT + REPORT_PER_CELL * len(observations))] if reports else []
    blocks = len(row_blocks(m, n, BLOCK_CELLS))
    writing = Part("writing", 0.05 + WRITING_PER_CELL * m * n, blocks)
    plan(progress, [Part("fitting", seconds_of_fit(observations)), *report, writing])
    return sum(each.seconds for each in (*report, writing))


def read_file(file: Path, options: ReadOptions, progress: Watcher) -> Observations:
    """The observations in a file, reported as a stage."""
    check_source(file, options)
    size = file.stat().st_size if file.is_file() else 0
    reading, follows = 0.05 + READING_PER_BYTE * size, 1.0 + FITTING_PER_BYTE * size
    plan(progress, [Part("reading", reading), Part("what follows", follows)])
    with stage("reading", progress):
        return options.read(file)


def check_observed(file: Path, options: ReadOptions) -> None:
    """Refuse a table that was written here: its filled values would be learnt and tested on as if observed.

    Whoever says which columns hold row, column and value has looked at it, and a pipe cannot be read twice.
    """
    if not (file.is_file() or file.is_dir()):
        return
    said = options.wide or any(column is not None for column in options.choice.values())
    if not said and set(first_fields(file, options)) >= WRITTEN:
        raise InputError(
            f"{file} looks like a table that surefill wrote, with values that were filled, not observed: give the "
            "table it was made from, or only its lines whose observed is true, without the columns that were added."
        )


@contextmanager
def about(file: Path) -> Iterator[None]:
    """Name the file where something is wrong with what it holds."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{file}: {error}") from None


@contextmanager
def stage(task: str, progress: Watcher) -> Iterator[None]:
    """Report a stage that has no steps of its own as begun, then as done."""
    if not callable(progress):
        yield
        return
    start = time.perf_counter()
    with part(progress, task):
        progress(Progress(task, 0, 1, 0.0, 0.0))
        yield
        progress(Progress(task, 1, 1, time.perf_counter() - start, 1.0))
