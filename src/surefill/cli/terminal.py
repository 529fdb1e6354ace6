"""Printing for the command line; control characters from files never reach a terminal."""

from __future__ import annotations

import os
import signal
import sys
from typing import NoReturn

import click

from surefill.errors import brief, printable
from surefill.inputs import cannot

LAYOUT = "\n\t"
"""Control characters that are printed as they are."""


class PrintingError(Exception):
    """Standard output cannot be written, for the reason of ``error``; no file that is being written is at fault."""

    def __init__(self, error: OSError) -> None:
        super().__init__(str(error))
        self.error = error


def say(text: str, err: bool = False) -> None:
    """Print text with the control characters of labels and names escaped."""
    _print(printable(text, kept=LAYOUT) + "\n", err)


def say_table(lines: str) -> None:
    """Print lines of a table: unchanged to a pipe or file, escaped as by :func:`say` to a terminal."""
    to_terminal = sys.stdout is not None and sys.stdout.isatty()
    _print(printable(lines, kept=LAYOUT) if to_terminal else lines)


def _print(text: str, err: bool = False) -> None:
    try:
        click.echo(text, nl=False, err=err)
    except OSError as error:
        raise PrintingError(error) from error


def fail(sentence: str, exit_code: int = 2) -> NoReturn:
    """Print one sentence on standard error and exit."""
    try:
        click.echo(f"surefill: {brief(sentence)}", err=True)
    except OSError:  # standard error is closed
        _silence(sys.stderr)
    sys.exit(exit_code)


def fail_to_print(error: OSError) -> NoReturn:
    """Exit after a failed write to standard output; silently if its reader has gone, as other programs do."""
    _silence(sys.stdout)
    if isinstance(error, BrokenPipeError):
        sys.exit(128 + signal.SIGPIPE)
    fail(str(cannot(error.filename or "standard output", "be written", error)), exit_code=1)


def flush() -> None:
    """Flush standard output, so that an error shows here and not at the interpreter's exit."""
    if sys.stdout is not None:
        sys.stdout.flush()


def _silence(stream: object) -> None:
    """Discard what is still buffered for a stream: Python would try to write it again at exit."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())  # type: ignore[attr-defined]
    except (OSError, AttributeError, ValueError):
        return
