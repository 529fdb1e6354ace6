"""``surefill complete FILE -o OUT``: a table of observations in, a table of trusted entries out."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from surefill.cli.options import (
    PATH,
    aim_options,
    as_read_options,
    command_line,
    described,
    jobs_option,
    promise_options,
    reading_options,
    seed_option,
    skipped,
)
from surefill.cli.progress import ProgressBars, announced
from surefill.cli.sections import SectionedCommand, section
from surefill.cli.terminal import say
from surefill.registry import AUTO, COMPLETIONS, CONFIDENCES

if TYPE_CHECKING:
    from surefill.jobs import CompletedFile, TableSize, WriteOptions


MANY_CELLS = 10**7
"""From this many cells on the speed is printed: fewer take less than a second."""


@click.command(cls=SectionedCommand, short_help="Fill the trusted part of a table of observations.")
@click.argument("file", type=PATH)
@section(
    "What is written",
    click.option(
        "-o",
        "--output",
        type=click.Path(),
        required=True,
        help="Where to write: .csv, .tsv, either with .gz, .parquet, .xlsx, or NAME/ for a folder of parquet files.",
    ),
    click.option(
        "--entries",
        type=click.Choice(["kept", "missing", "all"]),
        default="kept",
        show_default=True,
        help="Cells to write: 'kept' the observed ones and those that are filled, 'missing' all that were not "
        "observed, trusted or not, 'all' every cell.",
    ),
    click.option(
        "--top-n",
        type=click.IntRange(min=1),
        metavar="N",
        help="Of each row only the N largest values among the filled cells, the largest first.",
    ),
    click.option("--rows", type=PATH, metavar="ROWS", help="Only the rows listed in the file ROWS, a label per line."),
    click.option(
        "--round",
        "digits",
        type=click.IntRange(0, 15),
        metavar="DIGITS",
        help="Digits after the point of filled values; observed ones stay as they were read. [default: two more than "
        "the data have, fewer where errors are larger]",
    ),
    click.option(
        "--intervals",
        "level",
        type=click.FloatRange(0, 1, min_open=True, max_open=True),
        metavar="LEVEL",
        help="Add columns low and high, which hold a new observation with this probability, such as 0.9.",
    ),
    click.option(
        "--write",
        "layout",
        type=click.Choice(["long", "wide"]),
        help="'long', a line for each cell, or 'wide', a line for each row, blank where nothing is filled. [default: "
        "as FILE is]",
    ),
    click.option("--yes", is_flag=True, help="Write more than a gigabyte without asking."),
    click.option("--save", "model", type=PATH, help="Also save the fitted model here."),
    click.option("--report", type=PATH, help="Also write a page for the browser here, ending in .html."),
)
@promise_options("Largest mean squared error, or mean of another --loss, on the filled cells, in the data's own units.")
@aim_options()
@reading_options(time="What --save writes then also predicts values at given times.", features=True)
@section(
    "How it is computed",
    click.option(
        "--completion",
        type=click.Choice(list(COMPLETIONS)),
        default="auto",
        show_default=True,
        help="How every entry gets its value. " + described(COMPLETIONS),
    ),
    click.option(
        "--confidence",
        type=click.Choice([AUTO, *CONFIDENCES]),
        default="auto",
        show_default=True,
        help="How support is measured. "
        + described(CONFIDENCES)
        + " auto: game; up to 150 rows and columns coverage, where it supports as much.",
    ),
    seed_option,
    jobs_option,
)
@section(
    "On a cluster",
    click.option(
        "--backend",
        type=click.Choice(["local", "ray"]),
        default="local",
        show_default=True,
        help="'ray': where FILE and the output are folders, all of it is done on row blocks of a Ray cluster, and no "
        "machine has the whole table. Of other files factors alone are fitted there, of more than two million cells.",
    ),
    click.option("--address", metavar="HOST:PORT", help="Of a running cluster. [default: one of this machine's own]"),
    click.option("--workers", type=click.IntRange(min=1), help="Processes that own rows. [default: one for each core]"),
    click.option(
        "--checkpoint",
        type=PATH,
        metavar="FOLDER",
        help="For row blocks and the state after every sweep; all machines must see it.",
    ),
    click.option("--resume", is_flag=True, help="Go on from the checkpoint of the same command."),
)
@click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON.")
def complete(
    file: Path,
    output: str,
    model: Path | None,
    report: Path | None,
    as_json: bool,
    yes: bool,
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
      surefill complete ratings.csv -o filled.csv --tolerance 0.5 --bounds 1 5 --report report.html
      surefill complete ratings.csv -o filled.csv --sensitivity 1.5
      surefill complete ratings.csv -o filled.csv --col-features films.csv
      surefill complete ratings.csv -o filled.csv --json | jq .filled_cells

    \b
    What is written:
      surefill complete ratings.csv -o best.csv --top-n 10 --rows people.txt
      surefill complete ratings.csv -o filled.xlsx --write wide --round 1
      surefill complete ratings.csv -o all.csv.gz --entries all --intervals 0.9
      surefill complete ratings.csv -o parts/ --yes

    \b
    On a cluster:
      surefill complete ratings/ -o parts/ --yes --backend ray --checkpoint /shared/fit --address 10.0.0.1:6379
    """
    from surefill.jobs import WriteOptions, complete_file

    named = {name: options[name] for name in ("entries", "top_n", "rows", "digits", "level", "layout")}
    write = WriteOptions(**named)
    if options["backend"] == "ray" and file.is_dir() and (output.endswith("/") or Path(output).is_dir()):
        done = _complete_folder(file, output, write, model or report, options)
        say(json.dumps(done.as_json(), indent=2) if as_json else describe(done))
        return
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
            backend=_backend(options),
            write=write,
            model=model,
            report=report,
            command=command_line(click.get_current_context()),
            confirm=lambda size: agreed(size, yes, bars),
            announce=lambda forecast: announced(forecast, bars),
            progress=bars,
        )
    say(json.dumps(done.as_json(), indent=2) if as_json else describe(done))


def _complete_folder(
    folder: Path, output: str, write: WriteOptions, beside: Path | None, options: dict[str, Any]
) -> CompletedFile:
    """The same where no machine has the whole table."""
    from surefill.distributed import complete_folder
    from surefill.errors import InputError

    if beside is not None:
        raise InputError("--save and --report need the whole table on one machine: leave them out, or --backend ray.")
    if options["completion"] != "auto" or options["confidence"] not in ("auto", "game"):
        raise InputError("on a cluster values come from the Bayesian factor model and confidences from the game: "
                         "leave out --completion and --confidence.")  # fmt: skip
    with ProgressBars() as bars:
        return complete_folder(
            folder,
            output,
            _backend(options),
            read=as_read_options(options),
            tolerance=options["tolerance"],
            delta=options["delta"],
            loss=options["loss"],
            aim=options["aim"],
            sensitivity=options["sensitivity"],
            random_state=options["seed"],
            write=write,
            progress=bars,
        )


def _backend(options: dict[str, Any]) -> Any:
    """What the options of a cluster ask for."""
    from surefill.cluster import RayBackend
    from surefill.errors import InputError

    given = {name: options[name] for name in ("address", "workers", "checkpoint", "resume") if options[name]}
    if options["backend"] == "ray":
        folder = given.pop("checkpoint", None)
        return RayBackend(folder=folder, **given)
    if given:
        raise InputError(f"--{next(iter(given))} is about a cluster: it goes with --backend ray.")
    return None


def agreed(size: TableSize, yes: bool, bars: ProgressBars) -> bool:
    """Tell how large a table will be; of one of more than a gigabyte ask, where there is somebody to ask."""
    from surefill.jobs.table_size import MOST_UNASKED

    with bars.paused():
        say(size.sentence, err=True)
        if yes or size.bytes <= MOST_UNASKED:
            return True
        return sys.stdin.isatty() and sys.stderr.isatty() and click.confirm("Write it?", err=True)


def describe(done: CompletedFile) -> str:
    """What was done, for a person."""
    row, column, value = done.columns_read
    if (column, value) == ("column", "value"):  # a wide table names its rows at most
        names = f" Rows are {row}." if row != "row" else ""
    else:
        names = f" Rows are {row}, columns {column}, values {value}."
    repeated = f" in {done.draws:,} lines" if done.draws > done.observed_cells else ""
    lines = [
        f"Read {done.observed_cells:,} observed cells{repeated} of {done.rows:,} rows and {done.columns:,} "
        f"columns.{names}"
    ]
    if done.skipped_lines:
        lines.append(skipped(done.skipped_lines))
    if done.bounds_from != "given":
        lines.append(done.about_bounds)
    if done.dominance is not None:
        lines.append(done.dominance["sentence"])
    if done.cells_with_differing_repeats:
        count = done.cells_with_differing_repeats
        lines.append(f"{count:,} cells were seen more than once with different values; their means were used.")
    lines += [
        f"Completed by {done.completed_by}{_where(done)}.",
        done.selection,
        f"Confidence ({done.confidence_standing}): {done.certificate}",
        _filled(done),
    ]
    if done.promised:
        lines.append(f"Guarantee: {done.guarantee} {done.holds_over} {done.not_promised}")
    lines.append(_written(done))
    if done.report is not None:
        lines.append(f"The report is {done.report}: open it in a browser.")
    return "\n".join(lines)


def _where(done: CompletedFile) -> str:
    if done.backend == "local":
        return ""
    if done.backend == "cluster":
        return ", on row blocks"
    return ", fitted on a Ray cluster; the table, its confidence, risk and promise were on this machine"


def _filled(done: CompletedFile) -> str:
    """How many cells were filled, and whether the promise that is printed next is about these."""
    from surefill.guarantee.figures import bound

    if done.missing_in_rows == 0:
        return "No cell is missing: there is nothing to fill. A 0 is a value; if it stands for a hole, leave it empty."
    of_rows = f" of the {done.rows_written:,} rows asked for" if done.rows_written < done.rows else ""
    count = f"{done.filled_cells:,} of {done.missing_in_rows:,} missing cells{of_rows} ({done.filled_share:.1%})"
    if done.top_n is None:
        count = f"Filled {count}"
    else:
        count = f"{'About ' if done.filled_is_estimate else ''}{count} can be filled"
    if done.promised and done.n_filled is None:
        return (
            f"{count}; the guarantee is about another set of cells, which it names: --aim unobserved asks for one "
            "about these."
        )
    return f"{count} at tolerance {bound(done.tolerance)}."


def _written(done: CompletedFile) -> str:
    """What was written, and whether the promise is about more than that."""
    digits = f", filled values with {done.digits} digit{'' if done.digits == 1 else 's'} after the point"
    wrote = f"Wrote {done.lines:,} lines to {done.output}{digits if done.filled_cells else ''}.{_speed(done)}"
    if done.promised and done.rounded and done.filled_cells:
        wrote += " The guarantee is about values before they were rounded."
    if done.n_filled is not None and (done.top_n is not None or done.rows_written < done.rows):
        wrote += " The guarantee is about all filled cells of the matrix, not about those written alone."
    return wrote


def _speed(done: CompletedFile) -> str:
    """The cells computed and written per second, where that took a while."""
    if done.cells_looked_at < MANY_CELLS:
        return ""
    speed = done.cells_looked_at / done.writing_seconds / 1e6
    return f" {done.cells_looked_at:,} cells took {done.writing_seconds:.0f} s, {speed:.3g} million a second."
