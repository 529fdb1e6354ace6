"""``surefill demo``: the paper's Figure 1 on a small matrix, in numbers and a picture."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from surefill.cli.progress import ProgressBars

if TYPE_CHECKING:
    from surefill.datasets import Simulation
    from surefill.estimators import PartialCompletion


@click.command(short_help="See the idea on a small matrix.")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    default=Path("surefill-demo.png"),
    show_default=True,
    help="Where to write the picture.",
)
@click.option(
    "--size",
    type=click.IntRange(8, 75),
    default=20,
    show_default=True,
    help="Rows and columns in each of the two groups.",
)
@click.option(
    "--tolerance",
    type=click.FloatRange(min=0, min_open=True),
    default=0.25,
    show_default=True,
    help="Largest mean squared error on the kept entries; values lie in [-1, 1].",
)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Same seed, same result.")
@click.option("--json", "as_json", is_flag=True, help="Print the numbers as JSON.")
def demo(output: Path, size: int, tolerance: float, seed: int, as_json: bool) -> None:
    """Two groups of people rate only their own group's films, and the film and people order is shuffled.

    What one group thinks of the other's films cannot be known. surefill is given the ratings alone, without the
    groups, and has to find out which half of the matrix can be filled.

    \b
    Examples:
      surefill demo
      surefill demo --size 30 --seed 1 -o figure1.png
    """
    import surefill as sf
    from surefill.report import check_picture_target, draw_blocks

    check_picture_target(output)
    simulation = sf.datasets.make_blocks((size, size), n_draws=3 * size * size, rank=2, noise=0.1, random_state=seed)
    with ProgressBars() as bars, bars.stage("solving the coverage program"):
        completer = sf.PartialCompleter(
            tolerance=tolerance, confidence=sf.CoverageProgram(K=1.0, gamma=0.3), random_state=seed, progress=bars
        ).fit(simulation.observations)
    summary = _measure(simulation, completer.result_) | {"picture": str(output)}
    draw_blocks(simulation, completer.result_, output)
    click.echo(json.dumps(summary, indent=2) if as_json else describe(summary))


def _measure(simulation: Simulation, result: PartialCompletion) -> dict[str, Any]:
    confidence = result.confidence.dense()
    kept, support = (
        result.keeps_dense(),
        simulation.support,
    )
    error = (result.completion.dense() - simulation.truth) ** 2
    return {
        "rows": simulation.observations.shape[0],
        "columns": simulation.observations.shape[1],
        "draws": simulation.observations.n_draws,
        "cells_seen": len(simulation.observations),
        "kept_inside": float(kept[support].mean()),
        "kept_outside": float(kept[~support].mean()),
        "confidence_inside": float(confidence[support].mean()),
        "confidence_outside": float(confidence[~support].mean()),
        "error_kept": float(error[kept].mean()) if kept.any() else None,
        "error_not_kept": float(error[~kept].mean()) if not np.all(kept) else None,
        "tolerance": result.selection.tolerance,
        "selection": result.selection.sentence,
        "certificate": result.certificate.sentence,
        "guarantee": result.guarantee.sentence,
        "seconds": result.timings,
    }


def describe(summary: dict[str, Any]) -> str:
    """The numbers for a person."""
    kept, rest = summary["error_kept"], summary["error_not_kept"]
    return "\n".join(
        [
            f"{summary['rows']} people x {summary['columns']} films in two groups, shuffled; "
            f"{summary['cells_seen']} cells seen in {summary['draws']} draws, all within the groups.",
            "",
            "                         within groups   across groups",
            f"  mean confidence        {summary['confidence_inside']:13.2f}   {summary['confidence_outside']:13.2f}",
            f"  share of cells kept    {summary['kept_inside']:13.0%}   {summary['kept_outside']:13.0%}",
            "",
            f"Mean squared error against the truth: {_number(kept)} on what was kept, {_number(rest)} on the rest; "
            f"the tolerance was {summary['tolerance']:g}.",
            summary["selection"],
            f"Confidence: {summary['certificate']}",
            f"Guarantee: {summary['guarantee']}",
            f"Picture: {summary['picture']}",
        ]
    )


def _number(value: float | None) -> str:
    return "none" if value is None else f"{value:.3f}"
