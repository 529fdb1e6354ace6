"""The third part of ``surefill demo``: a saved model of images, asked by the commands ``recommend`` and ``predict``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from surefill.arrays import Indices

if TYPE_CHECKING:
    from surefill.datasets import HiddenDigits
    from surefill.estimators import PartialCompleter

MODEL, PAIRS = "digits.surefill", "pairs.csv"
"""Files beside the pictures, for trying the same by hand."""

DARKEST = 5
"""Pixels recommended."""

STRANGER = "image0"
"""The name of an image that the model has never seen: images are counted from 1."""


def ask_digits(hidden: HiddenDigits, completer: PartialCompleter, folder: Path) -> dict[str, Any]:
    """Save the model and pairs into ``folder``; the darkest pixels of one image, and what is said of the pairs."""
    from surefill.jobs import predict_file

    completer.save(folder / MODEL)
    image, outcomes = _image(hidden, completer)
    label, pixels = completer.observations_.row_names([image])[0], completer.observations_.col_names(outcomes)
    best = completer.recommend(label, DARKEST).as_records()
    places = completer.observations_.col_index([line["pixel"] for line in best])
    lines = [line | {"truth": float(hidden.truth[image, place])} for line, place in zip(best, places, strict=True)]
    pairs = [*((label, pixel) for pixel in pixels), (STRANGER, pixels[0])]
    (folder / PAIRS).write_text("image,pixel\n" + "".join(f"{row},{col}\n" for row, col in pairs), encoding="utf-8")
    scored = predict_file(folder / MODEL, folder / PAIRS).as_json()["pairs"]
    return {"image": str(label), "digit": int(hidden.digits[image]), "darkest": lines, "pairs": scored}


def _image(hidden: HiddenDigits, completer: PartialCompleter) -> tuple[int, Indices]:
    """The image with the most ink in its filled holes that has holes left blank, too; its darkest pixel by outcome.

    It is chosen to show something, not to be typical.
    """
    result, shape = completer.result_, hidden.truth.shape
    cells = np.indices(shape).reshape(2, -1)
    reasons = result.reasons(*cells).reshape(shape)
    ink = np.where(hidden.seen, -1.0, result.values_at(*cells).reshape(shape))
    filled = np.where((reasons == "") & ~hidden.seen, ink, 0.0).sum(axis=1)
    has_blank_holes = (hidden.shown & ~hidden.seen & (reasons != "")).any(axis=1)
    image = int(np.lexsort((filled, has_blank_holes))[-1])
    outcomes = np.unique(reasons[image][~hidden.seen[image]])
    darkest = [int(np.argmax(np.where(reasons[image] == outcome, ink[image], -2.0))) for outcome in outcomes]
    return image, np.array(darkest)


def describe_questions(told: dict[str, Any], folder: Path) -> str:
    """The third part for a person."""
    best = "\n".join(
        f"  {line['pixel']:10}{line['ink']:8.1f}{line['risk']:16.1f}{line['truth']:9.0f}" for line in told["darkest"]
    )
    pairs = "\n".join(
        f"  {line['image']:10}{line['pixel']:10}{line['value']:8.1f}{line['confidence']:12.2f}  "
        f"{'kept' if line['keep'] else line['reason']}"
        for line in told["pairs"]
    )
    return f"""\
3. Questions to the model

Which missing pixels of {told["image"]}, {_article(told["digit"])}, are dark, as far as can be trusted?
  surefill recommend {folder / MODEL} --row {told["image"]} -n {DARKEST}

  pixel          ink  expected error    truth
{best}

And what of these pixels, one of an image that it has never seen?
  surefill predict {folder / MODEL} {folder / PAIRS}

  image     pixel          ink  confidence  outcome
{pairs}"""


def _article(digit: int) -> str:
    return f"an {digit}" if digit == 8 else f"a {digit}"
