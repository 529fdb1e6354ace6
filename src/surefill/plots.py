"""Plots of plain arrays with matplotlib, which results offer as ``plot_*`` methods, and the orders they are drawn in.

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
from sklearn.utils.extmath import randomized_svd

from surefill.arrays import Array, Indices
from surefill.errors import MissingPackageError
from surefill.metrics import calibration_by_decile, risk_coverage_curve
from surefill.spaces.confidence_matrix import Confidence

if TYPE_CHECKING:
    from matplotlib.axes import Axes


INK, ACCENT, LIMIT = "#1f4e79", "#c8500a", "#666666"
"""Line colours, told apart without colour vision by their lightness too."""
MISSING_COLOUR = "#d9d9d9"
"""Grey, for cells without a value."""


def require_matplotlib() -> None:
    """Say which extra brings matplotlib where it is not installed."""
    if importlib.util.find_spec("matplotlib") is None:
        raise MissingPackageError("drawing pictures", "matplotlib")


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
    loss_name: str = "mean loss",
) -> Axes:
    """Mean loss of the calibration cells of least risk, for every share of them.

    Those that cannot be kept, whatever their risk, come last, those of least risk first, and are dotted. ``chosen`` is
    the share kept and its mean loss, None where nothing is kept.
    """
    ax = axes_or_new(ax)
    risks, possible = np.asarray(risk, dtype=np.float64), np.asarray(supported, dtype=bool)
    # What cannot be kept follows what can, in its own order of risk.
    score = np.where(possible, risks, risks + np.ptp(risks) + 1.0)
    curve = risk_coverage_curve(loss, score, weight)
    n_solid = len(np.unique(score[possible]))
    ax.plot(curve.coverage[:n_solid], curve.risk[:n_solid], color=INK, label="cells of least risk first")
    if n_solid < len(curve.coverage):
        beyond = slice(max(n_solid - 1, 0), None)
        words = "never kept: too little support, or too rare"
        ax.plot(curve.coverage[beyond], curve.risk[beyond], color=INK, linestyle=":", label=words)
    ax.axhline(tolerance, color=LIMIT, linestyle="--", label=f"tolerance {tolerance:.3g}")
    if chosen is not None:
        share, error = chosen
        ax.plot(share, error, "o", color=ACCENT, markersize=8, label=f"kept: {share:.0%} of them, error {error:.3g}")
    else:
        ax.plot([], [], " ", label="nothing is kept")
    ax.set(xlabel="share of the calibration cells kept", ylabel=f"their {loss_name}", xlim=(0, 1.02))
    ax.set_ylim(0, 1.08 * max(float(curve.risk[curve.coverage >= 0.05].max(initial=0.0)), tolerance))
    ax.legend(frameon=False)
    return ax


def plot_calibration(loss: ArrayLike, risk: ArrayLike, ax: Axes | None = None, loss_name: str = "mean loss") -> Axes:
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
        label="a tenth of the calibration cells, standard error",
    )
    ax.set(xlabel="predicted risk", ylabel=f"{loss_name} seen", xlim=(0, top), ylim=(0, top), aspect="equal")
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
    ax.set(
        xlabel=_axis_label("columns", image.shape[1], shape[1]), ylabel=_axis_label("rows", image.shape[0], shape[0])
    )
    return ax


def show_image(ax: Axes, image: Array, palette: str, limits: tuple[float, float]) -> Any:
    """The image without ticks, on grey."""
    ax.set_facecolor(MISSING_COLOUR)
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


def _axis_label(kind: str, shown: int, size: int) -> str:
    """How many rows or columns there are, and how many of them are shown."""
    return f"{size:,} {kind}" if shown == size else f"{shown:,} of {size:,} {kind}, drawn at random"


MAX_GROUPS = 8
"""Groups at most, as many as a picture shows apart."""

LEAST_GAP = 0.08
"""Gap between singular values, of which the largest is near 1, below which a matrix counts as having no groups."""

POWER_STEPS = 12
"""Power iterations of the randomised decomposition, more than scikit-learn's default since the gaps are small."""


def co_cluster(A: Array | sparse.coo_array) -> tuple[Indices, Indices]:
    """Spectral co-clustering: the group of each row and column, largest first; all 0 where none stand out.

    k-means on the leading singular vectors of A scaled by row and column sums (Dhillon, 2001); there are as many groups
    as singular values before the largest gap.
    """
    from sklearn.cluster import KMeans  # 13 MB that every worker of a cluster would have for nothing

    m, n = A.shape
    left, values, right = randomized_svd(_scaled(A), min(MAX_GROUPS + 1, m, n), n_iter=POWER_STEPS, random_state=0)
    gaps = -np.diff(values, append=0.0)[1:MAX_GROUPS]
    if gaps.max(initial=0.0) < LEAST_GAP:
        return np.zeros(m, np.int64), np.zeros(n, np.int64)
    n_groups = int(np.argmax(gaps)) + 2
    directions = _unit_rows(np.vstack([left[:, :n_groups], right[:n_groups].T]))
    groups = KMeans(n_groups, n_init=4, random_state=0).fit_predict(directions)
    by_size = np.argsort(np.argsort(-np.bincount(groups, minlength=n_groups), kind="stable"))
    ranked = by_size[groups].astype(np.int64)
    return ranked[:m], ranked[m:]


def order_by_group(groups: Indices, weight: Array) -> Indices:
    """Positions by group, within a group those of the largest weight first."""
    return np.lexsort((-weight, groups))


def _scaled(A: Array | sparse.coo_array) -> sparse.csr_array:
    """A_ij / sqrt((d_i + mean d) (e_j + mean e)), d and e the sums of rows and columns.

    The means keep rows of little weight from standing alone (regularised spectral clustering).
    """
    stored = sparse.coo_array(A)
    d, e = np.asarray(stored.sum(axis=1)), np.asarray(stored.sum(axis=0))
    scale = np.sqrt((d[stored.row] + d.mean()) * (e[stored.col] + e.mean()))
    return sparse.csr_array((stored.data / scale, (stored.row, stored.col)), shape=stored.shape)


def _unit_rows(vectors: Array) -> Array:
    """Rows scaled to length 1: one of little weight lies in its group's direction, nearer to the origin."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 1e-12))


MAX_SHOWN = 600
"""Rows and columns of a view; beyond that many they are drawn at random, so that nothing m x n is formed."""


@dataclass(frozen=True, eq=False)
class View:
    """Which rows and columns to show, in the order to show them, and the confidences there."""

    rows: Indices
    cols: Indices
    confidence: Array
    shape: tuple[int, int]

    @classmethod
    def of(cls, confidence: Confidence, order: bool = True, most: int = MAX_SHOWN) -> View:
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
    """Orders of rows and columns in which the blocks of a matrix of numbers >= 0, such as confidences, show.

    >>> two_blocks = np.array([[1, 0, 1, 0], [0, 1, 0, 1], [1, 0, 1, 0]])
    >>> rows, cols = block_order(two_blocks)
    >>> two_blocks[np.ix_(rows, cols)]
    array([[1, 1, 0, 0],
           [1, 1, 0, 0],
           [0, 0, 1, 1]])
    """
    A = np.asarray(matrix, dtype=np.float64)
    row_groups, col_groups = co_cluster(A)
    return order_by_group(row_groups, A.sum(axis=1)), order_by_group(col_groups, A.sum(axis=0))
