"""Ids of rows and columns numbered from 0, their names kept: the step that every reader shares."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


class Axis(NamedTuple):
    """The distinct ids of an axis in sorted order, and the position of each observation's id among them."""

    labels: NDArray[Any]
    codes: NDArray[np.int64]


def index_integers(ids: NDArray[np.integer[Any]]) -> Axis:
    """Number integer ids, by counting where their range is small and by sorting where it is not."""
    lowest, highest = int(ids.min()), int(ids.max())
    if highest - lowest > 4 * len(ids) + 1024:
        labels, codes = np.unique(ids, return_inverse=True)
        return Axis(labels, codes)
    offsets = (ids - ids.dtype.type(lowest)).astype(np.int64, copy=False)
    present = np.zeros(highest - lowest + 1, dtype=bool)
    present[offsets] = True
    position = np.cumsum(present) - 1
    return Axis((np.flatnonzero(present) + lowest).astype(ids.dtype), position[offsets])


def index_names(names: Sequence[str], codes: NDArray[np.int64]) -> Axis:
    """Number names in sorted order, given the ``codes`` of the observations in the order of ``names``."""
    labels, position = np.unique(np.array(names, dtype=np.str_), return_inverse=True)
    return Axis(labels, position[codes])
