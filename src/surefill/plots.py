"""Drawings of plain arrays with matplotlib; results offer them as ``plot_*`` methods.

Every function draws into the Axes it is given, or into those of a new figure, and returns them.
"""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefill.errors import MissingExtraError
from surefill.metrics import calibration_by_decile, risk_coverage_curve

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Array = NDArray[np.float64]

INK, ACCENT, LIMIT = "#1f4e79", "#c8500a", "#666666"
"""Line colours, told apart without colour vision by their lightness too."""
NOTHING = "#d9d9d9"
"""What is shown where nothing is said."""


def require_matplotlib() -> None:
    """Say which extra brings matplotlib where it is not installed."""
    if importlib.util.find_spec("matplotlib") is None:
        raise MissingExtraError("drawing pictures", "report")


def axes_or_new(ax: Axes | None, figsize: tuple[float, float] = (6.0, 4.2)) -> Axes:
    """``ax``, or the Axes of a new figure."""
    require_matplotlib()
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt

    return plt.subplots(figsize=figsize, layout="constrained")[1]


def plot_risk_coverage(
    loss: ArrayLike,
    risk: ArrayLike,
    weight: ArrayLike,
    supported: ArrayLike,
    tolerance: float,
    chosen: tuple[float, float] | None,
    ax: Axes | None = None,
) -> Axes:
    """Mean loss of the entries of least risk, for every share; those without support come last, in one dotted step.

    ``chosen`` is the share kept and its mean loss, None where nothing is kept.
    """
    ax = axes_or_new(ax)
    curve = risk_coverage_curve(loss, np.where(supported, risk, np.inf), weight)
    n_solid = len(curve.coverage) - (0 if np.all(supported) else 1)
    ax.plot(curve.coverage[:n_solid], curve.risk[:n_solid], color=INK, label="entries of least risk first")
    if n_solid < len(curve.coverage):
        from_last = slice(max(n_solid - 1, 0), None)
        ax.plot(
            curve.coverage[from_last],
            curve.risk[from_last],
            color=INK,
            linestyle=":",
            label="without support, never kept",
        )
    ax.axhline(tolerance, color=LIMIT, linestyle="--", label=f"tolerance {tolerance:.3g}")
    if chosen is not None:
        share, error = chosen
        ax.plot(share, error, "o", color=ACCENT, markersize=8, label=f"kept: {share:.0%}, error {error:.3g}")
    else:
        ax.plot([], [], " ", label="nothing is kept")
    ax.set(xlabel="share of calibration entries kept", ylabel="their mean squared error", xlim=(0, 1.02))
    ax.set_ylim(0, 1.08 * max(float(curve.risk[curve.coverage >= 0.05].max(initial=0.0)), tolerance))
    ax.legend(frameon=False)
    return ax


def plot_calibration(loss: ArrayLike, risk: ArrayLike, ax: Axes | None = None) -> Axes:
    """Predicted risk against the mean loss seen, by tenths of the entries; bars are standard errors."""
    ax = axes_or_new(ax, (5.0, 4.6))
    losses, risks = np.asarray(loss, dtype=np.float64), np.asarray(risk, dtype=np.float64)
    table = calibration_by_decile(losses, risks, min(10, len(losses)))
    parts = np.array_split(losses[np.argsort(risks, kind="stable")], len(table.size))
    spread = [part.std() / np.sqrt(len(part)) for part in parts]
    top = 1.08 * max(table.predicted.max(), (table.seen + spread).max())
    ax.plot([0, top], [0, top], color=LIMIT, linestyle="--", label="seen as predicted")
    ax.errorbar(
        table.predicted,
        table.seen,
        spread,
        fmt="o",
        color=INK,
        capsize=2,
        label="a tenth of the entries, standard error",
    )
    ax.set(xlabel="predicted risk", ylabel="mean squared error seen", xlim=(0, top), ylim=(0, top), aspect="equal")
    ax.legend(frameon=False)
    return ax


def plot_matrix(
    image: Array,
    shape: tuple[int, int],
    name: str,
    limits: tuple[float, float],
    palette: str = "cividis",
    ax: Axes | None = None,
) -> Axes:
    """A heat map, grey where ``image`` is NaN; ``shape`` is that of the matrix it was taken from."""
    ax = axes_or_new(ax)
    ax.figure.colorbar(show_image(ax, image, palette, limits), ax=ax, label=name)
    ax.set(xlabel=_named("columns", image.shape[1], shape[1]), ylabel=_named("rows", image.shape[0], shape[0]))
    return ax


def show_image(ax: Axes, image: Array, palette: str, limits: tuple[float, float]) -> Any:
    """The image without ticks, on grey."""
    ax.set_facecolor(NOTHING)
    ax.set_xticks([])
    ax.set_yticks([])
    long = max(image.shape) > 4 * min(image.shape)
    return ax.imshow(
        image,
        cmap=palette,
        vmin=limits[0],
        vmax=limits[1],
        interpolation="nearest",
        aspect="auto" if long else "equal",
    )


def _named(kind: str, shown: int, size: int) -> str:
    return f"{size:,} {kind}" if shown == size else f"{shown:,} of {size:,} {kind}, drawn at random"
