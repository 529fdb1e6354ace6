"""Full completion: algorithms that predict every entry, trusted or not (the paper's FC)."""

from surefill.completion.base import Completion, CompletionAlgorithm
from surefill.completion.external import ExternalCompletion
from surefill.completion.factor_completion import FactorCompletion
from surefill.completion.factor_model import FactorModel
from surefill.completion.gap import OptimalityGap
from surefill.completion.iterative_svd import IterativeSVD
from surefill.completion.losses import confidence_loss, distribution_loss, sample_loss
from surefill.completion.low_rank import LowRankCompletion
from surefill.completion.outside import TableCompletion
from surefill.completion.soft_impute import SoftImpute
from surefill.completion.trace_norm import TraceNormCompletion

__all__ = [
    "Completion",
    "CompletionAlgorithm",
    "ExternalCompletion",
    "FactorCompletion",
    "FactorModel",
    "IterativeSVD",
    "LowRankCompletion",
    "OptimalityGap",
    "SoftImpute",
    "TableCompletion",
    "TraceNormCompletion",
    "confidence_loss",
    "distribution_loss",
    "sample_loss",
]
