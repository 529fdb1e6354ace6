"""Tables of results to files, block by block, so that a table never needs to be in memory as a whole."""

from __future__ import annotations

import gzip
import importlib.util
import os
import tempfile
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import IO, Any, cast

import numpy as np
from numpy.typing import NDArray

from surefill.errors import InputError, MissingPackageError
from surefill.io.excel_writer import excel_file
from surefill.io.files import (
    EXCEL_SUFFIXES,
    PARQUET_SUFFIXES,
    Block,
    Write,
    check_folder,
    check_parts_folder,
    replacing,
    replacing_folder,
)
from surefill.io.parquet_writer import parquet_file, parquet_folder

SUFFIXES = (".csv", ".tsv", ".csv.gz", ".tsv.gz", *PARQUET_SUFFIXES, *EXCEL_SUFFIXES)
FOLDER = "/"
"""How a name ends that means a folder of parquet files."""

PARQUET, EXCEL = ("pyarrow", "writing parquet files"), ("openpyxl", "writing Excel files")
NEEDS = dict.fromkeys((*PARQUET_SUFFIXES, FOLDER), PARQUET) | dict.fromkeys(EXCEL_SUFFIXES, EXCEL)
"""Packages that only some kinds of files need, and what for."""

CELLS_AT_ONCE = 1 << 15
"""Cells formatted by one operation, which bounds the memory of their list."""


def write_table(
    path: str | os.PathLike[str],
    blocks: Iterable[Block],
    *,
    columns: Mapping[str, str] | None = None,
    exact: Collection[str] = ("value",),
) -> int:
    """Write blocks of equally long columns to a csv, tsv (or ``.gz``), parquet or Excel file; return the lines.

    The file appears when it is complete: until then a temporary file beside it is written, so whatever goes
    wrong leaves nothing behind and an existing file as it was. In text, numbers keep six significant digits
    (in ``exact`` columns as many as give back the same number) and NaN is empty; in parquet, NaN is null.

    Parameters
    ----------
    path : the file; its suffix says which kind. Text that ends in ``/``, or a folder of such files, means a folder of
        parquet files ``part-00000.parquet``, ..., which appears as a whole too.
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
        (replacing_folder if suffix == FOLDER else replacing)(target) as temporary,
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


def bytes_per_line(path: str | os.PathLike[str], block: Block, *, exact: Collection[str] = ("value",)) -> float:
    """How many bytes a line of ``block`` takes in a file like ``path``, which is not written."""
    suffix = check_table_target(path)
    if suffix in EXCEL_SUFFIXES:
        some = max(1, CELLS_AT_ONCE // len(block))
        block = {name: column[:some] for name, column in block.items()}
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "block"
        with _opened(file, PARQUET_SUFFIXES[0] if suffix == FOLDER else suffix, exact) as write:
            write(block)
        return file.stat().st_size / max(1, len(next(iter(block.values()))))


def check_table_target(path: str | os.PathLike[str]) -> str:
    """The suffix that says how a table is written to ``path``; refuse, before any work, what cannot be."""
    target = Path(path)
    suffix = next((known for known in SUFFIXES if target.name.lower().endswith(known)), None)
    if suffix is None and (os.fspath(path).endswith(("/", os.sep)) or target.is_dir()):
        suffix = FOLDER
        check_parts_folder(target)
    else:
        check_folder(target)
    if suffix is None:
        raise InputError(
            f"{target} must end in one of {', '.join(SUFFIXES)}, which says how to write it, or in / for a folder of "
            "parquet files."
        )
    package, feature = NEEDS.get(suffix, ("surefill", ""))
    if importlib.util.find_spec(package) is None:
        raise MissingPackageError(feature, package)
    return suffix


def _opened(path: Path, suffix: str, exact: Collection[str]) -> AbstractContextManager[Write]:
    if suffix == FOLDER:
        return parquet_folder(path)
    if suffix in PARQUET_SUFFIXES:
        return parquet_file(path)
    if suffix in EXCEL_SUFFIXES:
        return excel_file(path)
    return _text_file(path, "\t" if suffix.startswith(".tsv") else ",", suffix.endswith(".gz"), exact)


def _checked_names(block: Block, names: list[str] | None) -> list[str]:
    if names is not None and list(block) != names:
        raise InputError(f"every block must have the columns {', '.join(names)}; got {', '.join(block)}.")
    lengths = {name: len(column) for name, column in block.items()}
    if len(set(lengths.values())) != 1:
        raise InputError(f"a block must have columns of equal length; got {lengths}.")
    return list(block)


@contextmanager
def _text_file(path: Path, delimiter: str, packed: bool, exact: Collection[str]) -> Iterator[Write]:
    with ExitStack() as stack:
        file: IO[bytes] = stack.enter_context(open(path, "xb"))
        if packed:
            file = cast(IO[bytes], stack.enter_context(gzip.GzipFile("", "wb", 6, file, mtime=0)))

        def write(block: Block) -> None:
            if file.tell() == 0:
                file.write((delimiter.join(quoted(list(block), delimiter)) + "\n").encode())
            step = max(1, CELLS_AT_ONCE // len(block))
            for start in range(0, len(next(iter(block.values()))), step):
                part = {name: column[start : start + step] for name, column in block.items()}
                file.write(format_lines(part, delimiter, exact).encode())

        yield write


def format_lines(block: Block, delimiter: str, exact: Collection[str]) -> str:
    """All lines of a block by one formatting operation, which is what makes it fast."""
    formats, columns = zip(
        *(_format_column(column, delimiter, name in exact) for name, column in block.items()), strict=True
    )
    length, width = len(columns[0]), len(columns)
    cells: list[Any] = [None] * (length * width)
    for k, column in enumerate(columns):
        cells[k::width] = column
    template = delimiter.join(formats) + "\n"
    return (template * length) % tuple(cells)


def _format_column(column: NDArray[Any], delimiter: str, exact: bool) -> tuple[str, list[Any]]:
    """A format for every cell of a column, and the cells to be formatted."""
    if column.dtype.kind == "f" and exact:
        return "%s", ["" if cell != cell else repr(cell).removesuffix(".0") for cell in column.tolist()]
    if column.dtype.kind == "f":
        if not np.isnan(column).any():
            return "%.6g", column.tolist()
        return "%s", ["" if cell != cell else f"{cell:.6g}" for cell in column.tolist()]
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
