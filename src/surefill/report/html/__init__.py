"""One page about a fitted completer: what is kept, what is promised of it, and what another tolerance would give."""

from surefill.report.html.write import check_report_target, render_report, write_report

__all__ = ["check_report_target", "render_report", "write_report"]
