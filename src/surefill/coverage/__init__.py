"""Confidence matrices, the coverage programs that find them, and other ways to a confidence."""

from surefill.coverage.algorithms import Certificate, ConfidenceAlgorithm, CoverageProgram, PosteriorVariance, SeenRows
from surefill.coverage.confidence import Confidence, DenseConfidence
from surefill.coverage.factored_confidence import FactoredConfidence
from surefill.coverage.posterior import PosteriorConfidence
from surefill.coverage.results import Coverage, CoverageStatus
from surefill.coverage.solve import solve_coverage

__all__ = [
    "Certificate",
    "Confidence",
    "ConfidenceAlgorithm",
    "Coverage",
    "CoverageProgram",
    "CoverageStatus",
    "DenseConfidence",
    "FactoredConfidence",
    "PosteriorConfidence",
    "PosteriorVariance",
    "SeenRows",
    "solve_coverage",
]
