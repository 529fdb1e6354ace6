"""Files that appear whole or not at all, and where they may be written."""

from __future__ import annotations

import os
import re
import secrets
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from surefill.errors import InputError


@dataclass(frozen=True, eq=False)
class Coded:
    """A column of few distinct values: ``values[codes]``, which files that can hold as it is.

    >>> np.asarray(Coded(np.array([1, 0, 1]), np.array(["ann", "bob"]))[1:])
    array(['ann', 'bob'], dtype='<U3')
    """

    codes: NDArray[Any]
    values: NDArray[Any]

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, lines: Any) -> Self:
        return type(self)(self.codes[lines], self.values)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.asarray(self.values[self.codes], dtype=dtype)


Block = Mapping[str, NDArray[Any] | Coded]
"""Lines of a table: columns of equal length by name."""

Write = Callable[[Block], None]


class Sink(NamedTuple):
    """A file that blocks are written to: what ``encode`` makes of one, in any thread, ``append`` adds, in order."""

    encode: Callable[[Block], Any]
    append: Callable[[Any], None]

    def write(self, block: Block) -> None:
        """Add a block."""
        self.append(self.encode(block))


PARQUET_SUFFIXES = (".parquet", ".pq")
EXCEL_SUFFIXES = (".xlsx",)

PART = re.compile(r"part-\d+\.parquet")
"""How the files of a folder are called that hold one table."""


def check_folder(target: Path, is_folder: bool = False) -> None:
    """Refuse a name whose folder does not exist or, of a file, that is a folder itself, before any work is done."""
    if not target.parent.is_dir():
        raise InputError(f"{target} cannot be written: the folder {target.parent} does not exist.")
    if not os.access(target.parent, os.W_OK):
        raise InputError(f"{target} cannot be written: the folder {target.parent} may not be written to.")
    if target.is_dir() and not is_folder:
        raise InputError(f"{target} is a folder; a file name is expected.")


@contextmanager
def replacing(target: Path) -> Iterator[Path]:
    """A temporary path beside ``target`` that takes its place when all went well and vanishes otherwise."""
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
    try:
        yield temporary
        os.replace(temporary, target)
    except OSError as error:
        raise InputError(f"{target} cannot be written: {error.strerror or error}.") from error
    finally:
        temporary.unlink(missing_ok=True)


def check_parts_folder(target: Path) -> None:
    """Refuse a folder for the parts of a table that cannot be made, or that holds other things than such parts."""
    check_folder(target, is_folder=True)
    if target.exists() and not target.is_dir():
        raise InputError(f"{target} is a file; a folder for parquet files is expected.")
    others = [path.name for path in target.iterdir() if not PART.fullmatch(path.name)] if target.exists() else []
    if others:
        raise InputError(
            f"{target} is a folder that holds other things, such as {min(others)}; name a new folder, or one with "
            "nothing but the parts of a table, which would be replaced."
        )


@contextmanager
def replacing_folder(target: Path) -> Iterator[Path]:
    """A temporary folder beside ``target`` that takes its place when all went well and vanishes otherwise."""
    mark = secrets.token_hex(4)
    temporary, old = (target.with_name(f".{target.name}.{mark}.{end}") for end in ("part", "old"))
    try:
        temporary.mkdir()
        yield temporary
        if target.exists():
            os.replace(target, old)
        os.replace(temporary, target)
    except OSError as error:
        raise InputError(f"{target} cannot be written: {error.strerror or error}.") from error
    finally:
        if old.exists() and not target.exists():
            os.replace(old, target)
        for folder in (temporary, old):
            shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def adding_files(target: Path) -> Iterator[Path]:
    """A temporary folder whose files are put into ``target`` when all went well and vanish otherwise.

    Files of the same names are replaced, others in ``target`` stay; it is made where it does not exist.
    """
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
    try:
        temporary.mkdir()
        yield temporary
        target.mkdir(exist_ok=True)
        for path in sorted(temporary.iterdir()):
            os.replace(path, target / path.name)
    except OSError as error:
        raise InputError(f"the folder {target} cannot be made: {error.strerror or error}.") from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
