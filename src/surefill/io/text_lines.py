"""Blocks of tables as delimited text, without an object for each cell."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from surefill.io.files import Block, Coded
from surefill.kernels.decimal_text import WIDTH, format_exactly, format_to_six, merge_columns

DIGITS = (2, 4, 8, 15)
"""Digits after the point that exact numbers are tried with; most have a few."""

MANY_LINES = 64
"""Lines from which arrays of bytes are faster than objects."""

FEW = 0.05
"""Share of the numbers of a column that may be left to Python before more digits are tried."""


def format_lines(block: Block, delimiter: str, exact: Collection[str]) -> bytes:
    """All lines of a block; numbers with six significant digits, in ``exact`` columns as many as give them back.

    >>> format_lines({"user": np.array(["a,b", "c"]), "risk": np.array([1 / 3, np.nan])}, ",", ())
    b'"a,b",0.333333\\nc,\\n'
    """
    if len(next(iter(block.values()))) < MANY_LINES:
        return format_lines_reference(block, delimiter, exact)
    return _joined([_TextColumn.of(column, delimiter, name in exact) for name, column in block.items()], delimiter)


def format_lines_reference(block: Block, delimiter: str, exact: Collection[str]) -> bytes:
    """The readable twin of :func:`format_lines`: all lines by one formatting operation."""
    columns = [_cells(column, delimiter, name in exact) for name, column in block.items()]
    template = delimiter.join(["%s"] * len(columns)) + "\n"
    return "".join(template % line for line in zip(*columns, strict=True)).encode()


def _cells(column: NDArray[Any] | Coded, delimiter: str, exact: bool) -> list[str]:
    """The cells of a column as text."""
    cells = np.asarray(column).tolist()
    kind = np.asarray(column).dtype.kind
    if kind == "f":
        return ["" if cell != cell else _number(cell, exact) for cell in cells]
    if kind == "b":
        return ["true" if cell else "false" for cell in cells]
    texts = [str(cell) for cell in cells]
    return texts if kind in "iu" else quoted(texts, delimiter)


def _number(number: float, exact: bool) -> str:
    return repr(number).removesuffix(".0") if exact else f"{number:.6g}"


class _TextColumn(NamedTuple):
    """Cells as bytes, ``text[starts[k]:][:lengths[k]]`` each; cell ``places[t]`` is in line t of a table."""

    text: NDArray[np.uint8]
    starts: NDArray[np.int64]
    lengths: NDArray[np.int32]
    places: NDArray[np.int64]

    @classmethod
    def of(cls, column: NDArray[Any] | Coded, delimiter: str, exact: bool) -> Self:
        """A column of any kind."""
        if isinstance(column, Coded):
            used = np.flatnonzero(np.bincount(column.codes, minlength=1))
            place = np.zeros(len(column.values), np.int64)
            place[used] = np.arange(len(used))
            return cls.of(column.values[used], delimiter, exact)._replace(places=place[column.codes])
        if column.dtype.kind == "f":
            return cls.of_numbers(column, exact)
        if column.dtype.kind == "b":
            return cls.of_texts(["false", "true"])._replace(places=column.astype(np.int64))
        texts = [str(cell) for cell in column.tolist()]
        return cls.of_texts(texts if column.dtype.kind in "iu" else quoted(texts, delimiter))

    @classmethod
    def of_texts(cls, texts: list[str]) -> Self:
        """Texts as they are."""
        encoded = [text.encode() for text in texts]
        lengths = np.array([len(each) for each in encoded], np.int32)
        starts = np.cumsum([0, *lengths[:-1]], dtype=np.int64)[: len(encoded)]
        return cls(np.frombuffer(b"".join(encoded), np.uint8), starts, lengths, np.arange(len(encoded)))

    @classmethod
    def of_numbers(cls, numbers: NDArray[Any], exact: bool) -> Self:
        """Decimals, those of which compiled loops are not certain by Python; NaN is empty."""
        column = np.ascontiguousarray(numbers, dtype=np.float64)
        text, lengths = np.empty((len(column), WIDTH), np.uint8), np.empty(len(column), np.int32)
        if not exact:
            format_to_six(column, text, lengths)
        for digits in DIGITS if exact else ():
            format_exactly(column, digits, text, lengths)
            if np.count_nonzero(lengths < 0) <= FEW * len(lengths):
                break
        for t in np.flatnonzero(lengths < 0).tolist():
            own = _number(float(column[t]), exact).encode()
            text[t, : len(own)], lengths[t] = np.frombuffer(own, np.uint8), len(own)
        return cls(text.ravel(), WIDTH * np.arange(len(column)), lengths, np.arange(len(column)))


def _joined(columns: list[_TextColumn], delimiter: str) -> bytes:
    """The lines of a table."""
    first = np.cumsum([0, *(len(each.lengths) for each in columns)])
    offset = np.cumsum([0, *(each.text.size for each in columns)])
    starts = np.concatenate([begin + each.starts for begin, each in zip(offset, columns, strict=False)])
    lengths = np.concatenate([each.lengths for each in columns])
    cells = np.stack([begin + each.places for begin, each in zip(first, columns, strict=False)])
    out = np.empty(int(lengths[cells].sum()) + cells.size, np.uint8)
    text = np.concatenate([each.text for each in columns])
    merge_columns(text, starts, lengths, cells, ord(delimiter), out)
    return out.tobytes()


def quoted(cells: list[str], delimiter: str) -> list[str]:
    """Cells with quotes around those that hold delimiters, quotes or line ends."""
    special = ('"', "\n", "\r", delimiter)
    if not _holds_any("".join(cells), special):
        return cells
    return ['"' + cell.replace('"', '""') + '"' if _holds_any(cell, special) else cell for cell in cells]


def _holds_any(text: str, signs: tuple[str, ...]) -> bool:
    return any(sign in text for sign in signs)
