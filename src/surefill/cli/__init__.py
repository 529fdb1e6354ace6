"""The command line: ``surefill complete``, ``evaluate``, ``stream`` and ``demo``."""

from surefill.cli.main import main

__all__ = ["main"]
