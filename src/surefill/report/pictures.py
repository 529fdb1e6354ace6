"""Pictures in files: which formats can be written, and risk-coverage curves of several orders."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from surefill.errors import InputError
from surefill.io.durable import replacing
from surefill.io.files import check_folder
from surefill.metrics import normalized_aurc, risk_coverage_curve
from surefill.plots import require_matplotlib

SUFFIXES = (".png", ".svg", ".pdf")

LEAST_SHARE = 0.01
"""Curves begin here: the mean error of fewer entries says nothing but noise."""


def check_picture_target(path: str | Path) -> str:
    """The format that ``path`` asks for by its suffix; refuse, before any work, what cannot be written."""
    target = Path(path)
    check_folder(target)
    if target.suffix.lower() not in SUFFIXES:
        raise InputError(f"{target} must end in one of {', '.join(SUFFIXES)}, which says how to draw it.")
    require_matplotlib()
    return target.suffix.lower().removeprefix(".")


def draw_risk_coverage(
    losses: ArrayLike, scores: dict[str, ArrayLike], path: str | Path, loss_name: str = "mean loss"
) -> None:
    """One curve per order of the same entries, best first in the legend, and a line for a random order."""
    from matplotlib.figure import Figure

    kind = check_picture_target(path)
    loss = np.asarray(losses, dtype=np.float64)
    figure = Figure(figsize=(7.5, 5), layout="constrained")
    axis = figure.subplots()
    areas = {name: normalized_aurc(loss, score) for name, score in scores.items()}
    for name in sorted(areas, key=areas.__getitem__):
        curve = risk_coverage_curve(loss, scores[name])
        shown = curve.coverage >= min(LEAST_SHARE, curve.coverage[-1])
        axis.plot(curve.coverage[shown], curve.risk[shown], label=f"{name}, {areas[name]:.2f}")
    axis.axhline(loss.mean(), color="0.6", linestyle=":", label="random order, 1.00")
    axis.set_xlabel("share of entries kept, most trusted first")
    axis.set_ylabel(f"{loss_name} of what is kept")
    axis.set_ylim(bottom=0)
    axis.legend(title="order, area (0 best, 1 random)", fontsize=9)
    with replacing(Path(path)) as partial:
        figure.savefig(partial, dpi=110, format=kind)
