"""Line drawings for the page, as SVG: a risk-coverage curve, and expected against seen error."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from surefill.guarantee import Selection
from surefill.losses import Loss
from surefill.metrics import CalibrationTable
from surefill.report.formats import escaped, number, percent
from surefill.report.outcomes import ToleranceOutcome

WIDTH, HEIGHT = 440, 300
"""Of a drawing, in its own units; the page scales it."""

LEFT, RIGHT, TOP, BOTTOM = 60, 14, 16, 46
"""Margins, with room for tick labels and titles."""

LABEL = 18
"""Height of a line of text: labels nearer than this would overlap."""

ROOM_FOR_WORDS = 70
"""Width of two words."""


@dataclass(frozen=True)
class ChartScale:
    """Data in [0, right] x [0, top] to places in the drawing."""

    right: float
    top: float

    def x(self, value: float) -> float:
        """Across."""
        return round(LEFT + (WIDTH - LEFT - RIGHT) * min(value / self.right, 1.0), 1)

    def y(self, value: float) -> float:
        """Down; what lies above the drawing is put on its upper edge."""
        return round(HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * min(value / self.top, 1.0), 1)

    def line(self, across: Iterable[float], up: Iterable[float]) -> str:
        """The points of a polyline."""
        return " ".join(f"{self.x(a)},{self.y(b)}" for a, b in zip(across, up, strict=True))


def scale_of(outcomes: Iterable[ToleranceOutcome], asked: float, overall: float) -> ChartScale:
    """Shares up to 1, errors up to a little above all that is shown."""
    highest = [part.risk.max(initial=0.0) for each in outcomes for part in (each.curve, each.tail)]
    return ChartScale(1.0, 1.15 * max(*highest, asked, overall))


def draw_curve(scale: ChartScale, asked: ToleranceOutcome, overall: float) -> str:
    """The curve, the tolerance asked for, the set kept, and a second marker that the slider moves."""
    selection = asked.selection
    levels, edge = (scale.y(overall), scale.y(selection.tolerance)), WIDTH - RIGHT
    names = f"all calibration cells, {number(overall)}", f"asked, {number(selection.tolerance)}"
    parts = _axes(scale, percent, "share of the calibration cells kept", selection.loss.mean_name)
    for kind, level in zip(("all", "asked"), levels, strict=True):
        parts.append(f'<line class="{kind}" x1="{LEFT}" y1="{level}" x2="{edge}" y2="{level}"/>')
    curve, tail = points_of(scale, asked)
    parts.append(f'<polyline class="curve" id="curve" points="{curve}"/>')
    parts.append(f'<polyline class="tail" id="tail" points="{tail}"/>')
    for kind, y, name in zip(("note", "note strong"), _label_places(*levels), names, strict=True):
        parts.append(f'<text class="{kind}" x="{LEFT + 6}" y="{y}">{name}</text>')
    parts.append(_tail_label(scale, asked))
    parts.append('<line class="other" id="other-line" x1="0" y1="0" x2="0" y2="0" visibility="hidden"/>')
    if selection.held_out_error is not None:
        x, y = scale.x(selection.held_out_share), scale.y(selection.held_out_error)
        parts.append(f'<circle class="chosen" cx="{x}" cy="{y}" r="6"/>')
    parts.append('<path class="moved" id="other-mark" d="M0 -8L8 0L0 8L-8 0Z" visibility="hidden"/>')
    return _drawing(parts, _described(selection))


def points_of(scale: ChartScale, outcome: ToleranceOutcome) -> tuple[str, str]:
    """The points of the curve and of its dotted part."""
    curve, tail = outcome.curve, outcome.tail
    return scale.line(curve.coverage, curve.risk), scale.line(tail.coverage, tail.risk)


def _tail_label(scale: ChartScale, outcome: ToleranceOutcome) -> str:
    """Below the dotted part, where it is long enough for words."""
    tail = outcome.tail
    if not tail.risk.size or scale.x(1.0) - scale.x(tail.coverage[0]) < ROOM_FOR_WORDS:
        return ""
    y = scale.y(float(tail.risk[len(tail.risk) // 2])) + LABEL + 6
    return f'<text class="note" x="{WIDTH - RIGHT}" y="{y:g}" text-anchor="end">never kept</text>'


def _label_places(one: float, other: float) -> tuple[float, float]:
    """Above each line; where two lines are near, the lower one's label goes below it."""
    near = abs(one - other) < LABEL
    lower = LABEL - 4 if near else -5
    return (one + lower, other - 5) if one > other else (one - 5, other + lower)


def _described(asked: Selection) -> str:
    loss, tolerance, error = asked.loss.mean_name, number(asked.tolerance), asked.held_out_error
    if error is None:
        return f"Risk-coverage curve. Asked: {tolerance}. Nothing is kept."
    return (
        f"Risk-coverage curve. Asked: a {loss} of at most {tolerance}. "
        f"Kept: {percent(asked.held_out_share)} of the calibration cells, with {loss} {number(error)}."
    )


def draw_deciles(deciles: CalibrationTable, loss: Loss) -> str:
    """One dot for each group of cells, and the line on which expected and seen agree."""
    most = 1.08 * max(float(deciles.predicted.max()), float(deciles.seen.max()), 1e-300)  # room above; never 0
    scale = ChartScale(most, most)
    dots = zip(deciles.predicted, deciles.seen, strict=True)
    parts = [
        *_axes(scale, number, loss.expected_name, f"seen {loss.name}"),
        f'<line class="same" x1="{scale.x(0)}" y1="{scale.y(0)}" x2="{scale.x(most)}" y2="{scale.y(most)}"/>',
        f'<text class="note" x="{scale.x(0.9 * most)}" y="{TOP + 8}" text-anchor="end">as expected</text>',
        *(f'<circle class="dot" cx="{scale.x(float(a))}" cy="{scale.y(float(b))}" r="5"/>' for a, b in dots),
    ]
    return _drawing(parts, f"Expected against seen {loss.name} by group of cells; the table has the numbers.")


def _drawing(parts: list[str], description: str) -> str:
    title = f"<title>{escaped(description)}</title>"
    return f'<svg class="chart" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">{title}{"".join(parts)}</svg>'


def _axes(scale: ChartScale, across: Callable[[float], str], x_title: str, y_title: str) -> list[str]:
    floor, middle = HEIGHT - BOTTOM, (HEIGHT - BOTTOM + TOP) / 2
    parts = []
    for tick in ticks(scale.top):
        y = scale.y(tick)
        parts.append(f'<line class="grid" x1="{LEFT}" y1="{y}" x2="{WIDTH - RIGHT}" y2="{y}"/>')
        parts.append(f'<text class="tick" x="{LEFT - 7}" y="{y + 4}" text-anchor="end">{number(tick)}</text>')
    for tick in ticks(scale.right):
        anchor = "end" if tick > 0.97 * scale.right else "middle"
        parts.append(
            f'<text class="tick" x="{scale.x(tick)}" y="{floor + 17}" text-anchor="{anchor}">{across(tick)}</text>'
        )
    parts.append(f'<line class="axis" x1="{LEFT}" y1="{floor}" x2="{WIDTH - RIGHT}" y2="{floor}"/>')
    parts.append(
        f'<text class="title" x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 8}" text-anchor="middle">{x_title}</text>'
    )
    parts.append(
        f'<text class="title" transform="translate(11 {middle}) rotate(-90)" text-anchor="middle">{y_title}</text>'
    )
    return parts


def ticks(most: float) -> list[float]:
    """Round numbers from 0 to at most ``most``, four to eight of them.

    >>> ticks(1.0), ticks(0.86)
    ([0.0, 0.2, 0.4, 0.6, 0.8, 1.0], [0.0, 0.2, 0.4, 0.6, 0.8])
    """
    power = 10.0 ** np.floor(np.log10(most / 4))
    step = power * next(factor for factor in (1, 2, 2.5, 5, 10) if most / (factor * power) < 8)
    return [float(f"{k * step:.6g}") for k in range(int(most / step + 1e-9) + 1)]
