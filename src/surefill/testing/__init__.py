"""Contract suites that a new algorithm is tested by in three lines; they need pytest."""

from surefill.testing.completion import CompletionContract
from surefill.testing.confidence import ConfidenceContract

__all__ = ["CompletionContract", "ConfidenceContract"]
