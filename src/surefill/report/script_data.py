"""What the page's script reads: all numbers are put into words here, it only chooses and draws."""

from __future__ import annotations

from typing import Any

import numpy as np

from surefill.guarantee.selection import REFUSALS
from surefill.report.charts import LEFT, RIGHT, WIDTH, ChartScale, points_of
from surefill.report.colours import packed, palette
from surefill.report.contents import AxisSummary, ReportContents
from surefill.report.examples import KEPT_SHOWN, REFUSED_SHOWN
from surefill.report.formats import number, percent, shortened
from surefill.report.heat_map import CELLS_PER_SQUARE, MapLayer
from surefill.report.missing_bar import bar_places
from surefill.report.outcomes import ToleranceOutcome
from surefill.report.sentences import fills, kept_note, map_notes, outcome_name, panel_words, parts, verdict, why
from surefill.report.summary_tables import count_cells, example_lines

NAMED = 3
"""Rows or columns of a square that are named one by one; of larger groups the first two are."""

REFUSAL_PLACE = 16
"""In a byte of what is kept, the refusal counts sixteens: at most 8 cells of a square are looked at."""


def script_data(contents: ReportContents, scale: ChartScale) -> dict[str, Any]:
    """Outcomes by tolerance, examples, and the layers of the heat map as deflated bytes."""
    return {
        "outcomes": [_outcome(contents, k, scale) for k in range(len(contents.outcomes))],
        "asked": contents.asked,
        "left": LEFT,
        "right": WIDTH - RIGHT,
        "reasons": REFUSALS,
        "examples": _examples(contents),
        "map": _map(contents),
    }


def _outcome(contents: ReportContents, place: int, scale: ChartScale) -> dict[str, Any]:
    outcome = contents.outcomes[place]
    selection = outcome.selection
    error, tolerance = selection.held_out_error, number(selection.tolerance)
    curve, tail = points_of(scale, outcome)
    return {
        "tolerance": tolerance,
        "verdict": verdict(contents, outcome),
        "fills": fills(contents, outcome),
        "parts": _parts(outcome),
        "filled": panel_words(contents, outcome),
        "kept": percent(outcome.kept_share),
        "calibration": percent(selection.held_out_share),
        "error": "none" if error is None else number(error),
        "why": why(contents, outcome),
        "note": kept_note(contents, outcome),
        "spoken": f"{tolerance}: {verdict(contents, outcome)[2:]}, {fills(contents, outcome)}",
        "x": None if error is None else scale.x(selection.held_out_share),
        "y": None if error is None else scale.y(error),
        "line": scale.y(selection.tolerance),
        "curve": curve,
        "tail": tail,
        "by-row": [count_cells(group, place) for group in contents.rows.by_count],
        "by-column": [count_cells(group, place) for group in contents.columns.by_count],
    }


def _parts(outcome: ToleranceOutcome) -> list[tuple[str, str, float, float]]:
    return [
        (words, percent(share), *place)
        for (words, share), place in zip(parts(outcome), bar_places(outcome), strict=True)
    ]


def _examples(contents: ReportContents) -> dict[str, Any]:
    return {
        "lines": example_lines(contents),
        "refusals": ["".join(map(str, line)) for line in contents.examples.refusals.tolist()],
        "kept": KEPT_SHOWN,
        "refused": REFUSED_SHOWN,
        "outcomes": [outcome_name(refusal) for refusal in range(len(REFUSALS))],
    }


def _map(contents: ReportContents) -> dict[str, Any]:
    heat_map, rows, columns = contents.heat_map, contents.rows, contents.columns
    words = {"risk": contents.selection.loss.expected_name, "value": contents.value_name}
    what = heat_map.kept + REFUSAL_PLACE * heat_map.refusal
    return {
        "rows": heat_map.shape[0],
        "columns": heat_map.shape[1],
        "single": heat_map.single,
        "rowSizes": [len(group) for group in heat_map.rows] if heat_map.exact else None,
        "columnSizes": [len(group) for group in heat_map.cols] if heat_map.exact else None,
        "cells": CELLS_PER_SQUARE,
        "rowName": rows.name,
        "columnName": columns.name,
        "rowLabels": [_named(rows, group.tolist()) for group in heat_map.rows],
        "columnLabels": [_named(columns, group.tolist()) for group in heat_map.cols],
        "palette": palette().ravel().tolist(),
        "notes": map_notes(contents),
        "kept": packed(np.diff(what, axis=0, prepend=np.uint8(0))),
        "layers": {name: _layer(layer, words.get(name, name)) for name, layer in heat_map.layers.items()},
    }


def _layer(layer: MapLayer, word: str) -> dict[str, Any]:
    """A layer's levels, and what each stands for with four digits."""
    return {
        "word": word,
        "scale": [float(f"{each:.4g}") for each in layer.scale],
        "data": packed(layer.levels),
    }


def _named(axis: AxisSummary, group: list[int]) -> str:
    """The names of a square's rows or columns."""
    if len(group) <= NAMED:
        return ", ".join(shortened(axis.label(k)) for k in group)
    return f"{', '.join(shortened(axis.label(k)) for k in group[:2])} and {len(group) - 2:,} more"
