"""Kinds of files, and where they may be written."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from surefill.errors import InputError
from surefill.inputs import cannot


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
    """Refuse a name whose folder does not exist or, of a file, that is a folder itself, before any work is done.

    What is there already and is no plain file, such as a pipe, need only be writable itself.
    """
    if not target.name:
        raise InputError(f"{str(target)!r} is no name of a file or folder to write; give one.")
    try:
        if target.is_symlink():
            target = target.resolve()
        target.lstat()
    except FileNotFoundError:
        pass  # a file that is not there yet is what is asked for mostly; its folder is looked at below
    except (OSError, RuntimeError, ValueError) as error:  # names too long, loops of links, signs no name has
        raise cannot(target, "be written", error) from None
    if not target.parent.is_dir():
        raise InputError(f"{target} cannot be written: the folder {target.parent} does not exist.")
    plain = not target.exists() or target.is_file() or target.is_dir()
    if not os.access(target.parent if plain else target, os.W_OK):
        what = f"the folder {target.parent}" if plain else "it"
        raise InputError(f"{target} cannot be written: {what} may not be written to.")
    if target.is_dir() and not is_folder:
        raise InputError(f"{target} is a folder; a file name is expected.")


def check_output_folder(folder: Path) -> None:
    """Refuse, before any work, a folder for results that cannot be made or written to."""
    check_folder(folder if folder.name else folder.absolute(), is_folder=True)  # "." has a name there
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file; a folder for the results is expected.")


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
