"""The tables of the page: tolerances, most and least trusted lines, deciles, and pairs of a term and its words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from surefill.metrics import CalibrationTable
from surefill.report.html.contents import ReportContents, Side
from surefill.report.html.words import about, escaped, measured, number, percent, shortened

LISTED = 8
ROWS_SHOWN = 12


def table(heads: Sequence[str], rows: Iterable[Sequence[object]], caption: str = "", current: int | None = None) -> str:
    """Rows under heads, everything escaped; the first cell of a row names it, ``current`` is set off."""
    head = "".join(f'<th scope="col">{escaped(each)}</th>' for each in heads)
    body = ""
    for k, (name, *cells) in enumerate(rows):
        opening = '<tr class="current">' if k == current else "<tr>"
        body += f'{opening}<th scope="row">{escaped(name)}</th>'
        body += "".join(f"<td>{escaped(cell)}</td>" for cell in cells) + "</tr>"
    title = f"<caption>{escaped(caption)}</caption>" if caption else ""
    return f'<div class="scroll"><table>{title}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def outcomes_table(contents: ReportContents) -> str:
    """About a dozen of the tolerances, evenly spaced to both sides of the one asked for."""
    last, asked = len(contents.outcomes) - 1, contents.asked
    step = max(1, last // ROWS_SHOWN)
    shown = [*range(asked % step, last + 1, step)]
    rows = []
    for k in shown:
        selection, share = contents.outcomes[k].selection, contents.outcomes[k].kept_share
        error = "none" if selection.held_out_error is None else measured(selection.held_out_error)
        name = number(selection.tolerance) + (" (asked)" if k == asked else "")
        promised = "no" if selection.empty else "yes"
        rows.append((name, percent(share), percent(selection.held_out_share), error, promised))
    heads = ("tolerance", "kept of matrix", "of calibration", "their error", "promised")
    return table(heads, rows, current=shown.index(asked))


def trust_tables(rows: Side, columns: Side) -> str:
    """The lines of most and of least trust, on both sides."""
    parts = []
    for side, plural in ((rows, "rows"), (columns, "columns")):
        ranked, count = side.trust.ranked(), min(LISTED, len(side) // 2)
        parts.append(_trust_table(side, ranked[:count], f"Most trusted {plural}"))
        parts.append(_trust_table(side, ranked[::-1][:count], f"Least trusted {plural}"))
    return f'<div class="lists">{"".join(parts)}</div>'


def _trust_table(side: Side, lines: NDArray[np.int64], caption: str) -> str:
    trust = side.trust
    rows = [
        (shortened(side.label(int(k))), percent(trust.kept[k]), f"{trust.confidence[k]:.2f}", f"{trust.observed[k]:,}")
        for k in lines
    ]
    return table((side.name, "kept", "confidence", "observed"), rows, caption)


def deciles_table(deciles: CalibrationTable) -> str:
    """Predicted and seen, group by group."""
    columns = zip(deciles.predicted, deciles.seen, deciles.size, strict=True)
    rows = [
        (k, measured(predicted), measured(seen), f"{size:,}")
        for k, (predicted, seen, size) in enumerate(columns, start=1)
    ]
    return table(("least risk first", "predicted", "seen", "entries"), rows)


def figures(contents: ReportContents) -> str:
    """The four numbers to remember, each with what it is of."""
    selection, missing = contents.selection, contents.n_cells - contents.n_observed
    filled = _count(contents.filled_share * missing, exact=contents.n_drawn == contents.n_cells)
    tiles = {
        "Missing cells filled": (percent(contents.filled_share), f"{filled} of {missing:,}"),
        "Error of kept calibration entries": _error_figure(contents),
        "Cells observed": (
            percent(contents.n_observed / contents.n_cells),
            f"{contents.n_observed:,} of {contents.n_cells:,}",
        ),
        "Tested on": (f"{selection.n_held_out:,}", "calibration entries, not fitted on"),
    }
    inner = "".join(
        f"<div><dt>{escaped(name)}</dt><dd><strong>{escaped(figure)}</strong>{escaped(words)}</dd></div>"
        for name, (figure, words) in tiles.items()
    )
    return f'<dl class="figures">{inner}</dl>'


def _count(count: float, exact: bool) -> str:
    return f"{count:,.0f}" if exact else f"about {about(count)}"


def _error_figure(contents: ReportContents) -> tuple[str, str]:
    error = contents.selection.held_out_error
    if error is None:
        return "none", "nothing is kept"
    asked, everything = number(contents.selection.tolerance), number(contents.overall_error)
    return number(error), f"mean squared; asked {asked}, without abstaining {everything}"


def terms(pairs: Mapping[str, str]) -> str:
    """Terms and their words."""
    return "".join(f"<dt>{escaped(term)}</dt><dd>{escaped(words)}</dd>" for term, words in pairs.items())
