"""Progress bars on standard error where a person watches, and interruption by signals at safe places."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Self, TypeVar

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from surefill.loop import Progress as Step

Part = TypeVar("Part")


class ProgressBars:
    """One line per task; a step of the loop moves the task's bar, :meth:`stage` shows a task with no steps."""

    def __init__(self) -> None:
        columns = TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn()
        self._bars = Progress(*columns, console=Console(stderr=True), transient=True)
        self._tasks: dict[str, TaskID] = {}

    def __enter__(self) -> Self:
        if self._bars.console.is_terminal:
            self._bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bars.console.is_terminal:
            self._bars.stop()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Take the bars off the terminal while something else is said or asked there."""
        if not self._bars.console.is_terminal:
            yield
            return
        self._bars.stop()
        yield
        self._bars.start()

    def __call__(self, step: Step) -> None:
        """Move the bar of the step's task."""
        task = self._tasks.get(step.task)
        if task is None:
            task = self._tasks[step.task] = self._bars.add_task(step.task, total=step.max_steps)
        self._bars.update(task, completed=step.step)

    def track(self, parts: Iterable[Part], description: str) -> Iterator[Part]:
        """The parts one by one, counted on a line of their own."""
        task = self._bars.add_task(description, total=None)
        for count, part in enumerate(parts, 1):
            yield part
            self._bars.update(task, description=f"{description}, block {count}")

    @contextmanager
    def stage(self, description: str) -> Iterator[None]:
        """Show ``description`` as running while the body runs."""
        task = self._bars.add_task(description, total=None)
        yield
        self._bars.remove_task(task)


class Interrupted(BaseException):
    """A signal asked the run to stop."""

    def __init__(self, number: int) -> None:
        self.number = number


class Interruption:
    """Handler of Ctrl-C and SIGTERM: at once while waiting for input, else after the piece that is being learnt."""

    def __init__(self) -> None:
        self._asked: int | None = None
        self._waiting = False
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Interruption:
        for number in (signal.SIGINT, signal.SIGTERM):
            self._before[number] = signal.signal(number, self._receive)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _receive(self, number: int, _: object) -> None:
        self._asked = number
        if self._waiting:
            raise Interrupted(number)

    def between(self, pieces: Iterator[Any]) -> Iterator[Any]:
        """The pieces, a signal raising :class:`Interrupted` only where the next one is waited for."""
        while True:
            self._waiting = True
            if self._asked is not None:
                raise Interrupted(self._asked)
            piece = next(pieces, None)
            self._waiting = False
            if piece is None:
                return
            yield piece

    @contextmanager
    def at_once(self) -> Iterator[None]:
        """While the body runs a signal ends the command: nothing has been learnt yet."""
        self._waiting = True
        try:
            yield
        except Interrupted as stop:
            click.echo("surefill: interrupted; nothing was written.", err=True)
            sys.exit(128 + stop.number)
        self._waiting = False
