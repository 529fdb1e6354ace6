"""Full completion: algorithms that predict every entry, trusted or not (the paper's FC)."""

from surefill.completion.base import Completion, CompletionAlgorithm
from surefill.completion.bayesian_completion import BayesianFactorCompletion
from surefill.completion.bayesian_model import BayesianFactorModel
from surefill.completion.external import ExternalCompletion
from surefill.completion.factor_completion import FactorCompletion
from surefill.completion.factor_model import FactorModel
from surefill.completion.factored import Factored
from surefill.completion.gap import OptimalityGap
from surefill.completion.iterative_svd import IterativeSVD
from surefill.completion.losses import confidence_loss, distribution_loss, sample_loss
from surefill.completion.low_rank import LowRankCompletion
from surefill.completion.max_norm import MaxNormCompletion
from surefill.completion.max_norm_fit import MaxNormFit
from surefill.completion.outside import TableCompletion
from surefill.completion.soft_impute import SoftImpute
from surefill.completion.trace_norm import TraceNormCompletion

__all__ = [
    "BayesianFactorCompletion",
    "BayesianFactorModel",
    "Completion",
    "CompletionAlgorithm",
    "ExternalCompletion",
    "FactorCompletion",
    "FactorModel",
    "Factored",
    "IterativeSVD",
    "LowRankCompletion",
    "MaxNormCompletion",
    "MaxNormFit",
    "OptimalityGap",
    "SoftImpute",
    "TableCompletion",
    "TraceNormCompletion",
    "confidence_loss",
    "distribution_loss",
    "sample_loss",
]
