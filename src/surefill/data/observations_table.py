"""Observations as a small table, for notebooks."""

from __future__ import annotations

import numpy as np

from surefill.data.observations import Observations
from surefill.notebook import table

SHOWN = 5
"""Cells that a notebook shows: enough to recognise one's data."""


def as_html(seen: Observations) -> str:
    """How much was observed, and the first few cells by label."""
    first = np.arange(min(len(seen), SHOWN))
    rows, cols = seen.rows[first], seen.cols[first]
    names = seen.row_names(rows), seen.col_names(cols)
    lines = list(zip(*names, seen.values[first].tolist(), seen.counts[first].tolist(), strict=True))
    (m, n), (low, high) = seen.shape, seen.bounds
    differing = f"; repeats differ in {seen.disagreements:,} of them" if seen.disagreements else ""
    more = f" The first {SHOWN}:" if len(seen) > SHOWN else ""
    sentence = (
        f"{len(seen):,} of {m * n:,} cells were seen, in {seen.n_draws:,} draws, with values in [{low:g}, {high:g}]"
        f"{differing}.{more}"
    )
    return table(f"Observations of {m:,} rows and {n:,} columns", sentence, (*seen.names, "draws"), lines)
