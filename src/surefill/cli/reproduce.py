"""``surefill reproduce``: the paper's experiments, in numbers and pictures."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from surefill.cli.options import PATH
from surefill.cli.progress import ProgressBars
from surefill.cli.terminal import say
from surefill.inputs import LARGEST_SEED

if TYPE_CHECKING:
    from surefill.reproduction import MovielensOutcome, PatternOutcome


def _common(command: Any) -> Any:
    """Options that both experiments share."""
    seed = click.option(
        "--seed", type=click.IntRange(0, LARGEST_SEED), default=0, show_default=True, help="Same seed, same data."
    )
    return seed(click.option("--json", "as_json", is_flag=True, help="Print the numbers as JSON.")(command))


@click.group(short_help="Run the paper's experiments.")
def reproduce() -> None:
    """Run the experiments of "Partial Matrix Completion" (Hazan, Kalai, Kanade, Mohri, Sun, NeurIPS 2023).

    \b
    Examples:
      surefill reproduce figure1
      surefill reproduce movielens ml-100k --square-only
    """


@reproduce.command(short_help="Comedies and horror, shuffled; and harder patterns.")
@click.option(
    "-o", "--output", type=PATH, default=Path("surefill-figure1"), show_default=True, help="Folder for the results."
)
@click.option(
    "--size", type=click.IntRange(10, 80), default=40, show_default=True, help="People and films in the matrix."
)
@_common
def figure1(output: Path, size: int, seed: int, as_json: bool) -> None:
    """The paper's Figure 1: people who rate only comedies or only horror, in shuffled order.

    Half of the matrix cannot be known, and nothing but the places of the ratings says which half. Beside it are two
    harder patterns: groups that overlap, and an arbitrary half of the matrix. Each is given to the coverage program
    MP 2 (the paper's class, and one of limited rank), to Online Dual Descent in both of its settings, and to the
    Simplified ODD that the paper's experiments ran.

    The folder gets figure1.csv with the numbers and a picture of every pattern, a row for each method, with people and
    films as given and with the shuffle undone. A minute or two of one core.

    \b
    Examples:
      surefill reproduce figure1
      surefill reproduce figure1 -o results --seed 1
      surefill reproduce figure1 --size 20 --json | jq '.methods[] | {pattern, method, auc}'
    """
    from surefill.io.durable import adding_files
    from surefill.reproduction import PATTERNS, reproduce_pattern
    from surefill.reproduction.figures import draw_pattern

    _check_output(output)
    outcomes = []
    with ProgressBars() as bars:
        for pattern, what in PATTERNS.items():
            with bars.stage(f"{pattern}: {what}"):
                outcomes.append(reproduce_pattern(pattern, size=size, random_state=seed, progress=bars))
    rows = [row for outcome in outcomes for row in outcome.table()]
    with adding_files(output) as unfinished:
        for outcome in outcomes:
            draw_pattern(outcome, unfinished / f"figure1-{outcome.pattern}.png")
        _write_numbers(rows, unfinished / "figure1.csv")
    written = [output / f"figure1-{outcome.pattern}.png" for outcome in outcomes] + [output / "figure1.csv"]
    errors = {outcome.pattern: outcome.errors() for outcome in outcomes}
    summary = {"seed": seed, "size": size, "completion_error": errors, "methods": rows, "files": _names(written)}
    text = "\n\n".join(describe_pattern(outcome) for outcome in outcomes)
    say(json.dumps(summary, indent=2) if as_json else f"{text}\n\nWrote {', '.join(_names(written))}.")


@reproduce.command(short_help="Squared error against confidence on MovieLens 100K.")
@click.argument("folder", type=PATH)
@click.option(
    "-o", "--output", type=PATH, default=Path("surefill-movielens"), show_default=True, help="Folder for the results."
)
@click.option(
    "--whole/--square-only", default=True, show_default=True, help="All of fold 1 after the paper's 250 x 250 square."
)
@click.option("--exact", is_flag=True, help="Also play ODD exactly on the square: half an hour of one core or more.")
@_common
def movielens(folder: Path, output: Path, whole: bool, exact: bool, seed: int, as_json: bool) -> None:
    """The paper's MovieLens experiment: is the squared error small where the confidence is high?

    FOLDER holds u.data (or u.data.gz) of MovieLens 100K, from https://grouplens.org/datasets/movielens/100k/. Learnt
    from are the 5189 training ratings (u1.base) of users and films 1 to 250, as in the paper; tested on are the 4492
    ratings of u1.test there. Then the same for all of u1.base and u1.test.

    Two completions, SoftImpute and BayesianFactorModel, are scored by tenths of the confidence of MP 2, of ODD in both
    settings and of Simplified ODD. The folder gets movielens.csv with the numbers and a picture for each part. The
    square takes half a minute of one core, the whole four minutes more.

    \b
    Examples:
      surefill reproduce movielens ml-100k --square-only
      surefill reproduce movielens ml-100k -o results
      surefill reproduce movielens ml-100k --square-only --exact --json
    """
    from surefill.io.durable import adding_files
    from surefill.reproduction import movielens_study as experiment
    from surefill.reproduction.figures import draw_errors_by_confidence

    _check_output(output)
    methods = experiment.SQUARE_METHODS + (experiment.EXACT_METHODS if exact else ())
    parts = {"square": ("the paper's square", experiment.load_square(folder), methods)}
    if whole:
        parts["whole"] = ("all of fold 1", experiment.load_fold(folder), experiment.WHOLE_METHODS)
    outcomes = {}
    with ProgressBars() as bars:
        for name, (part, (base, test), asked) in parts.items():
            with bars.stage(part):
                outcomes[name] = experiment.reproduce_movielens(
                    base, test, part=part, methods=asked, random_state=seed, progress=bars
                )
    rows = [row for outcome in outcomes.values() for row in outcome.table()]
    with adding_files(output) as unfinished:
        for name, outcome in outcomes.items():
            draw_errors_by_confidence(outcome, unfinished / f"movielens-{name}.png")
        _write_numbers(rows, unfinished / "movielens.csv")
    written = [output / f"movielens-{name}.png" for name in outcomes] + [output / "movielens.csv"]
    text = "\n\n".join(map(describe_errors, outcomes.values()))
    completed = [row for outcome in outcomes.values() for row in outcome.completion_table()]
    summary = {"seed": seed, "completions": completed, "rows": rows, "files": _names(written)}
    say(json.dumps(summary, indent=2) if as_json else f"{text}\n\nWrote {', '.join(_names(written))}.")


def _check_output(folder: Path) -> None:
    """Refuse, before any work, a folder that cannot be made or written to, or pictures that cannot be drawn."""
    from surefill.io.files import check_output_folder
    from surefill.plots import require_matplotlib

    check_output_folder(folder)
    require_matplotlib()


def _write_numbers(rows: Sequence[dict[str, Any]], path: Path) -> None:
    import numpy as np

    from surefill.io import write_table

    columns = {name: [np.nan if row[name] is None else row[name] for row in rows] for name in rows[0]}
    write_table(path, [{name: np.array(column) for name, column in columns.items()}])


def _names(paths: Sequence[Path]) -> list[str]:
    return [str(path) for path in paths]


def describe_pattern(outcome: PatternOutcome) -> str:
    """The numbers of one pattern for a person."""
    from surefill.reproduction import PATTERNS

    seen, error = outcome.simulation.observations, outcome.errors()
    lines = [
        f"{outcome.pattern}: {PATTERNS[outcome.pattern]}. {seen.shape[0]} x {seen.shape[1]}, {seen.n_draws:,} ratings.",
        f"The completion's squared error is {error['on']:.2g} where ratings are made and {error['off']:.2g} elsewhere.",
        f"  {'mean confidence':16}{'there':>8}{'off it':>8}{'AUC':>8}{'error over C':>14}{'seconds':>9}  standing",
    ]
    lines += [
        f"  {row['method']:16}{row['confidence_on']:8.2f}{row['confidence_off']:8.2f}{row['auc']:8.3f}"
        f"{row['error_over_confidence']:14.4f}{row['seconds']:9.1f}  {_standing(row)}"
        for row in outcome.table()
    ]
    return "\n".join(lines)


def _standing(row: dict[str, Any]) -> str:
    return row["standing"] if row["gap"] is None else f"{row['standing']}, gap {row['gap']:.1%}"


def describe_errors(outcome: MovielensOutcome) -> str:
    """The numbers of one part of MovieLens for a person."""
    (m, n), tested = outcome.shape, len(outcome.completions[0].errors)
    lines = [f"{outcome.part}: {m} x {n}, {outcome.n_train:,} ratings to learn from, {tested:,} to test on."]
    rows = outcome.table()
    for completion in outcome.completions:
        lines += [
            f"{completion.name}: mean squared error {completion.errors.mean():.3f}, {completion.seconds:.1f} s. "
            "By tenth of confidence, least first:",
            f"  {'':24}" + "".join(f"{k:6d}" for k in range(1, 11)) + "  Spearman   area  seconds",
        ]
        for row in (row for row in rows if row["completion"] == completion.name):
            tenths = "".join(f"{row[f'error_{k}']:6.2f}" for k in range(1, 11))
            lines.append(f"  {row['method']:24}{tenths}{row['spearman']:10.2f}{row['area']:7.2f}{row['seconds']:9.1f}")
    return "\n".join(lines)
