"""Figures of the demo and of the paper's experiments, each drawn to a file.

``draw_blocks`` and ``draw_digits`` belong to the demo, ``draw_pattern`` to the study of Figure 1 and
``draw_errors_by_confidence`` to that of MovieLens.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from surefill.arrays import Array
from surefill.datasets import Simulation
from surefill.datasets.digits import INK_LEVELS, SIDE, HiddenDigits
from surefill.estimators import PartialCompletion
from surefill.io.durable import replacing
from surefill.plots import MISSING_COLOUR, show_image
from surefill.report.pictures import check_picture_target
from surefill.reproduction.figure1_study import PATTERNS, PatternOutcome
from surefill.reproduction.movielens_study import COUNTS, ConfidenceScores, MovielensOutcome

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

VALUES, CONFIDENCE = "PuOr", "cividis"
"""Palettes of values and of confidences: both can be read without colour vision."""

PAPER, HATCH = "#fbe3d0", "#e2a878"
"""Where nothing is said about a pixel: tinted and hatched, so that it is neither ink nor white."""

PANEL = 1.75
"""Inches of a panel of :func:`draw_pattern`."""

HEADINGS = (("seen", "completed"), ("confidence", "trusted part"))
"""Of the first two rows of :func:`draw_pattern`, for the left pair of panels and for the right one."""

BESIDE: dict[str, Any] = {"rotation": 0, "ha": "right", "va": "center", "fontsize": 10, "labelpad": 8}
"""Text to the left of a row of panels."""

COLOURS, MARKS = ("#0072b2", "#d55e00", "#009e73"), ("o", "s", "^")
"""Of the completions in :func:`draw_errors_by_confidence`; the colours are of Okabe and Ito's palette."""

DOTS = "#8c8c8c"
MOST_DOTS = 3000
"""Test ratings drawn as dots; more would be one grey area."""

N_LEVELS, FEWEST_IN_LEVEL = 10, 20
"""Levels of confidence with a mean error of their own, and the ratings that a mean needs."""

TICKS = (0, 0.25, 1, 2.25, 4, 9, 16)
"""Squared errors of 0, 1/2, 1, 3/2, 2, 3 and 4 stars."""


class Panel(NamedTuple):
    """A matrix to show: its title, a note, the palette and the range of its values."""

    title: str
    note: str
    matrix: Array
    palette: str
    limits: tuple[float, float]


def draw_blocks(simulation: Simulation, result: PartialCompletion, path: str | Path) -> None:
    """Two rows of four panels: as given on top, sorted by group below; grey is where nothing is said."""
    from matplotlib.figure import Figure

    check_picture_target(path)
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
    _save(figure, path, 110, bbox_inches="tight", pad_inches=0.1)


def _panels(simulation: Simulation, result: PartialCompletion) -> list[Panel]:
    completion, confidence = result.completion.dense(), result.confidence.dense()
    kept, error = result.keeps_dense(), (completion - simulation.truth) ** 2
    error_kept = f"mean squared error {error[kept].mean():.3f}, rest empty" if kept.any() else "nothing"
    values, filled = simulation.observations.bounds, np.where(kept, completion, np.nan)
    return [
        Panel("what was seen", "nobody rates the other group's films", simulation.observations.dense(), VALUES, values),
        Panel("everything completed", f"mean squared error {error.mean():.3f}", completion, VALUES, values),
        Panel("confidence", "found without knowing the groups", confidence, CONFIDENCE, (0.0, 1.0)),
        Panel("kept by surefill", error_kept, filled, VALUES, values),
    ]


def draw_digits(hidden: HiddenDigits, result: PartialCompletion, path: str | Path) -> None:
    """One column for each digit, the first image of it in the data; even digits show their upper half."""
    from matplotlib.figure import Figure

    check_picture_target(path)
    lines, columns = _digit_lines(hidden, result), first_of_each_digit(hidden)
    figure = Figure(figsize=(12.5, 4.5), layout="constrained")
    axes = figure.subplots(len(lines), len(columns), squeeze=False)
    for line, (title, note, images) in zip(axes, lines, strict=True):
        for ax, image in zip(line, images[columns], strict=True):
            _show_digit(ax, image)
        line[0].set_ylabel(f"{title}\n", rotation=0, ha="right", va="center", fontsize=13, weight="bold")
        line[0].annotate(note, (-0.12, 0.44), xycoords="axes fraction", ha="right", va="top", fontsize=10)
    _save(figure, path, 110)


def first_of_each_digit(hidden: HiddenDigits) -> NDArray[np.int64]:
    """The first image of every digit there is, of even ones with the upper half, of odd ones with the lower."""
    wanted = hidden.upper == (hidden.digits % 2 == 0)
    present = np.unique(hidden.digits[wanted])
    return np.array([np.flatnonzero(wanted & (hidden.digits == digit))[0] for digit in present])


def _digit_lines(hidden: HiddenDigits, result: PartialCompletion) -> list[tuple[str, str, Array]]:
    """Title, note and images x 64 of each line of the picture."""
    seen, truth = hidden.seen, hidden.truth
    answer = result.answer(*np.indices(truth.shape).reshape(2, -1))
    value, kept = answer.value.reshape(truth.shape), answer.keep.reshape(truth.shape)
    completed = np.where(seen, truth, value)
    filled = np.where(seen | kept, completed, np.nan)
    error = (completed - truth) ** 2
    everywhere, where_kept = (_mean_in_words(error[which]) for which in (~seen, kept & ~seen))
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


def _mean_in_words(errors: Array) -> str:
    return f"{errors.mean():.1f}" if errors.size else "unknown"


def _show_digit(ax: Axes, pixels: Array) -> None:
    ax.set_facecolor(PAPER)
    ax.patch.set(hatch="//////", edgecolor=HATCH, linewidth=0)
    ax.set_xticks([])
    ax.set_yticks([])
    image = pixels.reshape(SIDE, SIDE)
    ax.imshow(image, cmap="gray_r", vmin=0, vmax=INK_LEVELS, interpolation="nearest")


def draw_pattern(outcome: PatternOutcome, path: str | Path) -> None:
    """A row for the data and one per method: confidence, and the completion faded to grey where it is not trusted."""
    from matplotlib.figure import Figure

    check_picture_target(path)
    n_rows = 1 + len(outcome.runs)
    figure = Figure(figsize=(4 * PANEL + 2.3, n_rows * PANEL + 1.5), layout="constrained")
    figure.suptitle(_pattern_title(outcome), fontsize=12)
    axes = figure.subplots(n_rows, 4)
    rows, cols = outcome.undone()
    undone = np.ix_(rows, cols)
    seen = outcome.simulation.observations.dense()
    _draw_row(axes[0], (seen, outcome.completion), None, undone)
    axes[0, 0].set_ylabel("the data", **BESIDE)
    for line, run, numbers in zip(axes[1:], outcome.runs, outcome.table(), strict=True):
        C = run.found.confidence.dense()
        _draw_row(line, (C, outcome.completion), C, undone)
        line[0].set_ylabel(_method_label(numbers), **BESIDE)
    for line, headings in zip(axes, HEADINGS, strict=False):
        for axis, heading in zip(line[::2], headings, strict=True):
            axis.set_title(f"{heading}, as given", fontsize=10)
        for axis in line[1::2]:
            axis.set_title("shuffle undone", fontsize=10)
    _draw_scale(figure, axes[:, :2], CONFIDENCE, (0, 1), "confidence: 0 cannot be known, 1 can")
    _draw_scale(figure, axes[:, 2:], VALUES, (-1, 1), "value of an entry; grey: nothing is said")
    _save(figure, path, 100)


def _pattern_title(outcome: PatternOutcome) -> str:
    m, n = outcome.simulation.observations.shape
    draws = outcome.simulation.observations.n_draws
    data = f"{m} people x {n} films, {draws:,} ratings"
    return f"{outcome.pattern}: {PATTERNS[outcome.pattern]}\n{data}; shuffle undone: sorted by group, then by taste"


def _method_label(numbers: dict[str, Any]) -> str:
    name = numbers["method"].replace(", ", ",\n")
    return f"{name}\n\nmean {numbers['confidence_on']:.2f} on,\n{numbers['confidence_off']:.2f} off\nthe support"


def _draw_row(axes: Any, images: tuple[Array, Array], trust: Array | None, undone: Any) -> None:
    """Left pair: what was seen, or the confidence; right pair: the completion, faded where ``trust`` is low."""
    first, completion = images
    left = _coloured(first, VALUES, -1.0) if trust is None else _coloured(first, CONFIDENCE, 0.0)
    right = _faded(_coloured(completion, VALUES, -1.0), trust)
    for axis, image in zip(axes, (left, left[undone], right, right[undone]), strict=True):
        _show_colours(axis, image)


def _coloured(image: Array, palette: str, low: float) -> Array:
    """Red, green and blue of each entry on the scale from ``low`` to 1; grey where there is none."""
    import matplotlib
    from matplotlib.colors import to_rgb

    colours: Array = matplotlib.colormaps[palette]((np.nan_to_num(image) - low) / (1.0 - low))[..., :3]
    return np.where(np.isnan(image)[..., None], np.array(to_rgb(MISSING_COLOUR)), colours)


def _faded(colours: Array, trust: Array | None) -> Array:
    """Each colour mixed with grey, as much of it as is trusted."""
    from matplotlib.colors import to_rgb

    if trust is None:
        return colours
    share = trust[..., None]
    return np.asarray(share * colours + (1 - share) * np.array(to_rgb(MISSING_COLOUR)))


def _show_colours(axis: Axes, image: Array) -> None:
    axis.set_xticks([])
    axis.set_yticks([])
    axis.imshow(np.clip(image, 0.0, 1.0), interpolation="nearest")


def _draw_scale(figure: Any, axes: Any, palette: str, limits: tuple[float, float], label: str) -> None:
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

    colours = ScalarMappable(Normalize(*limits), palette)
    figure.colorbar(colours, ax=axes, orientation="horizontal", shrink=0.8, aspect=35, pad=0.02, label=label)


def draw_errors_by_confidence(outcome: MovielensOutcome, path: str | Path) -> None:
    """A column per method. Above, every test rating and means by level of confidence; below, means by tenth."""
    from matplotlib.figure import Figure

    check_picture_target(path)
    methods = outcome.methods
    figure = Figure(figsize=(2.45 * len(methods) + 0.8, 6.4), layout="constrained")
    axes = figure.subplots(2, len(methods), sharey="row", squeeze=False)
    for (above, below), method in zip(axes.T, methods, strict=True):
        above.set_title(method.name, fontsize=10.5)
        _draw_dots(above, outcome, method)
        _draw_tenths(below, outcome, method)
    axes[0, 0].set_ylabel("squared error (root scale)")
    axes[1, 0].set_ylabel("mean squared error in the tenth")
    axes[1, 0].set_ylim(bottom=0)
    figure.suptitle(_movielens_title(outcome), fontsize=11.5)
    handles, labels = axes[1, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), fontsize=10)
    _save(figure, path, 100)


def _movielens_title(outcome: MovielensOutcome) -> str:
    (m, n), tested = outcome.shape, len(outcome.completions[0].errors)
    return (
        f"MovieLens 100K, {outcome.part}: {m} x {n}, {outcome.n_train:,} ratings to learn from, {tested:,} to test on\n"
        f"dots: test ratings, errors of {outcome.completions[0].name}; lines above: means at ten levels of confidence; "
        "below: means of tenths, with standard errors"
    )


def _draw_dots(axis: Axes, outcome: MovielensOutcome, method: ConfidenceScores) -> None:
    first = outcome.completions[0].errors
    shown = np.random.default_rng(0).permutation(len(first))[:MOST_DOTS]
    axis.plot(method.confidence[shown], np.sqrt(first[shown]), ".", color=DOTS, alpha=0.25, markersize=2.5, zorder=1)
    for completion, colour, mark in zip(outcome.completions, COLOURS, MARKS, strict=False):
        level, mean = level_means(method.confidence, completion.errors)
        axis.plot(level, np.sqrt(mean), mark + "-", color=colour, markersize=4, linewidth=1.5, zorder=2)
    axis.set_yticks(np.sqrt(TICKS), [f"{tick:g}" for tick in TICKS])
    axis.set_xlabel("share of the most there are" if method.name == COUNTS else "confidence")
    axis.grid(alpha=0.25)


def level_means(confidence: Any, errors: Any) -> tuple[Any, Any]:
    """Mean confidence and mean error in each tenth of the range of confidences that holds at least twenty entries."""
    low, high = confidence.min(), confidence.max()
    level = np.minimum((N_LEVELS * (confidence - low) / max(high - low, 1e-300)).astype(np.int64), N_LEVELS - 1)
    size = np.bincount(level, minlength=N_LEVELS)
    kept = size >= min(FEWEST_IN_LEVEL, size.max())
    sums = (np.bincount(level, numbers, minlength=N_LEVELS)[kept] / size[kept] for numbers in (confidence, errors))
    mean_confidence, mean_error = sums
    return mean_confidence, mean_error


def _draw_tenths(axis: Axes, outcome: MovielensOutcome, method: ConfidenceScores) -> None:
    lines = []
    for completion, colour, mark in zip(outcome.completions, COLOURS, MARKS, strict=False):
        tenths = outcome.by_decile(completion, method)
        place = np.arange(1, len(tenths.error) + 1)
        style: dict[str, Any] = {"color": colour, "markersize": 4, "linewidth": 1.5, "capsize": 2}
        axis.errorbar(place, tenths.error, tenths.standard_error, fmt=mark + "-", label=completion.name, **style)
        lines.append(f"{tenths.spearman:+.2f}")
    axis.set_xticks([1, 5, 10], ["1\nleast", "5", "10\nmost"])
    axis.set_xlabel("tenth by confidence")
    axis.text(0.97, 0.95, "Spearman " + ", ".join(lines), transform=axis.transAxes, ha="right", va="top", fontsize=9)
    axis.grid(alpha=0.25)


def _save(figure: Figure, path: str | Path, dots_per_inch: int, **options: Any) -> None:
    """Write a picture in the format that its name asks for; the file appears when it is complete."""
    with replacing(Path(path)) as partial:
        figure.savefig(partial, dpi=dots_per_inch, format=check_picture_target(path), **options)
