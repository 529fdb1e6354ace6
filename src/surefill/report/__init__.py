"""One page about a fitted completer, and pictures, for people who would rather look than read."""

from surefill.report.page import check_report_target, render_report, write_report
from surefill.report.pictures import check_picture_target, draw_risk_coverage

__all__ = ["check_picture_target", "check_report_target", "draw_risk_coverage", "render_report", "write_report"]
