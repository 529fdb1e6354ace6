"""Full completion: algorithms that predict every entry, trusted or not (the paper's FC)."""

from surefill.completion.base import Completion, CompletionAlgorithm
from surefill.completion.bayesian_completion import BayesianFactorCompletion
from surefill.completion.bayesian_model import BayesianFactorModel
from surefill.completion.factor_completion import FactorCompletion
from surefill.completion.factor_model import FactorModel
from surefill.completion.factored import Factored
from surefill.completion.max_norm import MaxNormCompletion
from surefill.completion.max_norm_fit import MaxNormFit

__all__ = [
    "BayesianFactorCompletion",
    "BayesianFactorModel",
    "Completion",
    "CompletionAlgorithm",
    "FactorCompletion",
    "FactorModel",
    "Factored",
    "MaxNormCompletion",
    "MaxNormFit",
]
