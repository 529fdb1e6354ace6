"""``surefill demo``: the idea on a matrix whose truth is known, then on real images, and questions to their model."""

from __future__ import annotations

import json
from pathlib import Path

import click

from surefill.cli.options import PATH, Positive, seed_option
from surefill.cli.progress import ProgressBars
from surefill.cli.terminal import say
from surefill.waiting import Part


@click.command(short_help="See the idea on a small matrix and on real images, and ask a model.")
@click.option(
    "-o",
    "--output",
    "folder",
    type=PATH,
    default=Path("surefill-demo"),
    show_default=True,
    help="Folder for pictures, the model and a file of questions; made if it is not there.",
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
    """What can be filled in, and what cannot, told twice; then questions to a model.

    First, two groups of people rate only their own group's films, and the film and people order is shuffled. What one
    group thinks of the other's films cannot be known. surefill is given the ratings alone, without the groups, and has
    to find out which half of the matrix can be filled.

    Then, handwritten digits of which each image shows only one half, with holes. The holes can be filled from other
    images; the hidden halves cannot. The model of these is saved, and asked by 'surefill recommend' for the darkest
    pixels of an image, and by 'surefill predict' about single pixels.

    Files are written when all of it is done.

    \b
    Examples:
      surefill demo
      surefill demo --size 30 --seed 1 -o pictures
    """
    from surefill.io.durable import adding_files
    from surefill.io.files import check_output_folder
    from surefill.plots import require_matplotlib
    from surefill.reproduction import demo_questions as questions
    from surefill.reproduction import demo_story as story

    require_matplotlib()
    check_output_folder(folder)
    with adding_files(folder) as unfinished, ProgressBars() as bars:
        bars.plan([Part("two groups of people", 2.0), Part("handwritten digits", 6.0), Part("questions", 1.0)])
        with bars.stage("two groups of people"):
            blocks = story.demonstrate_blocks(size, tolerance, seed, bars, unfinished / "figure1.png")
        if not as_json:
            say(story.describe_blocks(blocks) + "\n")
        with bars.stage("handwritten digits"):
            hidden, completer = story.fit_digits(images, seed, bars)
            digits = story.demonstrate_digits(hidden, completer, unfinished / "digits.png")
        if not as_json:
            say(story.describe_digits(digits) + "\n")
        with bars.stage("questions"):
            asked = questions.ask_digits(hidden, completer, unfinished)
        files = sorted(str(folder / path.name) for path in unfinished.iterdir())
    told = {"figure1": blocks, "digits": digits, "questions": asked, "files": files}
    if as_json:
        say(json.dumps(told, indent=2))
    else:
        say(questions.describe_questions(asked, folder) + f"\n\nWritten: {', '.join(files)}.")
