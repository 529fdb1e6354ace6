"""What every job does: read with progress, name the file in what is wrong with it, report a stage."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from surefill.data import Observations
from surefill.errors import InputError
from surefill.io import ReadOptions
from surefill.loop import Progress, ProgressCallback


def read_file(file: Path, options: ReadOptions, progress: ProgressCallback | None) -> Observations:
    """The observations in a file, reported as a stage."""
    with stage("reading", progress):
        return options.read(file)


@contextmanager
def about(file: Path) -> Iterator[None]:
    """Name the file where something is wrong with what it holds."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{file}: {error}") from None


@contextmanager
def stage(task: str, progress: ProgressCallback | None) -> Iterator[None]:
    """Report a stage that has no steps of its own as begun, then as done."""
    if progress is None:
        yield
        return
    start = time.perf_counter()
    progress(Progress(task, 0, 1, 0.0, 0.0))
    yield
    progress(Progress(task, 1, 1, time.perf_counter() - start, 1.0))
