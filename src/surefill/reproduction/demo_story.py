"""The first two parts of ``surefill demo``: what is fitted, what is measured against the truth, how it is told."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from surefill.arrays import Array
from surefill.datasets.digits import SIDE

if TYPE_CHECKING:
    from surefill.datasets import HiddenDigits, Simulation
    from surefill.estimators import PartialCompleter, PartialCompletion
    from surefill.loop import ProgressCallback


DIGIT_TOLERANCE = 8.0
"""Mean squared error asked for in the images, whose ink is from 0 to 16."""

HARDLY_VARIES = 1.0
"""Standard deviation of ink, of 16, below which a pixel is easy to guess."""


def demonstrate_blocks(
    size: int, tolerance: float, seed: int, progress: ProgressCallback, picture: Path
) -> dict[str, Any]:
    """The paper's Figure 1, fitted with default settings, measured and drawn."""
    import surefill as sf
    from surefill.reproduction.figures import draw_blocks

    simulation = sf.datasets.make_blocks((size, size), n_draws=3 * size * size, rank=2, noise=0.1, random_state=seed)
    completer = sf.PartialCompleter(tolerance, random_state=seed, progress=progress).fit(simulation.observations)
    draw_blocks(simulation, completer.result_, picture)
    return measure_blocks(simulation, completer.result_)


def measure_blocks(simulation: Simulation, result: PartialCompletion) -> dict[str, Any]:
    """Confidence, kept share and error within and across the groups."""
    confidence, kept, support = result.confidence.dense(), result.keeps_dense(), simulation.support
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
        "error_kept": _mean(error[kept]),
        "error_not_kept": _mean(error[~kept]),
    } | _standing(result)


def fit_digits(n_images: int, seed: int, progress: ProgressCallback) -> tuple[HiddenDigits, PartialCompleter]:
    """Real images of which half is hidden, every image and pixel with a name, fitted with the default confidence."""
    import surefill as sf

    hidden = sf.datasets.make_hidden_digits(n_images, random_state=seed)
    seen = hidden.observations
    named = sf.Observations(
        seen.rows,
        seen.cols,
        seen.values,
        seen.shape,
        seen.bounds,
        names=("image", "pixel", "ink"),
        row_labels=[f"image{k + 1}" for k in range(seen.shape[0])],
        col_labels=[f"line{k // SIDE + 1}-{k % SIDE + 1}" for k in range(seen.shape[1])],
    )
    hidden = replace(hidden, observations=named)
    return hidden, sf.PartialCompleter(DIGIT_TOLERANCE, random_state=seed, progress=progress).fit(named)


def demonstrate_digits(hidden: HiddenDigits, completer: PartialCompleter, picture: Path) -> dict[str, Any]:
    """The images, measured and drawn."""
    from surefill.reproduction.figures import draw_digits

    draw_digits(hidden, completer.result_, picture)
    return measure_digits(hidden, completer.result_)


def measure_digits(hidden: HiddenDigits, result: PartialCompletion) -> dict[str, Any]:
    """Kept share and error in the holes of the halves that are shown, and in those that are hidden."""
    truth, seen = hidden.truth, hidden.seen
    answer = result.answer(*np.indices(truth.shape).reshape(2, -1))
    kept, error = answer.keep.reshape(truth.shape), (answer.value.reshape(truth.shape) - truth) ** 2
    guess = (np.nanmean(np.where(seen, truth, np.nan), axis=0, where=seen) - truth) ** 2
    holes, unknowable = hidden.shown & ~seen, ~hidden.shown
    filled, varies = holes & kept, np.broadcast_to(truth.std(axis=0) >= HARDLY_VARIES, truth.shape)
    return {
        "images": len(truth),
        "pixels_seen": len(hidden.observations),
        "holes": int(holes.sum()),
        "hidden": int(unknowable.sum()),
        "kept_holes": float(kept[holes].mean()),
        "kept_hidden": float(kept[unknowable].mean()),
        "error_holes_kept": _mean(error[filled]),
        "error_holes_not_kept": _mean(error[holes & ~kept]),
        "error_hidden": _mean(error[unknowable]),
        "error_hidden_kept": _mean(error[unknowable & kept]),
        "error_hidden_not_kept": _mean(error[unknowable & ~kept]),
        "error_hidden_by_mean": _mean(guess[unknowable]),
        "easy_share": float((~varies)[filled].mean()) if filled.any() else None,
        "error_not_easy": _mean(error[filled & varies]),
        "error_not_easy_by_mean": _mean(guess[filled & varies]),
    } | _standing(result)


def _standing(result: PartialCompletion) -> dict[str, Any]:
    return {
        "tolerance": result.selection.tolerance,
        "selection": result.selection.sentence,
        "certificate": result.certificate.sentence,
        "guarantee": result.guarantee.sentence,
        "seconds": result.timings,
    }


def _mean(errors: Array) -> float | None:
    return float(errors.mean()) if errors.size else None


def describe_blocks(told: dict[str, Any]) -> str:
    """The first part for a person."""
    kept, rest = told["error_kept"], told["error_not_kept"]
    return f"""\
1. A matrix whose truth is known

{told["rows"]} people x {told["columns"]} films in two groups, shuffled; {told["cells_seen"]} cells seen in \
{told["draws"]} draws, all within the groups.

                         within groups   across groups
  mean confidence        {told["confidence_inside"]:13.2f}   {told["confidence_outside"]:13.2f}
  share of cells kept    {told["kept_inside"]:13.0%}   {told["kept_outside"]:13.0%}

Mean squared error against the truth: {_number(kept, 3)} on what was kept, {_number(rest, 3)} on the rest; \
the tolerance was {told["tolerance"]:g}.
{told["selection"]}
Confidence: {told["certificate"]}
Guarantee: {told["guarantee"]}"""


def describe_digits(told: dict[str, Any]) -> str:
    """The second part for a person."""
    easy = told["easy_share"]
    trivial = (
        f"Of the holes filled, {easy:.0%} are in pixels whose ink hardly varies, near the border, which is easy; on\n"
        f"the others the error is {_number(told['error_not_easy'])}, where guessing each pixel's mean gives "
        f"{_number(told['error_not_easy_by_mean'])}.\n"
        if easy is not None
        else ""
    )
    return f"""\
2. Real images, half of each hidden

{told["images"]} handwritten digits of 8 x 8 pixels, ink from 0 to 16. Each image shows pixels of one half only, upper
or lower, and seven in ten of these. No image ties the two halves together, and surefill is not told of halves.

                         holes in the half shown   the half hidden
  pixels                 {told["holes"]:23,}   {told["hidden"]:15,}
  kept                   {told["kept_holes"]:23.0%}   {told["kept_hidden"]:15.0%}
  error where kept       {_number(told["error_holes_kept"]):>23}   {_number(told["error_hidden_kept"]):>15}
  error where left blank {_number(told["error_holes_not_kept"]):>23}   {_number(told["error_hidden_not_kept"]):>15}

The tolerance was {told["tolerance"]:g}. In the hidden halves the completion has error \
{_number(told["error_hidden"])}, guessing each pixel's mean {_number(told["error_hidden_by_mean"])}.
{trivial}{told["selection"]}
Guarantee: {told["guarantee"]} Hidden halves are never seen: the confidence leaves them blank.
Confidence: {told["certificate"]}"""


def _number(value: float | None, digits: int = 1) -> str:
    return "none" if value is None else f"{value:.{digits}f}"
