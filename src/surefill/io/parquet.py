"""Parquet files, or folders of them that hold one table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from surefill.errors import InputError, MissingPackageError
from surefill.inputs import check_ratio
from surefill.io.files import PARQUET_SUFFIXES

BYTES_PER_ENTRY = 8
"""Of a number in memory; a few bytes of a file may stand for any number of equal ones."""


def parquet_names(path: Path) -> list[str]:
    """The names of the columns."""
    return [str(name) for name in _schema(path).names]


def only_numbers_beside_first(path: Path) -> bool:
    """Whether there are more than three columns, and all but the first hold numbers."""
    from pyarrow import types

    kinds = list(_schema(path).types)
    return len(kinds) > 3 and all(types.is_integer(kind) or types.is_floating(kind) for kind in kinds[1:])


def read_parquet(path: Path, columns: Sequence[str] | None = None, ids: Sequence[str] = ()) -> Any:
    """The columns asked for, or all, as a pyarrow table; text of the columns ``ids`` is held once for all its lines."""
    parts, tables = _parts_of(path), list[Any]()
    for part in parts:
        with _opened(part, columns, ids) as file:
            tables.append(file.read(columns=columns))
        if tables[-1].schema != tables[0].schema:
            raise InputError(f"{part} has other columns than {parts[0]}; the parts of a table must have the same.")
    import pyarrow

    return pyarrow.concat_tables(tables)


def parquet_length(path: Path) -> int:
    """How many lines the table has."""
    total = 0
    for part in _parts_of(path):
        with _opened(part) as file:
            total += int(file.metadata.num_rows)
    return total


def parquet_batches(path: Path, columns: Sequence[str], size: int, ids: Sequence[str] = ()) -> Iterator[Any]:
    """The columns as pyarrow tables of at most ``size`` lines each, read one by one; ``ids`` as in reading all."""
    import pyarrow

    for part in _parts_of(path):
        with _opened(part, columns, ids) as file:
            for batch in file.iter_batches(batch_size=size, columns=list(columns)):
                yield pyarrow.Table.from_batches([batch])
    pyarrow.default_memory_pool().release_unused()  # hundreds of megabytes, kept for further reading otherwise


def _schema(path: Path) -> Any:
    with _opened(_parts_of(path)[0]) as file:
        return file.schema_arrow


def _parts_of(path: Path) -> list[Path]:
    """The file, or the parquet files of a folder in the order of their names."""
    if not path.is_dir():
        return [path]
    parts = sorted(part for part in path.iterdir() if part.suffix.lower() in PARQUET_SUFFIXES)
    if not parts:
        raise InputError(
            f"{path} is a folder without parquet files; a file with one observation per line is expected, or a "
            "folder of parquet files."
        )
    return parts


@contextmanager
def _opened(path: Path, columns: Sequence[str] | None = (), ids: Sequence[str] = ()) -> Iterator[Any]:
    """A file of which the ``columns``, or all where None, may be read without taking all memory."""
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise MissingPackageError("reading parquet files", "pyarrow") from None
    try:
        with parquet.ParquetFile(path) as file:
            texts = [field.name for field in file.schema_arrow if field.name in ids and _is_text(field.type)]
            _check_size(path, file.metadata, file.schema_arrow.names if columns is None else columns)
            if not texts:
                yield file
        if texts:
            with parquet.ParquetFile(path, read_dictionary=texts) as file:
                yield file
    except (pyarrow.ArrowException, OSError, UnicodeDecodeError) as error:
        reason = str(error).partition("\n")[0].rstrip(".")
        raise InputError(f"{path} is damaged or not a parquet file: {reason}.") from None


def _is_text(kind: Any) -> bool:
    from pyarrow import types

    return bool(types.is_string(kind) or types.is_large_string(kind))


def _check_size(path: Path, metadata: Any, columns: Sequence[str]) -> None:
    """Refuse columns that become far larger than their file, by what it says of its lines and of its bytes.

    Groups of lines are asked, not their columns: of those, damaged files make the reader end the whole process.
    """
    stated = sum(metadata.row_group(k).total_byte_size for k in range(metadata.num_row_groups)) if columns else 0
    check_ratio(path, path.stat().st_size, max(stated, BYTES_PER_ENTRY * len(columns) * metadata.num_rows))
