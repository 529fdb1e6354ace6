"""The command line: ``surefill complete``, ``surefill evaluate`` and ``surefill demo``."""

from surefill.cli.main import main

__all__ = ["main"]
