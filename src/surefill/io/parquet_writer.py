"""Parquet files and folders of them, written block by block."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surefill.io.files import Block, Coded, Sink, Write

LINES_PER_PART = 1 << 20
"""Lines after which a folder's next part begins: tens of megabytes, as readers of such folders like them."""

HARDLY_REPEAT = 4
"""Numbers of which a sample has a quarter as many distinct ones, or more, are not worth a dictionary: looking each of
them up took most of the time to write them."""

SAMPLED = 1000
"""Numbers in that sample: a share of distinct ones near a quarter is then known to within 3 percent points (two
standard errors, 2 sqrt(.25 x .75 / 1000)), and looking at them takes no time next to writing a block of a million."""


@contextmanager
def parquet_file(path: Path) -> Iterator[Sink]:
    """A file to which blocks are added, each as a row group."""
    from pyarrow import parquet

    writer: Any = None
    with ExitStack() as stack:

        def append(encoded: tuple[Any, list[str]]) -> None:
            nonlocal writer
            table, repeating = encoded
            if writer is None:
                # Without its own schema beside parquet's, coded columns are read back as what they stand for.
                opened = parquet.ParquetWriter(path, table.schema, use_dictionary=repeating, store_schema=False)
                writer = stack.enter_context(opened)
            writer.write_table(table.cast(writer.schema) if table.schema != writer.schema else table)

        yield Sink(_as_arrow, append)


def _as_arrow(block: Block) -> tuple[Any, list[str]]:
    """An arrow table, and the columns of it whose values repeat."""
    import pyarrow

    arrays = {name: _arrow_column(column) for name, column in block.items()}
    return pyarrow.table(arrays), [name for name, column in block.items() if _repeats(column)]


def _arrow_column(column: NDArray[Any] | Coded) -> Any:
    import pyarrow

    if isinstance(column, Coded):
        codes = pyarrow.array(column.codes.astype(np.int32, copy=False))
        return pyarrow.DictionaryArray.from_arrays(codes, pyarrow.array(column.values, from_pandas=True))
    return pyarrow.array(column, from_pandas=True)


def _repeats(column: NDArray[Any] | Coded) -> bool:
    if isinstance(column, Coded) or column.dtype.kind != "f":
        return True
    some = column[:: max(1, len(column) // SAMPLED)]
    return len(np.unique(some)) * HARDLY_REPEAT <= len(some)


@contextmanager
def parquet_folder(folder: Path) -> Iterator[Write]:
    """A function that adds blocks to ``part-00000.parquet`` and those after it, none of them split between two."""
    count, lines = 0, 0
    part: Sink | None = None
    with ExitStack() as last:

        def write(block: Block) -> None:
            nonlocal count, lines, part
            if part is None or lines >= LINES_PER_PART:
                last.close()
                part = last.enter_context(parquet_file(folder / part_name(count)))
                count, lines = count + 1, 0
            part.write(block)
            lines += len(next(iter(block.values())))

        yield write


def part_name(number: int) -> str:
    """The name of one of a folder's parts; their order is that of their names.

    >>> part_name(7)
    'part-00007.parquet'
    """
    return f"part-{number:05d}.parquet"
