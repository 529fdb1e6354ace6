"""Ways to a confidence: the paper's coverage program, and a factor model's posterior."""

from surefill.confidence.algorithms import (
    Certificate,
    ConfidenceAlgorithm,
    CoverageProgram,
    ExtendableConfidence,
    PosteriorVariance,
    SeenRows,
)
from surefill.confidence.posterior import PosteriorConfidence

__all__ = [
    "Certificate",
    "ConfidenceAlgorithm",
    "CoverageProgram",
    "ExtendableConfidence",
    "PosteriorConfidence",
    "PosteriorVariance",
    "SeenRows",
]
