"""What has happened in the last minutes: observations a second and their error, sampled while the service runs."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, suppress
from itertools import pairwise
from typing import NamedTuple

from fastapi import FastAPI

from surefill.service.data_set import DataSet
from surefill.service.page.sessions import Sessions
from surefill.service.service import Service
from surefill.stream import StreamMetrics

log = logging.getLogger("surefill.service")

EVERY_SECONDS = 2.0
"""Time between two samples: as often as the page asks for them."""

KEPT = 300
"""Samples kept: ten minutes, some 100 kB for each data set."""


class Sample(NamedTuple):
    """How far a data set was at a time."""

    time: float
    sequence: int
    metrics: StreamMetrics


class Series(NamedTuple):
    """Times, observations a second, and the root mean squared error of those that were learnt in between."""

    times: list[float]
    rates: list[float]
    errors: list[float | None]

    @property
    def rate(self) -> float:
        """Observations a second over the last three samples, so that single batches do not make it jump."""
        last = self.rates[-3:]
        return sum(last) / len(last) if last else 0.0


class Activity:
    """Samples of every data set, the latest :data:`KEPT`.

    Examples
    --------
    >>> Activity().series(1)
    Series(times=[], rates=[], errors=[])
    """

    def __init__(self) -> None:
        self._samples: dict[int, deque[Sample]] = {}
        self._looked: float | None = None

    def look(self, data_sets: Iterable[DataSet], now: float) -> None:
        """Take one sample of each data set; those that are gone are forgotten."""
        present = list(data_sets)
        gone = self._samples.keys() - {data_set.record.id for data_set in present}
        for number in gone:
            del self._samples[number]
        for data_set in present:
            progress, number = data_set.progress, data_set.record.id
            if number not in self._samples:
                self._samples[number] = deque(maxlen=KEPT)
                if self._looked is not None:  # made since then, and empty at first
                    self._samples[number].append(Sample(self._looked, 0, StreamMetrics.empty()))
            self._samples[number].append(Sample(now, progress.sequence, progress.metrics))
        self._looked = now

    def series(self, number: int) -> Series:
        """What happened between the samples of the data set of that number."""
        steps = list(pairwise(list(self._samples.get(number, ()))))
        return Series(
            [round(after.time, 1) for _, after in steps],
            [round((after.sequence - before.sequence) / (after.time - before.time), 2) for before, after in steps],
            [_error(before, after) for before, after in steps],
        )


def _error(before: Sample, after: Sample) -> float | None:
    between = after.metrics.since(before.metrics)
    return round(between.rmse, 5) if between.count else None


@asynccontextmanager
async def watching(app: FastAPI) -> AsyncIterator[None]:
    """Samples are taken, and sessions known, for as long as the application runs."""
    app.state.activity, app.state.sessions = Activity(), Sessions()
    task = asyncio.create_task(_watch(app, app.state.activity))
    yield
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


async def _watch(app: FastAPI, activity: Activity) -> None:
    service: Service = app.state.service
    while True:
        try:
            if service.ready:
                await app.state.threads.run(activity.look, list(service.data_sets.values()), time.time())
        except Exception:
            log.exception("a sample could not be taken")
        await asyncio.sleep(EVERY_SECONDS)
