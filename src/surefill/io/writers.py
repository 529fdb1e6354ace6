"""Tables of results to files, block by block, so that a table never needs to be in memory as a whole."""

from __future__ import annotations

import gzip
import importlib.util
import os
import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import IO, Any, cast

import numpy as np

from surefill.errors import InputError, MissingPackageError
from surefill.io.durable import replacing, replacing_folder
from surefill.io.excel_writer import excel_file
from surefill.io.files import (
    EXCEL_SUFFIXES,
    PARQUET_SUFFIXES,
    Block,
    Coded,
    Sink,
    Write,
    check_folder,
    check_parts_folder,
)
from surefill.io.parquet_writer import parquet_file, parquet_folder, part_name
from surefill.io.text_lines import format_lines, quoted
from surefill.parallel import ahead

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
        _opened(temporary, suffix, {(columns or {}).get(name, name) for name in exact}) as sink,
    ):
        for block in blocks:
            names = _checked_names(block, names)
            sink.write(_renamed(block, columns))
            lines += _length(block)
        if names is None:
            raise InputError(f"{target} cannot be written: there are no blocks, so its columns are unknown.")
    return lines


Piece = Callable[[], Iterable[Block]]
"""Makes some consecutive blocks of a table, in whichever thread it is called."""


def write_pieces(
    path: str | os.PathLike[str],
    pieces: Iterable[Piece],
    *,
    columns: Mapping[str, str] | None = None,
    exact: Collection[str] = ("value",),
    written: Callable[[int], None] = lambda step: None,
) -> int:
    """As :func:`write_table`, its blocks made and encoded on all cores, and written in their order.

    Of a folder each piece is a part of its own. ``written`` is called with the number of pieces written so far.
    """
    target, suffix = Path(path), check_table_target(path)
    lines = 0
    with (replacing_folder if suffix == FOLDER else replacing)(target) as temporary, ExitStack() as stack:
        if suffix == FOLDER:

            def work(numbered: tuple[int, Piece]) -> tuple[list[Any], int]:
                number, piece = numbered
                with parquet_file(temporary / part_name(number)) as part:
                    return [], sum(_written(part, _renamed(block, columns)) for block in piece())

            append: Callable[[Any], None] = _ignored
        else:
            sink = stack.enter_context(_opened(temporary, suffix, {(columns or {}).get(name, name) for name in exact}))

            def work(numbered: tuple[int, Piece]) -> tuple[list[Any], int]:
                blocks = [_renamed(block, columns) for block in numbered[1]()]
                return [sink.encode(block) for block in blocks], sum(map(_length, blocks))

            append = sink.append
        for step, (encoded, more) in enumerate(ahead(work, enumerate(pieces)), 1):
            for each in encoded:
                append(each)
            lines += more
            written(step)
    return lines


def _written(part: Sink, block: Block) -> int:
    part.write(block)
    return _length(block)


def _ignored(encoded: Any) -> None:
    """Nothing is left to do with a part that is written."""


def _renamed(block: Block, columns: Mapping[str, str] | None) -> Block:
    plain = {name: column if isinstance(column, Coded) else np.asarray(column) for name, column in block.items()}
    return {(columns or {}).get(name, name): column for name, column in plain.items()}


def _length(block: Block) -> int:
    return len(next(iter(block.values())))


def bytes_per_line(path: str | os.PathLike[str], block: Block, *, exact: Collection[str] = ("value",)) -> float:
    """How many bytes a line of ``block`` takes in a file like ``path``, which is not written."""
    suffix = check_table_target(path)
    if suffix in EXCEL_SUFFIXES:
        some = max(1, CELLS_AT_ONCE // len(block))
        block = {name: column[:some] for name, column in block.items()}
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "block"
        with _opened(file, PARQUET_SUFFIXES[0] if suffix == FOLDER else suffix, exact) as sink:
            sink.write(block)
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


def _opened(path: Path, suffix: str, exact: Collection[str]) -> AbstractContextManager[Sink]:
    if suffix == FOLDER:
        return _as_it_comes(parquet_folder(path))
    if suffix in PARQUET_SUFFIXES:
        return parquet_file(path)
    if suffix in EXCEL_SUFFIXES:
        return _as_it_comes(excel_file(path))
    return _text_file(path, "\t" if suffix.startswith(".tsv") else ",", suffix.endswith(".gz"), exact)


@contextmanager
def _as_it_comes(opened: AbstractContextManager[Write]) -> Iterator[Sink]:
    """Blocks that are written as they are, without codes."""
    with opened as write:
        yield Sink(lambda block: {name: np.asarray(column) for name, column in block.items()}, write)


def _checked_names(block: Block, names: list[str] | None) -> list[str]:
    if names is not None and list(block) != names:
        raise InputError(f"every block must have the columns {', '.join(names)}; got {', '.join(block)}.")
    lengths = {name: len(column) for name, column in block.items()}
    if len(set(lengths.values())) != 1:
        raise InputError(f"a block must have columns of equal length; got {lengths}.")
    return list(block)


@contextmanager
def _text_file(path: Path, delimiter: str, packed: bool, exact: Collection[str]) -> Iterator[Sink]:
    with ExitStack() as stack:
        file: IO[bytes] = stack.enter_context(open(path, "wb"))
        if packed:
            file = cast(IO[bytes], stack.enter_context(gzip.GzipFile("", "wb", 6, file, mtime=0)))

        def encode(block: Block) -> tuple[bytes, list[bytes]]:
            header = (delimiter.join(quoted(list(block), delimiter)) + "\n").encode()
            step = max(1, CELLS_AT_ONCE // len(block))
            parts = (
                {name: column[start : start + step] for name, column in block.items()}
                for start in range(0, _length(block), step)
            )
            return header, [format_lines(part, delimiter, exact) for part in parts]

        def append(encoded: tuple[bytes, list[bytes]]) -> None:
            header, texts = encoded
            if file.tell() == 0:
                file.write(header)
            for text in texts:
                file.write(text)

        yield Sink(encode, append)
