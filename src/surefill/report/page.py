"""The page, in one HTML file that needs nothing else: where it can be written, and how it is put together.

What matters most is text and tables; the script adds a slider over tolerances and a map to look around in.
"""

from __future__ import annotations

import base64
import hashlib
from datetime import date
from importlib.resources import files
from pathlib import Path
from string import Template

from sklearn.utils.validation import check_is_fitted

from surefill.errors import InputError
from surefill.estimators import PartialCompleter
from surefill.io.files import check_folder, replacing
from surefill.report.charts import draw_curve, draw_deciles, scale_of
from surefill.report.contents import ReportContents, gather
from surefill.report.heat_map import ANCHORS, HeatMap, as_base64, as_png
from surefill.report.script_data import script_data
from surefill.report.summary_tables import (
    deciles_table,
    escaped,
    figures,
    number,
    outcomes_table,
    percent,
    script_json,
    table,
    terms,
    trust_tables,
)

SUFFIXES = (".html", ".htm")

SETTLED = (
    "The promise holds for a tolerance that was settled without looking at the calibration entries, and so at this "
    "curve; it does not for one picked because of how much it keeps."
)
"""Said below the slider, which invites to pick."""

LAYERS_SHOWN = ("confidence", "kept", "observed", "risk")
"""Layers of the map to choose from; the value is told for the square under the pointer."""


def check_report_target(path: str | Path) -> Path:
    """``path``, or one sentence, before any work, on why no report can be written there."""
    target = Path(path)
    check_folder(target)
    if target.suffix.lower() not in SUFFIXES:
        raise InputError(f"{target} must end in {' or '.join(SUFFIXES)}: a report is a page for the browser.")
    return target


def write_report(
    completer: PartialCompleter, path: str | Path, *, title: str | None = None, command: str | None = None
) -> None:
    """Write what a fitted completer found and promises to one HTML file that needs no network and nothing else.

    It says what was asked and promised, shows what other tolerances would keep, where the matrix can be trusted, which
    rows and columns most and least, whether predicted risks came true on the calibration entries, under which
    conditions the promise holds, and how to repeat it. Large matrices are shown by means over parts of them, so that
    the file stays below a few megabytes whatever the size.

    Parameters
    ----------
    path : the file, ending in ``.html``; it appears when it is complete.
    title : the page's heading.
    command : what to run to get the same again; the completer's parameters when None.

    Examples
    --------
    >>> import tempfile
    >>> import surefill as sf
    >>> sim = sf.datasets.make_low_rank((30, 20), rank=2, n_draws=1200, noise=0.1, random_state=0)
    >>> completer = sf.PartialCompleter(tolerance=0.2, confidence="posterior").fit(sim.observations)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     page = Path(folder) / "report.html"
    ...     sf.write_report(completer, page)
    ...     page.read_text().startswith("<!doctype html>")
    True
    """
    target = check_report_target(path)
    page = render_report(completer, title=title, command=command)
    with replacing(target) as partial:
        partial.write_text(page, encoding="utf-8")


def render_report(completer: PartialCompleter, *, title: str | None = None, command: str | None = None) -> str:
    """The page that :func:`write_report` writes."""
    if not isinstance(completer, PartialCompleter):
        raise InputError(f"a report is about a fitted PartialCompleter; got {type(completer).__name__}.")
    check_is_fitted(completer)
    contents = gather(completer)
    return render(contents, title or "What can be trusted", command or f"{contents.parameters}.fit(observations)")


def render(contents: ReportContents, title: str, command: str) -> str:
    """The whole page as text."""
    style, script, skeleton = (_asset(name) for name in ("report.css", "report.js", "report.html"))
    words = {"title": title, "date": date.today().isoformat()} | _words(contents)
    markup = {"style": style, "script": script, "style_hash": _hash(style), "script_hash": _hash(script)}
    markup |= _drawn(contents) | _listed(contents) | {"made": _made(contents, command)}
    return Template(skeleton).substitute(markup | {name: escaped(text) for name, text in words.items()})


def _words(contents: ReportContents) -> dict[str, str]:
    """What is text, to be escaped."""
    return {
        "lead": lead(contents),
        "chosen": _chosen(contents),
        "loss": contents.selection.loss.mean_name,
        "settled": SETTLED,
        "map_words": f"{map_words(contents.heat_map)} {support_words(contents)}",
        "map_alt": "Confidence of every part of the matrix; the tables below name its most and least trusted lines.",
        "axes": _axes(contents),
        "decile_words": _decile_words(contents),
        "last": str(len(contents.outcomes) - 1),
        "asked": str(contents.asked),
        "map_width": str(contents.heat_map.shape[1]),
        "map_height": str(contents.heat_map.shape[0]),
    }


def _drawn(contents: ReportContents) -> dict[str, str]:
    """Drawings, the picture of the matrix, and what the script needs to change them."""
    scale = scale_of(contents.curve, contents.selection.tolerance, contents.overall_error)
    return {
        "curve": draw_curve(scale, contents.curve, contents.selection, contents.overall_error),
        "decile_chart": draw_deciles(contents.deciles, contents.selection.loss),
        "map_png": as_base64(as_png(contents.heat_map.layers["confidence"].levels)),
        "layers": _layer_choices(contents.heat_map),
        "scale": _colour_scale(),
        "data": script_json(script_data(contents, scale)),
    }


def _listed(contents: ReportContents) -> dict[str, str]:
    """Figures, tables and lists."""
    return {
        "figures": figures(contents),
        "outcomes": outcomes_table(contents),
        "trust": _trust_words(contents) + trust_tables(contents.rows, contents.columns),
        "decile_table": deciles_table(contents.deciles),
        "promise": terms(_promise(contents)),
    }


def lead(contents: ReportContents) -> str:
    """What was asked and what is promised, in one sentence."""
    guarantee, asked = contents.guarantee, number(contents.selection.tolerance)
    loss = contents.selection.loss.mean_name
    table = f"this table of {len(contents.rows):,} by {len(contents.columns):,} cells"
    if guarantee.withheld and not contents.selection.empty:
        return (
            f"Asked to fill {table} with a {loss} of at most {asked}, surefill keeps "
            f"{percent(contents.kept_share)} of it and promises nothing of that: {guarantee.withheld}"
        )
    if not guarantee.promised:
        return (
            f"Asked to fill {table} with a {loss} of at most {asked}, surefill keeps nothing and promises "
            f"nothing: {contents.selection.reason}"
        )
    promises = f"promises, with probability at least {1 - guarantee.delta:g}, that"
    if contents.about_filled:
        return (
            f"Asked to fill {table} with a {loss} of at most {asked}, surefill fills {contents.filled} cells, "
            f"{percent(contents.filled_share)} of those not observed, and {promises} these meet it on average, each "
            "counted once."
        )
    return (
        f"Asked to fill {table} with a {loss} of at most {asked}, surefill keeps {percent(contents.kept_share)} of it "
        f"and {promises} the mean over {contents.target}, meets it. This is not about the cells that are filled alone."
    )


def _asset(name: str) -> str:
    return files("surefill.report").joinpath(name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    """What the page's own policy knows its style and script by, so that no other is run."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode("ascii")


def _chosen(contents: ReportContents) -> str:
    selection = contents.selection
    if selection.held_out_error is None:
        return "Nothing is kept at the tolerance asked for."
    share, loss = percent(selection.held_out_share), selection.loss.mean_name
    return f"● kept: {share} of the calibration entries, with {loss} {number(selection.held_out_error)}."


def _axes(contents: ReportContents) -> str:
    names = contents.rows.name, contents.columns.name
    return "" if names == ("row", "column") else f"Rows stand for {names[0]}, columns for {names[1]}."


def map_words(heat_map: HeatMap) -> str:
    """What a square stands for."""
    order = "Rows and columns that are seen together lie together, the most trusted first."
    if heat_map.single:
        return f"Each square is one cell. {order}"
    down, across = len(heat_map.rows[0]), len(heat_map.cols[0])
    how = "the mean of" if heat_map.exact else "the mean of a few cells drawn from"
    return f"Each square is {how} up to {down:,} by {across:,} cells. {order}"


def support_words(contents: ReportContents) -> str:
    """From which confidence on an entry is supported, and how that is known."""
    certificate, floor = contents.certificate, number(contents.selection.floor)
    if certificate.false_support is None:
        return f"Nothing below a confidence of {floor} is kept."
    return (
        f"From a confidence of {floor} on an entry is supported; about {percent(certificate.false_support)} of cells "
        "that nothing supports would pass, as tested on cells hidden on purpose. Nothing below is kept."
    )


def _layer_choices(heat_map: HeatMap) -> str:
    return "".join(
        f'<label><input type="radio" name="layer" value="{name}"{" checked" if name == LAYERS_SHOWN[0] else ""}>'
        f"{escaped(heat_map.layers[name].title)}</label>"
        for name in LAYERS_SHOWN
    )


def _colour_scale() -> str:
    """Little to much, as a strip."""
    step = 100 / len(ANCHORS)
    strip = "".join(
        f'<rect x="{k * step:g}" y="0" width="{step + 0.5:g}" height="10" fill="{colour}"/>'
        for k, colour in enumerate(ANCHORS)
    )
    return f'<svg viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">{strip}</svg>'


def _trust_words(contents: ReportContents) -> str:
    axes = ((contents.rows, len(contents.columns)), (contents.columns, len(contents.rows)))
    sampled = [f"{axis.trust.n_looked_at} cells of each {axis.name}" for axis, n in axes if axis.trust.n_looked_at < n]
    note = f" Estimated from {' and '.join(sampled)}, drawn at random." if sampled else ""
    return f"<p>{escaped('Share of cells kept, mean confidence, and number of cells observed.' + note)}</p>"


def _decile_words(contents: ReportContents) -> str:
    deciles = contents.deciles
    return (
        f"The {deciles.size.sum():,} calibration entries in {len(deciles.size)} groups by predicted risk. A group on "
        "the dotted line was as wrong as predicted; above it, more wrong."
    )


def _promise(contents: ReportContents) -> dict[str, str]:
    guarantee, certificate = contents.guarantee, contents.certificate
    return {
        "Guarantee": guarantee.sentence,
        "Where it holds": guarantee.holds_over,
        "Not promised": guarantee.not_promised,
        "What was found": contents.selection.sentence,
        f"Confidence: {certificate.standing}": certificate.sentence,
    }


def _made(contents: ReportContents, command: str) -> str:
    seconds = [*contents.timings.items(), ("total", sum(contents.timings.values()))]
    timings = table(("stage", "seconds"), [(stage, number(each)) for stage, each in seconds])
    versions = table(("package", "version"), list(contents.versions.items()))
    return f'<h3>To repeat it</h3><pre>{escaped(command)}</pre><div class="lists">{timings}{versions}</div>'
