"""When data sets are fitted again, and the process that does it."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial

from sqlalchemy import Engine
from sqlalchemy.exc import SQLAlchemyError

from surefill.errors import InputError
from surefill.service.data_set import DataSet
from surefill.service.served_model import ServedModel
from surefill.service.settings import Settings
from surefill.service.store import writing
from surefill.service.store.data_sets import find_data_set
from surefill.service.store.engine import first_line
from surefill.service.store.jobs import (
    MOST_ATTEMPTS,
    MOST_RESTARTS,
    JobRecord,
    begin_job,
    is_busy,
    last_sequence_tried,
    next_job,
    queue_job,
    requeue_lost,
)
from surefill.service.store.models import ModelRecord, last_models
from surefill.service.writer import Writer

log = logging.getLogger("surefill.service")

KEPT_FILES = 3
"""Models whose files stay: the one in use, and those to fall back on where it cannot be read."""

DUE = "enough is new"
ASKED = "asked for"
UNREADABLE = "its last model cannot be read"


PROGRAM = """
import os, sys, threading
line = sys.stdin.readline()
threading.Thread(target=lambda: (sys.stdin.read(), os._exit(1)), daemon=True).start()
from surefill.service.worker import main
main(line)
"""
"""What the process runs: it watches its input, which ends with the service, before it imports what takes seconds."""


class Refitter:
    """A thread that queues jobs for data sets that are due, runs one at a time in a process, and swaps models in.

    Parameters
    ----------
    data_sets : gives the data sets there are now.
    """

    def __init__(
        self, settings: Settings, engine: Engine, writer: Writer, data_sets: Callable[[], list[DataSet]]
    ) -> None:
        self._settings, self._engine, self._writer, self._data_sets = settings, engine, writer, data_sets
        self._stop, self._wake = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name="refitter", daemon=True)
        self._process: subprocess.Popen[str] | None = None
        self._unreadable: set[tuple[int, int]] = set()
        self._most_attempts = MOST_RESTARTS

    def start(self) -> None:
        """Begin to look for work: first for jobs that were cut off with the service before this one."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread and the process; a job that ran is taken up at the next start."""
        self._stop.set()
        self._wake.set()
        self._thread.join()
        if self._process is not None:
            self._process.kill()
            _forget(self._process)

    def wake(self) -> None:
        """Look for work now."""
        self._wake.set()

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                self._look()
            except SQLAlchemyError as error:
                log.error("the store cannot be used", extra={"problem": first_line(error)})
            except Exception:
                log.exception("looking for work failed")
            self._wake.wait(self._settings.poll_seconds)
            self._wake.clear()

    def _look(self) -> None:
        """One round: what has ended, what is new, what is due, what waits."""
        if self._process is not None and self._process.poll() is not None:
            _forget(self._process)
            self._process = None
        for data_set in self._data_sets():
            self.take_up(data_set)
            self._queue_if_due(data_set)
        if self._process is None:
            self._begin_next()

    def take_up(self, data_set: DataSet) -> bool:
        """Put the latest model of a data set in use that is newer than the present one and can be read, if any."""
        present = 0 if data_set.in_use.model is None else data_set.in_use.model.record.number
        with self._engine.connect() as connection:
            newer = last_models(connection, data_set.record.id, KEPT_FILES)
        for record in newer:
            if record.number <= present or (record.data_set, record.number) in self._unreadable:
                continue
            model = self._read(data_set, record)
            if model is not None:
                self._writer.call(partial(data_set.use, model, self._engine)).result()
                log.info("a model is in use", extra={"data_set": data_set.name, "model": record.number})
                _remove_old_files(data_set, newer)
                return True
        return False

    def _read(self, data_set: DataSet, record: ModelRecord) -> ServedModel | None:
        try:
            return ServedModel.load(record, data_set.folder / record.file)
        except InputError as error:
            log.error("a model cannot be read", extra={"data_set": data_set.name, "problem": str(error)})
            # once for each start: a model of another version is made anew, a disk that spoils files is no endless job
            if all(number != record.data_set for number, _ in self._unreadable):
                with writing(self._engine) as connection:
                    queue_job(connection, record.data_set, UNREADABLE)
            self._unreadable.add((record.data_set, record.number))
            return None

    def _queue_if_due(self, data_set: DataSet) -> None:
        with self._engine.connect() as connection:
            tried = last_sequence_tried(connection, data_set.record.id)
            if not data_set.options.due(data_set.sequence - tried, tried) or is_busy(connection, data_set.record.id):
                return
        with writing(self._engine) as connection:
            queue_job(connection, data_set.record.id, DUE)

    def _begin_next(self) -> None:
        """Begin the next job; no process is at work, so that a job which runs has lost its own."""
        with writing(self._engine) as connection:
            for lost in requeue_lost(connection, self._most_attempts):
                log.warning("a job lost its process", extra={"job": lost.id, "attempts": lost.attempts})
        self._most_attempts = MOST_ATTEMPTS
        with writing(self._engine) as connection:
            job = next_job(connection)
            if job is None:
                return
            data_set = next((each for each in self._data_sets() if each.record.id == job.data_set), None)
            record = None if data_set is None else find_data_set(connection, data_set.name)
            if data_set is None or record is None:
                return
            begin_job(connection, job.id, record.last_sequence)
        self._process = self._spawn(job)

    def _spawn(self, job: JobRecord) -> subprocess.Popen[str]:
        """The process of a job. Its orders come by its standard input, which ends when this process does."""
        process = subprocess.Popen([sys.executable, "-c", PROGRAM], stdin=subprocess.PIPE, text=True)
        orders = {"address": self._settings.address, "folder": str(self._settings.folder), "job": job.id}
        assert process.stdin is not None
        with suppress(BrokenPipeError):
            process.stdin.write(json.dumps(orders | {"n_jobs": self._settings.refit_jobs}) + "\n")
            process.stdin.flush()
        return process


def _forget(process: subprocess.Popen[str]) -> None:
    """Wait for a process that has ended, or is about to, and close the way to it."""
    process.wait()
    if process.stdin is not None:
        process.stdin.close()


def _remove_old_files(data_set: DataSet, kept: list[ModelRecord]) -> None:
    """Remove the files of models that nobody will fall back on."""
    names = {record.file for record in kept} | {report_name(record.file) for record in kept}
    for pattern in ("model-*.surefill", "model-*.html"):
        for file in data_set.folder.glob(pattern):
            if file.name not in names and int(file.stem.partition("-")[2]) < min(record.number for record in kept):
                file.unlink(missing_ok=True)


def model_name(number: int) -> str:
    """The file of a model.

    >>> model_name(12), report_name(model_name(12))
    ('model-000012.surefill', 'model-000012.html')
    """
    return f"model-{number:06d}.surefill"


def report_name(model_file: str) -> str:
    """The report beside a model."""
    return model_file.removesuffix(".surefill") + ".html"
