"""``surefill recommend MODEL``: the best columns of a row, or of all rows."""

from __future__ import annotations

import json
from pathlib import Path

import click

from surefill.cli.options import PATH
from surefill.cli.suggest import as_csv
from surefill.cli.terminal import say, say_table


@click.command(short_help="Give the best trusted columns of a row, or of all rows.")
@click.argument("model", type=PATH)
@click.option("--row", "rows", multiple=True, metavar="LABEL", help="The row; may be given repeatedly.")
@click.option("--rows", "rows_file", type=PATH, metavar="FILE", help="The rows listed in FILE, a label per line.")
@click.option("-n", "n", type=click.IntRange(min=1), default=10, show_default=True, help="Columns of each row.")
@click.option("--exclude", multiple=True, metavar="LABEL", help="Never give this column; may be given repeatedly.")
@click.option("--include", multiple=True, metavar="LABEL", help="Give no column but these; may be given repeatedly.")
@click.option("--all", "untrusted", is_flag=True, help="Rank all that was not observed, kept or not.")
@click.option("-o", "--output", type=PATH, help="Write here instead: .csv, .tsv, .csv.gz, .xlsx or .parquet.")
@click.option("--json", "as_json", is_flag=True, help="Print the lines as JSON.")
def recommend(
    model: Path,
    rows: tuple[str, ...],
    rows_file: Path | None,
    n: int,
    exclude: tuple[str, ...],
    include: tuple[str, ...],
    untrusted: bool,
    output: Path | None,
    as_json: bool,
) -> None:
    """Give the N columns of the largest value for a row, among those that are kept and were not observed.

    MODEL is what 'surefill complete --save' wrote. Of equal values the one of least risk comes first. Fewer than N are
    given where fewer are kept, and a row of which nothing is kept has no line. Without --row and --rows all rows are
    ranked, some at a time, and written to -o.

    \b
    Examples:
      surefill complete ratings.csv -o filled.csv --tolerance 0.5 --save model.surefill
      surefill recommend model.surefill --row 42 -n 10
      surefill recommend model.surefill --row 42 --exclude 50 --exclude 181
      surefill recommend model.surefill --row 42 --all
      surefill recommend model.surefill -o best.csv
      surefill recommend model.surefill --rows vips.txt -n 3 -o best.parquet
      surefill recommend model.surefill --row 42 --json | jq '.[0]'
    """
    from surefill.jobs import recommend_columns

    found = recommend_columns(
        model,
        rows=rows,
        n=n,
        exclude=exclude,
        include=include,
        trusted=not untrusted,
        rows_file=rows_file,
        output=output,
    )
    if not found.promised and not untrusted and found.n_with_any:
        say(found.guarantee, err=True)
    if output is not None:
        told = {"lines": found.lines, "rows": found.n_rows, "rows_with_any": found.n_with_any, "output": str(output)}
        said = f"Wrote {found.lines:,} lines to {output}, of {found.n_with_any:,} of {found.n_rows:,} rows."
        say(json.dumps(told, indent=2) if as_json else said)
        return
    if as_json:
        say(json.dumps(found.as_records(), indent=2))
    else:
        assert found.table is not None
        say_table(as_csv(list(found.table), found.as_records()))
    if found.n_with_any < found.n_rows and not untrusted:
        none = (
            "Nothing is kept" if found.n_with_any == 0 else f"Of {found.n_rows - found.n_with_any} rows nothing is kept"
        )
        say(f"{none} that was not observed; --all ranks the others, too.", err=True)
