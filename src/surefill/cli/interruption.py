"""Signals that stop a long run where nothing is lost."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click


class Interrupted(BaseException):
    """A signal asked the run to stop."""

    def __init__(self, number: int) -> None:
        self.number = number


class Interruption:
    """Ctrl-C and SIGTERM: at once while waiting for input, else after the piece of input that is being learnt."""

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
