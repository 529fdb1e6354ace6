"""``surefill update MODEL NEW``: new observations, rows and columns taken into a model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from surefill.cli.options import PATH, as_read_options, reading_options
from surefill.cli.progress import ProgressBars
from surefill.cli.terminal import say

if TYPE_CHECKING:
    from surefill.jobs import UpdatedModel


@click.command(short_help="Take new observations into a saved model.")
@click.argument("model", type=PATH)
@click.argument("new", type=PATH)
@click.option("-o", "--output", type=PATH, help="Where to write the updated model.")
@click.option("--in-place", is_flag=True, help="Put the updated model in the place of MODEL.")
@click.option("--refit", is_flag=True, help="Fit again on all that was observed, and promise anew.")
@reading_options(bounds="those of the model")
@click.option("--json", "as_json", is_flag=True, help="Print what was done as JSON.")
def update(
    model: Path, new: Path, output: Path | None, in_place: bool, refit: bool, as_json: bool, **options: Any
) -> None:
    """Take the observations in NEW into MODEL without fitting again, rows and columns that it has never seen included.

    MODEL is what 'surefill complete --save' wrote; NEW has one observation per line, in columns called as in the table
    that MODEL was made from. Only rows and columns that occur in NEW are learnt anew. Cells that MODEL has already are
    left out and counted, for a promise may rest on them.

    What was promised is withdrawn, since the model that was tested is no longer the one that answers. --refit fits
    again and promises anew on the cells that the first fit set aside, of its rows and columns; for a promise about new
    rows, too, complete all data anew.

    \b
    Examples:
      surefill complete ratings.csv -o filled.csv --tolerance 0.5 --save model.surefill
      surefill update model.surefill today.csv -o model2.surefill
      surefill update model.surefill today.csv --in-place
      surefill update model.surefill today.csv --in-place --refit
    """
    from surefill.jobs import update_model

    if (output is None) == (not in_place):
        raise click.UsageError("Say where the updated model goes: -o FILE, or --in-place to replace MODEL.")
    target = model if output is None else output
    with ProgressBars() as bars:
        done = update_model(model, new, target, refit=refit, read=as_read_options(options), progress=bars)
    say(json.dumps(done.as_json(), indent=2) if as_json else describe(done))


def describe(done: UpdatedModel) -> str:
    """What was learnt and what is promised now, for a person."""
    lines = [
        f"Took in {_count(done.cells, 'new cell')}, {_count(done.new_rows, 'new row')} and "
        f"{_count(done.new_columns, 'new column')}: the model has {done.observed_cells:,} cells of {done.rows:,} rows "
        f"and {done.columns:,} columns."
    ]
    if done.repeated:
        lines.append(
            f"Left out {_count(done.repeated, 'cell')} that the model has already, {done.differing:,} of them with "
            "another value now: a promise may rest on them. To use them, complete all data anew."
        )
    lines.append(f"{done.guarantee} {done.holds_over} {done.not_promised}" if done.promised else done.guarantee)
    if not done.refitted:
        lines.append("'surefill update --refit' fits again, at once; without it the promise waits for the next fit.")
    return "\n".join([*lines, f"Wrote {done.output}."])


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"
