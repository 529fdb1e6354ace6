"""``surefill complete FILE -o OUT``: a table of observations in, a table of trusted entries out."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from surefill.cli.progress import ProgressBars
from surefill.errors import InputError

if TYPE_CHECKING:
    from surefill.estimators import PartialCompleter


class ColumnName(click.ParamType[str | int]):
    """A column's name, or its position counted from 0."""

    name = "column"

    def convert(self, value: str | int, param: click.Parameter | None, ctx: click.Context | None) -> str | int:
        """Digits are a position, anything else a name."""
        return int(value) if isinstance(value, str) and value.isdigit() else value


@click.command(short_help="Fill the trusted part of a table of observations.")
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    required=True,
    help="Where to write: .csv, .tsv, .csv.gz or .parquet.",
)
@click.option(
    "--tolerance",
    type=float,
    help="Largest mean squared error on the kept entries, in the data's own squared units. "
    "[default: half the variance of the values]",
)
@click.option(
    "--delta",
    type=float,
    default=0.05,
    show_default=True,
    help="Probability with which a promise about the kept set may fail.",
)
@click.option("--row", type=ColumnName(), help="Column with row ids: a name, or a position from 0.")
@click.option("--col", type=ColumnName(), help="Column with column ids.")
@click.option("--value", type=ColumnName(), help="Column with values.")
@click.option("--delimiter", help="Text between fields. [default: guessed]")
@click.option("--header/--no-header", default=None, help="Whether the first line names the columns. [default: guessed]")
@click.option("--bounds", type=float, nargs=2, metavar="LOW HIGH", help="Range values may take. [default: as seen]")
@click.option(
    "--confidence",
    type=click.Choice(["auto", "coverage", "posterior"]),
    default="auto",
    show_default=True,
    help="coverage: the paper's program, up to 150 rows and columns; posterior: any size.",
)
@click.option(
    "--entries",
    type=click.Choice(["kept", "missing", "all"]),
    default="kept",
    show_default=True,
    help="Cells to write: the kept and observed ones, all unobserved ones, or every one.",
)
@click.option("--save", "model", type=click.Path(path_type=Path), help="Also save the fitted model here.")
@click.option("--seed", type=int, default=0, show_default=True, help="Same seed, same result.")
@click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON.")
def complete(file: Path, output: Path, as_json: bool, entries: str, model: Path | None, **options: Any) -> None:
    """Read observations from FILE, keep what can be trusted at the tolerance, and write it.

    FILE has one observation per line: a row id, a column id and a value (csv, tsv, MovieLens .dat, parquet; text
    may be gzipped). The output has the columns row, column, value, confidence, risk (expected squared error), keep
    and observed.

    \b
    Examples:
      surefill complete ratings.csv -o filled.csv
      surefill complete ratings.csv -o filled.parquet --tolerance 0.5 --bounds 1 5
      surefill complete u.data -o all.csv.gz --entries all --no-header --row 0 --col 1 --value 2
      surefill complete ratings.csv -o filled.csv --json | jq .kept_share
    """
    import surefill as sf
    from surefill.data.writers import check_table_target

    check_table_target(output)
    with ProgressBars() as bars:
        with bars.stage("reading"):
            observations = sf.read_observations(
                file,
                row=options["row"],
                col=options["col"],
                value=options["value"],
                delimiter=options["delimiter"],
                header=options["header"],
                bounds=options["bounds"],
            )
        completer = sf.PartialCompleter(
            tolerance=options["tolerance"],
            delta=options["delta"],
            confidence=options["confidence"],
            random_state=options["seed"],
            progress=bars,
        )
        with bars.stage("completing"):
            _fit(completer, observations, file)
        with bars.stage("writing"):
            n_lines = sf.write_table(output, _blocks(completer, entries))
        if model is not None:
            completer.save(model)
    summary = completer.result_.summary(observations) | {"output": str(output), "lines": n_lines}
    click.echo(json.dumps(summary, indent=2) if as_json else describe(summary))


def _fit(completer: PartialCompleter, observations: Any, file: Path) -> None:
    try:
        completer.fit(observations)
    except InputError as error:
        raise InputError(f"{file}: {error}") from None


def _blocks(completer: PartialCompleter, entries: Any) -> Iterator[dict[str, Any]]:
    from surefill.estimators import iterate_table

    return iterate_table(completer, entries)


def describe(summary: dict[str, Any]) -> str:
    """The summary for a person."""
    lines = [
        f"Read {summary['observed_cells']:,} observed cells of {summary['rows']:,} rows and "
        f"{summary['columns']:,} columns.",
        f"Kept {summary['kept_share']:.1%} of all cells at tolerance {summary['tolerance']:.4g}.",
        summary["selection"],
        f"Confidence ({summary['confidence_standing']}): {summary['certificate']}",
        f"Guarantee: {summary['guarantee']} {summary['holds_over']} {summary['not_promised']}",
        f"Wrote {summary['lines']:,} lines to {summary['output']}.",
    ]
    if summary["cells_with_differing_repeats"]:
        count = summary["cells_with_differing_repeats"]
        lines.insert(1, f"{count:,} cells were seen more than once with different values; their means were used.")
    return "\n".join(lines)
