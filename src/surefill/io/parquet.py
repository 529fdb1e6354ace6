"""Parquet files, or folders of them that hold one table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from surefill.errors import InputError, MissingPackageError
from surefill.io.files import PARQUET_SUFFIXES


def parquet_names(path: Path) -> list[str]:
    """The names of the columns."""
    return [str(name) for name in _schema(path).names]


def only_numbers_beside_first(path: Path) -> bool:
    """Whether there are more than three columns, and all but the first hold numbers."""
    from pyarrow import types

    kinds = list(_schema(path).types)
    return len(kinds) > 3 and all(types.is_integer(kind) or types.is_floating(kind) for kind in kinds[1:])


def read_parquet(path: Path, columns: Sequence[str] | None = None) -> Any:
    """The columns asked for, or all, as a pyarrow table."""
    parts, tables = _parts_of(path), list[Any]()
    for part in parts:
        with _opened(part) as file:
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


def parquet_batches(path: Path, columns: Sequence[str], size: int) -> Iterator[Any]:
    """The columns as pyarrow tables of at most ``size`` lines each, read one by one."""
    import pyarrow

    for part in _parts_of(path):
        with _opened(part) as file:
            for batch in file.iter_batches(batch_size=size, columns=list(columns)):
                yield pyarrow.Table.from_batches([batch])


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
def _opened(path: Path) -> Iterator[Any]:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise MissingPackageError("reading parquet files", "pyarrow") from None
    try:
        with parquet.ParquetFile(path) as file:
            yield file
    except (pyarrow.ArrowException, OSError, UnicodeDecodeError) as error:
        reason = str(error).partition("\n")[0].rstrip(".")
        raise InputError(f"{path} is damaged or not a parquet file: {reason}.") from None
