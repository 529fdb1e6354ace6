"""The command line: ``surefill complete``, ``evaluate``, ``stream``, ``demo`` and ``reproduce``."""

from surefill.cli.main import main

__all__ = ["main"]
