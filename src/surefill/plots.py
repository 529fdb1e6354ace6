"""Drawings of plain arrays with matplotlib; results offer them as ``plot_*`` methods.

Every function draws into the Axes it is given, or into those of a new figure, and returns them.
"""

from __future__ import annotations

import importlib.util
import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.cluster import KMeans
from sklearn.utils.extmath import randomized_svd

from surefill.arrays import Array, Indices
from surefill.errors import MissingExtraError
from surefill.metrics import calibration_by_decile, risk_coverage_curve
from surefill.spaces.confidence_matrix import Confidence

if TYPE_CHECKING:
    from matplotlib.axes import Axes


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


MOST_GROUPS, LEAST_FALL = 8, 0.08
POWER_STEPS = 12


def co_cluster(A: Array | sparse.coo_array) -> tuple[Indices, Indices]:
    """The group of each row and of each column, largest group first; all 0 where none stand out."""
    m, n = A.shape
    left, values, right = randomized_svd(_scaled(A), min(MOST_GROUPS + 1, m, n), n_iter=POWER_STEPS, random_state=0)
    falls = -np.diff(values, append=0.0)[1:MOST_GROUPS]
    if falls.max(initial=0.0) < LEAST_FALL:
        return np.zeros(m, np.int64), np.zeros(n, np.int64)
    n_groups = int(np.argmax(falls)) + 2
    places = _directions(np.vstack([left[:, :n_groups], right[:n_groups].T]))
    groups = KMeans(n_groups, n_init=4, random_state=0).fit_predict(places)
    by_size = np.argsort(np.argsort(-np.bincount(groups, minlength=n_groups), kind="stable"))
    ranked = by_size[groups].astype(np.int64)
    return ranked[:m], ranked[m:]


def ordered(groups: Indices, weight: Array) -> Indices:
    """Positions by group, within a group those of the largest weight first."""
    return np.lexsort((-weight, groups))


def _scaled(A: Array | sparse.coo_array) -> sparse.csr_array:
    stored = sparse.coo_array(A)
    d, e = np.asarray(stored.sum(axis=1)), np.asarray(stored.sum(axis=0))
    scale = np.sqrt((d[stored.row] + d.mean()) * (e[stored.col] + e.mean()))
    return sparse.csr_array((stored.data / scale, (stored.row, stored.col)), shape=stored.shape)


def _directions(places: Array) -> Array:
    """Scaled to length 1: a row of little weight lies in its group's direction, nearer to the origin."""
    lengths = np.linalg.norm(places, axis=1, keepdims=True)
    return np.asarray(np.divide(places, lengths, out=np.zeros_like(places), where=lengths > 1e-12))


MOST_SHOWN = 600
"""Rows and columns of a view; beyond that many they are drawn at random, so that nothing m x n is formed."""


@dataclass(frozen=True, eq=False)
class View:
    """Which rows and columns to show, in the order to show them, and the confidences there."""

    rows: Indices
    cols: Indices
    confidence: Array
    shape: tuple[int, int]

    @classmethod
    def of(cls, confidence: Confidence, order: bool = True, most: int = MOST_SHOWN) -> View:
        """All rows and columns, or ``most`` of each drawn at random; as they come unless ``order``."""
        rows, cols = (some_indices(size, most) for size in confidence.shape)
        C = confidence.block(rows, cols)
        if order:
            by_row, by_col = block_order(C)
            rows, cols, C = rows[by_row], cols[by_col], C[np.ix_(by_row, by_col)]
        return cls(rows, cols, C, confidence.shape)


def plot_confidence(confidence: Confidence, ax: Axes | None = None, order: bool = True) -> Axes:
    """A heat map of confidences; see :meth:`View.of`."""
    view = View.of(confidence, order)
    return plot_matrix(view.confidence, view.shape, "confidence", (0.0, 1.0), ax=ax)


def some_indices(size: int, most: int) -> Indices:
    """0 .. size - 1, or ``most`` of them drawn at random, rising; memory grows with ``most`` alone."""
    if size <= most:
        return np.arange(size)
    return np.array(sorted(random.Random(0).sample(range(size), most)), dtype=np.int64)


def block_order(matrix: ArrayLike) -> tuple[Indices, Indices]:
    """Orders of the rows and the columns of a matrix of numbers >= 0, such as confidences.

    >>> two_blocks = np.array([[1, 0, 1, 0], [0, 1, 0, 1], [1, 0, 1, 0]])
    >>> rows, cols = block_order(two_blocks)
    >>> two_blocks[np.ix_(rows, cols)]
    array([[1, 1, 0, 0],
           [1, 1, 0, 0],
           [0, 0, 1, 1]])
    """
    A = np.asarray(matrix, dtype=np.float64)
    row_groups, col_groups = co_cluster(A)
    return ordered(row_groups, A.sum(axis=1)), ordered(col_groups, A.sum(axis=0))
