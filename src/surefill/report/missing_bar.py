"""What becomes of the missing cells, as one divided bar and a list."""

from __future__ import annotations

from surefill.report.contents import ReportContents
from surefill.report.formats import escaped, percent
from surefill.report.outcomes import ToleranceOutcome
from surefill.report.sentences import parts

WIDTH, HEIGHT = 400, 22
"""Of the bar, in its own units; the page stretches it."""


def bar_places(outcome: ToleranceOutcome) -> list[tuple[float, float]]:
    """Where each part of the bar starts, and how long it is."""
    places, start = [], 0.0
    for _, share in parts(outcome):
        places.append((round(WIDTH * start, 1), round(WIDTH * share, 1)))
        start += share
    return places


def draw_missing(contents: ReportContents) -> str:
    """The bar at the tolerance asked for, with a line for each part."""
    outcome = contents.outcome
    bars = "".join(
        f'<rect class="part{k}" id="bar{k}" x="{x:g}" y="0" width="{width:g}" height="{HEIGHT}"/>'
        for k, (x, width) in enumerate(bar_places(outcome))
    )
    lines = "".join(
        f'<div><dt><svg class="swatch" viewBox="0 0 10 10" aria-hidden="true"><rect class="part{k}" width="10" '
        f'height="10"/></svg><span id="part-name{k}">{escaped(words)}</span></dt>'
        f'<dd id="part{k}">{escaped(percent(share))}</dd></div>'
        for k, (words, share) in enumerate(parts(outcome))
    )
    return (
        f'<svg class="bar-chart" viewBox="0 0 {WIDTH} {HEIGHT}" preserveAspectRatio="none" aria-hidden="true">{bars}'
        f"</svg><dl>{lines}</dl>"
    )
