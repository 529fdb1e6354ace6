"""A report on a fitted completer, as one HTML file."""

from __future__ import annotations

from pathlib import Path

from sklearn.utils.validation import check_is_fitted

from surefill.data.files import check_folder, replacing
from surefill.errors import InputError
from surefill.estimators import PartialCompleter
from surefill.report.html.contents import gather
from surefill.report.html.page import render

SUFFIXES = (".html", ".htm")


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
