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
    figure = Figure(figsize=(12, 6.6), layout="constrained")
    axes = figure.subplots(2, len(panels))
    for column, (title, matrix, palette, limits) in enumerate(panels):
        shown: Any = None
        for axis, image in zip(axes[:, column], (matrix, matrix[np.ix_(*order)]), strict=True):
            shown = show_image(axis, image, palette, limits)
        axes[0, column].set_title(title, fontsize=12)
        figure.colorbar(shown, ax=axes[:, column], orientation="horizontal", shrink=0.8, aspect=30, pad=0.02)
    axes[0, 0].set_ylabel("as given", fontsize=12)
    axes[1, 0].set_ylabel("shuffle undone", fontsize=12)
    with replacing(Path(path)) as partial:
        figure.savefig(partial, dpi=110, format=check_picture_target(path))


def _panels(simulation: Simulation, result: PartialCompletion) -> list[tuple[str, Array, str, tuple[float, float]]]:
    completion, confidence = result.completion.dense(), result.confidence.dense()
    kept = np.where(result.keeps_dense(), completion, np.nan)
    values = simulation.observations.bounds
    return [
        ("observed", simulation.observations.dense(), "PuOr", values),
        ("completed, trusted or not", completion, "PuOr", values),
        ("confidence", confidence, "cividis", (0.0, 1.0)),
        ("kept", kept, "PuOr", values),
    ]
