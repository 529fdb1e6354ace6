"""Sums taken in the order of a stream, so that batches of any size add up to the same bits."""

from __future__ import annotations

from typing import Any

import numpy as np

from surefill.kernels.compile import compiled

MOST_USUAL, FEWEST = 16.0, 20.0


@compiled
def add_errors(values: Any, predicted: Any, confidence: Any, counts: Any, sums: Any) -> int:
    """Add each squared error to the band of its confidence; how many had no prediction (NaN) and were left out."""
    unscored = 0
    for x in range(len(values)):
        error = predicted[x] - values[x]
        if np.isnan(error):
            unscored += 1
            continue
        band = min(int(confidence[x] * len(counts)), len(counts) - 1)
        counts[band] += 1
        sums[band] += error * error
    return unscored


def add_errors_reference(values: Any, predicted: Any, confidence: Any, counts: Any, sums: Any) -> int:
    """Readable twin of `add_errors`."""
    scored = ~np.isnan(predicted)
    band = np.minimum((confidence[scored] * len(counts)).astype(int), len(counts) - 1)
    np.add.at(counts, band, 1)
    np.add.at(sums, band, (predicted[scored] - values[scored]) ** 2)
    return int((~scored).sum())


@compiled
def expert_weights(losses: Any, out: Any) -> None:
    """w_k proportional to exp(-(loss_k - least) / (2 v)), v = least / count, the count being ``losses[-1]``."""
    least = losses[:-1].min()
    variance = max(least / max(losses[-1], 1.0), 1e-300)
    for k in range(len(out)):
        out[k] = np.exp(-(losses[k] - least) / (2.0 * variance))
    out /= out.sum()


@compiled
def mix_experts(predicted: Any, values: Any, fading: float, losses: Any, mixed: Any) -> None:
    """mixed[x] = sum_k w_k predicted[k, x], the weights by the squared errors before x, which fade with time.

    An error counts for at most four times the usual one, so that no single value decides between the experts.
    """
    weights = np.empty(len(predicted))
    for x in range(len(values)):
        expert_weights(losses, weights)
        mixed[x] = 0.0
        for k in range(len(weights)):
            mixed[x] += weights[k] * predicted[k, x]
        if not np.isnan(mixed[x]):
            most = MOST_USUAL * losses[:-1].min() / losses[-1] if losses[-1] >= FEWEST else np.inf
            losses *= 1.0 - fading
            losses[-1] += 1.0
            for k in range(len(weights)):
                losses[k] += min((predicted[k, x] - values[x]) ** 2, most)


def mix_experts_reference(predicted: Any, values: Any, fading: float, losses: Any, mixed: Any) -> None:
    """Readable twin of `mix_experts`."""
    for x, value in enumerate(values):
        least = losses[:-1].min()
        weights = np.exp(-(losses[:-1] - least) / (2 * max(least / max(losses[-1], 1.0), 1e-300)))
        mixed[x] = weights @ predicted[:, x] / weights.sum()
        if not np.isnan(mixed[x]):
            most = MOST_USUAL * least / losses[-1] if losses[-1] >= FEWEST else np.inf
            errors = np.minimum((predicted[:, x] - value) ** 2, most)
            losses[:] = (1 - fading) * losses + np.append(errors, 1.0)
