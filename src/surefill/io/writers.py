"""Tables of results to files, block by block, so that a table never needs to be in memory as a whole."""

from __future__ import annotations

import gzip
import importlib.util
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import IO, Any, cast

import numpy as np
from numpy.typing import NDArray

from surefill.errors import InputError, MissingExtraError
from surefill.io.files import PARQUET_SUFFIXES, check_folder, replacing

Block = Mapping[str, NDArray[Any]]
Write = Callable[[Block], None]

SUFFIXES = (".csv", ".tsv", ".csv.gz", ".tsv.gz", *PARQUET_SUFFIXES)
LINES_AT_ONCE = 4096
"""Lines formatted by one operation, which bounds the memory of its list of cells."""


def write_table(
    path: str | os.PathLike[str],
    blocks: Iterable[Block],
    *,
    columns: Mapping[str, str] | None = None,
    exact: Collection[str] = ("value",),
) -> int:
    """Write blocks of equally long columns to a csv, tsv (or ``.gz``) or parquet file; return the lines.

    The file appears when it is complete: until then a temporary file beside it is written, so whatever goes
    wrong leaves nothing behind and an existing file as it was. In text, numbers keep six significant digits
    (fifteen in ``exact`` columns) and NaN is empty; in parquet, NaN is null.

    Parameters
    ----------
    path : the file; its suffix says which kind.
    blocks : mappings from column name to array, all with the same columns.
    columns : names to write in place of those in the blocks, such as ``{"row": "userId"}``.
    exact : columns of the blocks whose numbers are to be read back as they were.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import surefill as sf
    >>> import numpy as np
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "filled.csv"
    ...     block = {"row": np.array(["ann"]), "value": np.array([4.5])}
    ...     lines = sf.io.write_table(file, [block], columns={"row": "user"})
    ...     print(lines, file.read_text().split())
    1 ['user,value', 'ann,4.5']
    """
    target, suffix = Path(path), check_table_target(path)
    lines, names = 0, None
    with (
        replacing(target) as temporary,
        _opened(temporary, suffix, {(columns or {}).get(name, name) for name in exact}) as write,
    ):
        for block in blocks:
            names = _checked_names(block, names)
            renamed = {(columns or {}).get(name, name): np.asarray(block[name]) for name in names}
            write(renamed)
            lines += len(next(iter(renamed.values())))
        if names is None:
            raise InputError(f"{target} cannot be written: there are no blocks, so its columns are unknown.")
    return lines


def check_table_target(path: str | os.PathLike[str]) -> str:
    """The suffix that says how a table is written to ``path``; refuse, before any work, what cannot be."""
    target = Path(path)
    check_folder(target)
    suffix = next((known for known in SUFFIXES if target.name.lower().endswith(known)), None)
    if suffix is None:
        raise InputError(f"{target} must end in one of {', '.join(SUFFIXES)}, which says how to write it.")
    if suffix in PARQUET_SUFFIXES and importlib.util.find_spec("pyarrow") is None:
        raise MissingExtraError("writing parquet files", "io")
    return suffix


def _opened(path: Path, suffix: str, exact: Collection[str]) -> AbstractContextManager[Write]:
    if suffix in PARQUET_SUFFIXES:
        return _parquet_file(path)
    return _text_file(path, "\t" if suffix.startswith(".tsv") else ",", suffix.endswith(".gz"), exact)


def _checked_names(block: Block, names: list[str] | None) -> list[str]:
    if names is not None and list(block) != names:
        raise InputError(f"every block must have the columns {', '.join(names)}; got {', '.join(block)}.")
    lengths = {name: len(column) for name, column in block.items()}
    if len(set(lengths.values())) != 1:
        raise InputError(f"a block must have columns of equal length; got {lengths}.")
    return list(block)


@contextmanager
def _parquet_file(path: Path) -> Iterator[Write]:
    import pyarrow
    from pyarrow import parquet

    writer: Any = None
    with ExitStack() as stack:

        def write(block: Block) -> None:
            nonlocal writer
            arrays = {name: pyarrow.array(column, from_pandas=True) for name, column in block.items()}
            table = pyarrow.table(arrays)
            if writer is None:
                writer = stack.enter_context(parquet.ParquetWriter(path, table.schema))
            writer.write_table(table)

        yield write


@contextmanager
def _text_file(path: Path, delimiter: str, packed: bool, exact: Collection[str]) -> Iterator[Write]:
    with ExitStack() as stack:
        file: IO[bytes] = stack.enter_context(open(path, "xb"))
        if packed:
            file = cast(IO[bytes], stack.enter_context(gzip.GzipFile("", "wb", 6, file, mtime=0)))

        def write(block: Block) -> None:
            if file.tell() == 0:
                file.write((delimiter.join(quoted(list(block), delimiter)) + "\n").encode())
            for start in range(0, len(next(iter(block.values()))), LINES_AT_ONCE):
                part = {name: column[start : start + LINES_AT_ONCE] for name, column in block.items()}
                file.write(format_lines(part, delimiter, exact).encode())

        yield write


def format_lines(block: Block, delimiter: str, exact: Collection[str]) -> str:
    """All lines of a block by one formatting operation, which is what makes it fast."""
    formats, columns = zip(
        *(_format_column(column, delimiter, ".15g" if name in exact else ".6g") for name, column in block.items()),
        strict=True,
    )
    length, width = len(columns[0]), len(columns)
    cells: list[Any] = [None] * (length * width)
    for k, column in enumerate(columns):
        cells[k::width] = column
    template = delimiter.join(formats) + "\n"
    return (template * length) % tuple(cells)


def _format_column(column: NDArray[Any], delimiter: str, notation: str) -> tuple[str, list[Any]]:
    """A format for every cell of a column, and the cells to be formatted."""
    if column.dtype.kind == "f":
        if not np.isnan(column).any():
            return f"%{notation}", column.tolist()
        return "%s", ["" if cell != cell else f"%{notation}" % cell for cell in column.tolist()]
    if column.dtype.kind == "b":
        return "%s", np.where(column, "true", "false").tolist()
    if column.dtype.kind in "iu":
        return "%d", column.tolist()
    return "%s", quoted([str(cell) for cell in column.tolist()], delimiter)


def quoted(cells: list[str], delimiter: str) -> list[str]:
    """Cells with quotes around those that hold delimiters, quotes or line ends."""
    special = ('"', "\n", "\r", delimiter)
    if not _holds_any("".join(cells), special):
        return cells
    return ['"' + cell.replace('"', '""') + '"' if _holds_any(cell, special) else cell for cell in cells]


def _holds_any(text: str, signs: tuple[str, ...]) -> bool:
    return any(sign in text for sign in signs)
