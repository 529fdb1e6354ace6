"""``surefill complete FILE -o OUT``: a table of observations in, a table of trusted entries out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from surefill.cli.options import (
    PATH,
    aim_options,
    as_read_options,
    command_line,
    described,
    promise_options,
    reading_options,
    seed_option,
    skipped,
)
from surefill.cli.progress import ProgressBars
from surefill.registry import AUTO, COMPLETIONS, CONFIDENCES

if TYPE_CHECKING:
    from surefill.jobs import CompletedFile


@click.command(short_help="Fill the trusted part of a table of observations.")
@click.argument("file", type=PATH)
@click.option("-o", "--output", type=PATH, required=True, help="Where to write: .csv, .tsv, .csv.gz or .parquet.")
@promise_options("Largest mean squared error, or mean of another --loss, on the filled cells, in the data's own units.")
@aim_options()
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
    help="How support is measured. "
    + described(CONFIDENCES)
    + " auto: game; up to 150 rows and columns coverage, where it supports as much.",
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
    file: Path,
    output: Path,
    model: Path | None,
    report: Path | None,
    as_json: bool,
    entries: Literal["kept", "missing", "all"],
    **options: Any,
) -> None:
    """Read observations from FILE, keep what can be trusted at the tolerance, and write it.

    FILE has one observation per line: a row id, a column id and a value (csv, tsv, MovieLens .dat, parquet; text
    may be gzipped; Excel). With --wide it is a table with a line for each row and a column for each column. The output
    has its row, column and value columns, and beside them confidence, risk (expected
    squared error), keep and observed. What is promised about the filled cells, kept but not in FILE, is printed: their
    mean squared error, each cell counted once, is at most the tolerance, with probability 1 - delta. A fifth of FILE, a
    tenth where it is long, is not learnt from but used to make sure of that; its cells are weighted by how rarely cells
    like them are observed, so that they stand for those that were not.

    \b
    Examples:
      surefill complete ratings.csv -o filled.csv
      surefill complete grades.xlsx -o filled.csv --wide --sheet 2026
      surefill complete ratings.csv -o filled.parquet --tolerance 0.5 --bounds 1 5
      surefill complete u.data -o all.csv.gz --entries all --no-header --row 0 --col 1 --value 2
      surefill complete ratings.csv -o filled.csv --sensitivity 1.5
      surefill complete ratings.csv -o filled.csv --report report.html
      surefill complete ratings.csv -o filled.csv --json | jq .filled_cells
    """
    from surefill.jobs import complete_file

    with ProgressBars() as bars:
        done = complete_file(
            file,
            output,
            read=as_read_options(options),
            tolerance=options["tolerance"],
            delta=options["delta"],
            completion=options["completion"],
            confidence=options["confidence"],
            loss=options["loss"],
            aim=options["aim"],
            sensitivity=options["sensitivity"],
            random_state=options["seed"],
            entries=entries,
            model=model,
            report=report,
            command=command_line(click.get_current_context()),
            progress=bars,
        )
    click.echo(json.dumps(done.as_json(), indent=2) if as_json else describe(done))


def describe(done: CompletedFile) -> str:
    """What was done, for a person."""
    row, column, value = done.columns_read
    names = f" Rows are {row}, columns {column}, values {value}." if row != "row" else ""
    repeats = done.draws - done.observed_cells
    repeated = f", {repeats:,} of them again" if repeats else ""
    lines = [
        f"Read {done.observed_cells:,} observed cells{repeated} of {done.rows:,} rows and {done.columns:,} "
        f"columns.{names}"
    ]
    if done.skipped_lines:
        lines.append(skipped(done.skipped_lines))
    if done.bounds_from != "given":
        lines.append(done.about_bounds)
    if done.cells_with_differing_repeats:
        count = done.cells_with_differing_repeats
        lines.append(f"{count:,} cells were seen more than once with different values; their means were used.")
    lines += [done.selection, f"Confidence ({done.confidence_standing}): {done.certificate}", _filled(done)]
    if done.promised:
        lines.append(f"Guarantee: {done.guarantee} {done.holds_over} {done.not_promised}")
    lines.append(f"Wrote {done.lines:,} lines to {done.output}.")
    if done.report is not None:
        lines.append(f"The report is {done.report}: open it in a browser.")
    return "\n".join(lines)


def _filled(done: CompletedFile) -> str:
    """How many cells were filled, and whether the promise that is printed next is about these."""
    count = f"Filled {done.filled_cells:,} of {done.missing_cells:,} missing cells ({done.filled_share:.1%})"
    if done.promised and done.n_filled is None:
        return f"{count}; what is promised is not about these alone, which --aim unobserved asks for."
    return f"{count} at tolerance {done.tolerance:.4g}."
