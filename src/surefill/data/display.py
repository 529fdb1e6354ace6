"""What notebooks show of observations."""

from __future__ import annotations

import numpy as np

from surefill.data.observations import Observations
from surefill.notebook import table

SHOWN = 5


def observations_table(seen: Observations) -> str:
    """How much was seen, and the first few cells by label."""
    first = np.arange(min(len(seen), SHOWN))
    rows, cols = seen.rows[first], seen.cols[first]
    labels = (
        rows if seen.row_labels is None else seen.row_labels[rows],
        cols if seen.col_labels is None else seen.col_labels[cols],
    )
    lines = list(zip(*labels, seen.values[first].tolist(), seen.counts[first].tolist(), strict=True))
    (m, n), (low, high) = seen.shape, seen.bounds
    differing = f"; repeats differ in {seen.disagreements:,} of them" if seen.disagreements else ""
    more = f" The first {SHOWN}:" if len(seen) > SHOWN else ""
    sentence = (
        f"{len(seen):,} of {m * n:,} cells were seen, in {seen.n_draws:,} draws, with values in [{low:g}, {high:g}]"
        f"{differing}.{more}"
    )
    return table(f"Observations of {m:,} rows and {n:,} columns", sentence, (*seen.names, "draws"), lines)
