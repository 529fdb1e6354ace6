"""Files of the service: one service to a folder, one process that fits, and nothing half-written is left."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from surefill.errors import InputError
from surefill.inputs import cannot
from surefill.io.durable import remove_if_unlocked


def remove_unfinished(folder: Path) -> None:
    """Remove what processes that were killed have left half-written; what is being written stays."""
    for file in folder.glob(".*.part"):
        remove_if_unlocked(file)


@contextmanager
def holding(lock: Path) -> Iterator[None]:
    """Wait until no other process holds the lock, which ends with the process that holds it, however that ends."""
    try:
        file = open(lock, "w")  # noqa: SIM115
    except OSError as error:
        raise cannot(lock, "be written", error) from None
    with file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def claim_folder(folder: Path) -> IO[str]:
    """Make the folder and lock it for this process, until the file that is returned is closed or the process ends."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = open(folder / "serve.lock", "w")  # noqa: SIM115
    except OSError as error:
        raise cannot(folder, "be written", error) from None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        lock.close()
        raise InputError(f"another service uses the folder {folder}; give each a folder of its own.") from None
    return lock
