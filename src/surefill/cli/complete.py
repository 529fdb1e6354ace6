"""``surefill complete FILE -o OUT``: a table of observations in, a table of trusted entries out."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from surefill.cli.options import PATH, command_line, described, promise_options, reading_options, seed_option
from surefill.cli.progress import ProgressBars
from surefill.errors import InputError
from surefill.registry import AUTO, COMPLETIONS, CONFIDENCES

if TYPE_CHECKING:
    from surefill.data import Observations
    from surefill.estimators import PartialCompleter

RESERVED = {"confidence", "risk", "keep", "observed"}


@click.command(short_help="Fill the trusted part of a table of observations.")
@click.argument("file", type=PATH)
@click.option("-o", "--output", type=PATH, required=True, help="Where to write: .csv, .tsv, .csv.gz or .parquet.")
@promise_options("Largest mean squared error on the kept entries, in the data's own squared units.")
@reading_options()
@click.option(
    "--completion",
    type=click.Choice(list(COMPLETIONS)),
    default="auto",
    show_default=True,
    help="How every entry gets its value. " + described(COMPLETIONS),
)
@click.option(
    "--confidence",
    type=click.Choice([AUTO, *CONFIDENCES]),
    default="auto",
    show_default=True,
    help="How support is measured. " + described(CONFIDENCES) + " auto: the first on small tables, else the last.",
)
@click.option(
    "--entries",
    type=click.Choice(["kept", "missing", "all"]),
    default="kept",
    show_default=True,
    help="Cells to write: the kept and observed ones, all unobserved ones, or every one.",
)
@click.option("--save", "model", type=PATH, help="Also save the fitted model here.")
@click.option("--report", type=PATH, help="Also write a page for the browser here, ending in .html.")
@seed_option
@click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON.")
def complete(
    file: Path, output: Path, model: Path | None, report: Path | None, as_json: bool, entries: str, **options: Any
) -> None:
    """Read observations from FILE, keep what can be trusted at the tolerance, and write it.

    FILE has one observation per line: a row id, a column id and a value (csv, tsv, MovieLens .dat, parquet; text
    may be gzipped). The output has its row, column and value columns, and beside them confidence, risk (expected
    squared error), keep and observed. What is promised about the kept entries is printed: their mean squared error is
    at most the tolerance, with probability 1 - delta, over entries drawn like the observed ones. A fifth of FILE, a
    tenth where it is long, is not learnt from but used to make sure of that.

    \b
    Examples:
      surefill complete ratings.csv -o filled.csv
      surefill complete ratings.csv -o filled.parquet --tolerance 0.5 --bounds 1 5
      surefill complete u.data -o all.csv.gz --entries all --no-header --row 0 --col 1 --value 2
      surefill complete ratings.csv -o filled.csv --report report.html
      surefill complete ratings.csv -o filled.csv --json | jq .filled_cells
    """
    import surefill as sf
    from surefill.io.files import replacing

    _check_files(file, output, model, report)
    with ProgressBars() as bars:
        with bars.stage("reading"):
            observations = read_file(file, options)
        completer = sf.PartialCompleter(
            tolerance=options["tolerance"],
            delta=options["delta"],
            completion=options["completion"],
            confidence=options["confidence"],
            random_state=options["seed"],
            progress=bars,
        )
        with bars.stage("completing"):
            _fit(completer, observations, file)
        blocks = CountedBlocks(completer, entries, bars)
        with ExitStack() as unfinished:
            if model is not None:
                completer.save(unfinished.enter_context(replacing(model)))
            if report is not None:
                with bars.stage("reporting"):
                    page = _page(completer, file)
                unfinished.enter_context(replacing(report)).write_text(page, encoding="utf-8")
            n_lines = sf.io.write_table(output, blocks, columns=_column_names(observations))
    summary = completer.result_.summary(observations)
    summary |= {"filled_cells": blocks.filled, "output": str(output), "lines": n_lines}
    summary |= {"report": str(report)} if report is not None else {}
    click.echo(json.dumps(summary, indent=2) if as_json else describe(summary))


def _check_files(file: Path, output: Path, model: Path | None, report: Path | None) -> None:
    """Refuse, before any work, places that cannot be written and ones that would overwrite what was given."""
    from surefill.io.files import check_folder
    from surefill.io.writers import check_table_target

    check_table_target(output)
    if model is not None:
        check_folder(model)
    if report is not None:
        from surefill.report import check_report_target

        check_report_target(report)
    given = [path.resolve() for path in (file, output, model, report) if path is not None]
    if len(set(given)) < len(given):
        raise InputError("FILE, --output, --save and --report must be different files, or one would overwrite another.")


def _page(completer: PartialCompleter, file: Path) -> str:
    from surefill.report import render_report

    return render_report(completer, title=file.name, command=command_line(click.get_current_context()))


def read_file(file: Path, options: dict[str, Any]) -> Observations:
    """The observations in a file, read as the command's options say."""
    import surefill as sf

    delimiter = options["delimiter"].replace("\\t", "\t") if options["delimiter"] else None
    chosen = {name: options[name] for name in ("row", "col", "value", "header", "bounds")}
    return sf.read_observations(file, delimiter=delimiter, **chosen)


def _fit(completer: PartialCompleter, observations: Observations, file: Path) -> None:
    try:
        completer.fit(observations)
    except InputError as error:
        raise InputError(f"{file}: {error}") from None


def _column_names(observations: Observations) -> dict[str, str]:
    """The user's own column names, unless they would clash with ours."""
    names = dict(zip(("row", "column", "value"), observations.names, strict=True))
    return {} if RESERVED & set(names.values()) else names


class CountedBlocks:
    """The table's blocks, with progress by cells and a count of the missing cells that are filled."""

    def __init__(self, completer: PartialCompleter, entries: Any, bars: ProgressBars) -> None:
        self._completer, self._entries, self._bars = completer, entries, bars
        self.filled = 0

    def __iter__(self) -> Iterator[dict[str, Any]]:
        from surefill.estimators import iterate_table

        for block in self._bars.track(iterate_table(self._completer, self._entries), "writing"):
            self.filled += int((block["keep"] & ~block["observed"]).sum())
            yield block


def describe(summary: dict[str, Any]) -> str:
    """The summary for a person."""
    row, column, value = summary["columns_read"]
    names = f" Rows are {row}, columns {column}, values {value}." if row != "row" else ""
    missing = summary["rows"] * summary["columns"] - summary["observed_cells"]
    share = summary["filled_cells"] / missing if missing else 0.0
    repeats = summary["draws"] - summary["observed_cells"]
    repeated = f", {repeats:,} of them again" if repeats else ""
    lines = [
        f"Read {summary['observed_cells']:,} observed cells{repeated} of {summary['rows']:,} rows and "
        f"{summary['columns']:,} columns.{names}",
        f"Filled {summary['filled_cells']:,} of {missing:,} missing cells ({share:.1%}) at tolerance "
        f"{summary['tolerance']:.4g}.",
        summary["selection"],
        f"Confidence ({summary['confidence_standing']}): {summary['certificate']}",
    ]
    if summary["cells_with_differing_repeats"]:
        count = summary["cells_with_differing_repeats"]
        lines.insert(1, f"{count:,} cells were seen more than once with different values; their means were used.")
    if summary["promised"]:
        lines.append(f"Guarantee: {summary['guarantee']} {summary['holds_over']} {summary['not_promised']}")
    lines.append(f"Wrote {summary['lines']:,} lines to {summary['output']}.")
    if "report" in summary:
        lines.append(f"The report is {summary['report']}: open it in a browser.")
    return "\n".join(lines)
