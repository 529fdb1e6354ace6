"""A data set in memory: the stream that has learnt everything, and the model in use."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from sqlalchemy import Engine

from surefill.arrays import Array
from surefill.errors import InputError
from surefill.service.files import remove_unfinished
from surefill.service.recent import RecentCells
from surefill.service.served_model import ServedModel
from surefill.service.store.data_sets import DataSetRecord, Options
from surefill.service.store.observations import Columns, read_observations
from surefill.stream import StreamingCompleter, StreamMetrics

LEARN_AT_ONCE = 500
"""Observations learnt under one lock: some ten milliseconds, for which a question to the stream may wait."""


class InUse(NamedTuple):
    """The model in use, None before the first, and the cells observed since; a request reads both by one reference."""

    model: ServedModel | None
    recent: RecentCells


class StreamProgress(NamedTuple):
    """How far a stream has come."""

    sequence: int
    shape: tuple[int, int]
    metrics: StreamMetrics


@dataclass(eq=False)
class DataSet:
    """What is held in memory of a data set. One thread learns and swaps models; any thread may ask.

    The log in the store is the truth: at the start the last checkpoint of the stream is read, and what came after it is
    learnt again, to the same bits, since batches make no difference to a stream.
    """

    record: DataSetRecord
    folder: Path
    stream: StreamingCompleter
    sequence: int = 0

    def __post_init__(self) -> None:
        self.in_use = InUse(None, RecentCells())
        self._lock = threading.Lock()
        self.checkpointed = self.sequence

    @classmethod
    def open(cls, record: DataSetRecord, folder: Path) -> DataSet:
        """From its last checkpoint, or empty where there is none that can be read."""
        folder.mkdir(parents=True, exist_ok=True)
        remove_unfinished(folder)
        try:
            stream, note = StreamingCompleter.load_with_note(folder / "stream.surefill")
            sequence = int((note or {})["sequence"])
        except (InputError, LookupError):
            stream, sequence = _empty_stream(record), 0
        # A database that was put back from a copy lacks what the checkpoint has learnt.
        if sequence > record.last_sequence:
            stream, sequence = _empty_stream(record), 0
        return cls(record, folder, stream, sequence)

    @property
    def name(self) -> str:
        """Its name."""
        return self.record.name

    @property
    def options(self) -> Options:
        """How it is completed and when it is fitted again."""
        return self.record.options

    def replay(self, engine: Engine) -> None:
        """Let the stream learn what the log holds beyond the checkpoint."""
        with engine.connect() as connection:
            for columns in read_observations(connection, self.record.id, self.sequence, self.record.last_sequence):
                self._learn(columns)
                self.sequence += len(columns.values)

    def learn(self, columns: Columns, last_sequence: int) -> None:
        """Learn observations that are stored, the last of them numbered ``last_sequence``."""
        self._learn(columns)
        self.in_use.recent.add(columns)
        self.sequence = last_sequence

    def _learn(self, columns: Columns) -> None:
        for first in range(0, len(columns.values), LEARN_AT_ONCE):
            part = slice(first, first + LEARN_AT_ONCE)
            with self._lock:
                self.stream.learn_many(*(column[part] for column in columns))

    def use(self, model: ServedModel | None, engine: Engine) -> None:
        """Put a model in use, or none, between two batches: what came after it is read from the log."""
        recent, seen = RecentCells(), 0 if model is None else model.record.sequence
        with engine.connect() as connection:
            for columns in read_observations(connection, self.record.id, seen, self.sequence):
                recent.add(columns)
        self.in_use = InUse(model, recent)

    def ask_stream(self, rows: list[str], cols: list[str]) -> tuple[Array, Array]:
        """Values and confidences of the stream."""
        with self._lock:
            return self.stream.predict(rows, cols), self.stream.confidence(rows, cols)

    @property
    def progress(self) -> StreamProgress:
        """How far the stream has come, and how well it predicted."""
        with self._lock:
            return StreamProgress(self.sequence, self.stream.shape, self.stream.metrics)

    def checkpoint(self) -> None:
        """Save the stream, so that a start is quick; called by the thread that learns."""
        if self.sequence == self.checkpointed:
            return
        self.stream.save(self.folder / "stream.surefill", {"sequence": self.sequence})
        self.checkpointed = self.sequence


def _empty_stream(record: DataSetRecord) -> StreamingCompleter:
    return StreamingCompleter(bounds=record.options.bounds)
