"""The paper's two coverage programs, MP 2 (linear) and MP 1 (quadratic), and the rounding of their confidences."""

from surefill.coverage.linear.coverage_result import Coverage, CoverageStatus
from surefill.coverage.linear.factored_confidence import FactoredConfidence
from surefill.coverage.linear.linear_program import solve_coverage
from surefill.coverage.quadratic.quadratic_program import BracketStatus, CoverageBracket, solve_quadratic_coverage
from surefill.coverage.rounding import expected_sign_rounded, round_confidence, sign_round

__all__ = [
    "BracketStatus",
    "Coverage",
    "CoverageBracket",
    "CoverageStatus",
    "FactoredConfidence",
    "expected_sign_rounded",
    "round_confidence",
    "sign_round",
    "solve_coverage",
    "solve_quadratic_coverage",
]
