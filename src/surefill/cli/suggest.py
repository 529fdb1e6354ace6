"""``surefill suggest MODEL``: which cells to ask next."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import click

from surefill.cli.options import PATH
from surefill.cli.terminal import say, say_table

STRATEGIES = {
    "coverage": "to keep more at the model's tolerance",
    "variance": "to err less everywhere",
    "risk": "where the largest errors are expected",
    "random": "any",
}
"""What each strategy is for; ``surefill.active`` has them, and is not imported for ``--help``."""


@click.command(short_help="Say which cells to ask next.")
@click.argument("model", type=PATH)
@click.option("-n", "n", type=click.IntRange(min=1), default=20, show_default=True, help="How many cells.")
@click.option(
    "--strategy",
    type=click.Choice(list(STRATEGIES)),
    default="coverage",
    show_default=True,
    help="What the answers are for. " + "; ".join(f"{name}: {what}" for name, what in STRATEGIES.items()) + ".",
)
@click.option(
    "--row", "rows", multiple=True, metavar="LABEL", help="Ask this row N questions; may be given repeatedly."
)
@click.option("-o", "--output", type=PATH, help="Write the cells here instead: .csv, .tsv, .csv.gz, .xlsx or .parquet.")
@click.option("--json", "as_json", is_flag=True, help="Print the cells as JSON.")
def suggest(model: Path, n: int, strategy: str, rows: tuple[str, ...], output: Path | None, as_json: bool) -> None:
    """Print the N cells whose answers would teach MODEL most, the best first, each for what it adds to those before.

    MODEL is what 'surefill complete --save' wrote. Every line has the cell, what is predicted there, its expected loss,
    and the utility of asking: about how many more cells could be kept (coverage), or by how much variances fall in
    total (variance).

    Once the answers are there, take them in with 'surefill update --refit', which goes on testing the promise on cells
    that were not chosen. If they were added to the table and it were completed anew, the promise would rest on them.

    \b
    Examples:
      surefill complete ratings.csv -o filled.csv --tolerance 0.5 --save model.surefill
      surefill suggest model.surefill -n 20
      surefill suggest model.surefill -n 5 --row u7
      surefill suggest model.surefill -n 96 --strategy variance -o plate.csv
      surefill suggest model.surefill --json | jq '.[0]'
    """
    from surefill.jobs import suggest_cells

    found = suggest_cells(model, n, strategy=strategy, rows=rows, output=output)
    if as_json:
        say(json.dumps(found.as_records(), indent=2))
    elif output is None:
        say_table(as_csv(list(found.table), found.as_records()))
    else:
        say(f"{len(found.as_records())} cells to ask were written to {output}.")


def as_csv(names: list[str], records: list[dict[str, object]]) -> str:
    """Lines for a person or a program; numbers with six significant digits."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(names)
    for record in records:
        writer.writerow([f"{value:.6g}" if isinstance(value, float) else value for value in record.values()])
    return text.getvalue()
