"""The command line: ``surefill complete`` and ``surefill demo``."""

from surefill.cli.main import main

__all__ = ["main"]
