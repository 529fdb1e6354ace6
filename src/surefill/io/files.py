"""Files that appear whole or not at all, and where they may be written."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from surefill.errors import InputError

PARQUET_SUFFIXES = (".parquet", ".pq")


def check_folder(target: Path) -> None:
    """Refuse a file name whose folder does not exist, or that is a folder itself, before any work is done."""
    if not target.parent.is_dir():
        raise InputError(f"{target} cannot be written: the folder {target.parent} does not exist.")
    if not os.access(target.parent, os.W_OK):
        raise InputError(f"{target} cannot be written: the folder {target.parent} may not be written to.")
    if target.is_dir():
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
