"""The front door: one estimator, one frozen result, and its file."""

from surefill.estimators.long_table import iterate_table
from surefill.estimators.partial_completer import PartialCompleter
from surefill.estimators.recommending import Ranking, iterate_recommendations
from surefill.estimators.result import Answer, PartialCompletion
from surefill.estimators.scorers import ErrorScorer, KeptShareScorer, make_error_scorer, make_kept_share_scorer
from surefill.estimators.storage import load, save

__all__ = [
    "Answer",
    "ErrorScorer",
    "KeptShareScorer",
    "PartialCompleter",
    "PartialCompletion",
    "Ranking",
    "iterate_recommendations",
    "iterate_table",
    "load",
    "make_error_scorer",
    "make_kept_share_scorer",
    "save",
]
