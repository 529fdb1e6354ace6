"""The estimate as one bar, in a terminal or a notebook."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from threading import Event, Lock, Thread
from types import TracebackType
from typing import Any, Protocol, Self, TypeVar, cast

from surefill.errors import invalid_parameter
from surefill.loop import ProgressCallback
from surefill.waiting.estimate import Waiting, WaitingState

EVERY = 0.2
"""Seconds between two looks at a bar: it moves smoothly, and costs nothing."""

WIDEST = len("fold 1, cross-fitting")
"""Signs kept free for what is being done, so that the bar stays in its place."""

Watcher = ProgressCallback | bool | None
"""A callback, True for a bar, or nothing."""

Function = TypeVar("Function", bound=Callable[..., Any])


class Display(Protocol):
    """Where a bar is drawn."""

    def show(self, state: WaitingState) -> None:
        """Draw it as it is now."""
        ...

    def close(self) -> None:
        """Take it away."""
        ...


class TerminalDisplay:
    """A line on standard error that vanishes at the end."""

    def __init__(self, console: Any) -> None:
        from rich.progress import BarColumn, Progress, TextColumn

        columns = TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[left]}")
        self._bar = Progress(*columns, console=console, transient=True, auto_refresh=False)
        self._task = self._bar.add_task("", total=1.0, left="")

    def show(self, state: WaitingState) -> None:
        """Draw it as it is now."""
        self._bar.start()  # anew, where it was taken away meanwhile
        self._bar.update(self._task, completed=state.share, description=f"{state.doing:<{WIDEST}}", left=state.words)
        self._bar.refresh()

    def close(self) -> None:
        """Take it away."""
        self._bar.stop()


class NotebookDisplay:
    """A bar below the cell of a notebook, which needs no widgets."""

    def __init__(self) -> None:
        from IPython.display import display  # type: ignore[import-not-found, unused-ignore]

        self._handle = display(_Html(""), display_id=True)

    def show(self, state: WaitingState) -> None:
        """Draw it as it is now."""
        bar = f'<progress value="{state.share:.3f}" max="1"></progress>'
        self._handle.update(_Html(f"{bar} {state.doing}{', ' if state.words else ''}{state.words}"))

    def close(self) -> None:
        """Take it away."""
        self._handle.update(_Html(""))


class _Html:
    def __init__(self, text: str) -> None:
        self._text = text

    def _repr_html_(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return ""


class ProgressBar(Waiting):
    """One bar over a whole job with what is left of it, drawn from its own thread; nothing where nobody watches.

    Examples
    --------
    >>> import surefill as sf
    >>> seen = sf.datasets.make_low_rank((30, 20), rank=1, n_draws=300, random_state=0).observations
    >>> with sf.waiting.ProgressBar() as bar:
    ...     completer = sf.PartialCompleter(0.5, confidence="posterior", progress=bar).fit(seen)
    """

    def __init__(self, display: Display | None = None) -> None:
        super().__init__()
        self._display, self._ended, self._painting = display, Event(), Lock()
        self._painter = Thread(target=self._paint, name="surefill-progress", daemon=True)

    def __enter__(self) -> Self:
        if self._display is None:
            self._display = _display()
        if self._display is not None:
            self._painter.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        if self._display is not None:
            self._painter.join()
            self._display.close()

    def _paint(self) -> None:
        assert self._display is not None
        while not self._ended.wait(EVERY):
            with self._painting:
                self._display.show(self.state())

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Inside, the bar is taken away, while something else is said or asked."""
        with self._painting:
            if self._display is not None:
                self._display.close()
            yield


def _display() -> Display | None:
    """A terminal's or a notebook's, or none."""
    from rich.console import Console

    console = Console(stderr=True)
    if console.is_jupyter:
        return NotebookDisplay()
    return TerminalDisplay(console) if console.is_terminal and not sys.stderr.closed else None


@contextmanager
def watching(progress: Watcher) -> Iterator[ProgressCallback | None]:
    """What to call after each step: a new bar for True, nothing for False or None, else the callback as it is.

    >>> with watching(None) as callback:
    ...     print(callback)
    None
    """
    if progress is True:
        with ProgressBar() as bar:
            yield bar
    else:
        yield progress or None


def check_progress(owner: str, given: object) -> None:
    """Refuse what cannot watch.

    >>> check_progress("PartialCompleter", print)
    """
    if not (given is None or isinstance(given, bool) or callable(given)):
        raise invalid_parameter(owner, "progress", "True for a bar, a function to call after each step, or None", given)


def watched(function: Function) -> Function:
    """Let a function that has a ``progress`` argument by name take True for a bar over all that it does.

    >>> @watched
    ... def job(progress=None):
    ...     return type(progress).__name__
    >>> job(progress=True), job()
    ('ProgressBar', 'NoneType')
    """

    @wraps(function)
    def with_bar(*given: Any, progress: Watcher = None, **named: Any) -> Any:
        check_progress(function.__name__, progress)
        with watching(progress) as callback:
            return function(*given, progress=callback, **named)

    return cast(Function, with_bar)
