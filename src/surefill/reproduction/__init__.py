"""The paper's experiments and the demo: simulations of Figure 1, errors against confidence on MovieLens, digits.

The studies compute, ``figures`` draws what they return, and the command line prints it.
"""

from surefill.reproduction.figure1_study import PATTERNS, PatternOutcome, reproduce_pattern
from surefill.reproduction.methods import Method, MethodConfidence, MethodRun
from surefill.reproduction.movielens_study import (
    CompletionErrors,
    ConfidenceScores,
    ErrorByDecile,
    MovielensOutcome,
    error_by_decile,
    load_fold,
    load_square,
    reproduce_movielens,
)

__all__ = [
    "PATTERNS",
    "CompletionErrors",
    "ConfidenceScores",
    "ErrorByDecile",
    "Method",
    "MethodConfidence",
    "MethodRun",
    "MovielensOutcome",
    "PatternOutcome",
    "error_by_decile",
    "load_fold",
    "load_square",
    "reproduce_movielens",
    "reproduce_pattern",
]
