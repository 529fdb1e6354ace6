"""Parquet files and folders of them, written block by block."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from surefill.io.files import Block, Write

LINES_PER_PART = 1 << 20
"""Lines after which a folder's next part begins: tens of megabytes, as readers of such folders like them."""


@contextmanager
def parquet_file(path: Path) -> Iterator[Write]:
    """A function that adds blocks to a file, each as a row group."""
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
def parquet_folder(folder: Path) -> Iterator[Write]:
    """A function that adds blocks to ``part-00000.parquet`` and those after it, none of them split between two."""
    count, lines = 0, 0
    write_part: Write | None = None
    with ExitStack() as last:

        def write(block: Block) -> None:
            nonlocal count, lines, write_part
            if write_part is None or lines >= LINES_PER_PART:
                last.close()
                write_part = last.enter_context(parquet_file(folder / part_name(count)))
                count, lines = count + 1, 0
            write_part(block)
            lines += len(next(iter(block.values())))

        yield write


def part_name(number: int) -> str:
    """The name of one of a folder's parts; their order is that of their names.

    >>> part_name(7)
    'part-00007.parquet'
    """
    return f"part-{number:05d}.parquet"
