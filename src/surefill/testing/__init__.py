"""Contract suites that a new algorithm or player is tested by in three lines; they need pytest."""

from surefill.testing.completion_contract import CompletionContract
from surefill.testing.confidence_contract import ConfidenceContract
from surefill.testing.player_contracts import ConfidencePlayerContract, MatrixPlayerContract

__all__ = ["CompletionContract", "ConfidenceContract", "ConfidencePlayerContract", "MatrixPlayerContract"]
