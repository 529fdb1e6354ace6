"""Contract suites that a new algorithm or player is tested by in three lines; they need pytest."""

from surefill.testing.completion import CompletionContract
from surefill.testing.confidence import ConfidenceContract
from surefill.testing.players import ConfidencePlayerContract, MatrixPlayerContract

__all__ = ["CompletionContract", "ConfidenceContract", "ConfidencePlayerContract", "MatrixPlayerContract"]
