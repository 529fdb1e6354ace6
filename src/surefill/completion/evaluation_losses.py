"""The paper's mean squared errors: over the sample, over a distribution of cells, and over a confidence.

All are weighted means of (M-hat_x - M*_x)^2, in the user's squared units; none forms an m x n array.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefill.arrays import row_blocks
from surefill.completion.base import Completion
from surefill.data import Observations
from surefill.errors import InputError

BLOCK_CELLS = 1_000_000
"""Cells of a block of rows: several arrays of this size are held at once, 8 MB each."""

CellValues = ArrayLike | Callable[[NDArray[np.int64], NDArray[np.int64]], Any] | Any
"""A number for every cell: an m x n array, a function (rows, cols) -> block, or an object with ``block``."""


def sample_loss(completion: Completion, observations: Observations) -> float:
    """(1/N) sum_t (M-hat_{x_t} - y_t)^2 over all draws, the empirical risk; repeats count as often as they were drawn.

    >>> from surefill.completion import ExternalCompletion
    >>> seen = Observations([0, 0, 1], [0, 1, 0], [1.0, 2.0, 3.0])
    >>> sample_loss(ExternalCompletion(lambda rows, cols: 2.0 + 0 * rows).fit(seen), seen)
    0.6666666666666666
    """
    errors = observations.squared_errors(completion.at(observations.rows, observations.cols))
    return float(np.average(errors, weights=observations.counts))


def distribution_loss(completion: Completion, truth: CellValues, weights: CellValues | None = None) -> float:
    """sum_x nu_x (M-hat_x - M*_x)^2 / sum_x nu_x, nu uniform over all cells where no weights are given.

    With the confidence C as weights this is the error that the paper bounds, E over nu_C. ``truth`` and ``weights`` are
    m x n arrays, functions (rows, cols) -> block, or objects with ``block`` such as a completion or a confidence; they
    are read in blocks of rows.

    Examples
    --------
    >>> import surefill as sf
    >>> import numpy as np
    >>> seen = sf.Observations([0, 1], [0, 1], [0.0, 1.0])
    >>> completion = sf.completion.ExternalCompletion(lambda rows, cols: 1.0 * rows).fit(seen)
    >>> distribution_loss(completion, truth=np.zeros((2, 2)))
    0.5
    """
    m, n = completion.shape
    cols, total, mass = np.arange(n), 0.0, 0.0
    for block in row_blocks(m, n, BLOCK_CELLS):
        rows = np.arange(block.start, block.stop)
        errors = (completion.block(rows, cols) - _block("truth", truth, rows, cols, (m, n))) ** 2
        nu = np.ones_like(errors) if weights is None else _block("weights", weights, rows, cols, (m, n))
        if (nu < 0).any():
            raise InputError("weights must be 0 or more.")
        total, mass = total + float(np.sum(nu * errors)), mass + float(nu.sum())
    if mass == 0:
        raise InputError("weights must not all be 0: the loss over nothing is not defined.")
    return total / mass


def confidence_loss(completion: Completion, truth: CellValues, confidence: CellValues) -> float:
    """sum_x C_x (M-hat_x - M*_x)^2 / |C|, what Definition 1 of the paper asks to be at most eps.

    Examples
    --------
    >>> import surefill as sf
    >>> import numpy as np
    >>> seen = sf.Observations([0, 1], [0, 1], [0.0, 1.0])
    >>> completion = sf.completion.ExternalCompletion(lambda rows, cols: 1.0 * rows).fit(seen)
    >>> confidence_loss(completion, truth=np.zeros((2, 2)), confidence=np.array([[1.0, 0.5], [0.25, 0.25]]))
    0.25
    """
    return distribution_loss(completion, truth, confidence)


def _block(
    name: str, cells: CellValues, rows: NDArray[np.int64], cols: NDArray[np.int64], shape: tuple[int, int]
) -> NDArray[np.float64]:
    if hasattr(cells, "block"):
        found = cells.block(rows, cols)
    elif callable(cells):
        found = cells(rows, cols)
    else:
        whole = np.asarray(cells, dtype=np.float64)
        if whole.shape != shape:
            raise InputError(f"{name} must be {shape[0]} x {shape[1]} like the completion; got {whole.shape}.")
        found = whole[rows]
    block = np.asarray(found, dtype=np.float64)
    if block.shape != (len(rows), len(cols)) or not np.isfinite(block).all():
        raise InputError(f"{name} must give one finite number per cell.")
    return block
