"""Single questions that arrive while others are being answered are answered together.

An answer for a hundred cells takes hardly longer than one for a single cell, so that many clients wait like one.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from typing import NamedTuple

from surefill.service.answers import Prediction, predict
from surefill.service.api.limits import Threads
from surefill.service.data_set import DataSet, InUse

MOST_TOGETHER = 256
"""Cells answered at once: some milliseconds."""


class Answered(NamedTuple):
    """The answer for one cell, and the model in use when it was made."""

    prediction: Prediction
    in_use: InUse


class _Question(NamedTuple):
    data_set: DataSet
    level: float
    row: str
    col: str
    answer: asyncio.Future[Answered]


class Gatherer:
    """Answers questions about single cells, those that wait at the same time together."""

    def __init__(self, threads: Threads) -> None:
        self._threads, self._waiting = threads, list[_Question]()
        self._task: asyncio.Task[None] | None = None

    async def ask(self, data_set: DataSet, row: str, col: str, level: float) -> Answered:
        """The answer for one cell."""
        question = _Question(data_set, level, row, col, asyncio.get_running_loop().create_future())
        self._waiting.append(question)
        if self._task is None:
            self._task = asyncio.create_task(self._answer_all())
        return await question.answer

    async def _answer_all(self) -> None:
        try:
            while self._waiting:
                now, self._waiting = self._waiting[:MOST_TOGETHER], self._waiting[MOST_TOGETHER:]
                groups = defaultdict[tuple[DataSet, float], list[_Question]](list)
                for question in now:
                    groups[question.data_set, question.level].append(question)
                for (data_set, level), group in groups.items():
                    await self._answer(data_set, level, group)
        finally:
            self._task = None

    async def _answer(self, data_set: DataSet, level: float, group: list[_Question]) -> None:
        in_use, rows, cols = data_set.in_use, [each.row for each in group], [each.col for each in group]
        try:
            found = await self._threads.run(predict, data_set, in_use, rows, cols, level)
        except Exception as error:
            for each in group:
                if not each.answer.done():
                    each.answer.set_exception(error)
            return
        for each, prediction in zip(group, found, strict=True):
            if not each.answer.done():  # whoever asked may have gone
                each.answer.set_result(Answered(prediction, in_use))
