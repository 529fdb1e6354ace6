"""Hold out observations: at random, in folds, by whole rows, or by time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefill.arrays import Indices
from surefill.data.compact import PIECE
from surefill.data.observations import Observations
from surefill.errors import InputError, invalid_parameter

Seed = int | tuple[int, ...]
"""What a stream of random numbers begins with: a number, or numbers of which the later ones tell streams apart."""


def split_entries(
    observations: Observations, held_out: float = 0.2, random_state: Seed = 0
) -> tuple[Observations, Observations]:
    """(train, held out): a random share ``held_out`` of the cells, drawn without replacement.

    >>> seen = Observations([0, 0, 1, 1], [0, 1, 0, 1], [1.0, 2.0, 3.0, 4.0])
    >>> train, test = split_entries(seen, held_out=0.25)
    >>> len(train), len(test)
    (3, 1)
    """
    if not 0 < held_out < 1:
        raise invalid_parameter("split_entries", "held_out", "a share above 0 and below 1", held_out)
    if len(observations) < 2:
        raise InputError("splitting needs at least 2 observed cells; there is 1.")
    size = min(max(1, round(held_out * len(observations))), len(observations) - 1)
    chosen = np.zeros(len(observations), dtype=bool)
    chosen[np.random.default_rng(random_state).permutation(len(observations))[:size]] = True
    return observations.select(~chosen), observations.select(chosen)


def split_folds(
    observations: Observations, n_folds: int = 5, random_state: int = 0
) -> Iterator[tuple[Observations, Observations]]:
    """(train, held out) for each of ``n_folds`` disjoint random folds of the cells.

    Examples
    --------
    >>> import surefill as sf
    >>> seen = sf.Observations([0, 0, 1, 1], [0, 1, 0, 1], [1.0, 2.0, 3.0, 4.0])
    >>> [len(held_out) for train, held_out in sf.data.split_folds(seen, n_folds=2)]
    [2, 2]
    """
    if not 2 <= n_folds <= len(observations):
        raise invalid_parameter("split_folds", "n_folds", f"from 2 to {len(observations)}, the observed cells", n_folds)
    fold = fold_numbers(len(observations), n_folds, random_state)
    for k in range(n_folds):
        yield observations.select(fold != k), observations.select(fold == k)


def fold_numbers(n_cells: int, n_folds: int, random_state: int) -> NDArray[Any]:
    """A random fold from 0 to n_folds - 1 for each cell, folds of equal size."""
    numbers = np.arange(n_folds, dtype=np.uint8 if n_folds <= np.iinfo(np.uint8).max else np.int64)
    return np.random.default_rng(random_state).permutation(np.resize(numbers, n_cells))


def bernoulli_mask(n_cells: int, chance: float, random_state: Seed) -> NDArray[np.bool_]:
    """True for each cell independently with probability ``chance``.

    >>> bernoulli_mask(4, 0.5, random_state=0)
    array([False,  True,  True,  True])
    """
    rng, mask = np.random.default_rng(random_state), np.empty(n_cells, dtype=bool)
    for first in range(0, n_cells, PIECE):
        mask[first : first + PIECE] = rng.random(min(PIECE, n_cells - first)) < chance
    return mask


def split_rows(
    observations: Observations, held_out: float = 0.2, random_state: int = 0
) -> tuple[Observations, Observations]:
    """(train, held out): all cells of a random share of the present rows are held out.

    Examples
    --------
    >>> import surefill as sf
    >>> seen = sf.Observations([0, 0, 1, 1], [0, 1, 0, 1], [1.0, 2.0, 3.0, 4.0])
    >>> train, held_out = sf.data.split_rows(seen, held_out=0.5)
    >>> bool(set(train.rows.tolist()) & set(held_out.rows.tolist()))
    False
    """
    if not 0 < held_out < 1:
        raise invalid_parameter("split_rows", "held_out", "a share above 0 and below 1", held_out)
    present = observations.by_row.ids
    if len(present) < 2:
        raise InputError("leaving rows out needs at least 2 rows with observations; there is 1.")
    size = min(max(1, round(held_out * len(present))), len(present) - 1)
    chosen = np.random.default_rng(random_state).choice(present, size, replace=False)
    mask = np.isin(observations.rows, chosen)
    return observations.select(~mask), observations.select(mask)


def split_times(
    observations: Observations, times: ArrayLike, n_windows: int = 5
) -> Iterator[tuple[Observations, Observations]]:
    """(past, future) for each of ``n_windows`` expanding windows of time: train on the past, test on what came next.

    The cells in order of time are cut into n_windows + 1 blocks of about equal size. The k-th pair holds out the
    block after the first k, and what came before it is the past; later blocks are not used. Cells of one time are never
    parted.

    Parameters
    ----------
    times : when each cell was observed, in numbers or dates that numpy can sort.

    Examples
    --------
    >>> import surefill as sf
    >>> seen = sf.Observations([0, 0, 1, 1], [0, 1, 0, 1], [1.0, 2.0, 3.0, 4.0])
    >>> [(past.values.tolist(), future.values.tolist()) for past, future in sf.data.split_times(seen, [9, 3, 7, 8], 3)]
    [([2.0], [3.0]), ([2.0, 3.0], [4.0]), ([2.0, 3.0, 4.0], [1.0])]
    """
    block = time_blocks(times, n_windows)
    if len(block) != len(observations):
        raise InputError(f"times must have one item for each of the {len(observations)} cells; there are {len(block)}.")
    for k in range(1, n_windows + 1):
        yield observations.select(block < k), observations.select(block == k)


def time_blocks(times: ArrayLike, n_windows: int) -> Indices:
    """The block of each time, from 0 to n_windows: about equally many in each, equal times in one."""
    when = np.asarray(times)
    first_of_its_time = np.searchsorted(np.sort(when), when)
    block = first_of_its_time * (n_windows + 1) // max(1, len(when))
    if n_windows < 1 or len(np.unique(block)) <= n_windows:
        raise InputError(
            f"{len(np.unique(when))} different times cannot be cut into {n_windows + 1} blocks of about equal size, "
            f"one to begin with and one for each of {n_windows} windows; ask for fewer."
        )
    return block
