"""Numbers, labels and tables as text of the page: how each is written, and everything escaped.

Tables are of tolerances, of the rows and columns most and least trusted, and of groups of entries by predicted risk.
"""

from __future__ import annotations

import html
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surefill.guarantee.wording import floored
from surefill.metrics import CalibrationTable
from surefill.report.contents import AxisSummary, ReportContents

SCRIPT_SIGNS = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"})
"""Signs that could end a script element or a line of it, as JSON escapes."""

LONGEST_LABEL = 48
"""Signs of a label that are shown; longer ones are cut, so that tables stay narrow."""

LISTED = 8
"""Rows (columns) in each list of the most and the least trusted."""

ROWS_SHOWN = 12
"""Rows of the table of tolerances, about."""


def escaped(text: object) -> str:
    """Text for HTML, in attributes too: no sign of it is markup."""
    return html.escape(str(text), quote=True)


def script_json(content: Any) -> str:
    """JSON for a script element: no text in it can close the element."""
    return json.dumps(content, separators=(",", ":"), ensure_ascii=False, allow_nan=False).translate(SCRIPT_SIGNS)


def shortened(label: object) -> str:
    """A label on one line, of at most 48 signs."""
    text = " ".join(str(label).split())
    return text if len(text) <= LONGEST_LABEL else text[: LONGEST_LABEL - 1] + "…"


def percent(share: float) -> str:
    """A share in percent, never rounded to none or all of it.

    >>> percent(0.0), percent(0.00012), percent(0.034), percent(0.62), percent(0.9999), percent(1.0)
    ('0%', 'under 0.1%', '3.4%', '62%', 'over 99.9%', '100%')
    """
    if 0 < share < 0.001:
        return "under 0.1%"
    if 0.999 < share < 1:
        return "over 99.9%"
    return f"{share:.1%}" if 0 < share < 0.0995 or 0.995 <= share < 1 else f"{share:.0%}"


def number(value: float) -> str:
    """Three significant digits, thousands set apart.

    >>> number(0.56412), number(12345.6), number(2.0)
    ('0.564', '12,346', '2')
    """
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def measured(value: float) -> str:
    """Three significant digits, zeros at the end too, for columns of numbers.

    >>> measured(0.47), measured(123.4)
    ('0.470', '123')
    """
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:#.3g}"


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
        promised = "no" if selection.empty or contents.guarantee.withheld else "yes"
        rows.append((name, percent(share), percent(selection.held_out_share), error, promised))
    heads = ("tolerance", "kept of matrix", "of calibration", "their error", "promised")
    return table(heads, rows, current=shown.index(asked))


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
    """Predicted and seen, group by group."""
    columns = zip(deciles.predicted, deciles.seen, deciles.size, strict=True)
    rows = [
        (k, measured(predicted), measured(seen), f"{size:,}")
        for k, (predicted, seen, size) in enumerate(columns, start=1)
    ]
    return table(("least risk first", "predicted", "seen", "entries"), rows)


def figures(contents: ReportContents) -> str:
    """The numbers to remember, each with what it is of."""
    selection, missing = contents.selection, contents.n_cells - contents.n_observed
    tiles = {
        "Missing cells filled": (
            percent(contents.filled_share),
            f"{contents.filled} of {missing:,}{_standing(contents)}",
        ),
        "Error of kept calibration entries": _error_figure(contents),
        "Cells observed": (
            percent(contents.n_observed / contents.n_cells),
            f"{contents.n_observed:,} of {contents.n_cells:,}",
        ),
        "Tested on": (f"{selection.n_held_out:,}", "calibration entries, not fitted on"),
    }
    if contents.guarantee.sensitivity is not None:
        factor = floored(contents.guarantee.sensitivity)
        words = "that is, not at all, for the promise to hold" if factor == "1" else "and the promise still holds"
        tiles["Values may change the odds of being observed by"] = (f"factor {factor}", words)
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


def _error_figure(contents: ReportContents) -> tuple[str, str]:
    error = contents.selection.held_out_error
    if error is None:
        return "none", "nothing is kept"
    asked, everything = number(contents.selection.tolerance), number(contents.overall_error)
    return number(error), f"{contents.selection.loss.mean_name}; asked {asked}, without abstaining {everything}"


def terms(pairs: Mapping[str, str]) -> str:
    """Terms and their words."""
    return "".join(f"<dt>{escaped(term)}</dt><dd>{escaped(words)}</dd>" for term, words in pairs.items())
