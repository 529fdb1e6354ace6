"""Which cells of a grid are kept, {risk <= threshold, C >= floor, w (L - tolerance) <= most}, and which nearly so."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from surefill.arrays import Array
from surefill.kernels.compile import compiled_terms


@compiled_terms
def keep_on_grid(
    risk: Array,
    confidence: Array,
    weight: Array,
    largest_loss: Array,
    tolerance: float,
    limits: Array,
    margins: Array,
    keep: NDArray[np.bool_],
    close: NDArray[np.bool_],
) -> None:
    """Write which cells are kept, and which are within a margin of a limit.

    ``limits`` and ``margins`` are those of risk, confidence and exposure; the first and the last margin are relative.
    """
    most_risk, floor, most = limits[0], limits[1], limits[2]
    near_risk, near_floor, near_most = abs(limits[0]) * margins[0], margins[1], abs(limits[2]) * margins[2]
    for i in range(len(risk)):
        r, c, w, loss = risk[i], confidence[i], weight[i], largest_loss[i]
        kept, near = keep[i], close[i]
        for j in range(len(r)):
            exposure = w[j] * max(loss[j] - tolerance, 0.0)
            kept[j] = (r[j] <= most_risk) & (c[j] >= floor) & (exposure <= most)
            near[j] = (
                (abs(r[j] - most_risk) < near_risk)
                | (abs(c[j] - floor) < near_floor)
                | (abs(exposure - most) < near_most)
            )


def keep_on_grid_reference(
    risk: Array,
    confidence: Array,
    weight: Array,
    largest_loss: Array,
    tolerance: float,
    limits: Array,
    margins: Array,
    keep: NDArray[np.bool_],
    close: NDArray[np.bool_],
) -> None:
    """The readable twin of :func:`keep_on_grid`."""
    exposure = weight * np.maximum(largest_loss - tolerance, 0.0)
    keep[:] = (risk <= limits[0]) & (confidence >= limits[1]) & (exposure <= limits[2])
    near = margins * np.array([abs(limits[0]), 1.0, abs(limits[2])])
    off = (np.abs(table - limit) for table, limit in zip((risk, confidence, exposure), limits, strict=True))
    close[:] = np.any([away < margin for away, margin in zip(off, near, strict=True)], axis=0)
