"""The bar on standard error where a person watches, and interruption by signals at safe places."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any

from surefill.cli.terminal import say
from surefill.waiting import Part, ProgressBar

if TYPE_CHECKING:
    from surefill.jobs import Forecast

BYTES_PER_SECOND = 1e6
"""Of a stream, about: 25 bytes an observation, of which some 40,000 are learnt in a second."""


NOTHING_WRITTEN = "interrupted; nothing was written, and the same command starts anew."
"""Said when a command was stopped before it had anything to show."""


class ProgressBars(ProgressBar):
    """One bar over all that a command does."""

    def stage(self, description: str) -> AbstractContextManager[None]:
        """Inside, that part of the command runs."""
        return self.part(description)

    @contextmanager
    def through(self, description: str, size: int | None) -> Iterator[None]:
        """Inside, a file of ``size`` bytes is gone through; :meth:`at` tells how far; None where that is unknown."""
        self._size = size
        self.plan([Part(description, (size or 0) / BYTES_PER_SECOND)])
        with self.part(description):
            yield

    def at(self, position: int) -> None:
        """So many bytes are done."""
        if self._size:
            self.reached(min(1.0, position / self._size))


def announced(forecast: Forecast, bars: ProgressBars) -> None:
    """Tell how long it will take, and how much memory."""
    with bars.paused():
        say(forecast.sentence, err=True)


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
            say(f"surefill: {NOTHING_WRITTEN}", err=True)
            sys.exit(128 + stop.number)
        self._waiting = False
