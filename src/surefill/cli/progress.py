"""Progress on standard error: a bar where a person watches, silence elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Self, TypeVar

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
