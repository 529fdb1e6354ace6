"""Arrays that grow with a stream: room is doubled, so that a row costs a constant on average."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

SMALLEST_ROOM = 16


def with_room(array: NDArray[Any], size: int) -> NDArray[Any]:
    """``array`` itself if it has ``size`` rows, else a longer one that starts with it and goes on with zeros."""
    if len(array) >= size:
        return array
    longer = np.zeros((max(size, 2 * len(array), SMALLEST_ROOM), *array.shape[1:]), array.dtype)
    longer[: len(array)] = array
    return longer


def size_needed(index: NDArray[np.int64], present: int) -> int:
    """How many rows there are once the rows ``index`` are."""
    return max(present, int(index.max()) + 1) if len(index) else present
