"""Sums taken in the order of a stream, so that batches of any size add up to the same bits."""

from __future__ import annotations

from typing import Any

import numpy as np

from surefill.kernels.compile import compiled


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
