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
from surefill.io.durable import replacing
from surefill.io.files import check_folder
from surefill.report import sentences
from surefill.report.charts import draw_curve, draw_deciles, scale_of
from surefill.report.colours import ANCHORS, as_base64, as_png
from surefill.report.contents import ReportContents, gather
from surefill.report.formats import escaped, number, percent, script_json
from surefill.report.missing_bar import draw_missing
from surefill.report.script_data import script_data
from surefill.report.summary_tables import (
    count_tables,
    deciles_table,
    example_table,
    figures,
    outcomes_table,
    table,
    terms,
    trust_tables,
)

SUFFIXES = (".html", ".htm")

LAYERS_SHOWN = ("kept", "confidence", "risk", "observed")
"""Layers of the map to choose from, in this order; the value is told for the square under the pointer."""


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

    It says what was asked and promised, and shows what other tolerances would fill and why the rest stays blank, where
    the matrix can be trusted, examples by label, errors by how often rows and columns were seen, whether expected
    errors came true on the calibration cells, under which conditions the promise holds, and how to repeat it. Large
    matrices are shown by means over parts of them, so that the file stays below a few megabytes whatever the size.

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
        write_page(partial, page)


def write_page(path: Path, page: str) -> None:
    """Write the page; lone surrogates, which file names may contain, are escaped."""
    path.write_text(page, encoding="utf-8", errors="backslashreplace")


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
    selection, outcome, heat_map = contents.selection, contents.outcome, contents.heat_map
    low, high = _ends(contents)
    return {
        "lead": sentences.lead(contents),
        "tolerance": number(selection.tolerance),
        "verdict": sentences.verdict(contents, outcome),
        "fills": sentences.fills(contents, outcome),
        "filled": sentences.panel_words(contents, outcome),
        "kept": percent(outcome.kept_share),
        "n_cells": f"{contents.n_cells:,}",
        "n_calibration": f"{selection.n_held_out:,}",
        "calibration": percent(selection.held_out_share),
        "error": "none" if selection.held_out_error is None else number(selection.held_out_error),
        "why": sentences.why(contents, outcome),
        "loss": selection.loss.mean_name,
        "curve_words": sentences.curve_words(contents),
        "chosen": sentences.chosen(contents),
        "settled": sentences.settled(contents),
        "map_words": sentences.map_words(heat_map),
        "map_note": sentences.opening_note(contents),
        "scale_class": " ends" if heat_map.single and contents.opens_on == "kept" else "",
        "map_low": low,
        "map_high": high,
        "map_alt": f"{contents.opens_on.capitalize()} of every part of the matrix; the tables below name its most and "
        "least trusted lines.",
        "axes": sentences.axes_words(contents),
        "example_words": sentences.example_words(contents),
        "count_words": sentences.count_words(contents),
        "trust_words": sentences.trust_words(contents),
        "decile_words": sentences.decile_words(contents),
        "last": str(len(contents.outcomes) - 1),
        "asked": str(contents.asked),
        "map_width": str(heat_map.shape[1]),
        "map_height": str(heat_map.shape[0]),
    }


def _ends(contents: ReportContents) -> tuple[str, str]:
    """What the first and the last colour of the map stand for as the page opens."""
    if contents.opens_on == "confidence":
        return "0.00", "1.00"
    return ("not kept", "kept") if contents.heat_map.single else ("0%", "100%")


def _drawn(contents: ReportContents) -> dict[str, str]:
    """Drawings, the picture of the matrix, and what the script needs to change them."""
    scale = scale_of(contents.outcomes, contents.selection.tolerance, contents.overall_error)
    heat_map = contents.heat_map
    kept = contents.opens_on == "kept"
    levels = heat_map.kept_levels(contents.asked) if kept else heat_map.layers[contents.opens_on].levels
    return {
        "curve": draw_curve(scale, contents.outcome, contents.overall_error),
        "missing": draw_missing(contents),
        "decile_chart": draw_deciles(contents.deciles, contents.selection.loss),
        "map_png": as_base64(as_png(levels)),
        "layers": _layer_choices(contents),
        "scale": _colour_scale(),
        "data": script_json(script_data(contents, scale)),
    }


def _listed(contents: ReportContents) -> dict[str, str]:
    """Figures, tables and lists."""
    return {
        "figures": figures(contents),
        "outcomes": outcomes_table(contents),
        "examples": example_table(contents),
        "reasons": terms(sentences.reason_words(contents)),
        "counts": count_tables(contents),
        "trust": trust_tables(contents.rows, contents.columns),
        "decile_table": deciles_table(contents.deciles),
        "promise": terms(sentences.promise_terms(contents)),
    }


def _asset(name: str) -> str:
    return files("surefill.report").joinpath(name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    """What the page's own policy knows its style and script by, so that no other is run."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode("ascii")


def _layer_choices(contents: ReportContents) -> str:
    layers = contents.heat_map.layers
    return "".join(
        f'<label><input type="radio" name="layer" value="{name}"{" checked" if name == contents.opens_on else ""}>'
        f"{escaped('Kept' if name == 'kept' else layers[name].title)}</label>"
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


def _made(contents: ReportContents, command: str) -> str:
    stages = [(sentences.STAGES.get(stage, stage), f"{each:.1f}") for stage, each in contents.timings.items()]
    timings = table(("seconds", ""), [*stages, ("in all", f"{sum(contents.timings.values()):.1f}")])
    versions = table(("package", "version"), list(contents.versions.items()))
    return f'<h3>To repeat it</h3><pre>{escaped(command)}</pre><div class="lists">{timings}{versions}</div>'
