"""What commands print: sentences and tables in which nothing that came from a file commands the terminal."""

from __future__ import annotations

import os
import signal
import sys
from typing import NoReturn

import click

from surefill.errors import brief, printable
from surefill.inputs import cannot

LAYOUT = "\n\t"
"""Control signs that lay out a text."""


def say(text: str, err: bool = False) -> None:
    """Print text for a person; labels and names in it have their control signs escaped."""
    click.echo(printable(text, kept=LAYOUT), err=err)


def say_table(lines: str) -> None:
    """Print lines of a table: as they are to a pipe or file, and as :func:`say` does where a person reads them."""
    to_person = sys.stdout is not None and sys.stdout.isatty()
    click.echo(printable(lines, kept=LAYOUT) if to_person else lines, nl=False)


def fail(sentence: str, exit_code: int = 2) -> NoReturn:
    """One sentence on standard error, and the end."""
    try:
        click.echo(f"surefill: {brief(sentence)}", err=True)
    except OSError:  # nobody listens
        _silence(sys.stderr)
    sys.exit(exit_code)


def fail_to_print(error: OSError) -> NoReturn:
    """End when standard output takes no more: silently where its reader has left, as other programs do."""
    _silence(sys.stdout)
    if isinstance(error, BrokenPipeError):
        sys.exit(128 + signal.SIGPIPE)
    fail(str(cannot(error.filename or "standard output", "be written", error)), exit_code=1)


def flush() -> None:
    """Pass on what was printed, so that what goes wrong with it is told here and not when Python ends."""
    if sys.stdout is not None:
        sys.stdout.flush()


def _silence(stream: object) -> None:
    """Let what is still held for a stream go nowhere, or Python would try once more at its end."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())  # type: ignore[attr-defined]
    except (OSError, AttributeError, ValueError):
        return
