"""Counting sort of entries by small integer keys, and searches in the groups that it makes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from surefill.arrays import IntArray
from surefill.kernels.compile import compiled


@compiled
def count_keys(keys: IntArray, lowest: int, starts: NDArray[np.int64]) -> bool:
    """Add the number of keys lowest + g to ``starts[g + 1]``, and return whether the keys are sorted."""
    is_sorted = True
    before = lowest
    for t in range(len(keys)):
        key = keys[t]
        is_sorted = is_sorted and key >= before
        before = key
        starts[key - lowest + 1] += 1
    return is_sorted


def count_keys_reference(keys: IntArray, lowest: int, starts: NDArray[np.int64]) -> bool:
    """The readable twin of :func:`count_keys`."""
    starts[1:] += np.bincount(keys - lowest, minlength=len(starts) - 1)
    return bool((np.diff(keys) >= 0).all())


@compiled
def place_keys(keys: IntArray, lowest: int, places: NDArray[np.int64], entries: IntArray, order: IntArray) -> None:
    """Write the entries, sorted by key and otherwise in their order, into ``order``.

    ``places[g]`` is where the next entry with key lowest + g goes, and is incremented. ``entries`` are the ones to
    sort; all where it is empty.
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
def place_values(
    keys: IntArray, lowest: int, places: NDArray[np.int64], values: NDArray[Any], taken: NDArray[Any]
) -> None:
    """Write the values, sorted by key and otherwise in their order, into ``taken``; ``places`` as in ``place_keys``."""
    for t in range(len(values)):
        g = keys[t] - lowest
        taken[places[g]] = values[t]
        places[g] += 1


def place_values_reference(
    keys: IntArray, lowest: int, places: NDArray[np.int64], values: NDArray[Any], taken: NDArray[Any]
) -> None:
    """The readable twin of :func:`place_values`."""
    taken[:] = values[np.argsort(keys, kind="stable")]
    places += np.bincount(keys - lowest, minlength=len(places))


@compiled
def gather(values: NDArray[Any], order: IntArray, taken: NDArray[Any]) -> None:
    """``taken[t] = values[order[t]]``, without the 64-bit copy that NumPy makes of a 32-bit order."""
    for t in range(len(order)):
        taken[t] = values[order[t]]


def gather_reference(values: NDArray[Any], order: IntArray, taken: NDArray[Any]) -> None:
    """The readable twin of :func:`gather`."""
    taken[:] = values[order]


@compiled
def is_sorted_within(starts: NDArray[np.int64], others: IntArray) -> bool:
    """Whether the other indices are strictly increasing within each group."""
    for g in range(len(starts) - 1):
        for t in range(starts[g] + 1, starts[g + 1]):
            if others[t] <= others[t - 1]:
                return False
    return True


def is_sorted_within_reference(starts: NDArray[np.int64], others: IntArray) -> bool:
    """The readable twin of :func:`is_sorted_within`."""
    return all((np.diff(group) > 0).all() for group in np.split(others, starts[1:-1]))


@compiled
def has_repeated_cells(starts: NDArray[np.int64], others: IntArray, last: NDArray[np.int64]) -> bool:
    """Whether a group holds the same other index twice; ``last``, one item per index, starts at -1."""
    for g in range(len(starts) - 1):
        for t in range(starts[g], starts[g + 1]):
            if last[others[t]] == g:
                return True
            last[others[t]] = g
    return False


def has_repeated_cells_reference(starts: NDArray[np.int64], others: IntArray, last: NDArray[np.int64]) -> bool:
    """The readable twin of :func:`has_repeated_cells`."""
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
    """The entry among first_t, ..., last_t - 1 that has the other index ``wanted[t]``, or -1, by binary search.

    Entries are sorted by their other index: entry ``order[s]`` is at place s, or entry s where ``order`` is empty.
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
