"""``surefill predict MODEL PAIRS``: what a model says of pairs of a row and a column."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from surefill.cli.options import PATH, as_read_options, reading_options
from surefill.cli.progress import ProgressBars
from surefill.cli.terminal import say, say_table

if TYPE_CHECKING:
    from surefill.jobs import ScoredPairs


@click.command(short_help="Score pairs of a row and a column by a saved model.")
@click.argument("model", type=PATH)
@click.argument("pairs", type=PATH)
@click.option(
    "-o", "--output", type=PATH, help="Where to write: .csv, .tsv, .csv.gz, .xlsx or .parquet. [default: here]"
)
@click.option(
    "--level",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    help="Also give intervals, as columns low and high, that hold the value with this probability.",
)
@reading_options(wide=False, time="Values are predicted at these times.")
@click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON, with the lines if there is no -o.")
def predict(model: Path, pairs: Path, output: Path | None, level: float | None, as_json: bool, **options: Any) -> None:
    """Give every pair in PAIRS its value, confidence and risk, say whether it is kept, and if not why.

    MODEL is what 'surefill complete --save' wrote. PAIRS has a row id and a column id in each line, in columns called
    as in the table that MODEL was made from; what else it holds is carried along. If it has values, too, the error on
    them is told. Rows and columns that MODEL has never seen get an answer as well: the value that would be guessed
    without them, confidence 0, the error that such guesses have, and a reason.

    \b
    Examples:
      surefill complete ratings.csv -o filled.csv --tolerance 0.5 --save model.surefill
      surefill predict model.surefill pairs.csv
      surefill predict model.surefill pairs.csv -o scored.csv --level 0.9
      surefill predict model.surefill test.parquet -o scored.parquet
      surefill complete ratings.csv -o filled.csv --time when --save model.surefill
      surefill predict model.surefill pairs.csv --time when
      surefill predict model.surefill test.csv -o scored.csv --json | jq .error
    """
    from surefill.io.text_lines import format_lines, quoted
    from surefill.jobs import predict_file

    with ProgressBars() as bars:
        scored = predict_file(
            model, pairs, output, level=level, read=as_read_options(options), progress=bars
        )  # fmt: skip
    if as_json:
        say(json.dumps(scored.as_json(), indent=2))
        return
    if output is None:
        say_table(",".join(quoted(list(scored.table), ",")) + "\n")
        say_table(format_lines(scored.table, ",", ()).decode())
    say(describe(scored), err=output is None)


def describe(scored: ScoredPairs) -> str:
    """What was scored, for a person."""
    observed = f"; {scored.observed:,} were observed" if scored.observed else ""
    lines = [f"{scored.kept:,} of {scored.lines:,} pairs are kept{observed}."]
    if scored.reasons:
        lines.append("Not kept: " + "; ".join(f"{n:,} {reason}" for reason, n in scored.reasons.items()) + ".")
    if scored.error is not None:
        kept = "" if scored.kept_error is None else f", of those kept {scored.kept_error:.4g}"
        lines.append(f"The {scored.loss} of {scored.n_compared:,} pairs with a value is {scored.error:.4g}{kept}.")
        if scored.observed:
            lines.append("It counts pairs that were observed, which the model knows: on new cells errors are larger.")
    if not scored.promised:
        lines.append(scored.guarantee)
    if scored.output is not None:
        lines.append(f"Wrote {scored.lines:,} lines to {scored.output}.")
    return "\n".join(lines)
