"""The command line: ``surefill complete``, ``surefill stream`` and ``surefill demo``."""

from surefill.cli.main import main

__all__ = ["main"]
