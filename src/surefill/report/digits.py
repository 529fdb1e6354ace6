"""Digits of which one half was hidden: the truth, what was seen, all of it completed, and what is kept."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from surefill.data.files import replacing
from surefill.datasets.digits import LEVELS, SIDE, HiddenDigits
from surefill.estimators import PartialCompletion
from surefill.report.picture import check_picture_target

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Array = NDArray[np.float64]

PAPER, HATCH = "#fbe3d0", "#e2a878"
"""Where nothing is said: tinted and hatched, so that it is neither ink nor white."""


def draw_digits(hidden: HiddenDigits, result: PartialCompletion, path: str | Path) -> None:
    """One column for each digit, the first image of it in the data; even digits show their upper half."""
    from matplotlib.figure import Figure

    kind = check_picture_target(path)
    strips, columns = _strips(hidden, result), first_of_each_digit(hidden)
    figure = Figure(figsize=(12.5, 4.5), layout="constrained")
    axes = figure.subplots(len(strips), len(columns), squeeze=False)
    for line, (title, note, images) in zip(axes, strips, strict=True):
        for ax, image in zip(line, images[columns], strict=True):
            _show_digit(ax, image)
        line[0].set_ylabel(f"{title}\n", rotation=0, ha="right", va="center", fontsize=13, weight="bold")
        line[0].annotate(note, (-0.12, 0.44), xycoords="axes fraction", ha="right", va="top", fontsize=10)
    with replacing(Path(path)) as partial:
        figure.savefig(partial, dpi=110, format=kind)


def first_of_each_digit(hidden: HiddenDigits) -> NDArray[np.int64]:
    """The first image of every digit there is, of even ones with the upper half, of odd ones with the lower."""
    wanted = hidden.upper == (hidden.digits % 2 == 0)
    present = np.unique(hidden.digits[wanted])
    return np.array([np.flatnonzero(wanted & (hidden.digits == digit))[0] for digit in present])


def _strips(hidden: HiddenDigits, result: PartialCompletion) -> list[tuple[str, str, Array]]:
    """Title, note and images x 64 of each line of the picture."""
    seen, truth, kept = hidden.seen, hidden.truth, result.keeps_dense()
    rows, cols = np.indices(truth.shape).reshape(2, -1)
    completed = np.where(seen, truth, result.values_at(rows, cols).reshape(truth.shape))
    filled = np.where(seen | kept, completed, np.nan)
    error = (completed - truth) ** 2
    everywhere, where_kept = (_number(error[which]) for which in (~seen, kept & ~seen))
    return [
        ("the truth", "never shown to surefill", truth),
        (
            "what was seen",
            "one half of each image, with holes;\nsurefill is not told of halves",
            np.where(seen, truth, np.nan),
        ),
        ("everything completed", f"right or wrong; mean squared error\n{everywhere} where nothing was seen", completed),
        (
            "kept by surefill",
            f"the rest stays blank; mean squared\nerror {where_kept} where something was filled",
            filled,
        ),
    ]


def _number(errors: Array) -> str:
    return f"{errors.mean():.1f}" if errors.size else "unknown"


def _show_digit(ax: Axes, pixels: Array) -> None:
    ax.set_facecolor(PAPER)
    ax.patch.set(hatch="//////", edgecolor=HATCH, linewidth=0)
    ax.set_xticks([])
    ax.set_yticks([])
    image = pixels.reshape(SIDE, SIDE)
    ax.imshow(image, cmap="gray_r", vmin=0, vmax=LEVELS, interpolation="nearest")
