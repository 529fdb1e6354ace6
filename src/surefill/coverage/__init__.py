"""Confidence matrices, the coverage programs that find them, and other ways to a confidence."""

from surefill.coverage.algorithms import Certificate, ConfidenceAlgorithm, CoverageProgram, PosteriorVariance, SeenRows
from surefill.coverage.confidence import Confidence, DenseConfidence
from surefill.coverage.factored_confidence import FactoredConfidence
from surefill.coverage.guarantee import Condition, TheoremGuarantee
from surefill.coverage.offline import OfflineCompletion, complete_partially
from surefill.coverage.posterior import PosteriorConfidence
from surefill.coverage.quadratic import BracketStatus, CoverageBracket, solve_quadratic_coverage
from surefill.coverage.results import Coverage, CoverageStatus
from surefill.coverage.rounding import expected_sign_rounded, round_confidence, sign_round
from surefill.coverage.solve import solve_coverage

__all__ = [
    "BracketStatus",
    "Certificate",
    "Condition",
    "Confidence",
    "ConfidenceAlgorithm",
    "Coverage",
    "CoverageBracket",
    "CoverageProgram",
    "CoverageStatus",
    "DenseConfidence",
    "FactoredConfidence",
    "OfflineCompletion",
    "PosteriorConfidence",
    "PosteriorVariance",
    "SeenRows",
    "TheoremGuarantee",
    "complete_partially",
    "expected_sign_rounded",
    "round_confidence",
    "sign_round",
    "solve_coverage",
    "solve_quadratic_coverage",
]
