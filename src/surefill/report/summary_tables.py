"""Tables and figures of the page: tolerances, examples, counts, rows and columns, groups by expected error."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from surefill.guarantee.figures import floored
from surefill.metrics import CalibrationTable
from surefill.report.contents import AxisSummary, ReportContents
from surefill.report.error_by_count import CountGroup
from surefill.report.formats import escaped, measured, number, percent, shortened
from surefill.report.sentences import filled_words, outcome_name

LISTED = 8
"""Rows (columns) in each list of the most and the least trusted."""

ROWS_SHOWN = 12
"""Rows of the table of tolerances, about."""


def table(
    heads: Sequence[str],
    rows: Iterable[Sequence[object]],
    caption: str = "",
    current: int | None = None,
    name: str = "",
) -> str:
    """Rows under heads, everything escaped; the first cell of a row names it, ``current`` is set off."""
    head = "".join(f'<th scope="col">{escaped(each)}</th>' for each in heads)
    body = ""
    for k, (first, *cells) in enumerate(rows):
        opening = '<tr class="current">' if k == current else "<tr>"
        body += f'{opening}<th scope="row">{escaped(first)}</th>'
        body += "".join(f"<td>{escaped(cell)}</td>" for cell in cells) + "</tr>"
    title = f"<caption>{escaped(caption)}</caption>" if caption else ""
    identity = f' id="{name}"' if name else ""
    return (
        f'<div class="scroll"><table{identity}>{title}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'
    )


def outcomes_table(contents: ReportContents) -> str:
    """About a dozen of the tolerances, evenly spaced to both sides of the one asked for."""
    last, asked = len(contents.outcomes) - 1, contents.asked
    step = max(1, last // ROWS_SHOWN)
    shown = [*range(asked % step, last + 1, step)]
    rows = []
    for k in shown:
        outcome = contents.outcomes[k]
        selection = outcome.selection
        name = number(selection.tolerance) + (" (asked)" if k == asked else "")
        promised = "no" if selection.empty or contents.guarantee.withheld else "yes"
        shares = (outcome.filled_share, outcome.kept_share, selection.held_out_share)
        rows.append((name, *map(percent, shares), error_of(selection.held_out_error), promised))
    heads = (
        "tolerance",
        "filled of missing cells",
        "kept of all cells",
        "kept of calibration cells",
        "their error",
        "can be promised",
    )
    return table(heads, rows, current=shown.index(asked))


def error_of(error: float | None) -> str:
    """A mean error, or that there is none."""
    return "none" if error is None else measured(error)


def example_table(contents: ReportContents) -> str:
    """Some cells that are filled, and some that are not, at the tolerance asked for."""
    kept, refused = contents.examples.shown(contents.asked)
    lines, refusals = example_lines(contents), contents.examples.refusals[contents.asked]
    rows = [(*lines[k][:2], outcome_name(int(refusals[k])), *lines[k][2:]) for k in (*kept, *refused)]
    names = contents.rows.name, contents.columns.name
    return table((*names, "outcome", contents.value_name, "expected error", "confidence"), rows, name="examples")


def example_lines(contents: ReportContents) -> list[tuple[str, ...]]:
    """Row, column, value, expected error and confidence of every example."""
    cells = contents.examples
    names = (
        [shortened(axis.label(int(k))) for k in lines]
        for axis, lines in ((contents.rows, cells.rows), (contents.columns, cells.cols))
    )
    numbers = ([measured(float(each)) for each in column] for column in (cells.value, cells.risk))
    confidence = [f"{each:.2f}" for each in cells.confidence]
    return list(zip(*names, *numbers, confidence, strict=True))


def count_tables(contents: ReportContents) -> str:
    """Errors by how often the row was seen, and the column."""
    heads = ("cells observed", "error", "kept", "error of kept", "tested on")
    parts = []
    for axis, kind in ((contents.rows, "row"), (contents.columns, "column")):
        rows = [
            (_span(group), measured(group.error), *count_cells(group, contents.asked), f"{group.n_cells:,}")
            for group in axis.by_count
        ]
        parts.append(table(heads, rows, f"By {kind}", name=f"by-{kind}"))
    return f'<div class="lists">{"".join(parts)}</div>'


def _span(group: CountGroup) -> str:
    """From how many to how many observed cells a group has."""
    return f"{group.low:,}" if group.low == group.high else f"{group.low:,} to {group.high:,}"


def count_cells(group: CountGroup, tolerance: int) -> tuple[str, str]:
    """What is kept of a group at one of the tolerances, and the error of that."""
    return percent(group.kept_shares[tolerance]), error_of(group.kept_errors[tolerance])


def trust_tables(rows: AxisSummary, columns: AxisSummary) -> str:
    """The lines of most and of least trust, on both axes."""
    parts = []
    for axis, plural in ((rows, "rows"), (columns, "columns")):
        ranked, count = axis.trust.ranked(), min(LISTED, len(axis) // 2)
        parts.append(_trust_table(axis, ranked[:count], f"Most trusted {plural}"))
        parts.append(_trust_table(axis, ranked[::-1][:count], f"Least trusted {plural}"))
    return f'<div class="lists">{"".join(parts)}</div>'


def _trust_table(axis: AxisSummary, lines: NDArray[np.int64], caption: str) -> str:
    trust = axis.trust
    rows = [
        (shortened(axis.label(int(k))), percent(trust.kept[k]), f"{trust.confidence[k]:.2f}", f"{trust.observed[k]:,}")
        for k in lines
    ]
    return table((axis.name, "kept", "confidence", "observed"), rows, caption)


def deciles_table(deciles: CalibrationTable) -> str:
    """Expected and seen, group by group."""
    columns = zip(deciles.predicted, deciles.seen, deciles.size, strict=True)
    rows = [
        (k, measured(predicted), measured(seen), f"{size:,}")
        for k, (predicted, seen, size) in enumerate(columns, start=1)
    ]
    return table(("least error first", "expected", "seen", "cells"), rows)


def figures(contents: ReportContents) -> str:
    """The numbers to remember, each with what it is of."""
    outcome = contents.outcome
    tiles = {
        "Filled": (percent(outcome.filled_share), f"{filled_words(contents, outcome)}{_standing(contents)}"),
        "Error of what is kept": _error_figure(contents),
        "Observed": (
            percent(contents.n_observed / contents.n_cells),
            f"{contents.n_observed:,} of all {contents.n_cells:,} cells",
        ),
        "Tested on": (
            f"{contents.selection.n_held_out:,}",
            "calibration cells: observed, but held back from the fit",
        ),
    }
    if contents.guarantee.sensitivity is not None:
        tiles["Room for hidden bias"] = _room(contents.guarantee.sensitivity)
    inner = "".join(
        f"<div><dt>{escaped(name)}</dt><dd><strong>{escaped(figure)}</strong>{escaped(words)}</dd></div>"
        for name, (figure, words) in tiles.items()
    )
    return f'<dl class="figures">{inner}</dl>'


def _standing(contents: ReportContents) -> str:
    """Whether what is promised is about the filled cells."""
    if not contents.guarantee.promised:
        return ""
    return "; the promise is about these" if contents.about_filled else "; the promise is not about these"


def _room(sensitivity: float) -> tuple[str, str]:
    """By how much values may change the odds of being observed."""
    factor = floored(sensitivity)
    if factor == "1":
        return "none", "the promise needs that a cell's value does not change its odds of being observed"
    return f"factor {factor}", "by which a cell's value may change its odds of being observed; the promise still holds"


def _error_figure(contents: ReportContents) -> tuple[str, str]:
    error = contents.selection.held_out_error
    if error is None:
        return "none", "nothing is kept"
    asked, everything = number(contents.selection.tolerance), number(contents.overall_error)
    name = contents.selection.loss.mean_name
    return number(error), f"{name} of the kept calibration cells; asked {asked}, of all of them {everything}"


def terms(pairs: Mapping[str, str]) -> str:
    """Terms and their words."""
    return "".join(f"<dt>{escaped(term)}</dt><dd>{escaped(words)}</dd>" for term, words in pairs.items())
