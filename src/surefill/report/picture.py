"""The paper's Figure 1: what was seen, what was completed, what is trusted, before and after undoing the shuffle."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surefill.data.files import check_folder, replacing
from surefill.datasets import Simulation
from surefill.errors import InputError
from surefill.estimators import PartialCompletion
from surefill.plots import require_matplotlib, show_image

Array = NDArray[np.float64]
Panel = tuple[str, str, Array, str, tuple[float, float]]
"""Title, note, matrix, palette and the range of its values."""

SUFFIXES = (".png", ".svg", ".pdf")


def check_picture_target(path: str | Path) -> str:
    """The format that ``path`` asks for by its suffix; refuse, before any work, what cannot be written."""
    target = Path(path)
    check_folder(target)
    if target.suffix.lower() not in SUFFIXES:
        raise InputError(f"{target} must end in one of {', '.join(SUFFIXES)}, which says how to draw it.")
    require_matplotlib()
    return target.suffix.lower().removeprefix(".")


def draw_blocks(simulation: Simulation, result: PartialCompletion, path: str | Path) -> None:
    """Two rows of four panels: as given on top, sorted by group below; grey is where nothing is said."""
    from matplotlib.figure import Figure

    panels = _panels(simulation, result)
    order = np.argsort(simulation.row_groups, kind="stable"), np.argsort(simulation.col_groups, kind="stable")
    figure = Figure(figsize=(12, 6.9), layout="constrained")
    axes = figure.subplots(2, len(panels))
    for column, (title, note, matrix, palette, limits) in enumerate(panels):
        shown: Any = None
        for axis, image in zip(axes[:, column], (matrix, matrix[np.ix_(*order)]), strict=True):
            shown = show_image(axis, image, palette, limits)
        axes[0, column].set_title(title, fontsize=13, weight="bold", pad=22)
        axes[0, column].annotate(note, (0.5, 1.02), xycoords="axes fraction", ha="center", va="bottom", fontsize=10)
        figure.colorbar(shown, ax=axes[:, column], orientation="horizontal", shrink=0.8, aspect=30, pad=0.02)
    axes[0, 0].set_ylabel("as given: people and\nfilms in any order", fontsize=12)
    axes[1, 0].set_ylabel("the same, put in order\nby group", fontsize=12)
    with replacing(Path(path)) as partial:
        figure.savefig(partial, dpi=110, format=check_picture_target(path), bbox_inches="tight", pad_inches=0.1)


def _panels(simulation: Simulation, result: PartialCompletion) -> list[Panel]:
    completion, confidence = result.completion.dense(), result.confidence.dense()
    kept, error = result.keeps_dense(), (completion - simulation.truth) ** 2
    error_kept = f"mean squared error {error[kept].mean():.3f}, rest empty" if kept.any() else "nothing"
    values, filled = simulation.observations.bounds, np.where(kept, completion, np.nan)
    return [
        ("what was seen", "nobody rates the other group's films", simulation.observations.dense(), "PuOr", values),
        ("everything completed", f"mean squared error {error.mean():.3f}", completion, "PuOr", values),
        ("confidence", "found without knowing the groups", confidence, "cividis", (0.0, 1.0)),
        ("kept by surefill", error_kept, filled, "PuOr", values),
    ]
