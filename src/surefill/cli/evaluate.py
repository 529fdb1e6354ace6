"""``surefill evaluate FILE``: how well do confidences, risks and other orders rank errors on a user's own data?"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from surefill.cli.options import (
    PATH,
    ColumnName,
    as_read_options,
    jobs_option,
    promise_options,
    reading_options,
    seed_option,
    skipped,
)
from surefill.cli.progress import ProgressBars, announced
from surefill.cli.sections import SectionedCommand
from surefill.cli.terminal import say
from surefill.inputs import position_or_name
from surefill.registry import AUTO, CONFIDENCES


@click.command(cls=SectionedCommand, short_help="Compare ways to rank errors on your own data.")
@click.argument("file", type=PATH)
@click.option(
    "--by",
    default="5",
    show_default=True,
    help="Number of random folds, or the name of a column of whole numbers that says which fold a line is in.",
)
@click.option(
    "--order-by",
    type=ColumnName(),
    help="Column of times: numbers, ISO dates or date-times. The folds are then --by windows of time, numbered from "
    "1: FILE in order of time is cut into one block more than that, and each but the first is predicted from those "
    "before it.",
)
@click.option("--fold", "only", type=int, multiple=True, help="Hold out only this fold; may be given repeatedly.")
@click.option("-o", "--output", type=PATH, help="Draw risk-coverage curves here: .png, .svg or .pdf.")
@promise_options("Mean squared error, or mean of another --loss, to promise, in the data's own units.")
@reading_options(time="The error of values predicted at these times is then told as well.", features=True)
@click.option(
    "--confidence",
    type=click.Choice([AUTO, *CONFIDENCES]),
    default="auto",
    show_default=True,
    help="As for 'surefill complete'.",
)
@seed_option
@jobs_option
@click.option("--json", "as_json", is_flag=True, help="Print the numbers as JSON.")
def evaluate(
    file: Path,
    by: str,
    order_by: str | int | None,
    only: tuple[int, ...],
    output: Path | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Hold out each fold of FILE in turn, predict it, and see which order of entries finds the errors.

    Every order ranks the same predictions. The table has, for each, the mean loss of the tenth and the half
    that it trusts most, the area under its risk-coverage curve (0 for the order by the errors themselves, 1 for a
    random one), and the share of entries that it could keep at the tolerance if it knew where to stop. Below it is what
    was promised, without knowing, of the cells that would be filled, and what came of it on those held out, which are
    drawn like the observed ones and seldom like the filled; and what other ways to choose the kept set would keep of
    the cells not observed, in the same order of risks. Some make the same promise, some a weaker one.

    With --order-by, train on the past and test on the future: what one would have known at the time. Entries of rows or
    columns that nothing was known of are reported apart. The promise is about cells drawn like those it was made from,
    which those of a later time seldom are.

    \b
    Examples:
      surefill evaluate ratings.csv
      surefill evaluate ratings.csv --by 10 --tolerance 0.5 -o curves.png
      surefill evaluate ratings.csv --by fold --fold 1
      surefill evaluate ratings.csv --order-by timestamp --by 3
      surefill evaluate ratings.csv --time timestamp
      surefill evaluate ratings.csv --json | jq .orders.risk
    """
    from surefill.jobs import evaluate_file

    with ProgressBars() as bars:
        found = evaluate_file(
            file,
            by=position_or_name(by),
            only=only or None,
            order_by=order_by,
            picture=output,
            read=as_read_options(options),
            tolerance=options["tolerance"],
            delta=options["delta"],
            confidence=options["confidence"],
            loss=options["loss"],
            random_state=options["seed"],
            announce=lambda forecast: announced(forecast, bars),
            progress=bars,
        )
    say(json.dumps(found.summary(), indent=2) if as_json else describe(found.summary()))


def describe(summary: dict[str, Any]) -> str:
    """The numbers for a person."""
    from surefill.jobs import ORDER_NAMES

    tolerance = f"kept at {summary['tolerance']:.3g}"
    head = f"{'order':20}{'best tenth':>12}{'best half':>12}{'area, 0..1':>12}{tolerance:>14}"
    ordered = summary["cold"] is not None
    many = "" if summary["folds"] == 1 else "s"
    how = f"window{many} of time, by models of what came before" if ordered else f"fold{many}, by models of the others"
    lines = [
        f"{summary['entries']:,} entries predicted in {summary['folds']} {how}; {summary['loss']} "
        f"{summary['error']:.4g}.",
        *([_dated(summary)] if summary["dated_error"] is not None else ()),
        *(describe_cold(summary) if ordered else ()),
        *([skipped(summary["skipped_lines"])] if summary["skipped_lines"] else ()),
        "",
        head,
    ]
    for name, row in sorted(summary["orders"].items(), key=lambda item: item[1]["normalized_aurc"]):
        lines.append(
            f"{ORDER_NAMES[name]:20}{row['best_tenth']:12.4f}{row['best_half']:12.4f}{row['normalized_aurc']:12.3f}"
            f"{row['coverage_at_tolerance']:14.1%}"
        )
    deciles = summary["calibration"]
    lines += ["", "Risk by tenths of entries: predicted " + " ".join(f"{x:.2f}" for x in deciles["predicted"])]
    lines += ["                                seen " + " ".join(f"{x:.2f}" for x in deciles["seen"])]
    interval = summary["intervals"]
    width = "infinite" if interval["width"] is None else f"{interval['width']:.3g}"
    lines += [
        f"Intervals at level {interval['level']:g} held {interval['coverage']:.1%} of the values; mean width {width}.",
        "",
    ]
    for fold in summary["promises"]:
        error = "none" if fold["error"] is None else f"{fold['error']:.4g}"
        promise = f"{summary['tolerance']:.4g} promised" if fold["promised"] else "nothing promised"
        about = " of the cells filled" if fold["promised"] else ""
        lines.append(
            f"{'Window' if ordered else 'Fold'} {fold['fold']}: {promise}{about}; of the cells held out "
            f"{fold['kept']:.1%} kept, {summary['loss']} {error}."
        )
    return "\n".join([*lines, "", *describe_ways(summary["ways"])])


def _dated(summary: dict[str, Any]) -> str:
    return f"Predicted at the time of each, they have a {summary['loss']} of {summary['dated_error']:.4g}."


def describe_cold(summary: dict[str, Any]) -> list[str]:
    """A line on entries held out whose row or column was not seen before."""
    cold = summary["cold"]
    if not cold["entries"]:
        return ["Every row and column held out was seen before."]
    entries = "1 entry is" if cold["entries"] == 1 else f"{cold['entries']:,} entries are"
    return [
        f"Apart from these, {entries} of rows or columns never seen before: {summary['loss']} "
        f"{cold['error']:.4g}, {cold['kept']:.1%} of them kept."
    ]


def describe_ways(ways: list[dict[str, Any]]) -> list[str]:
    """A line for each way to choose a kept set: what it keeps, and what it promises of that."""
    lines = [f"{way['name']:28}{way['kept']:8.1%}  {way['promise']}" for way in ways]
    return ["Kept of the cells that were not observed:", f"{'chosen by':28}{'kept':>8}  promise", *lines]
