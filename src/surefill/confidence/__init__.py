"""Ways to a confidence: the paper's coverage program, and a factor model's posterior."""

from surefill.confidence.algorithm import Certificate, ConfidenceAlgorithm, ExtendableConfidence
from surefill.confidence.posterior import PosteriorConfidence, PosteriorVariance
from surefill.confidence.program import CoverageProgram
from surefill.confidence.row_patterns import DensePatterns, FactoredPatterns

__all__ = [
    "Certificate",
    "ConfidenceAlgorithm",
    "CoverageProgram",
    "DensePatterns",
    "ExtendableConfidence",
    "FactoredPatterns",
    "PosteriorConfidence",
    "PosteriorVariance",
]
