"""Counting sort: entries in the order of their small whole keys, in two passes and without comparing any."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from surefill.arrays import IntArray
from surefill.kernels.compile import compiled


@compiled
def count_keys(keys: IntArray, lowest: int, starts: NDArray[np.int64]) -> bool:
    """Add how often lowest + g occurs among the keys to ``starts[g + 1]``; whether the keys never fall."""
    rising = True
    before = lowest
    for t in range(len(keys)):
        key = keys[t]
        rising = rising and key >= before
        before = key
        starts[key - lowest + 1] += 1
    return rising


def count_keys_reference(keys: IntArray, lowest: int, starts: NDArray[np.int64]) -> bool:
    """The readable twin of :func:`count_keys`."""
    starts[1:] += np.bincount(keys - lowest, minlength=len(starts) - 1)
    return bool((np.diff(keys) >= 0).all())


@compiled
def place_keys(keys: IntArray, lowest: int, places: NDArray[np.int64], entries: IntArray, order: IntArray) -> None:
    """Write the entries in the order of their keys into ``order``, entries of one key in the order they have.

    ``places[g]`` says where the next entry with key lowest + g goes, and is moved on; the keys are those of
    ``entries``, or of all entries where that is empty.
    """
    several = len(entries) > 0
    for t in range(len(order)):
        entry = entries[t] if several else t
        g = keys[entry] - lowest
        order[places[g]] = entry
        places[g] += 1


def place_keys_reference(
    keys: IntArray, lowest: int, places: NDArray[np.int64], entries: IntArray, order: IntArray
) -> None:
    """The readable twin of :func:`place_keys`."""
    chosen = entries if len(entries) else np.arange(len(order))
    order[:] = chosen[np.argsort(keys[chosen], kind="stable")]
    places += np.bincount(keys[chosen] - lowest, minlength=len(places))


@compiled
def gather(values: NDArray[Any], order: IntArray, taken: NDArray[Any]) -> None:
    """``taken[t] = values[order[t]]``, without the 64-bit copy that numpy makes of a 32-bit order."""
    for t in range(len(order)):
        taken[t] = values[order[t]]


def gather_reference(values: NDArray[Any], order: IntArray, taken: NDArray[Any]) -> None:
    """The readable twin of :func:`gather`."""
    taken[:] = values[order]


@compiled
def rises_within(starts: NDArray[np.int64], others: IntArray) -> bool:
    """Whether the other indices rise from entry to entry of each group."""
    for g in range(len(starts) - 1):
        for t in range(starts[g] + 1, starts[g + 1]):
            if others[t] <= others[t - 1]:
                return False
    return True


def rises_within_reference(starts: NDArray[np.int64], others: IntArray) -> bool:
    """The readable twin of :func:`rises_within`."""
    return all((np.diff(group) > 0).all() for group in np.split(others, starts[1:-1]))


@compiled
def names_a_cell_twice(starts: NDArray[np.int64], others: IntArray, last: NDArray[np.int64]) -> bool:
    """Whether some group holds the same other index twice; ``last`` has room for each of those and starts at -1."""
    for g in range(len(starts) - 1):
        for t in range(starts[g], starts[g + 1]):
            if last[others[t]] == g:
                return True
            last[others[t]] = g
    return False


def names_a_cell_twice_reference(starts: NDArray[np.int64], others: IntArray, last: NDArray[np.int64]) -> bool:
    """The readable twin of :func:`names_a_cell_twice`."""
    groups = np.split(others, starts[1:-1])
    return any(len(np.unique(group)) < len(group) for group in groups)


@compiled
def find_in_groups(
    first: NDArray[np.int64],
    last: NDArray[np.int64],
    others: IntArray,
    order: IntArray,
    wanted: IntArray,
    found: NDArray[np.int64],
) -> None:
    """For each t the entry among first_t, ..., last_t - 1 that has the other index ``wanted[t]``, or -1, by halving.

    Entries stand in the order of their other index: entry ``order[s]`` at place s, or entry s where ``order`` is empty.
    """
    ordered = len(order) == 0
    for t in range(len(wanted)):
        low, high = first[t], last[t]
        while low < high:
            middle = (low + high) // 2
            if others[middle if ordered else order[middle]] < wanted[t]:
                low = middle + 1
            else:
                high = middle
        found[t] = -1
        if low < last[t]:
            entry = low if ordered else order[low]
            if others[entry] == wanted[t]:
                found[t] = entry


def find_in_groups_reference(
    first: NDArray[np.int64],
    last: NDArray[np.int64],
    others: IntArray,
    order: IntArray,
    wanted: IntArray,
    found: NDArray[np.int64],
) -> None:
    """The readable twin of :func:`find_in_groups`."""
    entries = order if len(order) else np.arange(len(others))
    for t, other in enumerate(wanted):
        here = entries[first[t] : last[t]]
        found[t] = next((entry for entry in here if others[entry] == other), -1)
