"""The one thread that stores and learns: batches of many clients in one transaction, acknowledged once durable."""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Engine

from surefill.errors import InputError
from surefill.service.data_set import DataSet
from surefill.service.store import writing
from surefill.service.store.engine import first_line
from surefill.service.store.observations import Batch, Stored, add_batch

log = logging.getLogger("surefill.service")

GROUP = 20_000
"""Observations in one transaction at most: a few tenths of a second, which the last in line waits."""


class StorageError(RuntimeError):
    """The store could not be written; nothing of what was to be stored is."""


class BusyError(RuntimeError):
    """Too much waits to be stored already."""


@dataclass(eq=False)
class _Waiting:
    data_set: DataSet
    batch: Batch
    future: Future[Stored] = field(default_factory=Future)

    @property
    def size(self) -> int:
        return len(self.batch.columns.values)


@dataclass(eq=False)
class _Call:
    function: Callable[[], Any]
    future: Future[Any] = field(default_factory=Future)


class _Enough:
    """Says that a group is complete."""


ENOUGH = _Enough()


class Writer:
    """Takes batches and gives a future for each, done once the batch is durable and learnt.

    Parameters
    ----------
    engine : the store.
    pending : observations that may wait.
    checkpoint_every : observations between two checkpoints of a stream.
    """

    def __init__(self, engine: Engine, pending: int, checkpoint_every: int) -> None:
        self._engine, self._most, self._every = engine, pending, checkpoint_every
        self._queue: queue.Queue[_Waiting | _Call | None] = queue.Queue()
        self._pending, self._lock = 0, threading.Lock()
        self._thread = threading.Thread(target=self._run, name="writer", daemon=True)

    def start(self) -> None:
        """Begin to store."""
        self._thread.start()

    def stop(self) -> None:
        """Store what waits, then end."""
        self._queue.put(None)
        self._thread.join()

    @property
    def alive(self) -> bool:
        """Whether it still stores."""
        return self._thread.is_alive()

    @property
    def pending(self) -> int:
        """Observations that wait."""
        return self._pending

    def submit(self, data_set: DataSet, batch: Batch) -> Future[Stored]:
        """Put a batch in line; BusyError where too much waits."""
        waiting = _Waiting(data_set, batch)
        with self._lock:
            if self._pending and self._pending + waiting.size > self._most:
                raise BusyError(f"{self._pending:,} observations wait to be stored; try again in a moment.")
            self._pending += waiting.size
        self._queue.put(waiting)
        return waiting.future

    def call(self, function: Callable[[], Any]) -> Future[Any]:
        """Run a function between two transactions, where nothing is learnt."""
        call = _Call(function)
        self._queue.put(call)
        return call.future

    def _run(self) -> None:
        while True:
            item: _Waiting | _Call | _Enough | None = self._queue.get()
            group: list[_Waiting] = []
            while isinstance(item, _Waiting):
                group.append(item)
                item = self._next(group)
            if group:
                self._store(group)
            if isinstance(item, _Call):
                _settle(item.future, item.function)
            elif item is None:
                if self._queue.empty():
                    return
                self._queue.put(None)  # what came in after it was told to end goes first

    def _next(self, group: list[_Waiting]) -> _Waiting | _Call | _Enough | None:
        if sum(each.size for each in group) >= GROUP:
            return ENOUGH
        try:
            return self._queue.get_nowait()
        except queue.Empty:
            return ENOUGH

    def _store(self, group: list[_Waiting]) -> None:
        """One transaction for the whole group; then learn, then acknowledge."""
        outcomes: list[Stored | InputError] = []
        try:
            with writing(self._engine) as connection:
                for each in group:
                    try:
                        outcomes.append(add_batch(connection, each.data_set.record.id, each.batch))
                    except InputError as error:
                        outcomes.append(error)
        except Exception as error:  # whatever it is, those who wait are told and the thread goes on
            said = first_line(error)
            log.error("nothing was stored", extra={"problem": said, "batches": len(group)})
            self._acknowledge(group, [StorageError(f"nothing was stored: {said}.")] * len(group))
            return
        for each, outcome in zip(group, outcomes, strict=True):
            if isinstance(outcome, Stored) and not outcome.repeated:
                _learn(each.data_set, each.batch, outcome)
        self._acknowledge(group, outcomes)
        for data_set in {each.data_set for each in group}:
            if data_set.sequence - data_set.checkpointed >= self._every:
                checkpoint(data_set)

    def _acknowledge(self, group: list[_Waiting], outcomes: list[Any]) -> None:
        with self._lock:
            self._pending -= sum(each.size for each in group)
        for each, outcome in zip(group, outcomes, strict=True):
            _settle(each.future, _giving(outcome))


def _learn(data_set: DataSet, batch: Batch, stored: Stored) -> None:
    """Let the stream learn; what it could not would still be stored, and in the next model."""
    try:
        data_set.learn(batch.columns, stored.last_sequence)
    except Exception:
        log.exception("the stream could not learn a batch", extra={"data_set": data_set.name})


def checkpoint(data_set: DataSet) -> None:
    """Save a stream; that it could not be is no loss, the log has everything."""
    try:
        data_set.checkpoint()
    except (InputError, OSError) as error:
        log.warning("the stream could not be saved", extra={"data_set": data_set.name, "problem": str(error)})


def _giving(outcome: Any) -> Callable[[], Any]:
    def give() -> Any:
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    return give


def _settle(future: Future[Any], function: Callable[[], Any]) -> None:
    """Give a future what a function returns or raises, unless nobody waits for it any more."""
    if not future.set_running_or_notify_cancel():
        return
    try:
        future.set_result(function())
    except Exception as error:
        future.set_exception(error)
