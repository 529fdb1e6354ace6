"""``surefill demo``: the idea on a matrix whose truth is known, then on real images, in numbers and pictures."""

from __future__ import annotations

import json
from pathlib import Path

import click

from surefill.cli.options import Positive, seed_option
from surefill.cli.progress import ProgressBars
from surefill.errors import InputError


@click.command(short_help="See the idea on a small matrix and on real images.")
@click.option(
    "-o",
    "--output",
    "folder",
    type=click.Path(path_type=Path),
    default=Path("surefill-demo"),
    show_default=True,
    help="Folder for the pictures; made if it is not there.",
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
    type=Positive(),
    default=0.25,
    show_default=True,
    help="Largest mean squared error on the kept entries of the groups; values lie in [-1, 1].",
)
@click.option(
    "--images",
    type=click.IntRange(100, 1797),
    default=400,
    show_default=True,
    help="How many handwritten digits.",
)
@seed_option
@click.option("--json", "as_json", is_flag=True, help="Print the numbers as JSON.")
def demo(folder: Path, size: int, tolerance: float, images: int, seed: int, as_json: bool) -> None:
    """What can be filled in, and what cannot, told twice.

    First, two groups of people rate only their own group's films, and the film and people order is shuffled. What one
    group thinks of the other's films cannot be known. surefill is given the ratings alone, without the groups, and has
    to find out which half of the matrix can be filled.

    Then, handwritten digits of which each image shows only one half, with holes. The holes can be filled from other
    images; the hidden halves cannot.

    \b
    Examples:
      surefill demo
      surefill demo --size 30 --seed 1 -o pictures
    """
    from surefill.plots import require_matplotlib
    from surefill.reproduction import demo_story as story

    require_matplotlib()
    _make_folder(folder)
    with ProgressBars() as bars:
        with bars.stage("two groups of people"):
            blocks = story.demonstrate_blocks(size, tolerance, seed, bars, folder / "figure1.png")
        if not as_json:
            click.echo(story.describe_blocks(blocks) + "\n")
        with bars.stage("handwritten digits"):
            digits = story.demonstrate_digits(images, seed, bars, folder / "digits.png")
    click.echo(
        json.dumps({"figure1": blocks, "digits": digits}, indent=2) if as_json else story.describe_digits(digits)
    )


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise InputError(f"the folder {folder} cannot be made: {error.strerror or error}.") from None
