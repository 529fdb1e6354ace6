"""Ways to a confidence: the paper's game, its coverage program, and a factor model's posterior."""

from surefill.confidence.algorithm import Certificate, ConfidenceAlgorithm, ExtendableConfidence
from surefill.confidence.coverage_game import CoverageGame, GameConfidence
from surefill.confidence.coverage_program import CoverageProgram
from surefill.confidence.extension import ExtendedConfidence
from surefill.confidence.posterior import PosteriorConfidence, PosteriorVariance
from surefill.confidence.row_patterns import DensePatterns, FactoredPatterns

__all__ = [
    "Certificate",
    "ConfidenceAlgorithm",
    "CoverageGame",
    "CoverageProgram",
    "DensePatterns",
    "ExtendableConfidence",
    "ExtendedConfidence",
    "FactoredPatterns",
    "GameConfidence",
    "PosteriorConfidence",
    "PosteriorVariance",
]
