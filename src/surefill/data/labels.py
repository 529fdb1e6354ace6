"""Labels of rows and columns: encoding ids as 0-based codes, which every reader shares, and looking labels up."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefill.arrays import Indices
from surefill.errors import InputError


class EncodedIds(NamedTuple):
    """The distinct ids of an axis in sorted order, and the position of each observation's id among them."""

    labels: NDArray[Any]
    codes: Indices


def encode_integers(ids: NDArray[np.integer[Any]]) -> EncodedIds:
    """Encode integer ids, by counting where their range is small and by sorting where it is not."""
    lowest, highest = int(ids.min()), int(ids.max())
    # A table over the range costs no more than a few passes over the ids while it is at most about as long as they are.
    if highest - lowest > 4 * len(ids) + 1024:
        labels, codes = np.unique(ids, return_inverse=True)
        return EncodedIds(labels, codes)
    offsets = (ids - ids.dtype.type(lowest)).astype(np.int64, copy=False)
    present = np.zeros(highest - lowest + 1, dtype=bool)
    present[offsets] = True
    position = np.cumsum(present) - 1
    return EncodedIds((np.flatnonzero(present) + lowest).astype(ids.dtype), position[offsets])


def encode_names(names: Sequence[str], codes: Indices) -> EncodedIds:
    """Encode names in sorted order, given the ``codes`` of the observations in the order of ``names``."""
    labels, position = np.unique(np.array(names, dtype=np.str_), return_inverse=True)
    return EncodedIds(labels, position[codes])


class LabelIndex:
    """Look-up of labels among those of all rows, or of all columns.

    The labels are sorted once, on the first look-up; observations and all parts selected from them share the index.

    Parameters
    ----------
    kind : "row" or "column", for errors.
    labels : the label of every row or column; None where they have only positions.
    size : how many rows or columns there are.
    """

    def __init__(self, kind: str, labels: NDArray[Any] | None, size: int) -> None:
        self._kind, self._labels, self._size = kind, labels, size

    @cached_property
    def _order(self) -> Indices:
        return np.argsort(np.asarray(self._labels))

    def find(self, wanted: ArrayLike) -> Indices:
        """Positions of the ``wanted`` labels; InputError where one is unknown or of another type."""
        labels = self._labels
        if labels is None:
            raise InputError(f"these observations have no {self._kind} labels; use indices from 0 to {self._size - 1}.")
        given = np.atleast_1d(np.asarray(wanted))
        try:
            # Text of any length is compared as it is: a cast to the labels' own type would cut longer text.
            cast = given.astype(labels.dtype.kind if labels.dtype.kind == "U" else labels.dtype)
            lossy = labels.dtype.kind != "U" and given.dtype.kind in "fO" and bool(np.any(cast != given))
        except (ValueError, TypeError, OverflowError):
            lossy = True
        if lossy:
            raise InputError(f"{self._kind} labels are {labels.dtype} here, such as {labels[0]}; got {wanted!r}.")
        place = np.searchsorted(labels, cast, sorter=self._order)
        index = self._order[np.minimum(place, len(labels) - 1)]
        unknown = np.flatnonzero(labels[index] != cast)
        if unknown.size:
            raise InputError(f"there is no {self._kind} labelled {cast[unknown[0]].item()!r}.")
        return index.astype(np.int64)
