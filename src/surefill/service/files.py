"""Files of the service: durable before anything refers to them, and one service to a folder."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import IO

from surefill.errors import InputError


def make_durable(file: Path) -> None:
    """Return when the file and its name are on the disk."""
    for path in (file, file.parent):
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def remove_unfinished(folder: Path, name: str = "*") -> None:
    """Remove what a process that was killed has left half-written."""
    for file in folder.glob(f".{name}.part"):
        file.unlink(missing_ok=True)


def claim_folder(folder: Path) -> IO[str]:
    """Make the folder and lock it for this process, until the file that is returned is closed or the process ends."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = open(folder / "serve.lock", "w")  # noqa: SIM115
    except OSError as error:
        raise InputError(f"the folder {folder} cannot be written: {(error.strerror or str(error)).lower()}.") from None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        lock.close()
        raise InputError(f"another service uses the folder {folder}; give each a folder of its own.") from None
    return lock
