"""What the page's script reads: all numbers are put into words here, it only chooses and draws."""

from __future__ import annotations

import zlib
from typing import Any

from surefill.guarantee import Selection
from surefill.report.charts import LEFT, RIGHT, WIDTH, ChartScale
from surefill.report.contents import AxisSummary, ReportContents
from surefill.report.heat_map import as_base64, palette
from surefill.report.outcomes import ToleranceOutcome
from surefill.report.summary_tables import number, percent, shortened

NAMED = 3
"""Rows or columns of a square that are named one by one; of larger groups the first two are."""

LAYER_WORDS = {
    "confidence": "confidence",
    "kept": "kept",
    "observed": "observed",
}
"""What the line under the map calls the number of a square."""


def script_data(contents: ReportContents, scale: ChartScale) -> dict[str, Any]:
    """Outcomes by tolerance, and the layers of the heat map as deflated bytes."""
    return {
        "outcomes": [_outcome(outcome, scale, not contents.guarantee.withheld) for outcome in contents.outcomes],
        "asked": contents.asked,
        "left": LEFT,
        "right": WIDTH - RIGHT,
        "map": _map(contents),
    }


def _outcome(outcome: ToleranceOutcome, scale: ChartScale, can_promise: bool) -> dict[str, Any]:
    selection = outcome.selection
    promised = can_promise and not selection.empty
    error, share = selection.held_out_error, percent(selection.held_out_share)
    tolerance, kept = number(selection.tolerance), percent(outcome.kept_share)
    return {
        "tolerance": tolerance,
        "kept": kept,
        "calibration": f"{share} of {selection.n_held_out:,}",
        "error": "none" if error is None else number(error),
        "promised": promised,
        "why": _why(selection),
        "spoken": f"{tolerance}: keeps {kept} of the matrix, {'promised' if promised else 'nothing can be promised'}",
        "x": None if error is None else scale.x(selection.held_out_share),
        "y": None if error is None else scale.y(error),
        "line": scale.y(selection.tolerance),
    }


def _why(selection: Selection) -> str:
    """Why not more is kept; the page has the numbers already."""
    return selection.sentence if selection.empty else selection.reason


def _map(contents: ReportContents) -> dict[str, Any]:
    heat_map, rows, columns = contents.heat_map, contents.rows, contents.columns
    words = LAYER_WORDS | {"risk": contents.selection.loss.expected_name, "value": contents.value_name}
    return {
        "rows": heat_map.shape[0],
        "columns": heat_map.shape[1],
        "single": heat_map.single,
        "rowName": rows.name,
        "columnName": columns.name,
        "rowLabels": [_named(rows, group.tolist()) for group in heat_map.rows],
        "columnLabels": [_named(columns, group.tolist()) for group in heat_map.cols],
        "palette": palette().ravel().tolist(),
        "layers": {
            name: {
                "word": words[name],
                "low": layer.low,
                "high": layer.high,
                "share": name not in ("risk", "value"),
                "data": as_base64(zlib.compress(layer.levels.tobytes(), 9)),
            }
            for name, layer in heat_map.layers.items()
        },
    }


def _named(axis: AxisSummary, group: list[int]) -> str:
    """The names of a square's rows or columns."""
    if len(group) <= NAMED:
        return ", ".join(shortened(axis.label(k)) for k in group)
    return f"{', '.join(shortened(axis.label(k)) for k in group[:2])} and {len(group) - 2:,} more"
