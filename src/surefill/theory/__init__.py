"""What the paper proves, in numbers: parameters, sample sizes, constants, and the hardness of its first program."""

from surefill.theory.cliques import CliqueAnswer, CliqueInstance, clique_instance
from surefill.theory.samples import (
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
    sample_complexity_trace_norm,
    trace_norm_of_rank,
)

__all__ = [
    "LARGEST_ERROR",
    "PROGRAMS",
    "CliqueAnswer",
    "CliqueInstance",
    "ProgramParameters",
    "SampleSize",
    "achievable_eps",
    "clique_instance",
    "compare_draws",
    "efficient_parameters",
    "inefficient_parameters",
    "max_norm_of_rank",
    "relaxation_constant",
    "required_draws",
    "sample_complexity_max_norm",
    "sample_complexity_trace_norm",
    "trace_norm_of_rank",
]
