"""Pictures and pages for people who would rather look than read."""

from surefill.report.curves import draw_risk_coverage
from surefill.report.digits import draw_digits
from surefill.report.experiments_movielens import draw_errors_by_confidence
from surefill.report.experiments_patterns import draw_pattern
from surefill.report.html import write_report
from surefill.report.picture import check_picture_target, draw_blocks

__all__ = [
    "check_picture_target",
    "draw_blocks",
    "draw_digits",
    "draw_errors_by_confidence",
    "draw_pattern",
    "draw_risk_coverage",
    "write_report",
]
