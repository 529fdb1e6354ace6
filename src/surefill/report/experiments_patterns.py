"""A picture of one simulated pattern: what was seen, and what each method trusts, before and after the unshuffling."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from surefill.data.files import replacing
from surefill.experiments import PATTERNS, PatternOutcome
from surefill.plots import NOTHING
from surefill.report.picture import check_picture_target

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Array = NDArray[np.float64]

PANEL = 1.75
VALUES, CONFIDENCE = "PuOr", "cividis"
HEADINGS = (("seen", "completed"), ("confidence", "trusted part"))
"""Of the first two rows, for the left pair of panels and for the right one."""


def draw_pattern(outcome: PatternOutcome, path: str | Path) -> None:
    """A row for the data and one per method: confidence, and the completion faded to grey where it is not trusted."""
    from matplotlib.figure import Figure

    kind = check_picture_target(path)
    n_rows = 1 + len(outcome.found)
    figure = Figure(figsize=(4 * PANEL + 2.3, n_rows * PANEL + 1.5), layout="constrained")
    figure.suptitle(_title(outcome), fontsize=12)
    axes = figure.subplots(n_rows, 4)
    rows, cols = outcome.undone()
    undone = np.ix_(rows, cols)
    seen = outcome.simulation.observations.dense()
    _draw_row(axes[0], (seen, outcome.completion), None, undone)
    axes[0, 0].set_ylabel("the data", **_beside)
    for line, one, numbers in zip(axes[1:], outcome.found, outcome.table(), strict=True):
        C = one.answer.confidence.dense()
        _draw_row(line, (C, outcome.completion), C, undone)
        line[0].set_ylabel(_label(numbers), **_beside)
    for line, headings in zip(axes, HEADINGS, strict=False):
        for axis, heading in zip(line[::2], headings, strict=True):
            axis.set_title(f"{heading}, as given", fontsize=10)
        for axis in line[1::2]:
            axis.set_title("shuffle undone", fontsize=10)
    _draw_scale(figure, axes[:, :2], CONFIDENCE, (0, 1), "confidence: 0 cannot be known, 1 can")
    _draw_scale(figure, axes[:, 2:], VALUES, (-1, 1), "value of an entry; grey: nothing is said")
    with replacing(Path(path)) as partial:
        figure.savefig(partial, dpi=100, format=kind)


_beside: dict[str, Any] = {"rotation": 0, "ha": "right", "va": "center", "fontsize": 10, "labelpad": 8}


def _title(outcome: PatternOutcome) -> str:
    m, n = outcome.simulation.observations.shape
    draws = outcome.simulation.observations.n_draws
    data = f"{m} people x {n} films, {draws:,} ratings"
    return f"{outcome.pattern}: {PATTERNS[outcome.pattern]}\n{data}; shuffle undone: sorted by group, then by taste"


def _label(numbers: dict[str, Any]) -> str:
    name = numbers["method"].replace(", ", ",\n")
    return f"{name}\n\nmean {numbers['confidence_on']:.2f} on,\n{numbers['confidence_off']:.2f} off\nthe support"


def _draw_row(axes: Any, images: tuple[Array, Array], trust: Array | None, undone: Any) -> None:
    """Left pair: what was seen, or the confidence; right pair: the completion, faded where ``trust`` is low."""
    first, completion = images
    left = _coloured(first, VALUES, -1.0) if trust is None else _coloured(first, CONFIDENCE, 0.0)
    right = _faded(_coloured(completion, VALUES, -1.0), trust)
    for axis, image in zip(axes, (left, left[undone], right, right[undone]), strict=True):
        _show(axis, image)


def _coloured(image: Array, palette: str, low: float) -> Array:
    """Red, green and blue of each entry on the scale from ``low`` to 1; grey where there is none."""
    import matplotlib
    from matplotlib.colors import to_rgb

    colours: Array = matplotlib.colormaps[palette]((np.nan_to_num(image) - low) / (1.0 - low))[..., :3]
    return np.where(np.isnan(image)[..., None], np.array(to_rgb(NOTHING)), colours)


def _faded(colours: Array, trust: Array | None) -> Array:
    """Each colour mixed with grey, as much of it as is trusted."""
    from matplotlib.colors import to_rgb

    if trust is None:
        return colours
    share = trust[..., None]
    return np.asarray(share * colours + (1 - share) * np.array(to_rgb(NOTHING)))


def _show(axis: Axes, image: Array) -> None:
    axis.set_xticks([])
    axis.set_yticks([])
    axis.imshow(np.clip(image, 0.0, 1.0), interpolation="nearest")


def _draw_scale(figure: Any, axes: Any, palette: str, limits: tuple[float, float], label: str) -> None:
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

    colours = ScalarMappable(Normalize(*limits), palette)
    figure.colorbar(colours, ax=axes, orientation="horizontal", shrink=0.8, aspect=35, pad=0.02, label=label)
