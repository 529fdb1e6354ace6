"""Labels of rows and columns: encoding ids as 0-based codes, which every reader shares, and looking labels up."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefill.arrays import Indices, IntArray
from surefill.data.compact import PIECE
from surefill.data.groups import index_type_for
from surefill.errors import InputError
from surefill.inputs import check_text

LARGEST_EXACT = 2.0**53
"""Whole numbers up to here are exact as floats; a larger id may have been rounded on its way into one."""


LONGEST_FIXED = 128
"""Signs up to which text is held in arrays of fixed width, 512 bytes a label: names and titles are shorter, and one id
of 4096 signs among 100,000 would make 1.6 GB of them."""


TEXT = "UO"
"""Numpy's kinds of arrays that hold text labels, of fixed width and of any."""


WHOLE = re.compile(r"(-?[1-9]\d{0,14}|0)(?:\.0+)?")
"""A whole number as text, or as the float that a column of integers turns into where one is missing: 196.0."""


class EncodedIds(NamedTuple):
    """The distinct ids of an axis in sorted order, and the position of each observation's id among them."""

    labels: NDArray[Any]
    codes: IntArray


class GrownLabels(NamedTuple):
    """Positions of labels, and all labels of an axis once new ones are added; None where there are only positions."""

    positions: Indices
    labels: NDArray[Any] | None
    size: int


def encode_integers(ids: NDArray[np.integer[Any]]) -> EncodedIds:
    """Encode integer ids, by counting where their range is small and by sorting where it is not."""
    lowest, highest = int(ids.min()), int(ids.max())
    # A table over the range costs no more than a few passes over the ids while it is at most about as long as they are.
    if highest - lowest > 4 * len(ids) + 1024:
        labels, codes = np.unique(ids, return_inverse=True)
        return EncodedIds(labels, codes.astype(index_type_for(len(labels))))
    present = np.zeros(highest - lowest + 1, dtype=bool)
    for here in _pieces(len(ids)):
        present[(ids[here] - ids.dtype.type(lowest)).astype(np.int64, copy=False)] = True
    position = (np.cumsum(present) - 1).astype(index_type_for(len(present)))
    found: NDArray[Any] = np.empty(len(ids), dtype=position.dtype)
    for here in _pieces(len(ids)):
        found[here] = position[(ids[here] - ids.dtype.type(lowest)).astype(np.int64, copy=False)]
    return EncodedIds((np.flatnonzero(present) + lowest).astype(ids.dtype), found)


def _pieces(length: int) -> list[slice]:
    return [slice(first, first + PIECE) for first in range(0, length, PIECE)]


def merge_encoded(parts: Sequence[EncodedIds]) -> EncodedIds | None:
    """Merge ids that were encoded part by part; None if some parts are integers and others text.

    >>> merge_encoded([EncodedIds(np.array([7, 9]), np.array([1, 0])), EncodedIds(np.array([8, 9]), np.array([1, 1]))])
    EncodedIds(labels=array([7, 8, 9]), codes=array([2, 0, 2, 2], dtype=int32))
    """
    merged = merge_labels([part.labels for part in parts])
    if merged is None:
        return None
    labels, places = merged
    codes: NDArray[Any] = np.empty(sum(len(part.codes) for part in parts), dtype=index_type_for(len(labels)))
    first = 0
    for part, place in zip(parts, places, strict=True):
        codes[first : first + len(part.codes)] = place[part.codes]
        first += len(part.codes)
    return EncodedIds(labels, codes)


def merge_labels(parts: Sequence[NDArray[Any]]) -> tuple[NDArray[Any], list[IntArray]] | None:
    """All labels of the parts, sorted, and where those of each part are; None if some are integers and others text.

    >>> labels, places = merge_labels([np.array([7, 9]), np.array([8, 9])])
    >>> labels, places[1]
    (array([7, 8, 9]), array([1, 2], dtype=int32))
    """
    if len({labels.dtype.kind in "iu" for labels in parts}) > 1:
        return None
    merged = np.unique(np.concatenate(parts))
    return merged, [np.searchsorted(merged, labels).astype(index_type_for(len(merged))) for labels in parts]


def text_array(texts: Sequence[str]) -> NDArray[Any]:
    """Texts as an array of fixed width, or, where one is long, of objects, each as long as it is.

    What is no text is refused: arrays of fixed width drop zeros at the end, and two labels would become one.

    >>> text_array(["ann", "bob"]).dtype, text_array(["ann", "b" * 200]).dtype
    (dtype('<U3'), dtype('O'))
    """
    for text in texts:
        check_text("the label", text)
    longest = max(map(len, texts), default=0)
    return np.array(texts, dtype=np.str_ if longest <= LONGEST_FIXED else object)


def label_array(given: ArrayLike) -> NDArray[Any]:
    """Labels as they are given, texts of a list each as long as it is; InputError where one is missing.

    >>> label_array(["ann", "bob"]).dtype, label_array([7, 9]).dtype
    (dtype('<U3'), dtype('int64'))
    """
    if isinstance(given, list | tuple) and all(isinstance(label, str) for label in given):
        return text_array(given)
    try:
        array = np.array(given)
    except ValueError as error:
        raise InputError(f"labels must be text or numbers: {error}.") from None
    if array.dtype == object and any(label is None or label != label for label in array.ravel().tolist()):
        raise InputError("labels must be text or numbers; one is missing (None or NaN).")
    return array


def as_text(labels: NDArray[Any]) -> NDArray[Any]:
    """Labels of any kind as text.

    >>> as_text(np.array([196, 22]))
    array(['196', '22'], dtype='<U3')
    """
    short = labels.dtype.kind == "U" and labels.itemsize <= 4 * LONGEST_FIXED
    return labels if short else text_array([str(label) for label in labels.tolist()])


def plain(label: Any) -> Any:
    """One label as Python's own number or text."""
    return label.item() if isinstance(label, np.generic) else label


def encode_names(names: Sequence[str], codes: IntArray) -> EncodedIds:
    """Encode names in sorted order, given the ``codes`` of the observations in the order of ``names``."""
    labels, position = np.unique(text_array(names), return_inverse=True)
    return EncodedIds(labels, position[codes])


def whole_numbers(names: Sequence[str]) -> NDArray[np.int64] | None:
    """The integers that all ``names`` are, written as integers or as floats; None where one is neither.

    >>> whole_numbers(["22", "196.0"]), whole_numbers(["22", "0196"]), whole_numbers(["1.5"])
    (array([ 22, 196]), None, None)
    """
    found = [match[1] if (match := WHOLE.fullmatch(name)) else None for name in names]
    return None if None in found else np.array(found, dtype=np.int64)


def texts_one_by_one(labels: NDArray[Any]) -> NDArray[Any]:
    """Labels as text, a whole number with decimals as the number, whatever the other labels are.

    A stream sees some labels at a time: what one is called must not depend on which.

    >>> texts_one_by_one(np.array(["ann", "196.0", "0196", "1.5"])).tolist()
    ['ann', '196', '0196', '1.5']
    """
    texts = as_text(labels)
    if labels.dtype.kind in "iu":
        return texts
    found = ((text, WHOLE.fullmatch(text) if "." in text else None) for text in texts.tolist())
    return text_array([text if match is None else match[1] for text, match in found])


class LabelIndex:
    """Look-up of labels among those of all rows, or of all columns; without labels, positions are looked up.

    A label is what its text says: 196, 196.0 and "196" are one, whether ids are stored as integers or as text, and
    "0196" is another. The labels are sorted once, on the first look-up; observations and all parts selected from them
    share the index.

    Parameters
    ----------
    kind : "row" or "column", for errors.
    labels : the label of every row or column; None where they have only positions.
    size : how many rows or columns there are.

    Examples
    --------
    >>> index = LabelIndex("row", np.array([196, 22]), 2)
    >>> index.find([22, 196]), index.find(["196"]), index.locate([0, 22])
    (array([1, 0]), array([0]), array([-1,  1]))
    """

    def __init__(self, kind: str, labels: NDArray[Any] | None, size: int) -> None:
        self._kind, self._labels, self._size = kind, labels, size

    @cached_property
    def _order(self) -> Indices:
        return np.argsort(np.asarray(self._labels))

    def find(self, wanted: ArrayLike) -> Indices:
        """Positions of the ``wanted`` labels; InputError where one is unknown."""
        given = np.atleast_1d(np.asarray(wanted))
        index = self.locate(given)
        unknown = np.flatnonzero(index < 0)
        if unknown.size:
            item = given[unknown[0]]
            raise self._unknown(plain(item))
        return index

    def locate(self, wanted: ArrayLike) -> Indices:
        """Positions of the ``wanted`` labels, -1 where one is unknown; InputError where one cannot be a label."""
        given = np.atleast_1d(np.asarray(wanted))
        if given.ndim != 1:
            raise InputError(f"{self._kind}s must be one-dimensional; got {given.ndim} dimensions{self._example}.")
        if given.size == 0:
            return np.zeros(0, dtype=np.int64)
        if self._labels is None:
            number, exists = self._as_integers(given, np.dtype(np.int64))
            return np.where(exists & (number >= 0) & (number < self._size), number, -1)
        labels = self._labels
        if labels.dtype.kind in "iu":
            key, exists = self._as_integers(given, labels.dtype)
        elif labels.dtype.kind in TEXT:
            key, exists = self._as_text(given), np.ones(len(given), dtype=bool)
        else:
            key, exists = self._as_others(given, labels.dtype)
        place = np.searchsorted(labels, key, sorter=self._order)
        index = self._order[np.minimum(place, len(labels) - 1)]
        return np.where(exists & (labels[index] == key), index, -1)

    def grown(self, wanted: ArrayLike) -> GrownLabels:
        """Positions of the ``wanted`` labels, those that are new numbered on from the last in sorted order.

        >>> LabelIndex("row", np.array([196, 22]), 2).grown([22, 7, 300, 7])
        GrownLabels(positions=array([1, 2, 3, 2]), labels=array([196,  22,   7, 300]), size=4)
        """
        given = np.atleast_1d(np.asarray(wanted))
        index = self.locate(given)
        new = index < 0
        if not new.any():
            return GrownLabels(index, self._labels, self._size)
        fresh, place = np.unique(self._as_new(given[new]), return_inverse=True)
        index[new] = self._size + place
        labels = None if self._labels is None else np.concatenate([self._labels, fresh])
        return GrownLabels(index, labels, self._size + len(fresh))

    def _as_new(self, given: NDArray[Any]) -> NDArray[Any]:
        """Unknown labels as the type that the known ones have; without labels, the positions that follow."""
        labels = self._labels
        if labels is not None and labels.dtype.kind not in "iu":
            return self._as_text(given) if labels.dtype.kind in TEXT else self._as_others(given, labels.dtype)[0]
        number, exists = self._as_integers(given, np.dtype(np.int64))
        if not exists.all():
            how = f"such as {plain(labels[0])!r}" if labels is not None else "positions counted from 0"
            item = given[np.argmin(exists)]
            raise InputError(f"{self._kind}s are whole numbers here, {how}; {str(item)!r} is not one.")
        if labels is None and not np.array_equal(np.unique(number), self._size + np.arange(len(np.unique(number)))):
            raise InputError(
                f"{self._kind}s have no labels here: new ones must be numbered on from {self._size}, without gaps; got "
                f"{int(number.min())} to {int(number.max())}."
            )
        return number

    def _as_integers(self, given: NDArray[Any], dtype: np.dtype[Any]) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        """The integers that the given labels name, and which of them do name one that the type holds."""
        if given.dtype.kind == "f":
            given = self._whole(given)
        if given.dtype.kind in "iu":
            number = given.astype(dtype)
            return number, number == given
        text = self._as_text(given)
        try:
            number = text.astype(dtype)
        except (ValueError, OverflowError):  # some name no integer; one by one is slower
            text = np.array([match[1] if (match := WHOLE.fullmatch(item)) else item for item in text.tolist()])
            named = np.fromiter((_is_integer(item, dtype) for item in text.tolist()), dtype=bool, count=len(text))
            return np.where(named, text, "0").astype(dtype), named
        return number, number.astype(np.str_) == text

    def _as_text(self, given: NDArray[Any]) -> NDArray[Any]:
        """The text of the given labels."""
        kind = given.dtype.kind
        if kind == "U":
            return given
        if kind in "iuT":
            return given.astype(np.str_)
        if kind == "f":
            return self._whole(given).astype(np.str_)
        if kind == "O":
            return text_array([self._text_of(item) for item in given.tolist()])
        raise self._no_label(given[0].item())

    def _whole(self, given: NDArray[Any]) -> NDArray[np.int64]:
        """Floats that are whole numbers, and surely the ones meant."""
        bad = np.flatnonzero(~((np.abs(given) <= LARGEST_EXACT) & (given == np.round(given))))
        if bad.size:
            raise self._no_label(given[bad[0]].item())
        return given.astype(np.int64)

    def _text_of(self, item: Any) -> str:
        if isinstance(item, str):
            return str(item)
        whole = isinstance(item, Integral) or (
            isinstance(item, float) and abs(item) <= LARGEST_EXACT and item.is_integer()
        )
        if not whole or isinstance(item, bool):
            raise self._no_label(item)
        return str(int(item))

    def _as_others(self, given: NDArray[Any], dtype: np.dtype[Any]) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        """Dates and the like, compared as what they are."""
        try:
            return given.astype(dtype), np.ones(len(given), dtype=bool)
        except (ValueError, TypeError):
            raise self._no_label(given[0].item()) from None

    def _no_label(self, item: Any) -> InputError:
        return InputError(f"{self._kind}s are asked for by whole numbers or text; got {item!r}{self._example}.")

    @property
    def _example(self) -> str:
        """How text is to be given that stands for something else in a table, such as a date or a pair of names."""
        text = self._labels is not None and len(self._labels) > 0 and self._labels.dtype.kind in TEXT
        return f"; a label here is a text such as {plain(self._labels[0])!r}" if text else ""  # type: ignore[index]

    def _unknown(self, item: Any) -> InputError:
        if self._labels is None:
            return InputError(
                f"there is no {self._kind} {item!r}: {self._kind}s have no labels here and are counted from 0 to "
                f"{self._size - 1}."
            )
        return InputError(
            f"there is no {self._kind} labelled {item!r}: {self._kind}s are asked for by label here, such as "
            f"{plain(self._labels[0])!r}, not by position."
        )


def _is_integer(text: str, dtype: np.dtype[Any]) -> bool:
    """Whether ``text`` is how an integer that the type holds is written."""
    if not (text.isascii() and text.removeprefix("-").isdigit()):
        return False
    number, limits = int(text), np.iinfo(dtype)
    return str(number) == text and bool(limits.min <= number <= limits.max)
