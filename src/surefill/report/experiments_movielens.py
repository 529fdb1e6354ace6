"""Squared error against confidence on MovieLens: every test rating, and means by level and by tenth of confidence."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from surefill.data.files import replacing
from surefill.experiments import ConfidenceScores, ErrorsByConfidence
from surefill.experiments.movielens import COUNTS
from surefill.report.picture import check_picture_target

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOURS = ("#0072b2", "#d55e00", "#009e73")
MARKS = ("o", "s", "^")
DOTS = "#8c8c8c"
LEVELS = 10
FEWEST_IN_LEVEL = 20
MOST_DOTS = 3000
TICKS = (0, 0.25, 1, 2.25, 4, 9, 16)


def draw_errors_by_confidence(outcome: ErrorsByConfidence, path: str | Path) -> None:
    """A column per method. Above, every test rating and means by level of confidence; below, means by tenth."""
    from matplotlib.figure import Figure

    kind = check_picture_target(path)
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
    figure.suptitle(_title(outcome), fontsize=11.5)
    handles, labels = axes[1, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), fontsize=10)
    with replacing(Path(path)) as partial:
        figure.savefig(partial, dpi=100, format=kind)


def _title(outcome: ErrorsByConfidence) -> str:
    (m, n), tested = outcome.shape, len(outcome.completions[0].errors)
    return (
        f"MovieLens 100K, {outcome.part}: {m} x {n}, {outcome.n_train:,} ratings to learn from, {tested:,} to test on\n"
        f"dots: test ratings, errors of {outcome.completions[0].name}; lines above: means at ten levels of confidence; "
        "below: means of tenths, with standard errors"
    )


def _draw_dots(axis: Axes, outcome: ErrorsByConfidence, method: ConfidenceScores) -> None:
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
    level = np.minimum((LEVELS * (confidence - low) / max(high - low, 1e-300)).astype(np.int64), LEVELS - 1)
    size = np.bincount(level, minlength=LEVELS)
    kept = size >= min(FEWEST_IN_LEVEL, size.max())
    sums = (np.bincount(level, numbers, minlength=LEVELS)[kept] / size[kept] for numbers in (confidence, errors))
    mean_confidence, mean_error = sums
    return mean_confidence, mean_error


def _draw_tenths(axis: Axes, outcome: ErrorsByConfidence, method: ConfidenceScores) -> None:
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
