"""Labels of rows and columns encoded as 0, 1, 2, ... in the order in which they first appear."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefill.arrays import as_stored
from surefill.data.labels import label_array, text_array
from surefill.errors import InputError

KINDS = {"i": "whole numbers", "U": "text"}
"""Kinds of labels by numpy's ``dtype.kind``."""


class LabelEncoder:
    """Incremental label encoder: labels, all text or all whole numbers, to codes 0, 1, 2, ... and back.

    Only :meth:`learn` adds labels; :meth:`find` never does.
    """

    def __init__(self, axis: str) -> None:
        self.axis = axis
        self._kind = ""
        self._code: dict[Any, int] = {}

    def __len__(self) -> int:
        return len(self._code)

    def find(self, labels: ArrayLike) -> NDArray[np.int64]:
        """Codes of ``labels``, -1 for those never learnt."""
        distinct, inverse = self._distinct(labels)[:2]
        return self._codes(distinct)[inverse]

    def check(self, labels: ArrayLike) -> None:
        """Refuse, before anything is learnt, what cannot be a label here."""
        self._distinct(labels)

    def learn(self, labels: ArrayLike) -> NDArray[np.int64]:
        """Codes of ``labels``, new ones added in the order in which they first appear."""
        distinct, inverse, first, kind = self._distinct(labels)
        self._kind = kind
        codes = self._codes(distinct)
        new = np.flatnonzero(codes < 0)
        for k in new[np.argsort(first[new])].tolist():
            codes[k] = self._code[distinct[k]] = len(self._code)
        return codes[inverse]

    def _codes(self, distinct: list[Any]) -> NDArray[np.int64]:
        return np.array([self._code.get(label, -1) for label in distinct], dtype=np.int64)

    def _distinct(self, labels: ArrayLike) -> tuple[list[Any], NDArray[np.int64], NDArray[np.int64], str]:
        """Distinct labels, where each label is among them, where each first appeared, and their kind."""
        array = np.atleast_1d(label_array(labels))
        if array.dtype == object:
            array = self._from_objects(array)
        if array.dtype.kind == "u" and array.size and array.max() <= np.iinfo(np.int64).max:
            array = array.astype(np.int64)
        kind = "U" if array.dtype == object else array.dtype.kind  # text of any length
        if array.ndim != 1 or kind not in KINDS:
            raise InputError(
                f"{self.axis} labels must be text or whole numbers, one per observation; got {array.dtype}."
            )
        if self._kind and kind != self._kind:
            raise InputError(f"{self.axis} labels are {KINDS[self._kind]} here; got {array.tolist()[0]!r}.")
        found, first, inverse = np.unique(array, return_index=True, return_inverse=True)
        return found.tolist(), inverse, first, kind

    def _from_objects(self, array: NDArray[Any]) -> NDArray[Any]:
        kinds = {str if isinstance(label, str) else type(label) for label in array.ravel().tolist()}
        if kinds != {str} and kinds != {int}:
            names = ", ".join(sorted(kind.__name__ for kind in kinds))
            raise InputError(f"{self.axis} labels must be all text or all whole numbers; got {names}.")
        if kinds == {int}:
            return array.astype(np.int64)
        return text_array(array.tolist()) if array.ndim == 1 else array

    def state(self) -> dict[str, Any]:
        """The labels in order: whole numbers as they are, text as concatenated UTF-8 and where each ends."""
        if self._kind != "U":
            return {"numbers": np.array(list(self._code), dtype=np.int64)}
        encoded = [label.encode("utf-8", "surrogatepass") for label in self._code]
        ends = np.cumsum([len(label) for label in encoded], dtype=np.int64)
        return {"text": np.frombuffer(b"".join(encoded), dtype=np.uint8), "ends": ends}

    def restore(self, state: dict[str, Any]) -> Self:
        """Go on from a :meth:`state`; returns the encoder itself."""
        labels: list[Any]
        if "numbers" in state:
            numbers = as_stored(state["numbers"], np.dtype(np.int64)).ravel()
            labels, self._kind = numbers.tolist(), "i" if len(numbers) else ""
        else:
            text = as_stored(state["text"], np.dtype(np.uint8)).tobytes()
            ends = as_stored(state["ends"], np.dtype(np.int64)).ravel().tolist()
            if sorted(ends) != ends or (ends and not 0 <= ends[0] <= ends[-1] == len(text)):
                raise InputError(f"{self.axis} labels end outside of their text.")
            starts = [0, *ends[:-1]]
            labels = [text[a:b].decode("utf-8", "surrogatepass") for a, b in zip(starts, ends, strict=True)]
            self._kind = "U"
        self._code = {label: code for code, label in enumerate(labels)}
        if len(self._code) != len(labels):
            raise InputError(f"{self.axis} labels must be distinct.")
        return self

    @property
    def labels(self) -> list[Any]:
        """The labels in the order of their codes."""
        return list(self._code)
