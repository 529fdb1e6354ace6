"""Full completion: algorithms that predict every entry, trusted or not (the paper's FC)."""

from surefill.completion.base import Completion, CompletionAlgorithm, OptimalityGap
from surefill.completion.bayes.bayesian_completion import BayesianFactorCompletion
from surefill.completion.bayes.bayesian_model import BayesianFactorModel
from surefill.completion.evaluation_losses import confidence_loss, distribution_loss, sample_loss
from surefill.completion.extension import ExtendedCompletion, extend_completion
from surefill.completion.external import ExternalCompletion, TableCompletion
from surefill.completion.factor_model import FactorCompletion, FactorModel
from surefill.completion.factored_completion import FactoredCompletion
from surefill.completion.low_rank_completion import LowRankCompletion
from surefill.completion.max_norm.max_norm_completion import MaxNormCompletion, MaxNormFit
from surefill.completion.spectral.iterative_svd import IterativeSVD
from surefill.completion.spectral.soft_impute import SoftImpute
from surefill.completion.spectral.trace_norm import TraceNormCompletion

__all__ = [
    "BayesianFactorCompletion",
    "BayesianFactorModel",
    "Completion",
    "CompletionAlgorithm",
    "ExtendedCompletion",
    "ExternalCompletion",
    "FactorCompletion",
    "FactorModel",
    "FactoredCompletion",
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
    "extend_completion",
    "sample_loss",
]
