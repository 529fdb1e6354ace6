"""The paper's experiments, computed: simulations of Figure 1, and errors against confidence on MovieLens.

Nothing here draws or prints; ``surefill.report`` draws what these functions return, ``surefill reproduce`` prints it.
"""

from surefill.reproduction.deciles import ErrorByConfidence, error_by_decile
from surefill.reproduction.figure1_study import PATTERNS, PatternOutcome, reproduce_pattern
from surefill.reproduction.methods import Answer, Found, Method
from surefill.reproduction.movielens_study import (
    CompletionErrors,
    ConfidenceScores,
    ErrorsByConfidence,
    load_fold,
    load_square,
    reproduce_movielens,
)

__all__ = [
    "PATTERNS",
    "Answer",
    "CompletionErrors",
    "ConfidenceScores",
    "ErrorByConfidence",
    "ErrorsByConfidence",
    "Found",
    "Method",
    "PatternOutcome",
    "error_by_decile",
    "load_fold",
    "load_square",
    "reproduce_movielens",
    "reproduce_pattern",
]
