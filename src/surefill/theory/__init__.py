"""What the paper proves: sample sizes and parameters, the offline algorithms with their theorems, and hardness."""

from surefill.theory.cliques import CliqueAnswer, CliqueInstance, clique_instance
from surefill.theory.conditions import Condition, TheoremGuarantee
from surefill.theory.offline import OfflineCompletion, complete_partially
from surefill.theory.sample_sizes import (
    LARGEST_ERROR,
    PROGRAMS,
    ProgramParameters,
    SampleSize,
    achievable_eps,
    compare_draws,
    efficient_parameters,
    inefficient_parameters,
    max_norm_of_rank,
    relaxation_constant,
    required_draws,
    sample_complexity_max_norm,
    sample_complexity_rank,
    sample_complexity_trace_norm,
    trace_norm_of_rank,
)

__all__ = [
    "LARGEST_ERROR",
    "PROGRAMS",
    "CliqueAnswer",
    "CliqueInstance",
    "Condition",
    "OfflineCompletion",
    "ProgramParameters",
    "SampleSize",
    "TheoremGuarantee",
    "achievable_eps",
    "clique_instance",
    "compare_draws",
    "complete_partially",
    "efficient_parameters",
    "inefficient_parameters",
    "max_norm_of_rank",
    "relaxation_constant",
    "required_draws",
    "sample_complexity_max_norm",
    "sample_complexity_rank",
    "sample_complexity_trace_norm",
    "trace_norm_of_rank",
]
